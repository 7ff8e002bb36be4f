//! The memory of buffers is counted, and that of large ones is kept for the next.

#![allow(clippy::unwrap_used, reason = "only tests use this")]

use crate::support::{call, f32s, load, on_each_target};

#[test]
fn buffers_count_while_they_live() {
    on_each_target(|device, target| {
        let before = device.memory();
        let buffer = f32s(device, &[1024], &[0.0; 1024]);
        let during = device.memory();
        assert!(during.in_use >= before.in_use + 4096, "{target}: {before:?}, {during:?}");
        assert!(during.peak >= during.in_use);
        drop(buffer);
        let after = device.memory();
        assert_eq!(after.in_use, before.in_use, "{target}");
        assert_eq!(after.peak, during.peak, "{target}");
    });
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

/// Pages that this process has been given so far.
#[cfg(target_os = "linux")]
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The eighth field behind the command's name (`man 5 proc`).
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn calls_with_large_results_take_no_new_pages() {
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
