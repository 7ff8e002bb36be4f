//! Local faults: full disks, processes killed at any moment, many concurrent processes.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use sheaf_tests::{Mount, Sandbox};

use crate::faults::story;
use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, Remote, SQUARES, warnings};
use crate::shared::{folder, own, taken};

/// Smaller than any VMFB.
const TINY: Mount = Mount::Small(4);

/// A file that fits: the count of cache hits.
const COUNT: &str = "./lookups-v1.json";

/// Number of processes that compile the same program concurrently.
const CROWD: usize = 16;

#[test]
fn a_full_disk_under_the_store() {
    let server = own();
    let remote = Remote::at(format!("http://127.0.0.1:{}", server.port));
    let Some(a) = Machine::writing(&remote).filter(|_| Mount::available()) else { return };
    let full = |machine: &Machine| {
        let cache = machine.sandbox.home().join("cache");
        fs::create_dir_all(&cache).expect("a folder");
        machine.sheaf(&RUN_SQUARES).mounted(TINY, cache).run()
    };
    // The compiling machine pushes it all the same.
    let a = a.squares();
    let output = full(&a);
    assert_eq!(output.mounted, [COUNT], "something was left");
    assert_eq!(warnings(&output).len(), 1, "{output}");
    insta::assert_snapshot!("full_disk_of_a_writer", story(&output));
    assert_eq!(output.compiled(), FOURTEEN);
    // The downloading machine runs it all the same.
    let b = Machine::reading(&remote).squares();
    let output = full(&b);
    assert_eq!(output.mounted, [COUNT], "something was left");
    assert_eq!(warnings(&output).len(), 1, "{output}");
    assert_eq!(output.compiled_nothing(), FOURTEEN);
    // With room again, there are no more warnings.
    assert_eq!(taken(b.run(&RUN_SQUARES)), FOURTEEN);
}

#[test]
fn a_full_disk_under_a_shared_folder() {
    let (folder, remote) = folder();
    let Some(a) = Machine::writing(&remote).filter(|_| Mount::available()) else { return };
    let a = a.squares();
    let output = a.sheaf(&RUN_SQUARES).mounted(TINY, folder.path().to_owned()).run();
    // Small blobs may fit; there are no partial files, and no entries with missing blobs.
    let whole = |name: &String| name.strip_prefix("./cache/cas/").is_some_and(|digest| digest.len() == 64);
    assert!(output.mounted.iter().all(whole), "something was left: {:?}", output.mounted);
    assert_eq!(warnings(&output).len(), 1, "{output}");
    assert_eq!(output.compiled(), FOURTEEN);
}

/// Kills a writer at any moment of its work on a shared folder. The files there afterwards are complete.
#[test]
fn a_writer_killed_at_any_moment_leaves_what_others_can_use() {
    let (_folder, remote) = folder();
    let Some(writing) = Machine::writing(&remote) else { return };
    let writing = writing.squares();
    for kill in 0..12 {
        let _ = fs::remove_dir_all(writing.sandbox.path("__sheaf__"));
        let _ = fs::remove_dir_all(writing.sandbox.home().join("cache"));
        let mut command = writing.sheaf(&RUN_SQUARES).command();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("sheaf starts");
        let mut lines =
            std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().expect("a pipe")));
        // The compilation starts with the first line; the rest takes about the maximum delay.
        let _ = lines.next();
        thread::sleep(Duration::from_millis(RandomState::new().hash_one(0) % 500));
        child.kill().expect("killed");
        child.wait().expect("its end");
        let reading = Machine::reading(&remote).squares();
        let output = reading.run(&RUN_SQUARES);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "kill {kill}: {output}");
        let told = warnings(&output);
        let fine = told.iter().all(|warning| warning.starts_with("warning: there is no compiler"));
        assert!(fine, "kill {kill}: {output}");
    }
    let output = writing.run(&RUN_SQUARES);
    assert_eq!((output.code, warnings(&output).len()), (Some(0), 0), "{output}");
    let verified = writing.run(&["cache", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified}");
}

/// Many processes with one home: each program is compiled once, and all get it.
#[test]
fn a_crowd_compiles_each_program_once() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let two = format!("{SQUARES}(defn halves [x] (/ x 2))\n(print (halves [2 4]))\n");
    let start = |number: usize| {
        let name = format!("p{number}/two.shf");
        sandbox.write(&name, &two);
        let run = sandbox.sheaf(&[&name, "--jit", "always"]);
        run.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sheaf starts")
    };
    let children: Vec<Child> = (0..CROWD).map(start).collect();
    let mut compiled = [0, 0];
    for child in children {
        let output = child.wait_with_output().expect("its end");
        let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said == "14.0\n[1. 2.]\n", "{said}{told}");
        assert!(!told.contains("warning"), "{told}");
        for (count, name) in compiled.iter_mut().zip(["sum-of-squares", "halves"]) {
            *count += told.lines().filter(|line| **line == format!("compiling {name}")).count();
        }
    }
    assert_eq!(compiled, [1, 1], "how often each was compiled");
    let size = sandbox.run(&["cache", "size", "--json"]).silent();
    let size: serde_json::Value = serde_json::from_str(&size).expect("JSON");
    assert_eq!(size["entries"], 2, "{size}");
    assert_eq!(sandbox.run(&["cache", "verify"]).code, Some(0));
}

/// Donating programs too, which are compiled after the plain ones.
#[test]
fn a_crowd_compiles_donating_programs_once() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let step = "(defn step [w x] (- w (* 0.1 (* w x))))\n\
                (let [w (repeat [i 20] [w (ones [512 512])] (if (= i 19) (do (print i) (step w 0.5)) (step w 0.5)))]\n  \
                (print (< 0 (mean w))))\n";
    let start = |number: usize| {
        let name = format!("p{number}/step.shf");
        sandbox.write(&name, step);
        let run = sandbox.sheaf(&[&name, "--jit", "always", "--donate", "always"]);
        run.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sheaf starts")
    };
    let children: Vec<Child> = (0..4).map(start).collect();
    let mut compiled = 0;
    for child in children {
        let output = child.wait_with_output().expect("its end");
        let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && !told.contains("warning"), "{said}{told}");
        compiled += told.lines().filter(|line| line.starts_with("compiling ")).count();
    }
    let size: serde_json::Value =
        serde_json::from_str(&sandbox.run(&["cache", "size", "--json"]).silent()).expect("JSON");
    assert_eq!(size["entries"], compiled, "more was compiled than there is");
    assert!(compiled >= 2, "nothing donates");
}

/// Two machines that compile the same concurrently, on one shared folder: duplicates are allowed, damage is not.
#[test]
fn machines_that_compile_at_once_do_not_harm_each_other() {
    let (_folder, remote) = folder();
    let machines: Vec<_> = (0..4).map_while(|_| Machine::writing(&remote)).map(Machine::squares).collect();
    let start = |machine: &Machine| {
        let mut command = machine.sheaf(&RUN_SQUARES).command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sheaf starts")
    };
    let children: Vec<Child> = machines.iter().map(start).collect();
    for child in children {
        let output = child.wait_with_output().expect("its end");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout == FOURTEEN.as_bytes(), "{told}");
        assert!(!told.contains("warning"), "{told}");
    }
    if !machines.is_empty() {
        let reading = Machine::reading(&remote).squares();
        assert_eq!(taken(reading.run(&[&RUN_SQUARES[..], &["--strict"]].concat())), FOURTEEN);
    }
}
