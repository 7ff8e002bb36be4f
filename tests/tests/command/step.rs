//! `sheaf step`: lowering, compilation and linking, each by itself.

use std::fs;

use sheaf_tests::Sandbox;

const PROGRAM: &str = "\
(defn double [x] (* 2 x))
(defn triple [x] (* 3 x))
(print (double [1.0 2.0]) (triple [1.0 2.0]))
";

/// A sandbox with both functions lowered and compiled, `0` and `1`.
fn compiled() -> Option<Sandbox> {
    let sandbox = Sandbox::with_compiler()?;
    sandbox.write("p.shf", PROGRAM);
    sandbox.run(&["p.shf", "--jit", "always", "--record", "shapes.json"]).compiled();
    fs::remove_dir_all(sandbox.path("__sheaf__")).expect("a folder");
    lower(&sandbox);
    for call in ["0", "1"] {
        let [lowered, program, claim] =
            [format!("lowered/{call}.json"), format!("{call}.vmfb"), format!("{call}.claim")];
        sandbox.run(&["step", "compile", &lowered, "--program", &program, "--claim", &claim]).silent();
    }
    Some(sandbox)
}

fn lower(sandbox: &Sandbox) {
    let to = ["--cpu", "x86-64", "--output", "lowered"];
    sandbox.run(&[&["step", "lower", "p.shf", "--shapes", "shapes.json"], &to[..]].concat()).silent();
}

const LINK: [&str; 13] = [
    "step",
    "link",
    "lowered",
    "--program",
    "0.vmfb",
    "--claim",
    "0.claim",
    "--program",
    "1.vmfb",
    "--claim",
    "1.claim",
    "--output",
    "__sheaf__",
];

#[test]
#[cfg(target_arch = "x86_64")]
fn three_steps_give_what_a_run_uses() {
    let Some(sandbox) = compiled() else { return };
    sandbox.run(&LINK).silent();
    // A machine without a compiler and with an empty cache.
    let user = Sandbox::new();
    user.write("p.shf", PROGRAM);
    let files = Sandbox::files(&sandbox.path("__sheaf__"));
    assert_eq!(files.len(), 3, "{files:?}");
    for name in files {
        user.write(
            &format!("__sheaf__/{name}"),
            fs::read(sandbox.path("__sheaf__").join(&name)).expect("a file"),
        );
    }
    let run = user.run(&["p.shf", "--jit", "always", "--strict", "--offline"]).compiled_nothing();
    assert_eq!(run, "[2. 4.] [3. 6.]\n");
    // The same inputs give the same bytes.
    let [program, claim] = ["0.vmfb", "0.claim"].map(|name| fs::read(sandbox.path(name)).expect("a file"));
    sandbox
        .run(&["step", "compile", "lowered/0.json", "--program", "again.vmfb", "--claim", "again"])
        .silent();
    assert_eq!(fs::read(sandbox.path("again.vmfb")).expect("a file"), program);
    assert_eq!(fs::read(sandbox.path("again")).expect("a file"), claim);
}

#[test]
fn a_change_of_one_function_changes_one_file() {
    let Some(sandbox) = compiled() else { return };
    let lowered =
        || ["0", "1"].map(|call| fs::read(sandbox.path(&format!("lowered/{call}.json"))).expect("a file"));
    let before = lowered();
    // Lines that move change nothing.
    sandbox.write("p.shf", format!("; one more line\n{PROGRAM}"));
    lower(&sandbox);
    assert_eq!(lowered(), before);
    sandbox.write("p.shf", PROGRAM.replace("* 3", "* 4"));
    lower(&sandbox);
    let after = lowered();
    assert_eq!((after[0] == before[0], after[1] == before[1]), (true, false));
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let Some(sandbox) = compiled() else { return };
    let message = |arguments: &[&str], code: i32, says: &str| {
        let run = sandbox.run(arguments);
        assert!(run.code == Some(code) && run.stderr.contains(says), "{run}");
    };
    message(
        &["step", "lower", "p.shf", "--shapes", "shapes.json", "--output", "elsewhere"],
        1,
        "name it with --cpu",
    );
    let mut exchanged = LINK;
    (exchanged[4], exchanged[6], exchanged[8], exchanged[10]) = ("1.vmfb", "1.claim", "0.vmfb", "0.claim");
    message(&exchanged, 1, "1.vmfb is not compiled from lowered/0.json");
    message(&[&LINK[..3], &LINK[7..]].concat(), 1, "2 lowered calls, 1 programs and 1 claims");
    sandbox.write("1.vmfb", "no program");
    message(&LINK, 1, "1.vmfb is not what 1.claim claims");
    sandbox.write("lowered/calls.json", "{");
    message(&LINK, 1, "is no file of `sheaf step lower`");
    assert!(!sandbox.path("elsewhere").exists());
    let compile = ["step", "compile", "lowered/0.json", "--program", "p", "--claim", "c", "--compiler", "."];
    message(&compile, 1, "is not installed in .");
}

#[test]
fn a_store_is_shared_with_builds() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("p.shf", PROGRAM);
    sandbox.run(&["p.shf", "--jit", "always", "--record", "shapes.json"]).compiled();
    let build = ["build", "p.shf", "--shapes", "shapes.json", "--cpu", "x86-64"];
    let store = sandbox.home().join("cache").display().to_string();
    let compile = |compiler: &str| {
        lower(&sandbox);
        for call in ["0", "1"] {
            let [lowered, program, claim] =
                [format!("lowered/{call}.json"), format!("{call}.vmfb"), format!("{call}.claim")];
            let step =
                ["step", "compile", &lowered, "--program", &program, "--claim", &claim, "--store", &store];
            sandbox.run(&[&step[..], &["--compiler", compiler]].concat()).silent();
        }
    };
    // A build first: the step needs no compiler.
    sandbox.run(&build).compiled();
    compile("nowhere");
    // The step first: the build compiles nothing.
    sandbox.write("p.shf", PROGRAM.replace("* 2", "* 4").replace("* 3", "* 6"));
    sandbox.run(&["p.shf", "--jit", "always", "--record", "shapes.json"]).compiled();
    compile(&sandbox.home().join("data").display().to_string());
    sandbox.run(&build).compiled_nothing();
    let run = sandbox.run(&["p.shf", "--jit", "always"]);
    assert_eq!(run.stdout, "[4. 8.] [ 6. 12.]\n", "{run}");
}
