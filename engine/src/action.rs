//! A compilation as remote caches and clusters know it.

use std::borrow::Cow;

use sheaf_artifacts::{Action, strip_locations};
use sheaf_cache::reapi::action::{Compilation, CompileAction, ToolFile};
use sheaf_cache::remote::Address;
use sheaf_foundation::Digest;

/// Folder of the compiler's files among the inputs: not the root, since a program at the root of a sandbox does not
/// find the library beside it.
pub const FOLDER: &str = "iree/";

/// The file of the compiler that is run.
const COMMAND: &str = "iree/iree-compile";

/// The text of the key, and of the compilation on any machine.
pub fn program(action: &Action) -> Cow<'_, str> {
    strip_locations(&action.program)
}

/// The compilation as an action of the Remote Execution API. `None` if the compiler's files are not known.
///
/// It names the compilation in caches, by the first of its alternatives: its salt is the key, which has all of them.
pub fn described(action: &Action) -> Option<CompileAction> {
    described_run(action, &action.attempts()[0])
}

/// One attempt of `action`: a run of the compiler with the flags of that alternative.
pub fn described_run(action: &Action, flags: &[String]) -> Option<CompileAction> {
    let program = program(action);
    let tool: Vec<ToolFile> = sheaf_target::executor_files(&action.compiler)?
        .into_iter()
        .map(|file| ToolFile {
            path: format!("{FOLDER}{}", file.path),
            address: Address { digest: Digest(file.sha256), size: file.size },
            executable: file.executable,
        })
        .collect();
    let compilation =
        Compilation { program: program.as_bytes(), flags, key: action.key(), tool: &tool, command: COMMAND }
            .action();
    compilation.ok()
}
