//! Files mapped into memory, read-only, that outlive a truncation.
//!
//! A page of a mapping beyond the end of its file raises SIGBUS when it is read, which ends the process. The handler of this
//! module recognises the addresses of mappings made here, puts zeros in the place of the lost pages and marks the mapping; a
//! reader asks [`MappedFile::check`] before it reads, and [`lost_bytes`] afterwards. All other signals go to the handler that
//! was installed before.
#![allow(unsafe_code)]

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memmap2::{Mmap, MmapOptions};

/// A file mapped into memory. A file that takes its place by a rename leaves the mapping as it is.
pub struct MappedFile {
    path: PathBuf,
    file: File,
    size: u64,
    modified: Option<SystemTime>,
    // Dropped before the mapping, whose addresses may be used again.
    #[cfg(unix)]
    guarded: Option<lost::Guarded>,
    /// `None` for an empty file.
    map: Option<Mmap>,
}

/// The error of a mapped file that is no longer as it was when it was mapped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileChange {
    /// Another size.
    #[error("{} was changed while it was in use: it had {before} bytes, and now has {after}", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Bytes when it was mapped.
        before: u64,
        /// Bytes now.
        after: u64,
    },
    /// The same size, but written to.
    #[error("{} was written to while it was in use", path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
    /// Bytes that could not be read.
    #[error("{} lost bytes while it was in use", path.display())]
    Lost {
        /// The file.
        path: PathBuf,
    },
}

impl MappedFile {
    /// Maps a file. Nothing of it is read.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or mapped, or is no regular file ([`io::ErrorKind::InvalidInput`]): pipes and devices have
    /// to be read.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        let file = match File::open(path) {
            #[cfg(unix)]
            Err(error) if too_many_files(&error) && allow_more_files() => File::open(path)?,
            file => file?,
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let size = metadata.len();
        let map = if size == 0 {
            None
        } else {
            let length = usize::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
            // SAFETY: the bytes are only read. Another process may write to the file or truncate it meanwhile: readers take
            // them for plain numbers, of which every pattern of bytes is valid, and copy what they parse as text; lost pages
            // are replaced by the handler below. `check` reports both.
            Some(unsafe { MmapOptions::new().len(length).map(&file)? })
        };
        Ok(MappedFile {
            path: path.to_owned(),
            size,
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            guarded: map.as_ref().map(|map| lost::Guarded::new(map)),
            map,
            file,
        })
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if the file has changed since it was mapped.
    pub fn check(&self) -> Result<(), FileChange> {
        #[cfg(unix)]
        let lost = self.guarded.as_ref().is_some_and(lost::Guarded::is_lost);
        #[cfg(not(unix))]
        let lost = false;
        let now = self.file.metadata().ok();
        match now.as_ref().map(Metadata::len) {
            Some(after) if after != self.size => {
                Err(FileChange::Size { path: self.path.clone(), before: self.size, after })
            }
            _ if lost => Err(FileChange::Lost { path: self.path.clone() }),
            _ if now.and_then(|now| now.modified().ok()) != self.modified => {
                Err(FileChange::Content { path: self.path.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// True if a file could not be opened since the process has as many open as it may.
#[cfg(unix)]
pub fn too_many_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::EMFILE)
}

/// Raises the limit of open files, by default a few hundred or thousand, to that which the process may set itself: each
/// mapping has its file open. False if it is there already.
#[cfg(unix)]
fn allow_more_files() -> bool {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((now, most)) = getrlimit(Resource::RLIMIT_NOFILE) else { return false };
    now < most && setrlimit(Resource::RLIMIT_NOFILE, most, most).is_ok()
}

/// The number of times that bytes of mapped files were lost while they were read, in this process.
pub fn lost_bytes() -> u64 {
    #[cfg(unix)]
    return lost::count();
    // Other systems do not let a mapped file be truncated.
    #[cfg(not(unix))]
    0
}

/// The handler of SIGBUS.
#[cfg(unix)]
mod lost {
    use std::ffi::{c_int, c_void};
    use std::num::NonZeroUsize;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
    use std::sync::{Mutex, OnceLock, PoisonError};

    use nix::errno::Errno;
    use nix::libc::siginfo_t;
    use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
    use nix::unistd::{SysconfVar, sysconf};

    /// The addresses of a mapping. Never freed, since the handler may read it at any time; a free one is used again.
    struct Slot {
        /// First address; 0 if the slot is free.
        start: AtomicUsize,
        /// First address behind it.
        end: AtomicUsize,
        lost: AtomicBool,
        /// The slot made before this one.
        next: *const Slot,
    }

    // SAFETY: `next` is set before the slot is shared and never changed, and points to a slot that is never freed.
    unsafe impl Sync for Slot {}

    /// The newest slot.
    static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    static PREVIOUS: OnceLock<SigAction> = OnceLock::new();
    /// Held while slots are taken.
    static REGISTRATION: Mutex<()> = Mutex::new(());

    pub fn count() -> u64 {
        COUNT.load(Ordering::Acquire)
    }

    fn slots() -> impl Iterator<Item = &'static Slot> {
        let mut next: *const Slot = SLOTS.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: null, or a slot, which is never freed.
            let slot = unsafe { next.as_ref() }?;
            next = slot.next;
            Some(slot)
        })
    }

    /// A mapping that the handler knows, until this is dropped.
    pub struct Guarded(&'static Slot);

    impl Guarded {
        /// Makes a mapping known to the handler.
        pub fn new(bytes: &[u8]) -> Guarded {
            let _held = REGISTRATION.lock().unwrap_or_else(PoisonError::into_inner);
            install();
            let (start, end) = (bytes.as_ptr() as usize, bytes.as_ptr() as usize + bytes.len());
            let free = slots().find(|slot| slot.start.load(Ordering::Acquire) == 0);
            let slot = free.unwrap_or_else(|| {
                let slot = Box::leak(Box::new(Slot {
                    start: AtomicUsize::new(0),
                    end: AtomicUsize::new(0),
                    lost: AtomicBool::new(false),
                    next: SLOTS.load(Ordering::Acquire),
                }));
                SLOTS.store(slot, Ordering::Release);
                slot
            });
            slot.lost.store(false, Ordering::Release);
            slot.end.store(end, Ordering::Release);
            slot.start.store(start, Ordering::Release);
            Guarded(slot)
        }

        /// True if pages of it were lost while they were read.
        pub fn is_lost(&self) -> bool {
            self.0.lost.load(Ordering::Acquire)
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            self.0.start.store(0, Ordering::Release);
        }
    }

    /// Installs the handler, once in a process.
    fn install() {
        if PREVIOUS.get().is_some() {
            return;
        }
        let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|n| usize::try_from(n).ok());
        PAGE.store(page.unwrap_or(4096), Ordering::Release);
        // On the alternative stack, as the handler of stack overflows, which it stands in front of.
        let flags = SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK;
        let action = SigAction::new(SigHandler::SigAction(on_bus_error), flags, SigSet::empty());
        // SAFETY: the handler reads and writes atomics, and calls nothing but mmap, sigaction and raise, all of which a handler
        // may call.
        if let Ok(previous) = unsafe { sigaction(Signal::SIGBUS, &action) } {
            let _ = PREVIOUS.set(previous);
        }
    }

    extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let errno = Errno::last_raw();
        // SAFETY: the system passes a valid pointer; the address is only a number here.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
        // Positive for signals of the system itself, for which the address is set.
        let replaced = code > 0 && replace_lost(address);
        if !replaced {
            hand_on(code, signal, info, context);
        }
        Errno::set_raw(errno);
    }

    /// Puts zeros in the place of a mapping from the page of `address` on. False if no mapping has that address, or there is
    /// no memory.
    fn replace_lost(address: usize) -> bool {
        let within = |slot: &Slot| {
            let start = slot.start.load(Ordering::Acquire);
            start != 0 && start <= address && address < slot.end.load(Ordering::Acquire)
        };
        let Some(slot) = slots().find(|slot| within(slot)) else { return false };
        let page = address - address % PAGE.load(Ordering::Acquire);
        let length = NonZeroUsize::new(slot.end.load(Ordering::Acquire) - page);
        let (Some(start), Some(length)) = (NonZeroUsize::new(page), length) else { return false };
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED;
        // SAFETY: the pages belong to a mapping of this module, which is read-only and stays in place as a whole until it is
        // unmapped: its slot is given up before that.
        let mapped = unsafe { mmap_anonymous(Some(start), length, ProtFlags::PROT_READ, flags) };
        if mapped.is_err() {
            return false;
        }
        slot.lost.store(true, Ordering::Release);
        COUNT.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Does what would be done without this handler.
    fn hand_on(code: c_int, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        match PREVIOUS.get().map(SigAction::handler) {
            Some(SigHandler::SigAction(previous)) => previous(signal, info, context),
            Some(SigHandler::Handler(previous)) => previous(signal),
            Some(SigHandler::SigIgn) if code <= 0 => {}
            _ => {
                let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
                // SAFETY: the default action runs no code of this process. The faulting access is tried again, and ends it; a
                // signal that was sent is sent again.
                let _ = unsafe { sigaction(Signal::SIGBUS, &default) };
                if code <= 0 {
                    let _ = raise(Signal::SIGBUS);
                }
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;
    use std::time::Duration;

    use super::*;

    const PAGES: usize = 8 * 65_536;

    fn file(folder: &tempfile::TempDir, bytes: &[u8]) -> (PathBuf, MappedFile) {
        let path = folder.path().join("data.bin");
        fs::write(&path, bytes).expect("a file");
        let mapped = MappedFile::open(&path).expect("a mapping");
        (path, mapped)
    }

    #[test]
    fn a_file_truncated_while_it_is_mapped_reads_as_zeros_and_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mapped) = file(&folder, &vec![7; PAGES]);
        let before = lost_bytes();
        assert_eq!((mapped.check(), mapped.bytes()[PAGES - 1]), (Ok(()), 7));
        OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert_eq!(mapped.bytes()[PAGES - 1], 0);
        assert_eq!(mapped.bytes()[PAGES / 2], 0);
        assert_eq!(mapped.bytes()[9], 7);
        assert!(lost_bytes() > before);
        let change = FileChange::Size { path: path.clone(), before: PAGES as u64, after: 10 };
        assert_eq!(mapped.check(), Err(change));
        // Grown again to its old size, the bytes are lost all the same.
        OpenOptions::new().write(true).open(&path).unwrap().set_len(PAGES as u64).unwrap();
        assert_eq!(mapped.check(), Err(FileChange::Lost { path }));
    }

    #[test]
    fn a_file_written_to_while_it_is_mapped_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mapped) = file(&folder, b"one");
        let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
        writer.write_all(b"two").unwrap();
        let later = mapped.modified.unwrap() + Duration::from_secs(1);
        writer.set_modified(later).unwrap();
        assert_eq!(mapped.check(), Err(FileChange::Content { path }));
    }

    #[test]
    fn a_file_that_is_replaced_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mapped) = file(&folder, b"one");
        let other = folder.path().join("other");
        fs::write(&other, b"three").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!((mapped.check(), mapped.bytes()), (Ok(()), b"one".as_slice()));
        fs::remove_file(&path).unwrap();
        assert_eq!((mapped.check(), mapped.bytes()), (Ok(()), b"one".as_slice()));
    }

    #[test]
    fn empty_files_are_mapped_and_folders_and_pipes_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (_, mapped) = file(&folder, b"");
        assert_eq!((mapped.check(), mapped.bytes()), (Ok(()), b"".as_slice()));
        let kind = |path: &Path| MappedFile::open(path).err().map(|e| e.kind());
        assert_eq!(kind(folder.path()), Some(io::ErrorKind::IsADirectory));
        assert_eq!(kind(Path::new("/dev/null")), Some(io::ErrorKind::InvalidInput));
    }

    #[test]
    fn slots_are_used_again() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..100_u8 {
            let (path, mapped) = file(&folder, &vec![i; PAGES]);
            OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
            assert_eq!(mapped.bytes()[usize::from(i)], 0);
            assert!(mapped.check().is_err());
            fs::remove_file(path).unwrap();
        }
    }

    /// A signal that has nothing to do with mappings ends the process as before. Run by the test below, in a process of its own.
    #[test]
    #[ignore = "ends its process"]
    fn killed_by_a_signal() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mapped) = file(&folder, &vec![7; PAGES]);
        OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
        assert_eq!(mapped.bytes()[1], 0);
        // The handler of Rust's own, for stack overflows, gives way at the first.
        for _ in 0..2 {
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGBUS).unwrap();
        }
    }

    #[test]
    fn other_signals_end_the_process_as_before() {
        use std::os::unix::process::ExitStatusExt as _;
        let test = std::env::current_exe().unwrap();
        let name = "mapped::tests::killed_by_a_signal";
        let output = std::process::Command::new(test).args([name, "--exact", "--ignored"]).output().unwrap();
        assert_eq!(output.status.signal(), Some(nix::sys::signal::Signal::SIGBUS as i32), "{output:?}");
    }
}
