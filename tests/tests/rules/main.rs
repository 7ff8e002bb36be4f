//! The rules for build systems, each with its real one. In one binary: its tests share a release.

#![cfg(target_os = "linux")]

mod bazel;
mod nix;
#[path = "../../../cache/tests/remotes/servers.rs"]
#[allow(dead_code, reason = "tests of remote caches start the other servers")]
mod servers;

use sheaf_tests::skip;
