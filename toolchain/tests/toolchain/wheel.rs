//! Small wheels with the layout of the real one.

use std::io::{Cursor, Write};

use sha2::{Digest, Sha256};
use sheaf_toolchain::{Member, Platform, Release};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The file name of every stand-in.
pub(crate) const NAME: &str = "iree_base_compiler-0.0.1-cp312-abi3-manylinux_2_28_x86_64.whl";

/// A wheel and what is in it.
pub(crate) struct Wheel {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sha256: String,
    pub(crate) library: Vec<u8>,
    pub(crate) linker: Vec<u8>,
}

impl Wheel {
    /// A wheel whose library has this many bytes, which do not compress.
    pub(crate) fn new(library_size: usize) -> Self {
        Self::with_entries(library_size, &[])
    }

    /// The same with further entries.
    pub(crate) fn with_entries(library_size: usize, more: &[(&str, &[u8])]) -> Self {
        let library = noise(library_size);
        let linker = b"#!/bin/sh\n".to_vec();
        let mut entries: Vec<(&str, &[u8])> = vec![
            ("iree/libIREECompiler.so", &library),
            ("iree/iree-lld", &linker),
            ("iree/__init__.py", b"unused"),
            ("package-0.0.1.dist-info/METADATA", b"License: Apache-2.0\n"),
        ];
        entries.extend(more);
        Self::from_archive(archive(&entries), library, linker)
    }

    /// Any bytes as a wheel that claims to have the usual library in it.
    pub(crate) fn from_archive(bytes: Vec<u8>, library: Vec<u8>, linker: Vec<u8>) -> Self {
        let sha256 = hex::encode(Sha256::digest(&bytes));
        Self { bytes, sha256, library, linker }
    }

    /// What a table of releases would say of it.
    pub(crate) fn release(&self) -> Release<'_> {
        Release {
            version: "0.0.1",
            platform: Platform::LinuxX86_64,
            wheel: NAME,
            size: self.bytes.len() as u64,
            sha256: &self.sha256,
            library: Member { path: "iree/libIREECompiler.so", size: self.library.len() as u64 },
            linker: Member { path: "iree/iree-lld", size: self.linker.len() as u64 },
            notice: "package-0.0.1.dist-info/METADATA",
        }
    }

    /// The same as arguments of the child program.
    pub(crate) fn arguments(&self) -> [String; 5] {
        let release = self.release();
        [
            NAME.to_owned(),
            release.size.to_string(),
            self.sha256.clone(),
            release.library.size.to_string(),
            release.linker.size.to_string(),
        ]
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

/// Bytes without a pattern, always the same.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 1u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..size).map(step).collect()
}
