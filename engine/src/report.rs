//! Progress of the compiler's installation.

use sheaf_loader::Reporter;
use sheaf_toolchain::Progress;

/// Receiver of progress and warnings of an engine, which shows nothing itself. All methods do nothing by default.
pub trait EngineReporter: Reporter {
    /// Progress of an installation of the compiler.
    fn installation(&self) -> Box<dyn Progress> {
        Box::new(())
    }
}

/// Ignores everything.
impl EngineReporter for () {}
