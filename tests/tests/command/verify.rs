//! `sheaf verify`: compiled programs and the sources they are said to come from.

use std::fs;

use sheaf_tests::Sandbox;

const PROGRAM: &str = "\
(defn double [(x f32 [2])] (* 2 x))
(defn triple [x] (* 3 x))
(print (double [1.0 2.0]) (triple [1.0 2.0]))
";

const REBUILD: [&str; 5] = ["verify", "p.shf", "--rebuild", "--shapes", "shapes.json"];

/// A program that is compiled for this machine, for another processor and for a GPU.
fn built() -> Option<Sandbox> {
    let sandbox = Sandbox::with_compiler()?;
    sandbox.write("p.shf", PROGRAM);
    sandbox.run(&["p.shf", "--jit", "always", "--record", "shapes.json"]).compiled();
    for target in [["--cpu", "aarch64"], ["--device", "cuda:sm_80"]] {
        let built = sandbox.run(&[&["build", "p.shf", "--shapes", "shapes.json"], &target[..]].concat());
        assert_eq!(built.code, Some(0), "{built}");
    }
    Some(sandbox)
}

#[test]
fn programs_are_rebuilt_from_their_sources_and_others_are_found() {
    let Some(sandbox) = built() else { return };
    let plain = sandbox.run(&["verify", "p.shf"]).silent();
    assert_eq!(plain.matches("as the manifest says").count(), 6, "{plain}");
    let rebuilt = sandbox.run(&REBUILD).compiled();
    assert_eq!(rebuilt.matches("rebuilt, with the same bytes").count(), 6, "{rebuilt}");
    // Without the record, only the function with types.
    let typed = sandbox.run(&REBUILD[..3]);
    assert_eq!((typed.code, typed.stdout.lines().count()), (Some(1), 3), "{typed}");
    assert!(typed.stderr.contains("triple.cpu.vmfb is not of these sources"), "{typed}");
    a_program_of_other_sources_is_found(&sandbox);
}

fn a_program_of_other_sources_is_found(sandbox: &Sandbox) {
    // One of another function, with the manifest that belongs to it.
    let folder = sandbox.path("__sheaf__");
    let manifest = fs::read_to_string(folder.join("manifest.json")).expect("a manifest");
    let entries: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let entry = |file: &str| {
        let all = entries["entries"].as_array().expect("entries");
        all.iter().find(|entry| entry["file"] == file).expect("an entry").clone()
    };
    let (double, triple) = (entry("double.cpu.vmfb"), entry("triple.cpu.vmfb"));
    let field = |entry: &serde_json::Value, name: &str| entry[name].to_string();
    let mut planted = manifest.clone();
    for name in ["digest", "size"] {
        planted = planted.replacen(
            &format!("\"{name}\": {}", field(&double, name)),
            &format!("\"{name}\": {}", field(&triple, name)),
            1,
        );
    }
    assert_ne!(planted, manifest);
    sandbox.write("__sheaf__/manifest.json", planted);
    fs::copy(folder.join("triple.cpu.vmfb"), folder.join("double.cpu.vmfb")).expect("a copy");
    assert_eq!(sandbox.run(&["verify", "p.shf"]).code, Some(0));
    let found = sandbox.run(&REBUILD);
    assert_eq!(found.code, Some(1), "{found}");
    assert!(
        found.stderr.contains("double.cpu.vmfb is not what the compiler makes of the sources"),
        "{found}"
    );

    // Sources that have changed since.
    sandbox.write("__sheaf__/manifest.json", manifest);
    sandbox.write("p.shf", PROGRAM.replace("* 2", "* 4"));
    let changed = sandbox.run(&REBUILD[..3]);
    assert!(changed.code == Some(1) && changed.stderr.contains("double.cpu.vmfb"), "{changed}");
    // A damaged file.
    sandbox.write("__sheaf__/triple.cpu.vmfb", "no program");
    let damaged = sandbox.run(&["verify", "p.shf"]);
    assert!(damaged.code == Some(1) && damaged.stderr.contains("triple.cpu.vmfb"), "{damaged}");
}
