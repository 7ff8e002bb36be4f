//! Wheels with the right hash and wrong content: no file is written outside the folder, and nothing is installed.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::failures::{failure, folder_with};
use crate::wheel::{self, LINKER, NOTICE, PROGRAM, Wheel};

/// The message for a wheel in a folder.
fn message(wheel: &Wheel) -> String {
    let folder = folder_with(&wheel.bytes);
    failure(wheel, &folder.path().display().to_string())
}

/// A wheel with this library, for a release whose table has another.
fn with_library(library: &[u8], expected: Vec<u8>) -> Wheel {
    let archive = wheel::archive(&[
        ("iree/libIREECompiler.so", library),
        ("iree/iree-lld", LINKER),
        ("iree/iree-compile", PROGRAM),
        ("package-0.0.1.dist-info/METADATA", NOTICE),
    ]);
    Wheel::from_archive(archive, expected)
}

#[test]
fn a_wheel_that_is_no_archive() {
    let wheel = Wheel::from_archive(b"not a wheel".to_vec(), wheel::noise(1_000));
    insta::assert_snapshot!(message(&wheel), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl cannot be unpacked: invalid Zip archive: Could not find EOCD
    help: this is an error in Sheaf's table of releases, please report it
    ");
}

#[test]
fn a_wheel_without_the_library() {
    let wheel = Wheel::from_archive(wheel::archive(&[("iree/iree-lld", LINKER)]), wheel::noise(1_000));
    insta::assert_snapshot!(message(&wheel), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl cannot be unpacked: iree/libIREECompiler.so: specified file not found in archive
    help: this is an error in Sheaf's table of releases, please report it
    ");
}

#[test]
fn a_wheel_with_a_shorter_and_a_longer_library() {
    insta::assert_snapshot!(message(&with_library(b"short", wheel::noise(1_000))), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl cannot be unpacked: iree/libIREECompiler.so has 5 bytes
    help: this is an error in Sheaf's table of releases, please report it
    ");
    insta::assert_snapshot!(message(&with_library(&wheel::noise(1_001), wheel::noise(1_000))), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl cannot be unpacked: iree/libIREECompiler.so has 1001 bytes
    help: this is an error in Sheaf's table of releases, please report it
    ");
}

#[test]
fn a_wheel_with_another_library_of_the_same_size() {
    let mut other = wheel::noise(1_000);
    other[500] ^= 1;
    insta::assert_snapshot!(message(&with_library(&other, wheel::noise(1_000))), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl cannot be unpacked: the SHA-256 of iree/libIREECompiler.so is f07cecdde6335ca666f755e248a9b58cbae0fd81c64ca50e7ea7cc332f5f7e22 instead of b8d77f2d825b2355d85a24ab8113730a7c8dcdda8c829270e1b648b617a3b88a
    help: this is an error in Sheaf's table of releases, please report it
    ");
}

#[test]
fn a_wheel_whose_content_is_damaged() {
    let good = Wheel::new(10_000);
    let mut bytes = good.bytes.clone();
    bytes[5_000] ^= 1;
    let wheel = Wheel::from_archive(bytes, good.library);
    insta::assert_snapshot!(message(&wheel), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl cannot be unpacked: iree/libIREECompiler.so: Invalid checksum
    help: this is an error in Sheaf's table of releases, please report it
    ");
}

#[test]
fn a_wheel_that_claims_a_smaller_size_than_it_unpacks_to() {
    // A decompression bomb: the directory says 1,000 bytes, and a megabyte comes out.
    let (small, large) = (wheel::noise(1_000), vec![0; 1 << 20]);
    let mut wheel = with_library(&large, small);
    let size = (large.len() as u32).to_le_bytes();
    let places: Vec<_> = (0..wheel.bytes.len() - 4).filter(|at| wheel.bytes[*at..*at + 4] == size).collect();
    assert!(!places.is_empty());
    for at in places {
        wheel.bytes[at..at + 4].copy_from_slice(&1_000u32.to_le_bytes());
    }
    let wheel = Wheel::from_archive(wheel.bytes, wheel.library);
    let message = message(&wheel);
    assert!(message.contains("cannot be unpacked: iree/libIREECompiler.so"), "{message}");
}

#[test]
fn a_wheel_that_leads_out_of_its_folder() {
    for name in
        ["../../escaped", "/tmp/escaped", "iree/../../escaped", "C:\\escaped", "iree\\..\\..\\escaped"]
    {
        let message = message(&Wheel::with_entries(1_000, &[(name, b"out")]));
        assert!(message.contains(&format!("its entry {name:?} leads out of the folder")), "{message}");
    }
}

#[test]
fn a_wheel_whose_library_is_a_link() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let plain = SimpleFileOptions::default();
    writer.add_symlink("iree/libIREECompiler.so", "/etc/passwd", plain).expect("memory");
    for (name, content) in [("iree/iree-lld", LINKER), ("iree/iree-compile", PROGRAM)] {
        writer.start_file(name, plain).expect("memory");
        writer.write_all(content).expect("memory");
    }
    let archive = writer.finish().expect("memory").into_inner();
    insta::assert_snapshot!(message(&Wheel::from_archive(archive, b"/etc/passwd".to_vec())), @r"
    [place]/iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl cannot be unpacked: iree/libIREECompiler.so is no plain file
    help: this is an error in Sheaf's table of releases, please report it
    ");
}
