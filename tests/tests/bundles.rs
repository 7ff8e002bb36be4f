//! Bundles: made with `sheaf bundle`, run by the runtime alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sheaf_tests::{Sandbox, sheaf, skip};

/// A program that trains, goes on where the last run ended, and reads data.
const TRAIN: &str = r#"
(use metrics)

(def data (io "load" "data/points.csv"))
(def x (reshape (cast (get data "x") :f32) '[-1 1]))
(def y (reshape (cast (get data "y") :f32) '[-1 1]))

(defn loss [p x y] (mean (** (- (+ (@ x (get p :w)) (get p :b)) y) 2)))

; The value is a number first, and a tensor then.
(defn step [[p _] x y]
  (let [[value grads] ((value-and-grad loss) p x y)]
    (list (tree-map (fn [w g] (- w (* 0.1 g))) p grads) value)))

(def start
  (if (io "exists" "state.safetensors")
    (io "load" "state.safetensors")
    {:w (zeros '[1 1]) :b (zeros '[1])}))

(let [end (first (repeat [i 200] [state (list start 0.0)] (step state x y)))]
  (io "save" "state.safetensors" end)
  (print "loss {:.6f}" (loss end x y)))
"#;

/// The runtime beside `sheaf`.
fn runtime() -> Option<PathBuf> {
    let path = sheaf().with_file_name(format!("sheaf-rt{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        skip("there is no sheaf-rt: cargo build --workspace --bins");
        return None;
    }
    Some(path)
}

fn sandbox() -> Option<Sandbox> {
    runtime()?;
    Sandbox::with_compiler()
}

/// The runtime that `make runtime` built for a target of Rust, if it did.
fn built_runtime(triple: &str) -> Option<PathBuf> {
    let path =
        sheaf().parent().and_then(Path::parent).expect("a folder").join(triple).join("runtime/sheaf-rt");
    if !path.is_file() {
        skip(&format!("there is no runtime for {triple}: make runtime TRIPLE={triple}"));
        return None;
    }
    Some(path)
}

/// True if there is a program of that name.
fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Runs a program without any variable of the environment, in a folder.
fn run_bare(program: &Path, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).env_clear().current_dir(folder).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a run without errors.
fn output(run: &Output) -> String {
    assert!(run.status.success(), "{}{}", text(&run.stdout), text(&run.stderr));
    text(&run.stdout)
}

/// Calls of a function by the report of `--blame`, if all of them were compiled.
fn compiled_calls(run: &Output, function: &str) -> usize {
    let blamed = text(&run.stderr);
    let row =
        blamed.lines().find(|line| line.split(' ').next() == Some(function)).expect("a row of the function");
    assert!(row.ends_with("compiled"), "{blamed}");
    // An interpreted call has calls of its own.
    let below = blamed.lines().filter(|line| line.contains("(value-and-grad loss)")).count();
    assert_eq!(below, 0, "{blamed}");
    row.split_whitespace().nth(1).and_then(|calls| calls.parse().ok()).expect("a count")
}

/// A sandbox with the bundle `xor` of the XOR example, and what `sheaf` prints for it.
fn xor(options: &[&str]) -> Option<(Sandbox, String)> {
    let sandbox = sandbox()?;
    sandbox.example("xor/train.shf");
    let trained = sandbox.run(&["xor/train.shf", "--jit", "always", "--record", "shapes.json"]).compiled();
    let mut arguments = vec!["bundle", "xor/train.shf", "--shapes", "shapes.json", "--output", "xor.bundle"];
    arguments.extend(options);
    let _ = sandbox.run(&arguments).compiled();
    Some((sandbox, trained))
}

#[test]
fn trains_without_sheaf() {
    let Some((sandbox, trained)) = xor(&[]) else { return };
    let elsewhere = tempfile::tempdir().expect("a folder");
    let bundle = elsewhere.path().join("moved");
    fs::rename(sandbox.path("xor.bundle"), &bundle).expect("it is moved");
    let run = run_bare(&bundle.join("sheaf-rt"), elsewhere.path(), &["--blame", "--strict"]);
    assert_eq!(output(&run), trained);
    assert_eq!(compiled_calls(&run, "train-step"), 500, "{}", text(&run.stderr));
    // Nothing was written.
    assert_eq!(fs::read_dir(elsewhere.path()).expect("a folder").count(), 1);
    let guarded =
        run_bare(&bundle.join("sheaf-rt"), elsewhere.path(), &["--guard", "train-step:range:0:0.001"]);
    assert_eq!(guarded.status.code(), Some(3), "{}", text(&guarded.stderr));
}

/// On Linux for another processor, by its emulator.
#[test]
fn trains_on_another_processor() {
    let Some(runtime) = built_runtime("aarch64-unknown-linux-gnu") else { return };
    let Some(emulator) = ["qemu-aarch64-static", "qemu-aarch64"].into_iter().find(|name| starts(name)) else {
        skip("there is no qemu-aarch64: install qemu-user-static");
        return;
    };
    let options = ["--platform", "linux-aarch64", "--runtime", &runtime.to_string_lossy()];
    let Some((sandbox, trained)) = xor(&options) else { return };
    let program = sandbox.path("xor.bundle/sheaf-rt").to_string_lossy().into_owned();
    let run = run_bare(Path::new(emulator), &sandbox.path(""), &[&program, "--blame", "--strict"]);
    assert_eq!(output(&run), trained);
    assert_eq!(compiled_calls(&run, "train-step"), 500, "{}", text(&run.stderr));
}

/// Training with nothing but the kernel, from an archive that is small enough for a device.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn trains_in_an_empty_root() {
    let Some(runtime) = built_runtime("x86_64-unknown-linux-musl") else { return };
    let apart = Command::new("unshare").args(["--map-root-user", "--net", "true"]).output();
    if !apart.is_ok_and(|run| run.status.success()) {
        skip("there is no unshare, or it may not make a namespace");
        return;
    }
    let runtime = ["--runtime", &runtime.to_string_lossy()];
    let Some((sandbox, trained)) = xor(&runtime) else { return };
    let make = ["bundle", "xor/train.shf", "--shapes", "shapes.json", "--output", "xor.tar.xz"];
    let _ = sandbox.run(&[&make[..], &runtime].concat()).compiled_nothing();
    let archive = sandbox.path("xor.tar.xz");
    let length = fs::metadata(&archive).expect("it is there").len();
    assert!(length <= 1_800_000, "{length} bytes");
    let root = tempfile::tempdir().expect("a folder");
    let tar = Command::new("tar").arg("xf").arg(archive).current_dir(root.path()).output();
    let _ = output(&tar.expect("tar starts"));
    let inside =
        ["--map-root-user", "--net", "/usr/sbin/chroot", ".", "/train/sheaf-rt", "--blame", "--strict"];
    let run = run_bare(Path::new("unshare"), root.path(), &inside);
    assert_eq!(output(&run), trained);
    assert_eq!(compiled_calls(&run, "train-step"), 500, "{}", text(&run.stderr));
}

/// A small executable of this platform, for bundles that are not run: the runtime of tests has 90 MB.
const SMALL: &str = "/bin/true";

#[test]
fn one_executable_and_an_archive_hold_the_same() {
    let Some((sandbox, trained)) = xor(&[]) else { return };
    let make = ["bundle", "xor/train.shf", "--shapes", "shapes.json", "--output"];
    let _ = sandbox.run(&[&make[..], &["xor.run", "--single-file"]].concat()).compiled_nothing();
    for archive in ["xor.tar.gz", "xor.tar.xz"] {
        let _ = sandbox.run(&[&make[..], &[archive, "--runtime", SMALL]].concat()).compiled_nothing();
    }
    let elsewhere = tempfile::tempdir().expect("a folder");
    assert_eq!(output(&run_bare(&sandbox.path("xor.run"), elsewhere.path(), &[])), trained);
    assert_eq!(fs::read_dir(elsewhere.path()).expect("a folder").count(), 0);
    let listed = |folder: &Path| Sandbox::files(folder);
    for archive in ["xor.tar.gz", "xor.tar.xz"] {
        if archive.ends_with("xz") && !starts("xz") {
            skip("there is no xz, by which tar unpacks a .tar.xz");
            continue;
        }
        let tar =
            Command::new("tar").arg("xf").arg(sandbox.path(archive)).current_dir(elsewhere.path()).output();
        let _ = output(&tar.expect("tar starts"));
        let run = run_bare(&runtime().expect("it is there"), elsewhere.path(), &["train", "--strict"]);
        assert_eq!(output(&run), trained);
        let unpacked = elsewhere.path().join("train");
        assert_eq!(listed(&unpacked), listed(&sandbox.path("xor.bundle")));
        fs::remove_dir_all(unpacked).expect("it is removed");
    }
    let verified = sandbox.run(&["bundle", "verify", "xor.run"]).silent();
    assert!(verified.contains("not signed"), "{verified}");
}

#[test]
fn an_altered_byte_anywhere_is_found() {
    let Some((sandbox, _)) = xor(&["--runtime", SMALL]) else { return };
    let _ = sandbox.run(&["cache", "key", "new", "ci"]);
    for (output, options) in [
        ("xor.bundle", &[][..]),
        ("xor.tar.gz", &[][..]),
        ("xor.tar.xz", &[][..]),
        ("xor.run", &["--single-file"][..]),
    ] {
        let mut arguments = vec!["bundle", "xor/train.shf", "--shapes", "shapes.json", "--output", output];
        arguments.extend(["--runtime", SMALL]);
        arguments.extend(options);
        let _ = sandbox.run(&arguments);
        let verified = sandbox.run(&["bundle", "verify", output]).silent();
        assert!(verified.contains("signed by ci:"), "{verified}");
    }
    let mut files: Vec<PathBuf> = Sandbox::files(&sandbox.path("xor.bundle"))
        .iter()
        .map(|name| sandbox.path("xor.bundle").join(name))
        .collect();
    assert!(files.iter().any(|file| file.ends_with("bundle.sig")), "{files:?}");
    files.extend(["xor.tar.gz", "xor.tar.xz", "xor.run"].map(|name| sandbox.path(name)));
    for file in files {
        let bytes = fs::read(&file).expect("a file");
        let bundle =
            if file.starts_with(sandbox.path("xor.bundle")) { "xor.bundle".into() } else { file.clone() };
        // The first, the last, and some between.
        for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            fs::write(&file, altered).expect("it is written");
            let run = sandbox.run(&["bundle", "verify", &bundle.to_string_lossy()]);
            assert_eq!(run.code, Some(1), "byte {at} of {}", file.display());
        }
        fs::write(&file, bytes).expect("it is written");
    }
    fs::write(sandbox.path("xor.bundle/more"), "").expect("it is written");
    insta::assert_snapshot!(sandbox.run(&["bundle", "verify", "xor.bundle"]).stderr);
}

#[test]
fn another_shape_is_an_error_where_shapes_are_frozen() {
    let Some((sandbox, trained)) = xor(&["--frozen-shapes"]) else { return };
    let runtime = sandbox.path("xor.bundle/sheaf-rt");
    assert_eq!(output(&run_bare(&runtime, &sandbox.path(""), &[])), trained);
    let program = sandbox.path("xor.bundle/train.shf");
    let source = fs::read_to_string(&program).expect("the program");
    let other = source.replace("[1 0] [1 1]]", "[1 0] [1 1] [1 1]]").replace("[1] [0]]", "[1] [0] [0]]");
    assert_ne!(other, source);
    fs::write(&program, other).expect("it is written");
    let run = run_bare(&runtime, &sandbox.path(""), &[]);
    assert_eq!(run.status.code(), Some(1));
    insta::assert_snapshot!(text(&run.stderr).replace(&*sandbox.path("").to_string_lossy(), "~/"));
    fs::write(&program, source.replace("(relu (+", "(relu (- ")).expect("it is written");
    let run = run_bare(&runtime, &sandbox.path(""), &[]);
    assert!(text(&run.stderr).contains("not as it is written now"), "{}", text(&run.stderr));
    // As do runs of `sheaf`.
    sandbox.write("xor/train.shf", fs::read_to_string(&program).expect("the program"));
    let run = sandbox.run(&["xor/train.shf", "--frozen-shapes"]);
    assert!(run.stderr.contains("not as it is written now"), "{}", run.stderr);
}

#[test]
fn a_training_goes_on_where_it_ended() {
    let Some(sandbox) = sandbox() else { return };
    sandbox.write("Sheaf.toml", "[package]\nname = \"line\"\nversion = \"1.2.0\"\n\n[dependencies]\nmetrics = { path = \"metrics\" }\n");
    sandbox.write("metrics/Sheaf.toml", "[package]\nname = \"metrics\"\nversion = \"0.1.0\"\n");
    sandbox.write("metrics/src/lib.shf", "(defn error [a b] (abs (- a b)))\n");
    sandbox.write("metrics/LICENSE", "free\n");
    sandbox.write("src/main.shf", TRAIN);
    let points: String =
        (0..64).map(|i| format!("{},{}\n", f64::from(i) / 64.0, f64::from(i) / 32.0 + 1.0)).collect();
    sandbox.write("data/points.csv", format!("x,y\n{points}"));
    let first = sandbox.run(&["run", "--jit", "always", "--record", "shapes.json"]).compiled();
    let second = sandbox.run(&["run", "--jit", "always"]).stdout;
    assert_ne!(first, second);
    fs::remove_file(sandbox.path("state.safetensors")).expect("a checkpoint");
    let made =
        sandbox.run(&["bundle", "--shapes", "shapes.json", "--data", "data/*.csv", "--output", "dist/line"]);
    assert_eq!(made.code, Some(0), "{made}");
    let device = tempfile::tempdir().expect("a folder");
    let runtime = sandbox.path("dist/line/sheaf-rt");
    let run = run_bare(&runtime, device.path(), &["--strict", "--frozen-shapes", "--blame"]);
    assert_eq!(output(&run), first);
    assert_eq!(compiled_calls(&run, "step"), 200, "{}", text(&run.stderr));
    // The state is where the program runs; the bundle stays as it was made.
    assert!(device.path().join("state.safetensors").is_file());
    assert_eq!(output(&run_bare(&runtime, device.path(), &[])), second);
    let _ = sandbox.run(&["bundle", "verify", "dist/line"]).silent();
    assert_eq!(
        fs::read_to_string(sandbox.path("dist/line/packages/0/LICENSE")).expect("a licence"),
        "free\n"
    );
    let bill = fs::read_to_string(sandbox.path("dist/line/sbom.json")).expect("a bill");
    assert!(bill.contains("\"metrics\"") && bill.contains("CycloneDX"), "{bill}");
}

/// Planted in a folder that others may write to.
#[cfg(unix)]
#[test]
fn compiled_functions_of_another_user_are_not_run() {
    let Some((sandbox, trained)) = xor(&[]) else { return };
    let programs = sandbox.path("xor.bundle/__sheaf__");
    if std::os::unix::fs::chown(&programs, Some(4242), None).is_err() {
        skip("files are given away by root alone");
        return;
    }
    let run = run_bare(&sandbox.path("xor.bundle/sheaf-rt"), &sandbox.path(""), &["--blame"]);
    assert_eq!(output(&run), trained);
    let said = text(&run.stderr);
    assert!(said.contains("__sheaf__ belongs to user 4242 and is passed over"), "{said}");
    let step = said.lines().find(|line| line.starts_with("train-step")).expect("a row of train-step");
    assert!(!step.ends_with("compiled"), "{said}");
}

#[test]
fn a_program_gets_a_runtime_with_the_parts_it_uses() {
    let Some(sandbox) = sandbox() else { return };
    sandbox.write(
        "curve.shf",
        "(defn double [(x f32 [3])] (* 2 x))\n\n(plot \"curve.svg\" (double [1.0 2.0 3.0]))\n",
    );
    let make = ["bundle", "curve.shf", "--output", "curve", "--runtime"];
    let refused = sandbox.run(&[&make[..], &[SMALL]].concat());
    assert_eq!(refused.code, Some(1), "{refused}");
    let said = &refused.stderr;
    assert!(
        said.contains("is built without `plot`") && said.contains("plot is used at curve.shf:3"),
        "{said}"
    );
    let _ = sandbox.run(&make[..4]).compiled();
    let device = tempfile::tempdir().expect("a folder");
    output(&run_bare(&sandbox.path("curve/sheaf-rt"), device.path(), &[]));
    assert!(fs::read_to_string(device.path().join("curve.svg")).expect("a picture").starts_with("<svg"));
}

#[test]
fn what_cannot_be_bundled_is_said() {
    let Some(sandbox) = sandbox() else { return };
    sandbox.example("xor/train.shf");
    let run = |arguments: &[&str]| {
        let run = sandbox.run(&[&["bundle", "xor/train.shf"], arguments].concat());
        assert_eq!(run.code, Some(1), "{arguments:?}");
        run.stderr.replace(&*sheaf().with_file_name("").to_string_lossy(), "~/")
    };
    insta::assert_snapshot!(run(&[
        "--platform",
        "linux-aarch64",
        "--runtime",
        &runtime().expect("one").to_string_lossy()
    ]));
    insta::assert_snapshot!(run(&["--platform", "amiga"]));
    insta::assert_snapshot!(run(&["--data", "none/*.csv", "--cpu", "host"]));
    insta::assert_snapshot!(run(&["--output", "xor"]));
    insta::assert_snapshot!(run(&[]));
    // Nothing is left behind.
    assert_eq!(Sandbox::files(&sandbox.path("")), ["xor/train.shf"]);
}

#[test]
fn the_runtime_says_what_it_cannot_run() {
    let Some(runtime) = runtime() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let run = run_bare(&runtime, folder.path(), arguments);
        assert_ne!(run.status.code(), Some(0), "{arguments:?}");
        text(&run.stderr).replace(&*folder.path().to_string_lossy(), "~")
    };
    insta::assert_snapshot!(run(&[]));
    insta::assert_snapshot!(run(&["--fast"]));
    insta::assert_snapshot!(run(&["absent.shf"]));
    for (name, manifest) in [
        ("other", r#"{"format": "sheaf bundle 9"}"#),
        ("damaged", "{"),
        (
            "outside",
            r#"{"format": "sheaf bundle 1", "name": "x", "sheaf": "0.1.0", "platform": "linux-x86_64", "devices": [], "program": "../x.shf", "files": []}"#,
        ),
    ] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        fs::write(folder.path().join(name).join("bundle.json"), manifest).expect("a manifest");
    }
    insta::assert_snapshot!(run(&["other"]));
    insta::assert_snapshot!(run(&["damaged"]));
    insta::assert_snapshot!(run(&["outside"]));
}
