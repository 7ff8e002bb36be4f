//! Programs for GPUs: run under Vulkan, by a renderer in software where there is no GPU, and compiled for CUDA.

use std::fs;
use std::process::Command;

use serde_json::Value;
use sheaf_tests::{Sandbox, sample_lines, sheaf, skip};

/// The devices of this machine by `sheaf device list`.
fn devices(sandbox: &Sandbox) -> Vec<Value> {
    let listed = sandbox.run(&["device", "list", "--json"]).silent();
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    listed["devices"].as_array().expect("devices").clone()
}

fn is_there(devices: &[Value], name: &str) -> bool {
    devices.iter().any(|device| device["device"] == name && device["available"] == true)
}

/// A sandbox on a machine with Vulkan; `None` after a message.
fn with_vulkan() -> Option<Sandbox> {
    let sandbox = Sandbox::with_compiler()?;
    if !is_there(&devices(&sandbox), "vulkan") {
        skip("NO VULKAN: scripts/remote-servers installs a driver in software on Debian");
        return None;
    }
    Some(sandbox)
}

#[test]
fn vulkan_gives_the_values_of_the_processor() {
    let Some(sandbox) = with_vulkan() else { return };
    sandbox.write("vulkan.shf", sample_lines(include_str!("vulkan.shf"), ";=>", 4, 0));
    for options in [&["--no-jit"][..], &["--jit", "always", "--strict", "--device", "vulkan"]] {
        let tested = sandbox.run(&[&["test", "vulkan.shf"], options].concat());
        assert_eq!(tested.code, Some(0), "{tested}");
    }
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_network_is_trained_under_vulkan_and_its_programs_are_kept_for_that_device() {
    let Some(sandbox) = with_vulkan() else { return };
    let program = sandbox.example("xor/train.shf");
    let predictions = |device: &str, further: &[&str]| {
        let run =
            sandbox.run(&[&[program.as_str(), "--jit", "always", "--device", device], further].concat());
        assert_eq!(run.code, Some(0), "{run}");
        (run.stdout.clone(), run)
    };
    let (on_processor, _) = predictions("cpu", &[]);
    let (on_gpu, first) = predictions("vulkan", &[]);
    assert!(on_gpu.contains("[0. 1.] -> 0.9"), "{first}");
    assert_eq!(on_gpu, on_processor);
    let (again, run) = predictions("vulkan", &["--strict", "--offline"]);
    assert_eq!(again, on_gpu);
    run.compiled_nothing();

    // The runtime alone: of a whole build it has the drivers of `sheaf`.
    let runtime = sheaf().with_file_name("sheaf-rt");
    if !runtime.is_file() {
        return skip("there is no sheaf-rt: cargo build --workspace --bins");
    }
    let program = sandbox.path("xor/train.shf");
    let alone = Command::new(runtime)
        .arg(program)
        .args(["--strict", "--device", "vulkan"])
        .output()
        .expect("it starts");
    assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
    assert_eq!(String::from_utf8_lossy(&alone.stdout), on_gpu);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_program_is_tuned_for_a_gpu() {
    let Some(sandbox) = with_vulkan() else { return };
    let call = "(print (f (ones [64 64]) (ones [64 64])))\n";
    sandbox.write("f.shf", format!("(defn f [(x [64 64]) (y [64 64])] (sum (abs (@ x y))))\n{call}"));
    let tuned = || {
        let output = sandbox.run(&["tune", "f.shf", "--device", "vulkan", "--json"]);
        assert_eq!(output.code, Some(0), "{output}");
        let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
        report["functions"][0].clone()
    };
    let first = tuned();
    assert_eq!(first["tuning"]["outcome"], "measured", "{first}");
    let trials = first["tuning"]["trials"].as_array().expect("trials");
    let names = trials.iter().flat_map(|trial| trial["flags"].as_array().expect("flags"));
    assert!(!trials.is_empty() && names.clone().all(|name| name != "ukernels"), "{first}");
    assert!(first["device"].as_str().is_some_and(|device| device.starts_with("vulkan")), "{first}");
    assert_eq!(tuned()["tuning"]["outcome"], "known");
    let run = sandbox.run(&["f.shf", "--jit", "always", "--strict", "--device", "vulkan"]);
    assert_eq!(run.compiled_nothing(), "262144.0\n");
}

#[test]
fn a_build_for_a_device_serves_its_runs() {
    let Some(sandbox) = with_vulkan() else { return };
    sandbox.write("f.shf", "(defn f [(x [3])] (sum (* x (log1p x))))\n(print (f [1.0 2.0 3.0]))\n");
    sandbox.run(&["build", "f.shf", "--device", "vulkan"]).compiled();
    let run = sandbox.run(&["f.shf", "--jit", "always", "--strict", "--device", "vulkan"]);
    let printed = run.compiled_nothing();
    assert!(printed.starts_with("7.04925"), "{printed}");
}

#[test]
fn a_number_beyond_the_device_and_an_absent_device_are_errors() {
    let Some(sandbox) = with_vulkan() else { return };
    sandbox.write("f.shf", "(defn f [n] (* n 2))\n(print (f (tensor [1 4294967296] :dtype :i64)))\n");
    let run = sandbox.run(&["f.shf", "--jit", "always", "--strict", "--device", "vulkan"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("the number 4294967296 is beyond the 32-bit integers of vulkan"), "{run}");
    let absent = sandbox.run(&["f.shf", "--device", "vulkan:99"]);
    assert_eq!(absent.code, Some(1), "{absent}");
    assert!(absent.stderr.contains("there is no device vulkan:99: vulkan finds vulkan ("), "{absent}");
}

#[test]
fn devices_that_are_not_there_are_listed_with_the_reason() {
    let sandbox = Sandbox::new();
    let devices = devices(&sandbox);
    assert_eq!(devices[0]["device"], "cpu");
    assert!(devices.iter().filter(|device| device["default"] == true).count() == 1, "{devices:?}");
    for name in ["cuda", "vulkan", "metal"] {
        let of_driver = devices.iter().find(|device| device["device"] == name).expect(name);
        let text = if of_driver["available"] == true { "name" } else { "reason" };
        assert!(of_driver[text].as_str().is_some_and(|text| !text.is_empty()), "{of_driver}");
        if of_driver["available"] == false {
            sandbox.write("f.shf", "(print (sum [1 2]))");
            let run = sandbox.run(&["f.shf", "--device", name]);
            assert_eq!(run.code, Some(1), "{run}");
            assert!(run.stderr.contains(&format!("there is no device {name}: ")), "{run}");
            assert!(run.stderr.contains("`--device cpu` runs on the processor"), "{run}");
        }
    }
    let both = sandbox.run(&["f.shf", "--device", "cuda", "--place", "local-sync"]);
    assert_eq!(both.code, Some(1), "{both}");
    assert!(both.stderr.contains("--place names threads of the processor"), "{both}");
}

/// The text of the kernels, PTX, is in programs for CUDA as it is.
#[test]
fn programs_compile_for_cuda_and_step_around_its_faults() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("cuda.shf", include_str!("cuda.shf"));
    let built = sandbox.run(&["build", "cuda.shf", "--device", "cuda:sm_89"]);
    assert_eq!(built.code, Some(0), "{built}");
    let programs: Vec<Vec<u8>> = fs::read_dir(sandbox.path("__sheaf__"))
        .expect("compiled programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "vmfb"))
        .map(|path| fs::read(path).expect("a program"))
        .collect();
    assert_eq!(programs.len(), 9, "{built}");
    let texts: Vec<_> = programs.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
    let lines = || texts.iter().flat_map(|text| text.lines());
    assert!(lines().any(|line| line.contains("min.u32")) && lines().any(|line| line.contains("max.u32")));
    let wrong = |line: &&str| line.contains("min.s32") && line.trim_end().ends_with(", -1;");
    assert_eq!(lines().find(wrong), None);
    assert!(
        lines().any(|line| line.contains("slow_memcpy")),
        "a slice is copied before its rows are gathered"
    );
}
