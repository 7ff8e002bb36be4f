//! The other commands of `sheaf cache`: bundles, keys, size and health of the store.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use sheaf_tests::Sandbox;

use sheaf_foundation::SecretKey;

use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, Remote, SQUARES, warnings, writer};
use crate::shared::{folder, taken};

/// [`RUN_SQUARES`] with `--strict`.
const STRICT: [&str; 4] = ["squares.shf", "--jit", "always", "--strict"];

/// A machine that has compiled the program, with a key and without a remote.
fn compiled() -> Option<Machine> {
    let nowhere = Remote::at("");
    Some(Machine::writing(&nowhere)?.push_squares())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The first file of this name in the store's folder.
fn stored(machine: &Machine, folder: &str) -> std::path::PathBuf {
    let cache = machine.sandbox.home().join("cache");
    let files = Sandbox::files(&cache);
    cache.join(files.iter().find(|name| name.starts_with(folder)).unwrap_or_else(|| panic!("{files:?}")))
}

#[test]
fn programs_travel_in_a_file() {
    let Some(a) = compiled() else { return };
    assert_eq!(a.run(&["cache", "export", "programs.tar"]).silent(), "wrote 1 program to programs.tar\n");
    let file = fs::read(a.sandbox.path("programs.tar")).expect("a file");

    let arrive = |file: &[u8], keys: String| {
        let machine = Machine::bare().squares().env("SHEAF_CACHE_TRUSTED_KEYS", keys);
        machine.sandbox.write("programs.tar", file);
        let output = machine.run(&["cache", "import", "programs.tar"]);
        (machine, output)
    };
    let trunk = writer().public().to_string();
    let (b, output) = arrive(&file, trunk.clone());
    assert!(output.silent().starts_with("took in 1 program, "));
    assert_eq!(b.run(&[&STRICT[..], &["--offline"]].concat()).silent(), FOURTEEN);

    // Programs with untrusted signatures are rejected.
    let (c, output) = arrive(&file, String::new());
    assert_eq!(output.code, Some(1), "{output}");
    insta::assert_snapshot!("import_of_a_stranger", output);
    assert_eq!(Sandbox::files(&c.sandbox.home().join("cache/blobs-v2")), [""; 0]);

    // Modified ones too, at any position; a truncated file is reported.
    let place = |text: &str| {
        file.windows(text.len()).position(|bytes| bytes == text.as_bytes()).expect("it is there")
    };
    for place in [
        place("stablehlo."),
        place("/main.vmfb") + 2000,
        place("\"vmfb\":") + 20,
        place("\"signature\":") + 20,
    ] {
        let mut altered = file.clone();
        altered[place] ^= 1;
        let (machine, output) = arrive(&altered, trunk.clone());
        assert_eq!(output.code, Some(1), "{place}: {output}");
        let output = machine.run(&[&STRICT[..], &["--offline"]].concat());
        assert_eq!(output.code, Some(1), "{place}: {output}");
    }
    for (name, file) in [("cut", &file[..2000]), ("none", b"not a tar file at all".as_slice())] {
        let (_, output) = arrive(file, trunk.clone());
        assert_eq!(output.code, Some(1), "{output}");
        insta::assert_snapshot!(format!("import_of_a_file_that_is_{name}"), output);
    }
}

#[test]
fn what_nobody_signed_stays_at_home() {
    let (_folder, remote) = folder();
    let Some(machine) = Machine::writing(&remote) else { return };
    let machine = machine.env("SHEAF_CACHE_KEY", "").squares();
    let output = machine.run(&RUN_SQUARES);
    assert_eq!(output.code, Some(0), "{output}");
    insta::assert_snapshot!("no_key_run", output);
    for command in ["export", "push"] {
        let arguments =
            if command == "export" { &["cache", command, "x.tar"][..] } else { &["cache", command] };
        insta::assert_snapshot!(format!("no_key_{command}"), machine.run(arguments));
    }
    // A key added later signs earlier compilations of this machine.
    let machine = machine.env("SHEAF_CACHE_KEY", writer().reveal());
    assert_eq!(machine.run(&["cache", "push"]).silent(), "sent 1 program\n");
    assert_eq!(taken(Machine::reading(&remote).squares().run(&STRICT)), FOURTEEN);
    let output = machine.run(&["cache", "push", "--read-only"]);
    assert_eq!(output.code, Some(1), "{output}");
    insta::assert_snapshot!("push_read_only", output);
}

#[test]
fn keys() {
    let (_folder, remote) = folder();
    let Some(a) = Machine::writing(&remote) else { return };
    let a = a.env("SHEAF_CACHE_KEY", "");
    let output = a.run(&["cache", "key", "new", "ada"]);
    let public = output.stdout.trim().to_owned();
    assert_eq!((output.code, public.split(':').next()), (Some(0), Some("ada")), "{output}");
    let file =
        Sandbox::files(&a.sandbox.home()).into_iter().find(|name| name.contains("key")).expect("a key file");
    let file = a.sandbox.home().join(file);
    let secret = fs::read_to_string(&file).expect("the key").trim().to_owned();
    assert_eq!(fs::metadata(&file).expect("its state").permissions().mode() & 0o777, 0o600);
    assert!(secret != public && !output.stdout.contains(&secret) && !output.stderr.contains(&secret));
    let again = a.run(&["cache", "key", "new", "ada"]);
    assert_eq!(again.code, Some(1), "{again}");
    assert_eq!(fs::read_to_string(&file).expect("the key").trim(), secret, "it was written over");
    let list = json(&a.run(&["cache", "key", "list", "--json"]).silent());
    assert_eq!(list["own"], public.as_str());
    let a = a.push_squares();

    let Some(b) = Machine::compiling(&remote) else { return };
    let b = b.env("SHEAF_CACHE_TRUSTED_KEYS", "").squares();
    let strange = b.run(&RUN_SQUARES);
    assert_eq!(warnings(&strange).len(), 1, "{strange}");
    assert!(strange.stderr.contains(&format!("sheaf cache key trust {public}")), "{strange}");
    assert_eq!(strange.compiled(), FOURTEEN);

    // A key may be trusted for one remote; here it is for another one.
    let forget = || {
        for folder in [b.sandbox.path("__sheaf__"), b.sandbox.home().join("cache")] {
            fs::remove_dir_all(folder).expect("removed");
        }
    };
    forget();
    assert_eq!(b.run(&["cache", "key", "trust", &public, "--from", "https://other.example"]).code, Some(0));
    let strange = b.run(&RUN_SQUARES);
    assert_eq!(warnings(&strange).len(), 1, "{strange}");
    assert_eq!(strange.compiled(), FOURTEEN);
    assert_eq!(b.run(&["cache", "key", "revoke", "ada"]).code, Some(0));

    forget();
    assert_eq!(b.run(&["cache", "key", "trust", &public]).code, Some(0));
    let list = json(&b.run(&["cache", "key", "list", "--json"]).silent());
    assert_eq!(list["trusted"], serde_json::json!([public]));
    assert_eq!(taken(b.run(&RUN_SQUARES)), FOURTEEN);

    // A program whose key is no longer trusted is not used, though it is in the store.
    assert_eq!(b.run(&["cache", "key", "revoke", &public]).code, Some(0));
    fs::remove_dir_all(b.sandbox.path("__sheaf__")).expect("removed");
    let output = b.run(&RUN_SQUARES);
    assert_eq!(warnings(&output).len(), 1, "{output}");
    assert_eq!(output.compiled(), FOURTEEN);
    // Then it is compiled by this machine.
    fs::remove_dir_all(b.sandbox.path("__sheaf__")).expect("removed");
    assert_eq!(taken(b.run(&RUN_SQUARES)), FOURTEEN);
    assert_eq!(b.run(&["cache", "key", "revoke", "ada"]).code, Some(1));
    // The project's settings do not change that.
    b.sandbox.write("Sheaf.toml", format!("[cache]\ntrusted-keys = [\"{public}\"]\n"));
    assert_eq!(b.run(&["trust", "--yes"]).code, Some(0));
    for folder in [b.sandbox.path("__sheaf__"), b.sandbox.home().join("cache")] {
        fs::remove_dir_all(folder).expect("removed");
    }
    let output = b.run(&RUN_SQUARES);
    assert!(output.stderr.contains("who is not trusted"), "{output}");
    assert_eq!(output.compiled(), FOURTEEN);
    drop(a);
}

/// A project's list is in force there, and a command that changes the user's list says so.
#[test]
fn keys_of_a_project() {
    let machine = Machine::bare();
    let [ada, bob] =
        ["ada", "bob"].map(|name| SecretKey::generate(name).expect("a key").public().to_string());
    machine.sandbox.write("Sheaf.toml", format!("[cache]\ntrusted-keys = [\"{ada}\"]\n"));
    assert_eq!(machine.run(&["trust", "--yes"]).code, Some(0));
    let trust = machine.run(&["cache", "key", "trust", &bob]);
    assert_eq!((trust.code, warnings(&trust).len()), (Some(0), 1), "{trust}");
    assert!(trust.stderr.contains("Sheaf.toml says which keys are trusted"), "{trust}");
    // By its name, from the project's list.
    let revoke = machine.run(&["cache", "key", "revoke", "ada"]);
    assert_eq!((revoke.code, revoke.stdout), (Some(0), format!("no longer trusted: {ada}\n")));
    let list = json(&machine.run(&["cache", "key", "list", "--json"]).silent());
    assert_eq!((&list["trusted"], &list["revoked"]), (&serde_json::json!([ada]), &serde_json::json!([ada])));
    assert_eq!(machine.run(&["cache", "key", "trust", &ada]).code, Some(0));
    let list = json(&machine.run(&["cache", "key", "list", "--json"]).silent());
    assert_eq!(list["revoked"], serde_json::json!([]));
    let address = "https://me:secret@cache.example/x";
    let output = machine.run(&["cache", "key", "trust", &bob, "--from", address]);
    assert_eq!(output.stdout, format!("trusted: {bob}@https://cache.example/x\n"));
    let config = fs::read_to_string(machine.sandbox.home().join("config.toml")).expect("settings");
    assert!(!config.contains("secret"), "{config}");
}

#[test]
fn a_key_for_ci_is_printed_and_not_kept() {
    let machine = Machine::bare();
    let output = machine.run(&["cache", "key", "new", "trunk", "--print-secret"]);
    assert_eq!(output.code, Some(0), "{output}");
    let secret = output.stdout.trim();
    let public = output.stderr.trim().strip_prefix("public key: ").expect("the public key");
    assert_eq!(Sandbox::files(&machine.sandbox.home()), [""; 0], "something was kept");
    let list = json(
        &machine.sheaf(&["cache", "key", "list", "--json"]).env("SHEAF_CACHE_KEY", secret).run().silent(),
    );
    assert_eq!(list["own"], public);
    // An invalid key is rejected without being shown.
    let output = machine.sheaf(&["cache", "key", "list"]).env("SHEAF_CACHE_KEY", &secret[..40]).run();
    assert_eq!(output.code, Some(1), "{output}");
    assert!(!output.stderr.contains(&secret[6..40]), "{output}");
}

#[test]
fn size_stats_and_collection() {
    let (_folder, remote) = folder();
    let Some(machine) = Machine::writing(&remote).map(Machine::push_squares) else { return };
    machine
        .sandbox
        .write("product.shf", SQUARES.replace("sum-of-squares", "product").replace("(* x x)", "(exp x)"));
    let _ = machine.run(&["product.shf", "--jit", "always"]).compiled();
    let size = json(&machine.run(&["cache", "size", "--json"]).silent());
    assert_eq!(size["entries"], 2, "{size}");
    let bytes = size["bytes"].as_u64().expect("a number");
    let stats = json(&machine.run(&["cache", "stats", "--json"]).silent());
    assert_eq!((&stats["entries"], &stats["bytes"]), (&size["entries"], &size["bytes"]));
    assert!(stats["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{stats}");
    for (table, row) in [
        ("function", "sum-of-squares".to_owned()),
        ("function", "product".to_owned()),
        ("device", "cpu".to_owned()),
        ("compiler", "3.13.0".to_owned()),
        ("signer", writer().public().to_string()),
    ] {
        let expected = if table == "function" { 1 } else { 2 };
        assert_eq!(stats[table][&row]["entries"], expected, "{table} {row}: {stats}");
    }
    // Both were looked up and compiled; later hits raise the rate, and programs beside the sources do not count.
    let lookups = |stats: &serde_json::Value| {
        ["stored", "fetched", "compiled"].map(|name| stats["lookups"][name].as_u64().expect("a number"))
    };
    assert_eq!((lookups(&stats), &stats["hit_rate"]), ([0, 0, 2], &0.0.into()), "{stats}");
    assert_eq!(machine.run(&RUN_SQUARES).silent(), FOURTEEN);
    fs::remove_dir_all(machine.sandbox.path("__sheaf__")).expect("removed");
    for _ in 0..2 {
        assert_eq!(machine.run(&RUN_SQUARES).silent(), FOURTEEN);
    }
    let stats = json(&machine.run(&["cache", "stats", "--json"]).silent());
    assert_eq!(lookups(&stats), [1, 0, 2], "{stats}");
    let other = Machine::reading(&remote).squares();
    assert_eq!(other.run(&RUN_SQUARES).silent(), FOURTEEN);
    let stats = json(&other.run(&["cache", "stats", "--json"]).silent());
    assert_eq!((lookups(&stats), &stats["hit_rate"]), ([0, 1, 0], &1.0.into()), "{stats}");
    let text = other.run(&["cache", "stats"]).silent();
    assert!(text.contains("found 100 % of 1 looked for: 0 here, 1 in a remote cache"), "{text}");
    // Room for one program, then for none.
    let limit = format!("{}B", bytes - 1);
    let collected = json(&machine.run(&["cache", "gc", "--max-size", &limit, "--json"]).silent());
    assert_eq!((&collected["removed"]["entries"], &collected["kept"]["entries"]), (&1.into(), &1.into()));
    let collected = json(&machine.run(&["cache", "gc", "--max-size", "0B", "--json"]).silent());
    assert_eq!(collected["kept"], serde_json::json!({ "entries": 0, "bytes": 0 }));
    // The program beside the sources runs; without it, it is compiled again.
    assert_eq!(machine.run(&RUN_SQUARES).silent(), FOURTEEN);
    fs::remove_dir_all(machine.sandbox.path("__sheaf__")).expect("removed");
    let run = [&RUN_SQUARES[..], &["--offline", "--cache-remote", ""]].concat();
    assert_eq!(machine.run(&run).compiled(), FOURTEEN);
    assert_eq!(machine.run(&["cache", "clear"]).code, Some(0));
    let size = json(&machine.run(&["cache", "size", "--json"]).silent());
    assert_eq!((&size["entries"], &size["bytes"]), (&0.into(), &0.into()));
}

#[test]
fn verify_finds_damage_and_removes_it() {
    let Some(machine) = compiled() else { return };
    assert_eq!(machine.run(&["cache", "verify"]).silent(), "1 program, 0 of them damaged\n");
    let blobs = machine.sandbox.home().join("cache/blobs-v2");
    for name in Sandbox::files(&blobs) {
        let mut bytes = fs::read(blobs.join(&name)).expect("a blob");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(blobs.join(name), bytes).expect("written");
    }
    let output = machine.run(&["cache", "verify"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert_eq!(warnings(&output).len(), 1, "{output}");
    assert_eq!(output.stdout, "1 program, 1 of them damaged\n");
    assert_eq!(machine.run(&["cache", "verify"]).silent(), "0 programs, 0 of them damaged\n");
    fs::remove_dir_all(machine.sandbox.path("__sheaf__")).expect("removed");
    assert_eq!(machine.run(&RUN_SQUARES).compiled(), FOURTEEN);
    assert_eq!(machine.run(&["cache", "verify"]).silent(), "1 program, 0 of them damaged\n");
    assert!(stored(&machine, "claims-v1").is_file());
}

/// Programs that a build would compile are fetched before going offline.
#[test]
fn what_a_project_needs_is_pulled_before_a_journey() {
    let (_folder, remote) = folder();
    let Some(a) = Machine::writing(&remote) else { return };
    let a = a.squares();
    let recorded = a.run(&[&RUN_SQUARES[..], &["--record", "shapes.json"]].concat());
    assert_eq!(recorded.compiled(), FOURTEEN);
    let shapes = fs::read(a.sandbox.path("shapes.json")).expect("what was recorded");

    let arrived = |machine: Machine| {
        let machine = machine.squares();
        machine.sandbox.write("shapes.json", &shapes);
        machine
    };
    let pull = ["cache", "pull", "squares.shf", "--shapes", "shapes.json"];
    let b = arrived(Machine::reading(&remote));
    let pulled = taken(b.run(&pull));
    assert!(
        pulled.contains("(fetched, ") && pulled.contains("0 compiled, 1 fetched, 0 there before"),
        "{pulled}"
    );
    let again = taken(b.run(&pull));
    assert!(again.contains("0 compiled, 1 there before"), "{again}");
    assert_eq!(b.run(&[&STRICT[..], &["--offline"]].concat()).silent(), FOURTEEN);

    // Programs that no cache has are reported as an error, since they would fail offline.
    let c = arrived(Machine::reading(&Remote::at("")));
    let output = c.run(&pull);
    assert_eq!(output.code, Some(1), "{output}");
    insta::assert_snapshot!("pull_of_what_is_nowhere", output);
}
