//! Output of a compile worker besides its answers: reasons that the compiler only prints, and crash messages.

use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Size of the kept end, in bytes.
const KEPT: usize = 8 << 10;

/// Printed by the worker before each answer, so that the parent knows that it has read all output up to it.
const MARK: u8 = 0x1e;

/// Maximum wait for output that another process may be holding back.
const PATIENCE: Duration = Duration::from_secs(1);

/// Called by the worker before each answer.
pub(crate) fn mark() {
    // Without a reader there is nothing to mark.
    let _ = io::stderr().write_all(&[MARK]);
}

/// The end of a worker's output.
pub(crate) struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    marks: Receiver<()>,
}

impl Output {
    /// Reads to the end in the background, so that the worker never blocks on its output.
    pub(crate) fn collect(mut stream: impl Read + Send + 'static) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (marker, marks) = mpsc::channel();
        let shared = Arc::clone(&kept);
        thread::Builder::new().name("compiler output".to_owned()).spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let before = kept.len();
                kept.extend(buffer[..count].iter().filter(|byte| **byte != MARK));
                let marked = before + count - kept.len();
                let excess = kept.len().saturating_sub(KEPT);
                kept.drain(..excess);
                drop(kept);
                for _ in 0..marked {
                    // The parent may have stopped listening.
                    let _ = marker.send(());
                }
            }
        })?;
        Ok(Self { kept, marks })
    }

    /// The output up to the answer that was just read.
    pub(crate) fn take(&self) -> String {
        let _ = self.marks.recv_timeout(PATIENCE);
        self.taken()
    }

    /// The output up to the end of the process.
    pub(crate) fn take_rest(&self) -> String {
        // A child process of the worker may keep the stream open for longer; it is not waited for.
        while self.marks.recv_timeout(PATIENCE).is_ok() {}
        self.taken()
    }

    fn taken(&self) -> String {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_given_up_to_the_mark_and_then_to_the_end() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let output = Output::collect(reader).expect("a thread");
        writer.write_all(b"first\n\x1e").expect("a reader");
        assert_eq!(output.take(), "first");
        writer.write_all(b"last words").expect("a reader");
        drop(writer);
        assert_eq!(output.take_rest(), "last words");
    }

    #[test]
    fn only_the_end_is_kept() {
        let text = [vec![b'a'; 3 * KEPT], b"the end\x1e".to_vec()].concat();
        let output = Output::collect(io::Cursor::new(text)).expect("a thread");
        let kept = output.take_rest();
        assert_eq!(kept.len(), KEPT);
        assert!(kept.ends_with("aathe end"));
    }
}
