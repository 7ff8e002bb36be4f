//! Helpers for the tests of stores and folders.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use sheaf_artifacts::{Action, ArtifactFolder, Cpu, Entry, Leaf, Lookup, Miss, Specialisation};
use sheaf_cache::{Claim, Compilation, SignedClaim, Store};
use sheaf_foundation::atomic::WriteError;

/// An action determined by its program.
pub fn action(program: &str) -> Action {
    Action {
        program: program.into(),
        compiler: "3.13.0".into(),
        compiler_digest: sheaf_foundation::Digest::of(b"3.13.0"),
        flags: vec!["--iree-input-type=stablehlo".into()],
        alternatives: vec![],
        tuned: None,
        device: "cpu".into(),
        cpu: Some(Cpu { arch: "x86_64".into(), features: ["avx2".to_owned()].into() }),
        donation: [].into(),
        debug: false,
        rejected: vec![],
    }
}

/// `function` of one f32 vector of `length`.
pub fn specialisation(function: &str, length: u64) -> Specialisation {
    let leaf = |path: &str, shape: &[u64]| Leaf {
        path: path.into(),
        dtype: "f32".into(),
        shape: shape.into(),
        weak: false,
    };
    Specialisation {
        function: function.into(),
        transform: String::new(),
        inputs: vec![leaf("x", &[length])],
        outputs: vec![leaf("", &[])],
        statics: vec![],
        constants: vec![],
        checks: vec![],
    }
}

/// Stand-in VMFB of `program`: several pages, different for each program.
pub fn vmfb(program: &str) -> Vec<u8> {
    program.bytes().cycle().take(20_000 + program.len()).collect()
}

/// Records `function` with `program` as its body, for vectors of `length`.
pub fn record(folder: &ArtifactFolder, function: &str, length: u64, program: &str) -> Entry {
    folder.record(&action(program), specialisation(function, length), &vmfb(program), 0).unwrap()
}

/// Stores a compilation of `program`.
pub fn put(store: &Store, program: &str, function: &str, vmfb: &[u8]) -> Result<(), WriteError> {
    let compilation = Compilation { function: function.into(), ..Compilation::default() };
    let claim = Claim::new(&action(program), program.as_bytes(), vmfb, compilation);
    store.put(&SignedClaim::new(claim, None), program.as_bytes(), vmfb)
}

/// Asserts that `program` is found, and returns its entry.
pub fn found(folder: &ArtifactFolder, program: &str) -> Entry {
    match folder.find(&action(program).key()) {
        Lookup::Hit { bytes, entry } => {
            assert_eq!(bytes, vmfb(program));
            entry
        }
        Lookup::Miss(miss) => panic!("{program}: {miss}"),
    }
}

/// Asserts that `program` is not found, and returns the reason.
pub fn missed(folder: &ArtifactFolder, program: &str) -> Miss {
    match folder.find(&action(program).key()) {
        Lookup::Miss(miss) => miss,
        Lookup::Hit { entry, .. } => panic!("{program} is there: {entry:?}"),
    }
}

/// The sorted names of the files in `folder`, without the lock.
pub fn files(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != ".lock");
    names.sort();
    names
}

/// Starts the test `name` of this test program as a child process, with `variable` set to `value`, which makes the test
/// play the child.
pub fn child(name: &str, variable: &str, value: impl AsRef<std::ffi::OsStr>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(variable, value);
    command.stdout(Stdio::piped()).spawn().unwrap()
}
