//! A whole training loop as one small program, run by IREE's own runtime: `examples/xor/loop.shf`, as in
//! `docs/deploy.md`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sheaf_runtime::{ElementType, Runtime, Target, Vmfb, sha256};
use sheaf_tests::{Sandbox, skip};

use crate::manifest;

/// Maximum size of the program in bytes: the language's original goal.
const LIMIT: u64 = 18_432;

/// Path of IREE's `iree-run-module`, of the compiler's release. If it is set, its test must run.
const RUN_MODULE: &str = "SHEAF_IREE_RUN_MODULE";

const EPOCHS: i64 = 500;
const RATE: f32 = 0.7;

/// One argument of the program: its type, its shape, and its bytes.
struct Argument {
    element: ElementType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
    /// In the syntax of `iree-run-module`.
    text: String,
}

/// Initial parameters, all of them exact.
fn parameter(path: &str, count: usize) -> Vec<f32> {
    let value = |i: usize| match path {
        "p.l1.W" => (7 * i % 11) as f32 / 4.0 - 1.25,
        "p.l2.W" => (5 * i % 7) as f32 / 4.0 - 0.75,
        _ => 0.0,
    };
    (0..count).map(value).collect()
}

/// The arguments in the order of the manifest.
fn arguments(entry: &Value) -> Vec<Argument> {
    let inputs = entry["inputs"].as_array().expect("leaves");
    assert_eq!(entry["constants"], json!([]), "the data is in the program");
    inputs
        .iter()
        .map(|leaf| {
            let path = leaf["path"].as_str().expect("a path");
            let shape: Vec<usize> = leaf["shape"]
                .as_array()
                .expect("a shape")
                .iter()
                .map(|n| n.as_u64().expect("an extent") as usize)
                .collect();
            let count = shape.iter().product();
            let (element, bytes, values) = match path {
                "epochs" => (ElementType::I64, EPOCHS.to_le_bytes().to_vec(), EPOCHS.to_string()),
                "lr" => (ElementType::F32, RATE.to_le_bytes().to_vec(), RATE.to_string()),
                path => {
                    let values = parameter(path, count);
                    let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                    let text: Vec<String> = values.iter().map(f32::to_string).collect();
                    (ElementType::F32, bytes, text.join(","))
                }
            };
            let extents: String = shape.iter().map(|n| format!("{n}x")).collect();
            let text = format!("{extents}{}={values}", leaf["dtype"].as_str().expect("a dtype"));
            Argument { element, shape, bytes, text }
        })
        .collect()
}

/// A sandbox with the built program, and its manifest entry.
fn built(options: &[&str]) -> Option<(Sandbox, Value)> {
    let sandbox = Sandbox::with_compiler()?;
    sandbox.example("xor/loop.shf");
    let output = sandbox.run(&[&["build", "xor/loop.shf", "train"], options].concat());
    assert_eq!(output.code, Some(0), "{output}");
    let entry =
        manifest(&sandbox.path("xor")).into_iter().find(|e| e["function"] == "train").expect("an entry");
    Some((sandbox, entry))
}

fn vmfb(sandbox: &Sandbox, entry: &Value) -> PathBuf {
    sandbox.path("xor/__sheaf__").join(entry["file"].as_str().expect("a file"))
}

/// The parameters after training by `sheaf run`, in the order of the results.
fn trained_by_sheaf(sandbox: &Sandbox, entry: &Value) -> Vec<Vec<f32>> {
    let mut source = fs::read_to_string(sandbox.path("xor/loop.shf")).expect("a source");
    let literal = |path: &str, shape: &[usize]| {
        let flat: Vec<String> =
            parameter(path, shape.iter().product()).iter().map(|x| format!("{x:?}")).collect();
        let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
        format!("(reshape [{}] '[{}])", flat.join(" "), extents.join(" "))
    };
    source += &format!(
        "\n(io \"save\" \"trained.json\" (train {{:l1 {{:W {} :b (zeros '[8])}} :l2 {{:W {} :b (zeros '[1])}}}} {EPOCHS} {RATE}))\n",
        literal("p.l1.W", &[2, 8]),
        literal("p.l2.W", &[8, 1]),
    );
    sandbox.write("xor/loop-and-save.shf", source);
    let run = sandbox.run(&["xor/loop-and-save.shf", "--jit", "always"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        !run.stderr.contains("compiling train"),
        "the program that was built is the one that runs\n{run}"
    );
    let saved: Value =
        serde_json::from_slice(&fs::read(sandbox.path("trained.json")).expect("a file")).expect("JSON");
    let outputs = entry["outputs"].as_array().expect("leaves");
    outputs
        .iter()
        .map(|leaf| {
            let pointer = format!("/{}", leaf["path"].as_str().expect("a path").replace('.', "/"));
            let mut flat = Vec::new();
            numbers(saved.pointer(&pointer).expect("a leaf"), &mut flat);
            flat
        })
        .collect()
}

fn numbers(value: &Value, into: &mut Vec<f32>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| numbers(item, into)),
        number => into.push(number.as_f64().expect("a number") as f32),
    }
}

/// Asserts that two lists of tensors are equal up to rounding.
#[track_caller]
fn assert_close(found: &[Vec<f32>], wanted: &[Vec<f32>]) {
    assert_eq!(
        found.iter().map(Vec::len).collect::<Vec<_>>(),
        wanted.iter().map(Vec::len).collect::<Vec<_>>()
    );
    for (a, b) in found.iter().flatten().zip(wanted.iter().flatten()) {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{a} for {b}\n{found:?}\n{wanted:?}");
    }
    let moved = found.iter().flatten().zip(parameter("p.l1.W", 16)).any(|(a, b)| (a - b).abs() > 0.1);
    assert!(moved, "it was trained");
}

#[test]
fn the_training_of_xor_is_one_small_program() {
    let Some((sandbox, entry)) = built(&[]) else { return };
    assert_eq!(entry["file"], "train.cpu.vmfb");
    let size = fs::metadata(vmfb(&sandbox, &entry)).expect("a file").len();
    assert!(size <= LIMIT, "{size} bytes");
    let order: Vec<&str> = entry["inputs"]
        .as_array()
        .expect("leaves")
        .iter()
        .map(|l| l["path"].as_str().expect("a path"))
        .collect();
    assert_eq!(order, ["p.l1.W", "p.l1.b", "p.l2.W", "p.l2.b", "epochs", "lr"]);

    // Called by a program that uses only the runtime of Sheaf.
    let bytes = fs::read(vmfb(&sandbox, &entry)).expect("a file");
    let digest = sha256(&bytes);
    let runtime = Runtime::new().expect("the runtime");
    let device = runtime.device(Target::LocalSync).expect("a device");
    let program = device.load(&Vmfb::verify(bytes, &digest).expect("its digest")).expect("a program");
    let mut call = program.call_frame().expect("a call");
    for (i, argument) in arguments(&entry).iter().enumerate() {
        let buffer = device.upload(argument.element, &argument.shape, &argument.bytes).expect("a buffer");
        call.set(i, &buffer).expect("an argument");
    }
    call.invoke().expect("a call");
    let results = call.take_results().expect("results");
    let found: Vec<Vec<f32>> = results.iter().map(|r| floats(&r.read().expect("elements"))).collect();
    let wanted = trained_by_sheaf(&sandbox, &entry);
    assert_eq!(found, wanted, "the same program on the same machine");
}

#[test]
fn portable_programs_are_small_too() {
    for cpu in ["x86-64", "x86-64-v3", "aarch64"] {
        let Some((sandbox, entry)) = built(&["--cpu", cpu]) else { return };
        let size = fs::metadata(vmfb(&sandbox, &entry)).expect("a file").len();
        assert!(size <= LIMIT, "{cpu}: {size} bytes");
    }
}

/// The tool; `None`, after a message, if it is not set.
fn run_module() -> Option<OsString> {
    let Some(iree) = std::env::var_os(RUN_MODULE) else {
        skip(&format!("{RUN_MODULE} does not name IREE's iree-run-module"));
        return None;
    };
    assert!(Path::new(&iree).is_file(), "{RUN_MODULE} names {}, which is no file", iree.display());
    Some(iree)
}

#[test]
fn iree_runs_the_training_of_xor() {
    let Some(iree) = run_module() else { return };
    let Some((sandbox, entry)) = built(&[]) else { return };
    let mut command = Command::new(iree);
    command.arg(format!("--module={}", vmfb(&sandbox, &entry).display()));
    command.args(["--device=local-sync", "--function=main"]);
    command.args(arguments(&entry).iter().map(|argument| format!("--input={}", argument.text)));
    let outputs = entry["outputs"].as_array().expect("leaves").len();
    let files: Vec<PathBuf> = (0..outputs).map(|i| sandbox.path(&format!("{i}.npy"))).collect();
    command.args(files.iter().map(|file| format!("--output=@{}", file.display())));
    let output = command.output().expect("iree-run-module starts");
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    let found: Vec<Vec<f32>> = files.iter().map(|file| npy(&fs::read(file).expect("a result"))).collect();
    assert_close(&found, &trained_by_sheaf(&sandbox, &entry));
}

/// A small function uses plain calls unless a portable program is requested.
#[test]
fn iree_runs_a_small_function() {
    let Some(iree) = run_module() else { return };
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("double.shf", "(defn double [(x f32 [3]) (n i64 [])] (list (* x 2) (+ n 1)))\n");
    let output = sandbox.run(&["build", "double.shf", "double", "--emit", "vmfb", "-o", "double.vmfb"]);
    assert_eq!(output.code, Some(0), "{output}");
    let mut command = Command::new(iree);
    command.arg(format!("--module={}", sandbox.path("double.vmfb").display()));
    command.args(["--device=local-sync", "--function=main", "--input=3xf32=1,2,3", "--input=i64=41"]);
    let output = command.output().expect("iree-run-module starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("3xf32=2 4 6") && said.contains("i64=42"), "{output:?}");
}

/// The elements of a file in NumPy's format: a header, which contains its own length, then the elements.
fn npy(bytes: &[u8]) -> Vec<f32> {
    assert!(bytes.starts_with(b"\x93NUMPY"), "a file of NumPy");
    let head = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    floats(&bytes[10 + head..])
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}
