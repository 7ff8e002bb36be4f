//! A compilation as an action of the Remote Execution API.
//!
//! ```text
//! Action
//! ├── command_digest ──▶ Command: ./iree-compile FLAGS... program.mlir -o main.vmfb
//! ├── input_root_digest ──▶ Directory: program.mlir and the files of the compiler
//! ├── salt: the action key (docs/keys.md)
//! ├── timeout
//! └── platform: OSFamily=linux, ISA=x86-64
//! ```
//!
//! Everything is encoded canonically (fields by number, lists in the orders that the API prescribes) and independently
//! of the machine: the compiler is named by the digests of its release's files for Linux on x86-64 wherever Sheaf runs.
//! Hence all machines compute the same digest for the same compilation.

use std::collections::BTreeMap;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::google::protobuf::Duration;
use bytes::Bytes;
use prost::Message;

use super::OUTPUT;
use crate::remote::Address;
use sheaf_artifacts::ActionKey;

/// The name of the program among the inputs.
pub const PROGRAM: &str = "program.mlir";

/// Time limit of a worker in seconds. Part of the digest, hence the same for all.
pub const TIMEOUT_SECONDS: i64 = 1800;

/// Platform of the compiler's files.
const PLATFORM: [(&str, &str); 2] = [("ISA", "x86-64"), ("OSFamily", "linux")];

/// A file of the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFile {
    /// Path in the input tree, such as `iree/iree-compile`, separated by `/`. The compiler finds its library in its own
    /// folder, which the dynamic linker does not search for a program in the root folder of a sandbox.
    pub path: String,
    /// Digest and size of its contents.
    pub address: Address,
    /// True if it is executable.
    pub executable: bool,
}

/// The inputs of a compile action.
#[derive(Debug, Clone, Copy)]
pub struct Compilation<'a> {
    /// The program without source locations (`strip_locations`), so that a moved function has one digest.
    pub program: &'a [u8],
    /// The compiler's flags, in the order of the command line.
    pub flags: &'a [String],
    /// The key of the compilation, which is the action's salt.
    pub key: ActionKey,
    /// The compiler's files, in any order.
    pub tool: &'a [ToolFile],
    /// The path of the executable among them.
    pub command: &'a str,
}

/// A compilation encoded as an action of the API.
#[derive(Debug, Clone)]
pub struct CompileAction {
    /// The digest of the encoded `Action`.
    pub address: Address,
    /// All blobs that a worker needs except the compiler's files: the `Action`, the `Command`, the folders, the
    /// program.
    pub blobs: Vec<(Address, Bytes)>,
    /// The compiler's files.
    pub tool: Vec<ToolFile>,
}

/// Cause of a compilation that cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The path leads out of the input tree, is empty, or has an empty component.
    #[error("`{path}` is no path of a file of the compiler")]
    Path {
        /// The path.
        path: String,
    },
    /// Two inputs have the same path, or one is a folder of the other.
    #[error("`{path}` is twice among the inputs of a compilation")]
    Twice {
        /// The path.
        path: String,
    },
    /// The command is not among the files.
    #[error("`{command}`, which is to be run, is none of the compiler's files")]
    NoCommand {
        /// The command.
        command: String,
    },
}

impl ActionError {
    /// The fix to suggest to the user.
    pub fn remedy(&self) -> &'static str {
        "install the toolchain again: `sheaf toolchain install`"
    }
}

impl Compilation<'_> {
    /// Encodes the compilation as an action of the API.
    pub fn action(&self) -> Result<CompileAction, ActionError> {
        if !self.tool.iter().any(|file| file.path == self.command) {
            return Err(ActionError::NoCommand { command: self.command.into() });
        }
        let mut root = Folder::default();
        let program = Bytes::copy_from_slice(self.program);
        let program_address = Address::of(&program);
        root.insert(PROGRAM, program_address, false)?;
        for file in self.tool {
            if file.path == OUTPUT {
                return Err(ActionError::Twice { path: file.path.clone() });
            }
            root.insert(&file.path, file.address, file.executable)?;
        }

        let mut blobs = Vec::new();
        let input_root = root.encode(&mut blobs);
        let command = keep(&self.command(), &mut blobs);
        let action = api::Action {
            command_digest: Some(command.into()),
            input_root_digest: Some(input_root.into()),
            timeout: Some(Duration { seconds: TIMEOUT_SECONDS, nanos: 0 }),
            do_not_cache: false,
            salt: self.key.0.0.to_vec(),
            platform: Some(platform()),
        };
        let address = keep(&action, &mut blobs);
        blobs.push((program_address, program));
        Ok(CompileAction { address, blobs, tool: self.tool.to_vec() })
    }

    /// Outputs and platform are also given in the deprecated fields, for servers of the API's first versions.
    #[expect(deprecated, reason = "for servers of REAPI 2.0 and 2.1")]
    fn command(&self) -> api::Command {
        let before = [format!("./{}", self.command)];
        let after = [PROGRAM, "-o", OUTPUT].map(String::from);
        api::Command {
            arguments: before.iter().chain(self.flags).chain(&after).cloned().collect(),
            output_files: vec![OUTPUT.into()],
            output_paths: vec![OUTPUT.into()],
            platform: Some(platform()),
            ..api::Command::default()
        }
    }
}

fn platform() -> api::Platform {
    let property =
        |(name, value): (&str, &str)| api::platform::Property { name: name.into(), value: value.into() };
    api::Platform { properties: PLATFORM.map(property).into() }
}

/// Encodes `message` as a blob.
fn keep(message: &impl Message, blobs: &mut Vec<(Address, Bytes)>) -> Address {
    let bytes = Bytes::from(message.encode_to_vec());
    let address = Address::of(&bytes);
    blobs.push((address, bytes));
    address
}

/// A folder of the input tree. `BTreeMap` keeps the order that the API prescribes: by the bytes of the names.
#[derive(Default)]
struct Folder {
    files: BTreeMap<String, (Address, bool)>,
    folders: BTreeMap<String, Folder>,
}

impl Folder {
    fn insert(&mut self, path: &str, address: Address, executable: bool) -> Result<(), ActionError> {
        let mut folder = self;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            if matches!(part, "" | "." | "..") || part.contains(['\\', '\0']) {
                return Err(ActionError::Path { path: path.into() });
            }
            let is_file = parts.peek().is_none();
            if folder.files.contains_key(part) || is_file && folder.folders.contains_key(part) {
                return Err(ActionError::Twice { path: path.into() });
            }
            if is_file {
                folder.files.insert(part.into(), (address, executable));
                break;
            }
            folder = folder.folders.entry(part.into()).or_default();
        }
        Ok(())
    }

    /// Encodes this folder and its contents.
    fn encode(&self, blobs: &mut Vec<(Address, Bytes)>) -> Address {
        let file = |(name, (address, executable)): (&String, &(Address, bool))| api::FileNode {
            name: name.clone(),
            digest: Some((*address).into()),
            is_executable: *executable,
            node_properties: None,
        };
        let mut directory =
            api::Directory { files: self.files.iter().map(file).collect(), ..Default::default() };
        for (name, folder) in &self.folders {
            let digest = Some(folder.encode(blobs).into());
            directory.directories.push(api::DirectoryNode { name: name.clone(), digest });
        }
        keep(&directory, blobs)
    }
}

#[cfg(test)]
mod tests;
