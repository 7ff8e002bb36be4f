//! Asks the build machine's pip for its built-in package index, the fallback of binaries on machines without pip.

#[path = "src/pip.rs"]
#[allow(dead_code, reason = "what pip is configured with is asked at run time only")]
mod pip;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/pip.rs");
    // Not this machine's pip configuration: that may be a private mirror, and binaries are distributed.
    if let Some(index) = pip::builtin_index() {
        println!("cargo::rustc-env=SHEAF_BUILTIN_INDEX={index}");
    }
}
