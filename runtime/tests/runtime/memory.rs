//! The memory of buffers is counted.

#![allow(clippy::unwrap_used, reason = "only tests use this")]

use crate::support::{f32s, on_each_target};

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
