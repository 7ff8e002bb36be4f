//! The runtime with programs compiled by the real compiler during the test.
//!
//! The compiler is the one that `SHEAF_TEST_IREE_COMPILE` names (a path of `iree-compile`), else the one installed by
//! Sheaf. Without either, tests that need one print "skipped: no compiler" and pass.

mod arguments;
mod calls;
mod compiler;
mod donation;
mod lifetimes;
mod loading;
mod memory;
mod support;
mod values;
mod version;

#[test]
#[ignore = "a process that other tests start to run the compiler's library"]
fn library_process() {
    if compiler::is_library_process() {
        compiler::library_process();
    }
}
