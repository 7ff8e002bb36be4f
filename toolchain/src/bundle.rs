//! An installed compiler in one file, for machines without a network: a `.tar.gz` of its folder.
//!
//! The file is untrusted: the names are compared with those of the release in the folder's name, and every file with
//! the size and the SHA-256 of the table.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Take, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use crate::error::{InstallError, OPEN_BUNDLE, file_error};
use crate::install::install_with;
use crate::locate::{self, MARKER, Toolchain, marker_text};
use crate::progress::{Progress, Stage};
use crate::unpack::write_member;
use sheaf_target::{Platform, RELEASES, Release};

/// Maximum size of an archive besides its files: headers, the marker, the end. In bytes.
const AROUND: u64 = 1 << 20;

/// Maximum length of a name in messages, in characters.
const SHOWN_NAME: usize = 100;

/// Writes the installed release to `file`, atomically. Deterministic: the same release gives the same bytes.
pub fn bundle(
    release: &Release<'_>,
    home: &Path,
    file: &Path,
    progress: &dyn Progress,
) -> Result<(), InstallError> {
    let failed = |action, path: &Path, error| file_error(action, path, release.space(), error);
    let folder = locate::folder(release, home);
    if locate::locate_release(release, home).is_none() {
        return Err(failed("bundle", &folder, io::Error::other("it is not installed")));
    }
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unwritten =
        |source| InstallError::BundleFile { path: file.to_owned(), needed: release.space(), source };
    // Not with `NamedTempFile`, whose errors name the temporary path.
    let staged =
        tempfile::Builder::new().make_in(parent, |path| File::create_new(path)).map_err(unwritten)?;
    let compress = GzEncoder::new(BufWriter::new(staged.as_file()), Compression::fast());
    let mut archive = Builder::new(compress);
    let total = release.members().iter().map(|member| member.size).sum();
    progress.begin(Stage::Bundle, release.wheel, total);
    let name = |name: &str| format!("{}/{name}", release.folder());
    let mut append = |name: String, size: u64, mode: u32, content: &mut dyn Read| {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(size);
        header.set_mode(mode);
        header.set_mtime(0);
        archive.append_data(&mut header, name, content).map_err(unwritten)
    };
    let marker = marker_text(release);
    append(name(MARKER), marker.len() as u64, 0o644, &mut marker.as_bytes())?;
    for member in release.members() {
        let path = folder.join(member.file_name());
        let content = File::open(&path).map_err(|error| failed("read", &path, error))?;
        let mode = if member == release.notice { 0o644 } else { 0o755 };
        let mut content = Hashed { content: content.take(member.size), hasher: Sha256::new() };
        append(name(member.file_name()), member.size, mode, &mut content)?;
        let found = hex::encode(content.hasher.finalize());
        if found != member.sha256 {
            let cause = format!("its SHA-256 is {found} instead of {}", member.sha256);
            return Err(InstallError::Damaged { path, cause, version: release.version.to_owned() });
        }
        progress.advance(member.size);
    }
    let finished = archive.into_inner().and_then(GzEncoder::finish).and_then(|mut out| out.flush());
    let finished = finished.and_then(|()| for_everybody(staged.as_file()));
    finished.and_then(|()| staged.as_file().sync_all()).map_err(unwritten)?;
    staged.persist(file).map_err(|error| unwritten(error.error))?;
    progress.finished(Stage::Bundle);
    Ok(())
}

/// Packed content, hashed as it passes.
struct Hashed<R> {
    content: R,
    hasher: Sha256,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

/// Makes a file created as temporary readable for other users.
#[cfg(unix)]
fn for_everybody(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn for_everybody(_: &File) -> io::Result<()> {
    Ok(())
}

/// Installs the compiler from a file that [`bundle`] wrote for this machine's platform. Uses no network.
pub fn install_bundle(
    file: &Path,
    home: &Path,
    progress: &dyn Progress,
) -> Result<(Release<'static>, Toolchain), InstallError> {
    let none = |cause: String| InstallError::NoBundle { path: file.to_owned(), cause };
    let platform =
        Platform::host().ok_or_else(|| none("there is none for this kind of machine".to_owned()))?;
    let folder = first_folder(file)?;
    let release = RELEASES.into_iter().find(|release| release.folder() == folder);
    let release = release.ok_or_else(|| {
        none(format!("its folder is {:?}, which is no release of the table", shown(&folder)))
    })?;
    if release.platform != platform {
        return Err(none(format!("it is for {}, and this is {}", release.platform.name(), platform.name())));
    }
    let toolchain = install_release_from(&release, file, home, progress)?;
    Ok((release, toolchain))
}

/// Like [`install_bundle`] for a given release, whatever its platform.
pub fn install_release_from(
    release: &Release<'_>,
    file: &Path,
    home: &Path,
    progress: &dyn Progress,
) -> Result<Toolchain, InstallError> {
    install_with(release, home, progress, |content| unpack(release, file, content, progress))
}

/// The name of the folder of the first entry.
fn first_folder(file: &Path) -> Result<String, InstallError> {
    let none = |cause: String| InstallError::NoBundle { path: file.to_owned(), cause };
    let mut archive = open(file, 0)?;
    // Raw, here and below: otherwise the reader reads long names, of any length, into memory before it reports them. A
    // bundle has none.
    let mut entries = archive.entries().map_err(|error| none(error.to_string()))?.raw(true);
    let first = entries.next().ok_or_else(|| none("it is empty".to_owned()))?;
    let first = first.map_err(|error| none(error.to_string()))?;
    let path = String::from_utf8_lossy(&first.path_bytes()).into_owned();
    path.split_once('/')
        .map(|(folder, _)| folder.to_owned())
        .ok_or_else(|| none(format!("it begins with {:?}", shown(&path))))
}

/// The archive, of which no more is decompressed than the size of its files plus [`AROUND`].
fn open(file: &Path, files: u64) -> Result<Archive<Take<GzDecoder<BufReader<File>>>>, InstallError> {
    let path = file.to_owned();
    let opened = File::open(file).map_err(|source| InstallError::Io { action: OPEN_BUNDLE, path, source })?;
    Ok(Archive::new(GzDecoder::new(BufReader::new(opened)).take(files + AROUND)))
}

/// A name, cut for a message.
fn shown(name: &str) -> String {
    name.chars().take(SHOWN_NAME).collect()
}

/// Unpacks the files of the release into `folder`. Names are compared and never joined to a path, so path traversal is
/// impossible.
fn unpack(
    release: &Release<'_>,
    file: &Path,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<(), InstallError> {
    let none = |cause: String| InstallError::NoBundle { path: file.to_owned(), cause };
    let damaged = |cause: String| InstallError::DamagedBundle { path: file.to_owned(), cause };
    let mut missing = release.members().to_vec();
    let total = missing.iter().map(|member| member.size).sum();
    progress.begin(Stage::Unpack, release.wheel, total);
    let mut archive = open(file, total)?;
    for entry in archive.entries().map_err(|error| damaged(error.to_string()))?.raw(true) {
        let mut entry = entry.map_err(|error| damaged(error.to_string()))?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != EntryType::Regular {
            return Err(none(format!("its entry {:?} is no plain file", shown(&path))));
        }
        let name = path.strip_prefix(&release.folder()).and_then(|rest| rest.strip_prefix('/'));
        // The marker is regenerated.
        if name == Some(MARKER) {
            continue;
        }
        let position = missing.iter().position(|member| Some(member.file_name()) == name);
        let Some(position) = position else {
            let why = format!("its entry {:?} does not belong to {}", shown(&path), release.folder());
            return Err(none(why));
        };
        let member = missing.swap_remove(position);
        write_member(release, &member, &mut entry, &damaged, folder, progress)?;
    }
    match missing.first() {
        Some(member) => Err(none(format!("{} is missing", member.file_name()))),
        None => {
            progress.finished(Stage::Unpack);
            Ok(())
        }
    }
}
