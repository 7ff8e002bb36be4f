//! Inspection of one wheel of the compiler: download, extraction, and a run of its compiler if possible.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memchr::memmem;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sheaf_target::{Platform, bytecode_version};
use zip::ZipArchive;

use crate::Result;

const PACKAGE: &str = "iree-base-compiler";
/// The compiler's folder in its wheels.
const FOLDER: &str = "iree/compiler/_mlir_libs";
/// The platform whose compiler is run, which must be this machine's.
const OWN: Platform = Platform::LinuxX86_64;
/// Command line names of backends, each with the name of its plug-in in the library; sorted.
const PLUGINS: [(&str, &str); 7] = [
    ("cuda", "hal_target_cuda"),
    ("llvm-cpu", "hal_target_llvm_cpu"),
    ("metal-spirv", "hal_target_metal_spirv"),
    ("rocm", "hal_target_rocm"),
    ("vmvx", "hal_target_vmvx"),
    ("vmvx-inline", "hal_target_vmvx"),
    ("vulkan-spirv", "hal_target_vulkan_spirv"),
];
/// Program compiled to determine the version of the bytecode.
const PROGRAM: &str = "\
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
";

/// The wheel of a version for a platform. It is the one of the stable ABI (cp312-abi3), which every Python from 3.12 on
/// downloads, or for releases without it that of Python 3.12; none of the extracted files depends on Python.
pub(super) struct Wheel<'a> {
    pub(super) version: &'a str,
    pub(super) platform: Platform,
}

/// The table's data of one wheel.
#[derive(Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) wheel: String,
    pub(super) size: u64,
    pub(super) sha256: String,
    /// Library, linker, program and notice.
    pub(super) members: [FoundMember; 4],
    pub(super) backends: Vec<String>,
    /// `None` unless the compiler was run.
    pub(super) bytecode: Option<(u16, u16)>,
}

/// A file in it.
#[derive(Serialize, Deserialize)]
pub(super) struct FoundMember {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) sha256: String,
}

impl Wheel<'_> {
    /// Downloads and inspects it.
    pub(super) fn inspect(&self) -> Result<Found> {
        let folder = tempfile::tempdir()?;
        let path = self.fetch(folder.path())?;
        let (size, sha256) = digest(&path)?;
        let mut archive = ZipArchive::new(File::open(&path)?)?;
        let mut extract = |name: &str| extract(&mut archive, name, folder.path());
        let [library, linker, program] = self.names();
        let files = [library, linker, program].map(|name| format!("{FOLDER}/{name}"));
        let notice = format!("{}-{}.dist-info/METADATA", PACKAGE.replace('-', "_"), self.version);
        let [library, linker, program] = &files;
        let members = [extract(library)?, extract(linker)?, extract(program)?, extract(&notice)?];
        let backends = named_in(&fs::read(folder.path().join(library))?);
        let bytecode = if self.platform == OWN {
            let compiler = folder.path().join(program);
            let reported = reported_backends(&compiler)?;
            if !reported.iter().map(String::as_str).eq(backends.iter().copied()) {
                let version = self.version;
                return Err(format!(
                    "{version} reports the backends {reported:?}, but its library has {backends:?}"
                )
                .into());
            }
            Some(written_bytecode(&compiler)?)
        } else {
            None
        };
        let wheel = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let backends = backends.into_iter().map(str::to_owned).collect();
        Ok(Found { wheel, size, sha256, members, backends, bytecode })
    }

    /// Downloads it with pip; returns its path.
    fn fetch(&self, folder: &Path) -> Result<PathBuf> {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]);
        pip.args(["--implementation", "cp", "--python-version", "3.12", "--abi", "abi3", "--abi", "cp312"]);
        pip.args(["--platform", self.tag()]).arg("--dest").arg(folder);
        pip.arg(format!("{PACKAGE}=={}", self.version));
        output(&mut pip, b"")?;
        let wheel = fs::read_dir(folder)?.next().ok_or("pip has downloaded nothing")??;
        Ok(wheel.path())
    }

    /// Pip's platform tag.
    fn tag(&self) -> &'static str {
        match self.platform {
            Platform::LinuxX86_64 => "manylinux_2_28_x86_64",
            Platform::LinuxAarch64 => "manylinux_2_28_aarch64",
            Platform::MacOsUniversal => "macosx_13_0_universal2",
            Platform::WindowsX86_64 => "win_amd64",
        }
    }

    /// The library, the linker, and the compiler's executable.
    fn names(&self) -> [&'static str; 3] {
        match self.platform {
            Platform::LinuxX86_64 | Platform::LinuxAarch64 => {
                ["libIREECompiler.so", "iree-lld", "iree-compile"]
            }
            Platform::MacOsUniversal => ["libIREECompiler.dylib", "iree-lld", "iree-compile"],
            Platform::WindowsX86_64 => ["IREECompiler.dll", "iree-lld.exe", "iree-compile.exe"],
        }
    }
}

/// Extracts a file of a wheel into `folder`.
fn extract(archive: &mut ZipArchive<File>, name: &str, folder: &Path) -> Result<FoundMember> {
    let mut entry = archive.by_name(name).map_err(|error| format!("{name}: {error}"))?;
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    let mut file = File::create(&path)?;
    io::copy(&mut entry, &mut file)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    drop(file);
    let (size, sha256) = digest(&path)?;
    Ok(FoundMember { path: name.to_owned(), size, sha256 })
}

/// Size and SHA-256 of a file.
fn digest(path: &Path) -> Result<(u64, String)> {
    let bytes = fs::read(path)?;
    Ok((bytes.len() as u64, hex::encode(Sha256::digest(&bytes))))
}

/// The backends whose plug-ins are named in a library.
fn named_in(library: &[u8]) -> Vec<&'static str> {
    let found = PLUGINS.into_iter().filter(|(_, plugin)| memmem::find(library, plugin.as_bytes()).is_some());
    found.map(|(backend, _)| backend).collect()
}

/// The backends that a compiler reports.
fn reported_backends(compiler: &Path) -> Result<BTreeSet<String>> {
    let listing = output(Command::new(compiler).arg("--iree-hal-list-target-backends"), b"")?;
    let listing = String::from_utf8_lossy(&listing).into_owned();
    let is_name =
        |text: &&str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let names = listing.lines().filter_map(|line| line.strip_prefix(' ')).map(str::trim);
    Ok(names.filter(|name| !name.is_empty()).filter(is_name).map(str::to_owned).collect())
}

/// The bytecode version of a compiler's output.
fn written_bytecode(compiler: &Path) -> Result<(u16, u16)> {
    let mut command = Command::new(compiler);
    command.args(["--iree-input-type=stablehlo", "--iree-hal-target-device=local"]);
    command.args(["--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=x86-64"]);
    let vmfb = output(command.args(["-", "-o", "-"]), PROGRAM.as_bytes())?;
    Ok(bytecode_version(&vmfb).ok_or("the compiler has written no VMFB")?)
}

/// The output of a successful command, given `input`.
fn output(command: &mut Command, input: &[u8]) -> Result<Vec<u8>> {
    let failed = |command: &Command, error: &dyn std::fmt::Display| {
        format!("{}: {error}", command.get_program().display())
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(command, &error))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input)?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(command, &output.status).into()) }
}
