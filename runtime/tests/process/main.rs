//! Tests of process-wide state: memory and threads. Run one at a time.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::Duration;

use sheaf_runtime::{Runtime, Target, Workers};

#[path = "../runtime/compiler.rs"]
mod compiler;
#[allow(dead_code, reason = "written for other tests too")]
#[path = "../runtime/support.rs"]
mod support;

use support::{ADD, call, f32s, load, on_each_target, read_f32s};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn memory_does_not_grow_with_the_number_of_calls() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    // Each failed call makes a status and each good one results; a leak would show after thousands.
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
        // The smallest possible leak per round, a status or a view, is more than 64 bytes.
        assert!(grown < 5000 * 64 / 1024, "{grown} KiB in 5000 rounds on {target}");
    }
}

/// `x -> (x + 1, x * 2)` of 64 MiB each, whose results IREE takes from the system one by one.
const LARGE: &str = "
module @sheaf {
  func.func @main(%x: tensor<16777216xf32>) -> (tensor<16777216xf32>, tensor<16777216xf32>) {
    %one = stablehlo.constant dense<1.0> : tensor<16777216xf32>
    %two = stablehlo.constant dense<2.0> : tensor<16777216xf32>
    %sum = stablehlo.add %x, %one : tensor<16777216xf32>
    %product = stablehlo.multiply %x, %two : tensor<16777216xf32>
    return %sum, %product : tensor<16777216xf32>, tensor<16777216xf32>
  }
}";

#[test]
fn calls_with_large_results_take_no_new_pages() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    on_each_target(|device, target| {
        let Some(program) = load(device, LARGE) else { return };
        let x = f32s(device, &[1 << 24], &vec![1.0; 1 << 24]);
        let warm: Vec<_> = (0..3).map(|_| call(&program, &[&x]).unwrap()).collect();
        drop(warm);
        let before = page_faults();
        for _ in 0..10 {
            let results = call(&program, &[&x]).unwrap();
            assert_eq!(results.len(), 2, "{target}");
        }
        let pages = page_faults() - before;
        // 128 MiB in pages of 4 KiB are 32,768 for each call.
        assert!(pages < 10_000, "{target}: {pages} pages in ten calls");
    });
}

#[test]
fn the_task_device_has_the_number_of_workers_that_was_chosen() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    for workers in [1, 3] {
        let target = Target::LocalTask(Workers::Exactly(NonZeroUsize::new(workers).unwrap()));
        let device = Runtime::new().unwrap().device(target).unwrap();
        let Some(add) = load(&device, ADD) else { return };
        let one = f32s(&device, &[4], &[1.0; 4]);
        assert_eq!(read_f32s(&call(&add, &[&one, &one]).unwrap()[0]), [2.0; 4]);
        // A thread names itself once it runs.
        let mut threads = threads_named("iree-worker");
        for _ in 0..1000 {
            if threads.is_none_or(|threads| threads >= workers) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            threads = threads_named("iree-worker");
        }
        assert!(threads.is_none_or(|threads| threads == workers), "{threads:?} threads, not {workers}");
    }
}

/// Number of threads of this process with this name prefix; `None` if the system does not report it.
fn threads_named(prefix: &str) -> Option<usize> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    Some(names.filter(|name| name.starts_with(prefix)).count())
}

/// Memory of this process, in KiB; 0 if the system does not report it.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Pages that this process has been given so far; 0 if the system does not report it.
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The eighth field behind the command's name (`man 5 proc`).
    let field = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().nth(7)?.parse().ok());
    field.unwrap_or(0)
}

#[test]
#[ignore = "a process that other tests start to run the compiler's library"]
fn library_process() {
    if compiler::is_library_process() {
        compiler::library_process();
    }
}
