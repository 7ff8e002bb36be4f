//! Tuning records: the flags of the compiler with which a program was measured to be fastest.
//!
//! A record is kept in the caches as a compiled program is, under the key of [`Action::tuning_record`] and with a signed claim; in
//! place of a VMFB there is its JSON.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::Error as UnknownFlag;
use serde::{Deserialize, Serialize};

use crate::action::Action;

/// The version of the records' format.
pub const TUNING_VERSION: u64 = 1;

/// Flag of no compiler, by which the key of a record differs from those of programs.
const RECORD: &str = "sheaf tuning record";

/// The flags that a record may name. Records come from other machines, and some of the compiler's flags write files or start
/// programs: no record can name those. Aggressive fusion computes wrong numbers (Q63), and the levels of optimisation from 2 on have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuningFlag {
    /// Operands of products are packed into tiles first.
    DataTiling,
    /// Products of packed tiles are IREE's own kernels.
    Ukernels,
    /// Convolutions become products of patches.
    Im2col,
    /// Sums along the last axis are made of as many as a vector holds.
    ReassociateReductions,
    /// Producers with several consumers become part of one of them.
    MultiUseFusion,
    /// Long reductions become two shorter ones.
    SplitReduction,
    /// Transpositions move to where they cost least.
    PropagateTransposes,
}

impl TuningFlag {
    /// All flags, in the order in which a tuner tries them.
    pub const ALL: [TuningFlag; 7] = [
        TuningFlag::DataTiling,
        TuningFlag::Ukernels,
        TuningFlag::Im2col,
        TuningFlag::ReassociateReductions,
        TuningFlag::MultiUseFusion,
        TuningFlag::SplitReduction,
        TuningFlag::PropagateTransposes,
    ];

    /// The compiler's flag.
    pub const fn flag(self) -> &'static str {
        match self {
            TuningFlag::DataTiling => "--iree-opt-data-tiling=true",
            TuningFlag::Ukernels => "--iree-llvmcpu-enable-ukernels=all",
            TuningFlag::Im2col => "--iree-global-opt-use-im2col-for-convs",
            TuningFlag::ReassociateReductions => "--iree-llvmcpu-reassociate-fp-reductions=true",
            TuningFlag::MultiUseFusion => "--iree-dispatch-creation-fuse-multi-use=true",
            TuningFlag::SplitReduction => "--iree-dispatch-creation-enable-split-reduction=true",
            TuningFlag::PropagateTransposes => "--iree-opt-aggressively-propagate-transposes=true",
        }
    }

    /// True if only programs for processors differ by it.
    pub fn is_for_processors(self) -> bool {
        matches!(self, TuningFlag::Ukernels | TuningFlag::ReassociateReductions)
    }

    /// The entries for flags of the compiler; `None` if one of them is not in the table.
    pub fn of(flags: &[String]) -> Option<BTreeSet<TuningFlag>> {
        flags.iter().map(|flag| TuningFlag::ALL.into_iter().find(|known| known.flag() == flag)).collect()
    }
}

/// The name that a record has for it.
impl fmt::Display for TuningFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Reads the name that a record has for it.
impl FromStr for TuningFlag {
    type Err = UnknownFlag;

    fn from_str(name: &str) -> Result<TuningFlag, UnknownFlag> {
        TuningFlag::deserialize(name.into_deserializer())
    }
}

/// A tuning record: what was measured for one program, compiler and device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    version: u64,
    /// The flags of the fastest program.
    pub flags: BTreeSet<TuningFlag>,
    /// Median milliseconds of a call of the program with the flags that it has without a record.
    pub default_ms: f64,
    /// Median milliseconds of a call with the record's flags, measured by turns with that.
    pub tuned_ms: f64,
}

/// Cause of a rejected record.
#[derive(Debug, thiserror::Error)]
pub enum TuningError {
    /// Malformed, or with flags that the table does not have.
    #[error("a tuning record cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Another format version.
    #[error("a tuning record is written in format {found}, but this Sheaf reads format {TUNING_VERSION}")]
    Version {
        /// The version found.
        found: u64,
    },
}

impl Tuning {
    /// A record of these flags and times.
    pub fn new(flags: BTreeSet<TuningFlag>, default_ms: f64, tuned_ms: f64) -> Tuning {
        Tuning { version: TUNING_VERSION, flags, default_ms, tuned_ms }
    }

    /// Reads a record.
    ///
    /// # Errors
    ///
    /// It is none, is of another version, or names flags that are not in the table.
    pub fn parse(json: &[u8]) -> Result<Tuning, TuningError> {
        #[derive(Deserialize)]
        struct Header {
            version: u64,
        }
        let Header { version } = serde_json::from_slice(json)?;
        if version != TUNING_VERSION {
            return Err(TuningError::Version { found: version });
        }
        Ok(serde_json::from_slice(json)?)
    }

    /// The record as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        // Neither maps with other keys than texts nor numbers that are not finite.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Action {
    /// The action whose key is that of this compilation's tuning record, whatever flags it has by then.
    #[must_use]
    pub fn tuning_record(&self) -> Action {
        Action {
            flags: vec![RECORD.to_owned()],
            alternatives: Vec::new(),
            tuned: None,
            rejected: Vec::new(),
            ..self.clone()
        }
    }
}

/// True if these are the flags in the claim of a tuning record, which no compiler has made.
pub fn is_tuning_record(flags: &[String]) -> bool {
    flags == [RECORD]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Tuning, String> {
        Tuning::parse(json.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let flags = BTreeSet::from([TuningFlag::Ukernels, TuningFlag::DataTiling]);
        let record = Tuning::new(flags, 12.5, 7.25);
        assert_eq!(
            String::from_utf8(record.to_json()).expect("UTF-8"),
            r#"{"version":1,"flags":["data-tiling","ukernels"],"default_ms":12.5,"tuned_ms":7.25}"#
        );
        assert_eq!(Tuning::parse(&record.to_json()).expect("a record"), record);
    }

    #[test]
    fn free_text_is_refused() {
        let with = |flag: &str| {
            read(&format!(r#"{{"version":1,"flags":["{flag}"],"default_ms":2.0,"tuned_ms":1.0}}"#))
        };
        assert!(with("im2col").is_ok());
        for flag in ["--iree-opt-data-tiling=true", "--iree-scheduling-dump-statistics-file=/etc/passwd", ""]
        {
            let error = with(flag).expect_err("a flag of the compiler");
            assert!(error.contains("unknown variant"), "{error}");
        }
        assert!(read(r#"{"version":1,"flags":[],"default_ms":2.0,"tuned_ms":1.0,"more":1}"#).is_err());
        assert!(read("{}").is_err());
        assert!(read("IREE").is_err());
    }

    #[test]
    fn another_version_is_named() {
        let error = read(r#"{"version":2,"entries":[]}"#).expect_err("another version");
        assert_eq!(error, "a tuning record is written in format 2, but this Sheaf reads format 1");
    }

    #[test]
    fn flags_are_found_by_their_text() {
        assert_eq!(TuningFlag::DataTiling.to_string(), "data-tiling");
        for flag in TuningFlag::ALL {
            assert_eq!(TuningFlag::of(&[flag.flag().to_owned()]), Some(BTreeSet::from([flag])));
            assert_eq!(flag.to_string().parse(), Ok(flag));
        }
        assert_eq!(TuningFlag::of(&["--iree-opt-data-tiling=true".into(), "--o=x".into()]), None);
    }
}
