//! Compilers in one file: written, read, and read from untrusted sources.

use std::fs::{self, File};
#[cfg(target_os = "linux")]
use std::io::Read;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use sheaf_toolchain::{InstallError, bundle, install_bundle, install_release_from};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use crate::failures::folder_with;
use crate::wheel::{LINKER, NOTICE, PROGRAM, Wheel};
use crate::{assert_installed, install, installed};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A bundle of the stand-in.
fn written(wheel: &Wheel, folder: &Path) -> PathBuf {
    let (home, place) = (self::folder(), folder_with(&wheel.bytes));
    install(wheel, home.path(), &place.path().display().to_string()).expect("installed");
    let file = folder.join("toolchain.tar.gz");
    bundle(&wheel.release(), home.path(), &file, &()).expect("written");
    file
}

#[test]
fn what_is_bundled_installs_on_another_machine() {
    let wheel = Wheel::new(100_000);
    let place = folder();
    let file = written(&wheel, place.path());
    let home = folder();
    install_release_from(&wheel.release(), &file, home.path(), &()).expect("installed");
    assert_installed(&wheel, home.path());
    // Deterministic, and no other files are written.
    let first = fs::read(&file).expect("a file");
    assert!(fs::read(written(&wheel, place.path())).expect("a file") == first, "another file");
    assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 1);
}

#[test]
fn what_is_not_installed_cannot_be_bundled() {
    let (home, place) = (folder(), folder());
    let wheel = Wheel::new(1);
    let error =
        bundle(&wheel.release(), home.path(), &place.path().join("x.tar.gz"), &()).expect_err("nothing");
    assert!(error.to_string().ends_with("it is not installed"), "{error}");
    assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 0);
}

/// The whole message.
fn said(error: &InstallError, file: &Path) -> String {
    format!("{error}\nhelp: {}", error.remedy()).replace(&file.display().to_string(), "[file]")
}

#[test]
fn a_damaged_compiler_is_not_bundled() {
    let wheel = Wheel::new(1_000);
    let (home, place, index) = (folder(), folder(), folder_with(&wheel.bytes));
    let toolchain = install(&wheel, home.path(), &index.path().display().to_string()).expect("installed");
    // The same size.
    fs::write(&toolchain.linker, "#!/bin/ls\n").expect("a linker");
    let error = bundle(&wheel.release(), home.path(), &place.path().join("x.tar.gz"), &());
    let error = error.expect_err("damaged");
    insta::assert_snapshot!(said(&error, &toolchain.linker), @r"
    [file] is damaged: its SHA-256 is f5c7d59ecdde712de8b223ac021d3e74bcb3b9e34e4ad95c8bd9ec1d61d98ce8 instead of a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf
    help: run `sheaf toolchain verify 0.0.1`, which says how to mend it
    ");
    assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 0);
}

#[test]
fn a_bundle_that_cannot_be_written() {
    let wheel = Wheel::new(1_000);
    let (home, place, index) = (folder(), folder(), folder_with(&wheel.bytes));
    install(&wheel, home.path(), &index.path().display().to_string()).expect("installed");
    let message =
        |file: &Path| said(&bundle(&wheel.release(), home.path(), file, &()).expect_err("not written"), file);
    insta::assert_snapshot!(message(Path::new("/nowhere/x.tar.gz")), @r"
    [file] cannot be written: No such file or directory (os error 2)
    help: name another file with -o
    ");
    insta::assert_snapshot!(message(place.path()), @r"
    [file] cannot be written: Is a directory (os error 21)
    help: name another file with -o
    ");
    let (path, source) = (place.path().join("x"), std::io::ErrorKind::StorageFull.into());
    let full = InstallError::BundleFile { path: path.clone(), needed: 3 << 20, source };
    insta::assert_snapshot!(said(&full, &path), @r"
    [file] cannot be written: no storage space
    help: free 3 MiB there, or name a file on another disk with -o
    ");
}

#[test]
fn a_bundle_that_is_cut_or_damaged() {
    let wheel = Wheel::new(100_000);
    let place = folder();
    let file = written(&wheel, place.path());
    let whole = fs::read(&file).expect("a bundle");
    let message = |bytes: &[u8]| {
        fs::write(&file, bytes).expect("a bundle");
        let home = folder();
        let error = install_release_from(&wheel.release(), &file, home.path(), &()).expect_err("damaged");
        assert_eq!(installed(home.path()), [""; 0]);
        said(&error, &file)
    };
    insta::assert_snapshot!(message(&whole[..whole.len() / 2]), @r"
    [file] cannot be unpacked: iree/libIREECompiler.so: incomplete deflate stream
    help: copy the file again, or make it anew with `sheaf toolchain bundle`
    ");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    let message = message(&damaged);
    assert!(message.ends_with("make it anew with `sheaf toolchain bundle`"), "{message}");
}

/// Peak memory of this process, in KiB.
#[cfg(target_os = "linux")]
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a text");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_without_end_takes_no_memory() {
    const ALONE: &str = "SHEAF_TEST_ALONE";
    const LENGTH: u64 = 256 << 20;
    if std::env::var_os(ALONE).is_none() {
        // A process has one peak, and the other tests of this one run beside it.
        let mut test = Command::new(std::env::current_exe().expect("a program"));
        test.args(["--exact", "bundle::a_name_without_end_takes_no_memory"]).env(ALONE, "1");
        let output = test.output().expect("a process");
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
        return;
    }
    let wheel = Wheel::new(1_000);
    let place = folder();
    for kind in [EntryType::GNULongName, EntryType::XHeader] {
        let file = place.path().join("long.tar.gz");
        let mut archive =
            Builder::new(GzEncoder::new(File::create(&file).expect("a file"), Compression::fast()));
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(LENGTH);
        header.as_old_mut().name[..3].copy_from_slice(b"a/b");
        header.set_cksum();
        archive.append(&header, std::io::repeat(b'x').take(LENGTH)).expect("written");
        archive.into_inner().and_then(GzEncoder::finish).expect("written");
        let home = folder();
        let error = install_bundle(&file, home.path(), &()).expect_err("no bundle").to_string();
        assert!(error.len() < 1_000, "{} bytes", error.len());
        let error = install_release_from(&wheel.release(), &file, home.path(), &()).expect_err("no bundle");
        assert!(error.to_string().ends_with(r#"its entry "a/b" is no plain file"#), "{error}");
    }
    assert!(most_memory() < LENGTH >> 10, "{} KiB", most_memory());
}

#[test]
fn what_is_no_file_is_said() {
    let file = Path::new("./missing.tar.gz");
    let error = install_bundle(file, folder().path(), &()).expect_err("nothing");
    insta::assert_snapshot!(said(&error, file), @r"
    cannot open the bundle [file]: No such file or directory (os error 2)
    help: give the path of a file that `sheaf toolchain bundle` wrote
    ");
}

/// A bundle of these entries, with any names.
fn crafted(entries: &[(&str, EntryType, &[u8])]) -> (TempDir, PathBuf) {
    let place = folder();
    let file = place.path().join("crafted.tar.gz");
    let mut archive = Builder::new(GzEncoder::new(File::create(&file).expect("a file"), Compression::fast()));
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        if kind.is_file() {
            header.set_size(content.len() as u64);
        } else {
            header.set_size(0);
            header.set_link_name("/etc/passwd").expect("a short name");
        }
        // Bypasses the checks of the writer, which refuses names that lead out.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, if kind.is_file() { *content } else { b"" }).expect("written");
    }
    archive.into_inner().and_then(GzEncoder::finish).expect("written");
    (place, file)
}

#[test]
fn crafted_bundles_install_nothing() {
    let wheel = Wheel::new(1_000);
    let release = wheel.release();
    let own = |name: &str| format!("{}/{name}", release.folder());
    let (library, linker, program, notice) =
        (own("libIREECompiler.so"), own("iree-lld"), own("iree-compile"), own("METADATA"));
    let file = EntryType::Regular;
    let good: Vec<(&str, EntryType, &[u8])> = vec![
        (&library, file, &wheel.library),
        (&linker, file, LINKER),
        (&program, file, PROGRAM),
        (&notice, file, NOTICE),
    ];
    let refused = |entries: &[(&str, EntryType, &[u8])]| {
        let (place, bundle) = crafted(entries);
        let home = folder();
        let error = install_release_from(&release, &bundle, home.path(), &()).expect_err("refused");
        assert_eq!(installed(home.path()), [""; 0]);
        assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 1, "something got out");
        error.to_string().replace(&bundle.display().to_string(), "[file]")
    };
    let with = |more: (&'static str, EntryType, &'static [u8])| [&good[..], &[more]].concat();

    let (_place, bundle) = crafted(&good);
    let home = folder();
    install_release_from(&release, &bundle, home.path(), &()).expect("installed");
    assert_installed(&wheel, home.path());

    insta::assert_snapshot!(refused(&with(("../escaped", file, b"out"))), @r#"[file] is no bundle of a compiler for this machine: its entry "../escaped" does not belong to iree-compiler-0.0.1-linux-x86_64"#);
    insta::assert_snapshot!(refused(&with(("/tmp/escaped", file, b"out"))), @r#"[file] is no bundle of a compiler for this machine: its entry "/tmp/escaped" does not belong to iree-compiler-0.0.1-linux-x86_64"#);
    insta::assert_snapshot!(refused(&with(("iree-compiler-0.0.1-linux-x86_64/../../x", file, b"out"))), @r#"[file] is no bundle of a compiler for this machine: its entry "iree-compiler-0.0.1-linux-x86_64/../../x" does not belong to iree-compiler-0.0.1-linux-x86_64"#);
    insta::assert_snapshot!(refused(&with(("iree-compiler-0.0.1-linux-x86_64/iree-lld", file, LINKER))), @r#"[file] is no bundle of a compiler for this machine: its entry "iree-compiler-0.0.1-linux-x86_64/iree-lld" does not belong to iree-compiler-0.0.1-linux-x86_64"#);
    insta::assert_snapshot!(refused(&with(("iree-compiler-0.0.1-linux-x86_64/x", EntryType::Symlink, b""))), @r#"[file] is no bundle of a compiler for this machine: its entry "iree-compiler-0.0.1-linux-x86_64/x" is no plain file"#);
    insta::assert_snapshot!(refused(&[(&library, EntryType::Symlink, b"")]), @r#"[file] is no bundle of a compiler for this machine: its entry "iree-compiler-0.0.1-linux-x86_64/libIREECompiler.so" is no plain file"#);
    insta::assert_snapshot!(refused(&[(&library, EntryType::Link, b"")]), @r#"[file] is no bundle of a compiler for this machine: its entry "iree-compiler-0.0.1-linux-x86_64/libIREECompiler.so" is no plain file"#);
    insta::assert_snapshot!(refused(&good[..3]), @"[file] is no bundle of a compiler for this machine: METADATA is missing");
    insta::assert_snapshot!(refused(&[(&linker, file, b"#!/bin/ls\n")]), @"[file] cannot be unpacked: the SHA-256 of iree/iree-lld is f5c7d59ecdde712de8b223ac021d3e74bcb3b9e34e4ad95c8bd9ec1d61d98ce8 instead of a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf");
    insta::assert_snapshot!(refused(&[(&linker, file, &vec![0; 100_000])]), @"[file] cannot be unpacked: iree/iree-lld is too long");
}

#[test]
fn what_is_no_bundle_is_said() {
    let home = folder();
    let message = |bytes: &[u8]| {
        let place = folder();
        let file = place.path().join("x.tar.gz");
        fs::write(&file, bytes).expect("a file");
        let error = install_bundle(&file, home.path(), &()).expect_err("no bundle");
        assert!(matches!(error, InstallError::NoBundle { .. }), "{error:?}");
        said(&error, &file)
    };
    insta::assert_snapshot!(message(b"not an archive"), @r"
    [file] is no bundle of a compiler for this machine: invalid gzip header
    help: make one on a machine of the same kind, with `sheaf toolchain bundle`
    ");
    let whole = fs::read(crafted(&[("x/complete", EntryType::Regular, b"")]).1).expect("a file");
    insta::assert_snapshot!(message(&whole), @r#"
    [file] is no bundle of a compiler for this machine: its folder is "x", which is no release of the table
    help: make one on a machine of the same kind, with `sheaf toolchain bundle`
    "#);
    assert!(install_bundle(Path::new("/nowhere/x.tar.gz"), home.path(), &()).is_err());
}
