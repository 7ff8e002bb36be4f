//! The first use of the compiler: without network, with a wrong wheel, on a full disk.

use std::fs::{self, File};

use sheaf_target::Release;
use sheaf_tests::{Mount, Sandbox, Server, toolchain};

use crate::{FOURTEEN, RUN_SQUARES, SQUARES};

/// A sandbox without a compiler, with a program to compile.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("squares.shf", SQUARES);
    sandbox
}

/// A folder `index` in the sandbox with a file of this length named like the wheel.
fn index(sandbox: &Sandbox, length: u64) -> String {
    let release = Release::host().expect("a compiler for this machine");
    sandbox.write(&format!("index/{}", release.wheel), "");
    let wheel = File::options().write(true).open(sandbox.path("index").join(release.wheel)).expect("a wheel");
    wheel.set_len(length).expect("a length");
    sandbox.path("index").display().to_string()
}

#[test]
fn no_compiler_and_no_network() {
    let sandbox = sandbox();
    // Two functions, one warning.
    sandbox.write(
        "two.shf",
        "(defn f [x] (sum (* x x)))\n(defn g [x] (sum (+ x x)))\n(print (f [1 2 3]) (g [1 2]))\n",
    );
    let output = sandbox.run(&["two.shf", "--jit", "always"]);
    assert_eq!(output.stderr.matches("warning").count(), 1);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "14.0 6.0\n"));
    insta::assert_snapshot!(output);
    // The lock file stays; it is empty.
    assert_eq!(Sandbox::files(&sandbox.home()), ["data/toolchains/.lock"]);
    assert!(!sandbox.path("__sheaf__").exists());
}

#[test]
fn offline_without_a_compiler() {
    let sandbox = sandbox();
    insta::assert_snapshot!(sandbox.run(&[&RUN_SQUARES[..], &["--offline"]].concat()));
    assert_eq!(Sandbox::files(&sandbox.home()), [""; 0]);
}

#[test]
fn an_index_that_is_not_there() {
    let sandbox = sandbox();
    let run = sandbox.sheaf(&RUN_SQUARES).env("SHEAF_TOOLCHAIN_INDEX", "/nowhere/wheels");
    insta::assert_snapshot!(run.run());
}

#[test]
fn an_index_that_is_no_place() {
    let sandbox = sandbox();
    insta::assert_snapshot!(sandbox.sheaf(&RUN_SQUARES).env("SHEAF_TOOLCHAIN_INDEX", "ftp://wheels").run());
    assert_eq!(Sandbox::files(&sandbox.home()), ["data/toolchains/.lock"]);
}

#[test]
fn nothing_to_compile_needs_no_compiler() {
    let sandbox = sandbox();
    assert_eq!(sandbox.run(&["squares.shf"]).silent(), FOURTEEN);
    assert_eq!(Sandbox::files(&sandbox.home()), [""; 0]);
}

#[test]
fn a_wheel_with_another_content() {
    let sandbox = sandbox();
    let size = Release::host().expect("a compiler for this machine").size;
    let index = index(&sandbox, size);
    let output = sandbox.sheaf(&RUN_SQUARES).env("SHEAF_TOOLCHAIN_INDEX", index).run();
    insta::assert_snapshot!(output);
    assert_eq!(Sandbox::files(&sandbox.home()), ["data/toolchains/.lock"]);
    assert!(!sandbox.path("__sheaf__").exists());
}

#[test]
#[ignore = "long: make nightly runs it"]
fn after_a_wrong_wheel_the_right_one_installs() {
    let Some(wheel) = sheaf_tests::wheel() else { return };
    let sandbox = sandbox();
    let mut tampered = fs::read(&wheel).expect("a wheel");
    let middle = tampered.len() / 2;
    tampered[middle] ^= 1;
    sandbox.write(&format!("tampered/{}", wheel.file_name().expect("a name").display()), tampered);
    let server = Server::mirror(
        &sandbox.path("tampered").join(wheel.file_name().expect("a name")),
        std::time::Duration::ZERO,
    );
    let output = sandbox.sheaf(&RUN_SQUARES).env("SHEAF_TOOLCHAIN_INDEX", server.url()).run();
    insta::assert_snapshot!(output);
    assert_eq!(output.code, Some(1));
    assert_eq!(Sandbox::files(&sandbox.home()), ["data/toolchains/.lock"]);

    let right = wheel.parent().expect("a folder").display().to_string();
    let output = sandbox.sheaf(&RUN_SQUARES).env("SHEAF_TOOLCHAIN_INDEX", right).run();
    assert_eq!(output.compiled(), FOURTEEN);
    let installed = Sandbox::files(&sandbox.home().join("data"));
    assert_eq!(installed.len(), 6, "lock, marker, library, linker, program, notice: {installed:?}");
    assert_eq!(sandbox.run(&RUN_SQUARES).silent(), FOURTEEN);
}

#[test]
fn full_disk_for_the_compiler() {
    if !Mount::available() {
        return;
    }
    let sandbox = sandbox();
    let index = index(&sandbox, Release::host().expect("a compiler for this machine").size);
    let run = sandbox.sheaf(&RUN_SQUARES).env("SHEAF_TOOLCHAIN_INDEX", index);
    let output = run.mounted(Mount::Small(1024), sandbox.home()).run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN));
    assert_eq!(output.mounted, ["./data/toolchains/.lock"]);
    insta::assert_snapshot!(output);
}

#[test]
fn home_that_cannot_be_written() {
    if !Mount::available() {
        return;
    }
    let sandbox = sandbox();
    let output = sandbox.sheaf(&RUN_SQUARES).mounted(Mount::ReadOnly, sandbox.home()).run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN));
    insta::assert_snapshot!(output);
}

#[test]
fn a_damaged_installation_is_replaced_or_said() {
    let Some(toolchain) = toolchain() else { return };
    let sandbox = sandbox();
    // Complete by names and sizes, but the library is invalid.
    let folder = sandbox.home().join("data/toolchains").join(toolchain.folder.file_name().expect("a name"));
    fs::create_dir_all(&folder).expect("a folder");
    for file in ["complete", "METADATA", &file_name(&toolchain.linker), &file_name(&toolchain.program)] {
        fs::copy(toolchain.folder.join(file), folder.join(file)).expect("a copy");
    }
    let library = File::create(folder.join(file_name(&toolchain.library))).expect("a library");
    library.set_len(fs::metadata(&toolchain.library).expect("a library").len()).expect("a length");
    insta::assert_snapshot!(sandbox.run(&RUN_SQUARES));
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name().expect("a name").display().to_string()
}
