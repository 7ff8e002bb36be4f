//! Memory over many calls. Alone in its process, because it looks at the memory of the whole process.

use sheaf_runtime::{Runtime, Target};

#[path = "../runtime/compiler.rs"]
mod compiler;
#[allow(dead_code, reason = "written for other tests too")]
#[path = "../runtime/support.rs"]
mod support;

use support::{ADD, f32s, load};

#[test]
fn memory_does_not_grow_with_the_number_of_calls() {
    // Each failed call makes a status and each good one results; one that leaked would show after thousands.
    let runtime = Runtime::new().unwrap();
    for target in Target::ALL {
        let device = runtime.device(target).unwrap();
        let Some(add) = load(&device, ADD) else { return };
        let good = f32s(&device, &[4], &[1.0; 4]);
        let bad = f32s(&device, &[1024], &[1.0; 1024]);
        let mut frame = add.call_frame().unwrap();
        let mut rounds = |count: usize| {
            for _ in 0..count {
                let fresh = f32s(&device, &[4], &[1.0; 4]);
                frame.set(0, &fresh).unwrap();
                frame.set(1, &good).unwrap();
                frame.invoke().unwrap();
                let _ = frame.take_results().unwrap();
                frame.set(1, &bad).unwrap();
                let _ = frame.invoke().unwrap_err();
            }
        };
        rounds(200);
        let before = resident_kib();
        rounds(5000);
        let grown = resident_kib().saturating_sub(before);
        // The least thing that could leak on each round, a status or a view, takes more than 64 bytes.
        assert!(grown < 5000 * 64 / 1024, "{grown} KiB in 5000 rounds on {target}");
    }
}

/// Memory of this process, in KiB; 0 where the system does not tell.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
#[ignore = "a process that other tests start to run the compiler's library"]
fn library_process() {
    if compiler::is_library_process() {
        compiler::library_process();
    }
}
