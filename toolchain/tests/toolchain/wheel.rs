//! Small wheels with the layout of the real one.

use std::io::{Cursor, Write};

use sha2::{Digest, Sha256};
use sheaf_target::{Member, Platform, Release};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The file name of every stand-in.
pub(crate) const NAME: &str = "iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl";

/// The other files of every stand-in.
pub(crate) const LINKER: &[u8] = b"#!/bin/sh\n";
pub(crate) const PROGRAM: &[u8] = b"#!/bin/sh\nexit 1\n";
pub(crate) const NOTICE: &[u8] = b"License: Apache-2.0\n";

/// A wheel and its content.
pub(crate) struct Wheel {
    pub(crate) bytes: Vec<u8>,
    pub(crate) library: Vec<u8>,
    /// The SHA-256 of the wheel, and of its expected files in the order of [`Release::members`].
    hashes: [String; 5],
}

impl Wheel {
    /// A wheel whose library has this many bytes, which do not compress.
    pub(crate) fn new(library_size: usize) -> Self {
        Self::with_entries(library_size, &[])
    }

    /// The same with further entries.
    pub(crate) fn with_entries(library_size: usize, more: &[(&str, &[u8])]) -> Self {
        let library = noise(library_size);
        let mut entries: Vec<(&str, &[u8])> = vec![
            ("iree/libIREECompiler.so", &library),
            ("iree/iree-lld", LINKER),
            ("iree/iree-compile", PROGRAM),
            ("iree/__init__.py", b"unused"),
            ("package-0.0.1.dist-info/METADATA", NOTICE),
        ];
        entries.extend(more);
        Self::from_archive(archive(&entries), library)
    }

    /// Any bytes as a wheel, for a release with the usual files and this library.
    pub(crate) fn from_archive(bytes: Vec<u8>, library: Vec<u8>) -> Self {
        let hashes =
            [&bytes, &library, LINKER, PROGRAM, NOTICE].map(|bytes| hex::encode(Sha256::digest(bytes)));
        Self { bytes, library, hashes }
    }

    /// Its release, as in the table.
    pub(crate) fn release(&self) -> Release<'_> {
        let [wheel, library, linker, program, notice] = self.hashes.each_ref().map(String::as_str);
        Release {
            version: "0.0.1",
            platform: Platform::LinuxX86_64,
            wheel: NAME,
            size: self.bytes.len() as u64,
            sha256: wheel,
            library: Member {
                path: "iree/libIREECompiler.so",
                size: self.library.len() as u64,
                sha256: library,
            },
            linker: Member { path: "iree/iree-lld", size: LINKER.len() as u64, sha256: linker },
            program: Member { path: "iree/iree-compile", size: PROGRAM.len() as u64, sha256: program },
            notice: Member {
                path: "package-0.0.1.dist-info/METADATA",
                size: NOTICE.len() as u64,
                sha256: notice,
            },
            backends: &["llvm-cpu"],
            bytecode: (17, 0),
        }
    }

    /// The same as arguments of the child program.
    pub(crate) fn arguments(&self) -> [String; 4] {
        let release = self.release();
        let members =
            release.members().map(|member| format!("{}:{}:{}", member.path, member.size, member.sha256));
        [NAME.to_owned(), release.size.to_string(), release.sha256.to_owned(), members.join(",")]
    }
}

/// A zip archive of these entries.
pub(crate) fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).expect("memory");
        writer.write_all(content).expect("memory");
    }
    writer.finish().expect("memory").into_inner()
}

/// Incompressible bytes, always the same.
pub(crate) fn noise(size: usize) -> Vec<u8> {
    let mut state = 1u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..size).map(step).collect()
}
