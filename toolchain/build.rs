//! Asks the build machine's pip for its built-in package index: what a binary falls back on where there is no pip.

#[path = "src/pip.rs"]
#[allow(dead_code, reason = "what pip is configured with is asked at run time only")]
mod pip;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/pip.rs");
    // Not what this machine's pip is configured with: that may be a private mirror, and a binary travels.
    if let Some(index) = pip::builtin_index() {
        println!("cargo::rustc-env=SHEAF_BUILTIN_INDEX={index}");
    }
}
