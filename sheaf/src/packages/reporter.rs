//! Progress of fetches on the terminal.

use std::sync::{Mutex, PoisonError};

use sheaf_registry::git::Progress;
use sheaf_registry::plan::Reporter;
use sheaf_registry::store::{FetchReporter, Fetched, Item, StoreError};

use crate::messages;
use crate::progress::Spinner;

/// A spinner for each fetch that is under way.
#[derive(Default)]
pub struct TerminalFetches {
    spinners: Mutex<Vec<(String, Spinner)>>,
}

impl TerminalFetches {
    fn start(&self, name: &str, text: &str) {
        let mut spinners = self.spinners.lock().unwrap_or_else(PoisonError::into_inner);
        spinners.push((name.to_owned(), Spinner::start(text)));
    }

    fn end(&self, name: &str) {
        let mut spinners = self.spinners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = spinners.iter().position(|(known, _)| known == name) {
            drop(spinners.swap_remove(found));
        }
    }
}

impl FetchReporter for TerminalFetches {
    fn started(&self, item: &Item) {
        self.start(&item.name, &format!("fetching {}", item.name));
    }

    fn progressed(&self, _: &Item, progress: Progress) {
        self.waiting(progress);
    }

    fn damaged(&self, item: &Item, error: &StoreError) {
        messages::warning(format!("{}: {error}", item.name), None);
    }

    fn finished(&self, item: &Item, _: Result<&Fetched, &StoreError>) {
        self.end(&item.name);
    }
}

impl Reporter for TerminalFetches {
    fn updating(&self, address: &str) {
        self.start("", &format!("updating {address}"));
    }

    fn waiting(&self, progress: Progress) {
        if matches!(progress, Progress::Waiting) {
            messages::warning("another process fetches the same repository; waiting for it", None);
        }
    }

    fn updated(&self) {
        self.end("");
    }

    fn note(&self, text: &str) {
        messages::warning(text, None);
    }
}
