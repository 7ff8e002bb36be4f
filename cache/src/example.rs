//! An action for tests.

use sheaf_artifacts::Action;
use sheaf_foundation::Digest;

/// An arbitrary action that compiles `program`.
pub(crate) fn example(program: &str) -> Action {
    Action {
        program: program.into(),
        compiler: "3.13.0".into(),
        compiler_digest: Digest::of(b"3.13.0"),
        flags: vec![],
        alternatives: vec![],
        tuned: None,
        device: "cuda".into(),
        cpu: None,
        donation: [].into(),
        debug: false,
        rejected: vec![],
    }
}
