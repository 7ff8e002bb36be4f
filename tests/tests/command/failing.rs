//! A failing compiler: it starts, but its linker does not link.

use std::fs;

use sheaf_tests::{Sandbox, toolchain};

use crate::{FOURTEEN, RUN_SQUARES, SQUARES};

/// A sandbox with such a compiler, and a program for it.
fn sandbox() -> Option<Sandbox> {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let toolchain = toolchain()?;
    let sandbox = Sandbox::new();
    let folder = sandbox.home().join("data/toolchains").join(toolchain.folder.file_name().expect("a name"));
    fs::create_dir_all(&folder).expect("a folder");
    let at = |path: &std::path::Path| folder.join(path.file_name().expect("a name"));
    for file in fs::read_dir(&toolchain.folder).expect("a folder").map(|file| file.expect("a file").path()) {
        if file != toolchain.linker {
            symlink(&file, at(&file)).expect("a link");
        }
    }
    // An installation is identified by the sizes of its files.
    let linker = at(&toolchain.linker);
    fs::write(&linker, "#!/bin/sh\necho cannot link today >&2\nexit 1\n").expect("a linker");
    fs::set_permissions(&linker, fs::Permissions::from_mode(0o755)).expect("a program");
    let size = fs::metadata(&toolchain.linker).expect("a linker").len();
    fs::File::options().write(true).open(&linker).and_then(|file| file.set_len(size)).expect("a size");
    sandbox.write("squares.shf", SQUARES);
    Some(sandbox)
}

/// The start of the compiler's message and of its linker's output, and the fix. The rest is the compiler's, with names
/// of temporary files.
const MESSAGE: [&str; 3] = [
    "the compiler rejected the program:\n",
    "cannot link today\n",
    "= help: this is an error in Sheaf or in the compiler: please report it with the program\n",
];

#[test]
fn what_the_compiler_fails_on_is_interpreted() {
    let Some(sandbox) = sandbox() else { return };
    let output = sandbox.run(&[&RUN_SQUARES[..], &["--explain"]].concat());
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    let warning =
        "warning: sum-of-squares is interpreted, since it cannot be compiled; results are the same, only";
    assert_eq!(output.stderr.matches(warning).count(), 1, "{output}");
    assert!(MESSAGE.iter().all(|part| output.stderr.contains(part)), "{output}");
    assert!(output.stderr.contains("interpreted, 1 call: the compiler fails on it\n"), "{output}");
}

#[test]
fn what_the_compiler_fails_on_is_an_error_when_strict() {
    let Some(sandbox) = sandbox() else { return };
    let output = sandbox.run(&[&RUN_SQUARES[..], &["--strict"]].concat());
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output}");
    let error = "error: sum-of-squares cannot be compiled, and --strict forbids interpreting it: ";
    assert!(output.stderr.contains(&format!("{error}{}", MESSAGE[0])), "{output}");
    assert!(MESSAGE.iter().all(|part| output.stderr.contains(part)), "{output}");
    assert!(output.stderr.contains("squares.shf:2:8\n"), "{output}");
    let output = sandbox.run(&[&RUN_SQUARES[..], &["--strict", "--explain"]].concat());
    assert!(output.stderr.contains("\n  not run: the compiler fails on it\n"), "{output}");
}
