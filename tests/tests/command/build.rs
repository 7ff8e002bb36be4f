//! `sheaf build`: typed functions, for this machine and for others.

use std::fs;

use sheaf_tests::{Output, Sandbox};

use crate::manifest;

/// Two typed functions, one of which trains; an untyped one; one that prints.
pub const NET: &str = "(use optim)
(defparams Net {:w [2 3] :b [3]})
(defn forward [(p :as Net) (x f32 [4 2])]
  (tanh (+ (@ x (:w p)) (:b p))))
(defn train [(p :as Net) (x [4 2]) (epochs i64 []) (lr f32 [])]
  (let [loss (fn [p] (mean (** (forward p x) 2)))]
    (repeat [i epochs] [p p]
      (sgd-step p ((grad loss) p) lr))))
(defn untyped [x] (* x 2))
(defn report [(x f32 [4 3])] (print x))
(let [p {:w [[1 2 3] [4 5 6]] :b [0 0.5 1]}
      x [[0 0.1] [0.2 0.3] [0.4 0.5] [0.6 0.7]]]
  (report (forward (train p x 20 0.5) x)))
";

/// A sandbox with that program.
fn net() -> Option<Sandbox> {
    let sandbox = Sandbox::with_compiler()?;
    sandbox.write("net.shf", NET);
    Some(sandbox)
}

/// Another machine with the same programs and artifacts only: no compiler, no cache, no network.
fn elsewhere(sandbox: &Sandbox) -> Sandbox {
    let other = Sandbox::new();
    other.copy_from(sandbox);
    fs::remove_dir_all(other.home()).expect("a home");
    other
}

/// Runs a program with `--strict` on a machine that cannot compile.
#[track_caller]
fn run_there(sandbox: &Sandbox, program: &str) -> Output {
    elsewhere(sandbox).run(&[program, "--jit", "always", "--strict", "--offline"])
}

#[track_caller]
fn done(output: Output) -> String {
    assert_eq!(output.code, Some(0), "{output}");
    output.stdout
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}\n{output}"))
}

#[test]
fn a_run_after_a_build_compiles_nothing() {
    let Some(sandbox) = net() else { return };
    let interpreted = sandbox.run(&["net.shf", "--no-jit"]).silent();
    let output = sandbox.run(&["build", "net.shf", "--jobs", "1"]);
    insta::assert_snapshot!(output);
    let files = Sandbox::files(&sandbox.path("__sheaf__"));
    assert_eq!(files, [".lock", "forward.cpu.vmfb", "manifest.json", "train.cpu.vmfb"]);
    let actions = Sandbox::files(&sandbox.home().join("cache/claims-v1")).len();
    assert_eq!(actions, 2, "they are in the store too");

    let compiled = run_there(&sandbox, "net.shf").silent();
    assert_eq!(compiled, sandbox.run(&["net.shf", "--jit", "always"]).silent());
    assert_eq!(Sandbox::files(&sandbox.path("__sheaf__")), files);
    assert_eq!(Sandbox::files(&sandbox.home().join("cache/claims-v1")).len(), actions);
    let numbers = |text: &str| -> Vec<f32> {
        text.split(|c: char| "[] \n".contains(c)).filter_map(|word| word.parse().ok()).collect()
    };
    let (a, b) = (numbers(&compiled), numbers(&interpreted));
    assert_eq!((a.len(), b.len()), (12, 12));
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{compiled}{interpreted}");
}

#[test]
fn what_is_there_is_not_built_again() {
    let Some(sandbox) = net() else { return };
    let first = json(&sandbox.run(&["build", "net.shf", "--json"]));
    let functions = first["functions"].as_array().expect("a list");
    let names: Vec<_> = functions.iter().map(|f| f["function"].as_str().expect("a name")).collect();
    assert_eq!(names, ["forward", "train"]);
    for function in functions {
        assert_eq!(function["result"], "compiled");
        assert_eq!(function["device"], "cpu");
        let file = function["file"].as_str().expect("a file");
        assert_eq!(
            fs::metadata(sandbox.path(file)).expect("a file").len(),
            function["bytes"].as_u64().expect("a size")
        );
        let known = manifest(&sandbox.path(""));
        assert!(
            known.iter().any(|e| e["key"] == function["key"] && e["inputs"][0]["path"] == "p.b"),
            "{known:#?}"
        );
    }
    assert_eq!(first["interpreted"][0]["function"], "report");
    let order: Vec<_> =
        functions[1]["inputs"].as_array().expect("leaves").iter().map(|l| &l["path"]).collect();
    assert_eq!(order, ["p.b", "p.w", "x", "epochs", "lr"]);

    let second = sandbox.run(&["build", "net.shf", "--json"]);
    assert_eq!(second.stderr, "");
    assert!(json(&second)["functions"].as_array().expect("a list").iter().all(|f| f["result"] == "cached"));
    // From the store, if the folder is deleted.
    fs::remove_dir_all(sandbox.path("__sheaf__")).expect("a folder");
    assert!(done(sandbox.run(&["build", "net.shf"])).contains("0 compiled, 2 there before"));
    assert!(sandbox.path("__sheaf__/train.cpu.vmfb").exists());
    assert!(
        done(sandbox.run(&["build", "net.shf", "--recompile", "train"]))
            .contains("1 compiled, 0 there before")
    );
    // A build finds the programs compiled by a run.
    let Some(sandbox) = net() else { return };
    let _ = sandbox.run(&["net.shf", "--jit", "always"]).compiled();
    assert!(done(sandbox.run(&["build", "net.shf"])).contains("0 compiled, 2 there before"));
}

#[test]
fn the_others_are_built_where_one_cannot_be() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let broken = "(defn rows [(x f32 [4]) (n i64 [])] (reshape x n -1))
(defn wrong [(x f32 [4])] (@ x [1 2 3]))
(def data (io \"load\" \"x.csv\"))
(defn shifted [(x f32 [4])] (+ x data))
(defn right [(x f32 [4])] (sum x))
";
    sandbox.write("some.shf", broken);
    insta::assert_snapshot!(sandbox.run(&["build", "some.shf"]));
    assert!(sandbox.path("__sheaf__/right.cpu.vmfb").exists());
    let output = sandbox.run(&["build", "some.shf", "--json"]);
    assert_eq!(output.code, Some(1), "{output}");
    let report = json(&output);
    assert_eq!(report["functions"][0]["function"], "right");
    let failed = report["failed"].as_array().expect("a list");
    assert_eq!(failed.len(), 3);
    assert_eq!(failed[1]["place"], serde_json::json!({"file": "some.shf", "line": 2, "column": 27}));
    // Named functions must be built: an interpreted one is an error.
    sandbox.write("print.shf", "(defn report [(x f32 [4])] (print x))\n");
    insta::assert_snapshot!("named_and_interpreted", sandbox.run(&["build", "print.shf", "report"]));
    insta::assert_snapshot!("nothing_to_build", {
        sandbox.write("none.shf", "(defn f [x] x)\n");
        sandbox.run(&["build", "none.shf"])
    });
    insta::assert_snapshot!("unknown_function", sandbox.run(&["build", "none.shf", "g"]));
    insta::assert_snapshot!("no_types", sandbox.run(&["build", "none.shf", "f"]));
    sandbox.write("open.shf", "(defn f [x] (lenght x))\n");
    insta::assert_snapshot!("a_wrong_program", sandbox.run(&["build", "open.shf"]));
}

#[test]
fn without_a_compiler_nothing_is_built() {
    let sandbox = Sandbox::new();
    sandbox.write("squares.shf", "(defn squares [(x f32 [4])] (* x x))\n");
    insta::assert_snapshot!(sandbox.run(&["build", "squares.shf", "--offline"]));
    let build = sandbox.run(&["build", "squares.shf", "--offline"]);
    let tune = sandbox.run(&["tune", "squares.shf", "--offline"]);
    assert_eq!((tune.code, tune.stderr), (build.code, build.stderr));
    assert!(!sandbox.path("__sheaf__").exists());
    assert_eq!(sandbox.run(&["build", "squares.shf"]).code, Some(1), "nobody listens at the index");
}

/// A run compiles a step on large parameters a second time with donation, and so does a build.
#[test]
fn results_in_the_place_of_arguments() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let program = "(defn step [(p f32 [1024 1024]) (g f32 [1024 1024]) (lr f32 [])] (- p (* lr g)))
(print (mean (repeat [i 20] [p (ones '[1024 1024])] (step p (ones '[1024 1024]) 0.01))))
";
    sandbox.write("step.shf", program);
    let report = json(&sandbox.run(&["build", "step.shf", "--json"]));
    let functions = report["functions"].as_array().expect("a list");
    let donations: Vec<&serde_json::Value> = functions.iter().map(|f| &f["donation"]).collect();
    assert_eq!(donations, [&serde_json::json!([]), &serde_json::json!(["0->0"])]);
    assert_eq!(manifest(&sandbox.path("")).len(), 2);
    let output = run_there(&sandbox, "step.shf").silent();
    let mean: f32 = output.trim().parse().expect("a number");
    assert!((mean - 0.8).abs() < 1e-5, "{output}");
    assert_eq!(sandbox.run(&["step.shf"]).silent(), output);
    assert!(done(sandbox.run(&["build", "step.shf"])).contains("0 compiled, 2 there before"));

    // Without a compiler the plain program serves any number of calls.
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("step.shf", program.replace("20", "4"));
    let _ = sandbox.run(&["step.shf", "--jit", "always"]).compiled();
    assert_eq!(manifest(&sandbox.path("")).len(), 1);
    sandbox.write("step.shf", program);
    assert_eq!(run_there(&sandbox, "step.shf").silent(), output);
}

#[test]
fn where_it_cannot_be_written() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("squares.shf", "(defn squares [(x f32 [4])] (* x x))\n");
    sandbox.write("__sheaf__", "a file in its place");
    let output = sandbox.run(&["build", "squares.shf"]);
    assert_eq!(output.code, Some(1), "{output}");
    insta::assert_snapshot!(output);
}

#[test]
fn several_at_once() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let functions: String =
        (1..=7).map(|n| format!("(defn f{n} [(x f32 [{n}])] (sum (* x {n}.5)))\n")).collect();
    sandbox.write("many.shf", functions);
    let output = sandbox.run(&["build", "many.shf", "--jobs", "3"]);
    assert_eq!(output.stderr.matches("compiling f").count(), 7, "{output}");
    let names: Vec<&str> =
        output.stdout.lines().filter_map(|line| line.split_once(": __sheaf__").map(|(n, _)| n)).collect();
    assert_eq!(names, ["f1", "f2", "f3", "f4", "f5", "f6", "f7"], "in the order of the program");
    assert_eq!(manifest(&sandbox.path("")).len(), 7);
    assert_eq!(sandbox.run(&["build", "many.shf", "--jobs", "0"]).code, Some(2));
}

#[test]
fn functions_of_modules_and_of_the_package() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("Sheaf.toml", "[package]\nname = \"p\"\nversion = \"0.1.0\"\n");
    sandbox.write(
        "src/main.shf",
        "(use ./part.shf)\n(defn top [(x f32 [2])] (inner x))\n(print (inner [1 2]))\n",
    );
    sandbox.write("src/part.shf", "(defn inner [(x f32 [2])] (* x x))\n");
    let built = done(sandbox.run(&["build"]));
    assert!(
        built.contains("__sheaf__/top.cpu.vmfb") && built.contains("inner: the same program as top"),
        "{built}"
    );
    assert_eq!(run_there(&sandbox, "src/main.shf").silent(), "[1. 4.]\n");
    assert!(done(sandbox.run(&["build", "src/main.shf", "inner"])).starts_with("inner: "));
}

#[test]
fn programs_get_the_flags_that_pay_for_what_they_hold() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write(
        "f.shf",
        "(use nn)
(defn sum-of [(x f32 [8])] (* 2 (sum x)))
(defn product-of [(a f32 [512 512]) (b f32 [512 512])] (@ a b))
(defn convolved [(x f32 [4 32 32 16]) (k f32 [3 3 16 16])] (conv2d x k))
",
    );
    done(sandbox.run(&["build", "f.shf"]));
    for (name, flag) in [
        ("sum-of", None),
        ("product-of", Some("--iree-opt-data-tiling=true")),
        ("convolved", Some("--iree-global-opt-use-im2col-for-convs")),
    ] {
        let entries = manifest(&sandbox.path(""));
        let entry = entries.iter().find(|entry| entry["function"] == name).expect("an entry");
        let first = entry["alternatives"][0][0].as_str();
        assert_eq!(first, flag, "{name}");
    }
    // Another device has its own flags.
    done(sandbox.run(&["build", "f.shf", "product-of", "--device", "cuda:sm_89"]));
    let entries = manifest(&sandbox.path(""));
    let entry = entries.iter().find(|entry| entry["device"] == "cuda").expect("an entry");
    assert!(entry["alternatives"].is_null());
}

#[test]
fn for_devices_that_are_not_here() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("f.shf", "(defn f [(x f32 [4]) (n i64 [])] (list (* x x) (+ n 1)))\n");
    for (device, name) in
        [("cuda:sm_89", "cuda"), ("vulkan", "vulkan"), ("vulkan:rdna3", "vulkan"), ("metal", "metal")]
    {
        let report = json(&sandbox.run(&["build", "f.shf", "--device", device, "--json"]));
        let function = &report["functions"][0];
        assert_eq!(function["device"], name);
        assert_eq!(function["file"], format!("__sheaf__/f.{name}.vmfb"));
        assert!(function["cpu"].is_null());
        // Numbers have 32 bits if the device supports no more.
        let number = if name == "cuda" { "i64" } else { "i32" };
        assert_eq!(function["inputs"][1]["dtype"], number, "{device}");
    }
    // Programs of several devices coexist.
    assert!(done(sandbox.run(&["build", "f.shf"])).contains("f.cpu.vmfb"));
    let mut devices: Vec<String> = manifest(&sandbox.path(""))
        .iter()
        .map(|e| e["device"].as_str().expect("a device").to_owned())
        .collect();
    devices.sort();
    assert_eq!(devices, ["cpu", "cuda", "metal", "vulkan"]);
}

#[test]
fn for_processors_that_are_not_here() {
    let Some(sandbox) = net() else { return };
    let report = json(&sandbox.run(&["build", "net.shf", "--cpu", "x86-64-v3", "--json"]));
    let cpu = report["functions"][0]["cpu"].as_str().expect("a processor").to_owned();
    assert!(cpu.starts_with("x86_64+avx+avx2+"), "{cpu}");
    let recorded: sheaf_target::Cpu = cpu.parse().expect("a processor");
    let host = sheaf_target::Cpu::host();
    if host.supports(&recorded).is_ok() {
        // A machine with these features runs them without compiling.
        let there = run_there(&sandbox, "net.shf").silent();
        // The machine's own programs take precedence.
        assert!(done(sandbox.run(&["build", "net.shf"])).contains("2 compiled"));
        assert_eq!(manifest(&sandbox.path("")).len(), 4);
        assert_eq!(run_there(&sandbox, "net.shf").silent().lines().count(), there.lines().count());
    }
    // A program that cannot run here is not loaded.
    let Some(other) = net() else { return };
    let foreign = if host.arch() == "aarch64" { "x86-64" } else { "aarch64" };
    let _ = done(other.run(&["build", "net.shf", "--cpu", foreign]));
    let output = run_there(&other, "net.shf");
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.stderr.contains("there is no compiler"), "{output}");
}

#[test]
fn debug_programs_are_others() {
    let Some(sandbox) = net() else { return };
    let _ = done(sandbox.run(&["build", "net.shf", "train"]));
    let _ = done(sandbox.run(&["build", "net.shf", "train", "--debug"]));
    let entries = manifest(&sandbox.path(""));
    assert_eq!(entries.len(), 2);
    let size = |debug: bool| {
        let entry = entries.iter().find(|e| (e["debug"] == true) == debug).expect("an entry");
        entry["size"].as_u64().expect("a size")
    };
    assert!(size(true) > size(false), "{entries:#?}");
    // A run uses the plain program.
    assert_eq!(sandbox.run(&["net.shf"]).code, Some(0));
    assert!(sandbox.run(&["net.shf"]).compiled_nothing().contains('['));
}

#[test]
fn wrong_usage() {
    let sandbox = Sandbox::new();
    sandbox.write("f.shf", "(defn f [(x f32 [4])] x)\n");
    for arguments in [
        &["--device", "tpu"][..],
        &["--device", "cuda:sm_90"],
        &["--device", "vulkan:rdna9"],
        &["--device", "metal:m1"],
        &["--device", "cpu:x86-64-v3"],
        &["--cpu", "pentium"],
        &["--device", "cuda", "--cpu", "x86-64-v3"],
        &["--emit", "graph"],
        &["f", "g", "--emit", "graph"],
        &["f", "--emit", "graph", "-o", "f.txt"],
        &["--emit", "asm", "f"],
        &["-o", "f.vmfb"],
    ] {
        let output = sandbox.run(&[&["build", "f.shf"], arguments].concat());
        assert_eq!(output.code, Some(2), "{output}");
        insta::assert_snapshot!(output);
    }
}

/// A loop in blocks, which is tried as it is built.
#[test]
fn large_loops_are_built_as_a_run_has_them() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write(
        "rows.shf",
        "(defn rows [(h f32 [64 256]) (xs f32 [20 64 256])]
  (scan (fn [h x] (let [h (tanh (+ (* 0.9 (roll h 1 :axis 0)) x))] (list h h))) h xs))
(let [[h hs] (rows (zeros [64 256]) (ones [20 64 256]))]
  (print (round (* 1000 (mean h))) (round (* 1000 (mean hs)))))
",
    );
    let built = sandbox.run(&["build", "rows.shf"]);
    assert_eq!(built.code, Some(0), "{built}");
    let text = sandbox.run(&["build", "--emit", "stablehlo", "rows.shf", "rows"]).silent();
    assert!(text.contains("cf.br"), "{text}");
    let there =
        elsewhere(&sandbox).run(&["rows.shf", "--jit", "always", "--strict", "--offline", "--explain"]);
    assert!(!there.stderr.contains("not in its quickest form"), "{there}");
    assert_eq!(there.stdout, sandbox.run(&["rows.shf", "--no-jit"]).silent());
}
