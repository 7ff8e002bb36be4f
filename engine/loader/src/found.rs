//! Programs that a cache or the compiler has given.

use sheaf_artifacts::{Action, Entry, TuningFlag};
use sheaf_foundation::Digest;

/// A program with what its cache knows of it.
pub struct Found {
    /// The VMFB.
    pub bytes: Vec<u8>,
    /// Its digest.
    pub digest: Digest,
    /// Position of the compilation among the action's [attempts](sheaf_artifacts::Action::attempts).
    pub alternative: usize,
    /// A clause on its flags, if they are not the usual ones.
    pub flags: Option<String>,
}

impl Found {
    /// A program of an action.
    pub fn of(action: &Action, bytes: Vec<u8>, digest: Digest, alternative: usize) -> Found {
        let flags = said(&action.all_alternatives(), alternative, action.untuned_key().is_some());
        Found { bytes, digest, alternative, flags }
    }

    /// A program of `__sheaf__`.
    pub fn in_folder(bytes: Vec<u8>, entry: &Entry) -> Found {
        let flags = said(&entry.alternatives, entry.alternative, entry.untuned.is_some());
        Found { bytes, digest: entry.digest, alternative: entry.alternative, flags }
    }
}

/// The flags that are a record's, and those with which the compiler fails.
fn said(alternatives: &[Vec<String>], alternative: usize, tuned: bool) -> Option<String> {
    let names = |flags: &Vec<String>| match TuningFlag::of(flags) {
        Some(known) if known.is_empty() => "no further flags".to_owned(),
        Some(known) => known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        None => flags.join(" "),
    };
    let chosen = alternatives.get(alternative)?;
    if alternative > 0 {
        let failed = alternatives[..alternative].iter().map(names).collect::<Vec<_>>().join("; with ");
        return Some(format!("compiled with {}, since the compiler fails with {failed}", names(chosen)));
    }
    tuned.then(|| format!("compiled with {}, as its tuning record says", names(chosen)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_said_if_they_are_not_the_usual_ones() {
        let flags =
            |flags: &[TuningFlag]| flags.iter().map(|flag| flag.flag().to_owned()).collect::<Vec<_>>();
        let sets = [flags(&[TuningFlag::Im2col]), flags(&[TuningFlag::DataTiling]), flags(&[])];
        assert_eq!(said(&sets, 0, false), None);
        assert_eq!(said(&[], 0, false), None);
        assert_eq!(said(&sets, 0, true).as_deref(), Some("compiled with im2col, as its tuning record says"));
        assert_eq!(
            said(&sets, 2, true).as_deref(),
            Some("compiled with no further flags, since the compiler fails with im2col; with data-tiling")
        );
        // A manifest may name what there is not.
        assert_eq!(said(&sets, 3, false), None);
    }
}
