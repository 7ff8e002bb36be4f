//! The artifact folder: recording, finding, replacing, and file system errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{action, files, found, missed, record, specialisation, vmfb};
use sheaf_artifacts::{
    Action, ArtifactFolder, Donation, FolderError, Guard, MANIFEST_FILE, Miss, Static, TuningFlag,
};
use sheaf_foundation::Digest;

struct Project {
    root: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.root.path().join("__sheaf__")
    }

    /// The folder as opened by a new process.
    fn open(&self) -> ArtifactFolder {
        ArtifactFolder::open(self.path())
    }

    fn manifest(&self) -> String {
        fs::read_to_string(self.path().join(MANIFEST_FILE)).unwrap()
    }

    fn write_manifest(&self, text: impl AsRef<[u8]>) {
        fs::write(self.path().join(MANIFEST_FILE), text).unwrap();
    }

    /// A message without the parts that differ from run to run.
    fn message(&self, error: &impl ToString) -> String {
        error.to_string().replace(&*self.root.path().to_string_lossy(), "~")
    }
}

/// A tuning record's flags that the table has no more gave wrong numbers.
#[test]
fn a_tuned_program_is_found_while_the_table_has_its_flags() {
    let project = Project::new();
    let tuned = Action { tuned: Some([TuningFlag::Im2col].into()), ..action("p") };
    project.open().record(&tuned, specialisation("forward", 2), &vmfb("p"), 0).unwrap();
    assert_eq!(found(&project.open(), "p").key, tuned.key());
    let flag = TuningFlag::Im2col.flag();
    assert!(project.manifest().contains(flag), "{}", project.manifest());
    project.write_manifest(project.manifest().replace(flag, "--iree-opt-level=O3"));
    assert!(matches!(missed(&project.open(), "p"), Miss::Absent { .. }));
}

#[test]
fn a_folder_is_made_by_the_first_record_only() {
    let project = Project::new();
    let folder = project.open();
    let miss = missed(&folder, "p");
    assert!(!miss.is_trouble());
    insta::assert_snapshot!(project.message(&miss), @"~/__sheaf__ does not have it");
    assert_eq!(folder.entries(), Ok(vec![]));
    assert!(!project.path().exists());
    record(&folder, "forward", 4, "p");
    assert_eq!(files(&project.path()), ["forward.cpu.vmfb", "manifest.json"]);
}

/// A lock that is a link would create or truncate its target; a pipe would block forever.
#[cfg(unix)]
#[test]
fn a_lock_is_a_plain_file() {
    let project = Project::new();
    fs::create_dir(project.path()).unwrap();
    let (lock, elsewhere) = (project.path().join(".lock"), project.root.path().join("elsewhere"));
    let record = || project.open().record(&action("p"), specialisation("forward", 4), &vmfb("p"), 0);
    std::os::unix::fs::symlink(&elsewhere, &lock).unwrap();
    let error = record().unwrap_err();
    insta::assert_snapshot!(project.message(&error), @"~/__sheaf__/.lock could not be written: it is not a regular file");
    assert_eq!(error.remedy(), Some("something else is in its place: move that away"));
    assert!(!elsewhere.exists());
    fs::remove_file(&lock).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&lock).status().unwrap().success());
    assert_eq!(record().unwrap_err().to_string(), error.to_string());
    fs::remove_file(&lock).unwrap();
    record().unwrap();
}

/// The manifest's file type is checked when it is opened: a pipe in its place does not block.
#[cfg(unix)]
#[test]
fn a_list_is_a_plain_file() {
    let project = Project::new();
    fs::create_dir(project.path()).unwrap();
    let list = project.path().join(MANIFEST_FILE);
    assert!(std::process::Command::new("mkfifo").arg(&list).status().unwrap().success());
    insta::assert_snapshot!(project.message(&missed(&project.open(), "p")), @"~/__sheaf__/manifest.json cannot be read: it is not a regular file");
}

/// Ownership is checked at each use: another user may create the folder after the start.
#[test]
fn a_folder_of_somebody_else_is_neither_read_nor_written() {
    let project = Project::new();
    record(&project.open(), "forward", 4, "p");
    let is_ours = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_ours);
    let guard = move |path: &Path, _: &fs::Metadata| {
        let name = path.file_name().unwrap().display().to_string();
        (!asked.load(Ordering::Relaxed)).then(|| format!("{name} is mallory's"))
    };
    let folder = ArtifactFolder::guarded(project.path(), Guard::new(guard));
    let foreign = Miss::Foreign { line: "__sheaf__ is mallory's".into() };
    assert_eq!((missed(&folder, "p"), foreign.is_trouble()), (foreign.clone(), true));
    assert_eq!(folder.entries(), Err(foreign));
    let before = project.manifest();
    let error = folder.record(&action("q"), specialisation("other", 4), &vmfb("q"), 0).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.remedy()), ("__sheaf__ is mallory's", None));
    assert_eq!(project.manifest(), before);
    is_ours.store(true, Ordering::Relaxed);
    found(&folder, "p");
}

#[test]
fn what_was_recorded_is_found_by_this_and_the_next_run() {
    let project = Project::new();
    let folder = project.open();
    let entry = record(&folder, "forward", 4, "p");
    assert_eq!(found(&folder, "p"), entry);
    assert_eq!(found(&project.open(), "p"), entry);
    assert_eq!(project.open().entries(), Ok(vec![entry]));
}

#[test]
fn what_another_process_recorded_meanwhile_is_found() {
    let project = Project::new();
    let folder = project.open();
    record(&folder, "forward", 4, "p");
    found(&folder, "p");
    record(&project.open(), "loss", 4, "q");
    found(&folder, "q");
    record(&folder, "accuracy", 4, "r");
    for program in ["p", "q", "r"] {
        found(&project.open(), program);
    }
}

#[test]
fn the_manifest_reads_well_and_does_not_depend_on_the_order_of_recording() {
    let full = || {
        let mut specialisation = specialisation("loss", 4);
        specialisation.transform = "vag".into();
        specialisation.statics = vec![Static { path: "config[:n-heads]".into(), value: "8".into() }];
        specialisation.constants = vec![Digest::of(b"constant")];
        let donation = [Donation { argument: 0, output: 1 }].into();
        let action = Action { donation, ..action("q") };
        (action, specialisation)
    };
    let (project, reversed) = (Project::new(), Project::new());
    record(&project.open(), "forward", 4, "p");
    let (action, specialisation) = full();
    project.open().record(&action, specialisation.clone(), b"loss", 0).unwrap();
    reversed.open().record(&action, specialisation, b"loss", 0).unwrap();
    record(&reversed.open(), "forward", 4, "p");
    assert_eq!(project.manifest(), reversed.manifest());
    insta::with_settings!({ filters => vec![(r#""key": "[0-9a-f]{64}""#, r#""key": "KEY""#)] }, {
        insta::assert_snapshot!(project.manifest(), @r#"
        {
          "version": 1,
          "entries": [
            {
              "function": "forward",
              "transform": "",
              "device": "cpu",
              "file": "forward.cpu.vmfb",
              "digest": "a0a65ea68211f6743a317ce409fc91041d1dc26d68be721f78e40b91eb97233d",
              "size": 20001,
              "key": "KEY",
              "program": "148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940",
              "toolchain": "3.13.0",
              "flags": [
                "--iree-input-type=stablehlo"
              ],
              "cpu": {
                "arch": "x86_64",
                "features": ["avx2"]
              },
              "donation": [],
              "inputs": [
                {"path": "x", "dtype": "f32", "shape": [4], "weak": false}
              ],
              "outputs": [
                {"path": "", "dtype": "f32", "shape": [], "weak": false}
              ],
              "statics": [],
              "constants": []
            },
            {
              "function": "loss",
              "transform": "vag",
              "device": "cpu",
              "file": "loss-vag.cpu.vmfb",
              "digest": "2ea71c18131a7f0383294917672136b6d5beae857e6bacca02d99d83e5f7d371",
              "size": 4,
              "key": "KEY",
              "program": "8e35c2cd3bf6641bdb0e2050b76932cbb2e6034a0ddacc1d9bea82a6ba57f7cf",
              "toolchain": "3.13.0",
              "flags": [
                "--iree-input-type=stablehlo"
              ],
              "cpu": {
                "arch": "x86_64",
                "features": ["avx2"]
              },
              "donation": [
                {"argument": 0, "output": 1}
              ],
              "inputs": [
                {"path": "x", "dtype": "f32", "shape": [4], "weak": false}
              ],
              "outputs": [
                {"path": "", "dtype": "f32", "shape": [], "weak": false}
              ],
              "statics": [
                {"path": "config[:n-heads]", "value": "8"}
              ],
              "constants": [
                "96f6549c6b97a641e4d1099e39ebf966e649de64f5bf8274d27afad33541e702"
              ]
            }
          ]
        }
        "#);
    });
}

#[test]
fn several_specialisations_of_a_function_get_names_of_their_own() {
    let project = Project::new();
    let folder = project.open();
    let names =
        [("p", 4), ("q", 8)].map(|(program, length)| record(&folder, "forward", length, program).file);
    let hash = &action("q").key().to_string()[..8];
    assert_eq!(names, ["forward.cpu.vmfb".to_owned(), format!("forward-{hash}.cpu.vmfb")]);
    found(&folder, "p");
    found(&folder, "q");
}

#[test]
fn a_function_and_a_transform_of_the_same_looks_do_not_clash() {
    let project = Project::new();
    let folder = project.open();
    let mut transformed = specialisation("f", 4);
    transformed.transform = "vag".into();
    let first = folder.record(&action("p"), transformed, &vmfb("p"), 0).unwrap();
    let second = record(&folder, "f-vag", 4, "q");
    let upper = record(&folder, "F-VAG", 4, "r");
    assert_eq!(first.file, "f-vag.cpu.vmfb");
    assert!(second.file.starts_with("f-vag-") && upper.file.starts_with("F-VAG-"));
    for program in ["p", "q", "r"] {
        found(&folder, program);
    }
}

#[test]
fn function_names_of_any_kind_stay_in_the_folder() {
    let project = Project::new();
    let folder = project.open();
    for (index, function) in
        ["zero?", "a/b", "../../up", "/etc/passwd", "<lambda>", "*", ""].iter().enumerate()
    {
        record(&folder, function, index as u64, function);
        found(&project.open(), function);
    }
    assert_eq!(files(project.root.path()), ["__sheaf__"]);
    assert_eq!(files(&project.path()).len(), 8);
}

#[test]
fn a_changed_source_replaces_its_program_and_its_file() {
    let project = Project::new();
    record(&project.open(), "forward", 4, "older");
    record(&project.open(), "forward", 8, "other types");
    let entry = record(&project.open(), "forward", 4, "newer");
    assert_eq!(entry.file, "forward.cpu.vmfb");
    assert!(!missed(&project.open(), "older").is_trouble());
    found(&project.open(), "other types");
    assert_eq!(files(&project.path()).len(), 3);
    record(&project.open(), "forward", 8, "newer other types");
    assert_eq!(files(&project.path()).len(), 3);
}

#[test]
fn another_device_or_cpu_replaces_nothing() {
    let project = Project::new();
    let mut actions = vec![action("p"), action("p"), action("p")];
    actions[1].device = "cuda".into();
    actions[2].cpu.as_mut().unwrap().features.insert("avx512f".into());
    for action in &actions {
        project.open().record(action, specialisation("forward", 4), &vmfb("p"), 0).unwrap();
    }
    assert_eq!(project.open().entries().unwrap().len(), 3);
}

#[test]
fn two_functions_of_one_name_in_one_run_both_stay() {
    let project = Project::new();
    let first_run = project.open();
    record(&first_run, "<lambda>", 4, "square");
    record(&first_run, "<lambda>", 4, "cube");
    let second_run = project.open();
    found(&second_run, "square");
    record(&second_run, "<lambda>", 4, "fourth power");
    found(&second_run, "square");
    assert!(!missed(&second_run, "cube").is_trouble());
    assert_eq!(files(&project.path()).len(), 3);
}

#[test]
fn recording_again_what_is_there_changes_no_byte() {
    let project = Project::new();
    record(&project.open(), "forward", 4, "p");
    let before = project.manifest();
    record(&project.open(), "forward", 4, "p");
    assert_eq!(project.manifest(), before);
}

#[test]
fn damaged_programs_are_misses_and_repaired_by_the_next_record() {
    let whole = vmfb("p");
    let mut changed = whole.clone();
    changed[10_000] ^= 1;
    for damaged in [&whole[..9_000], &[], &changed, b"another file"] {
        let project = Project::new();
        let path = project.path().join(record(&project.open(), "forward", 4, "p").file);
        fs::write(&path, damaged).unwrap();
        let folder = project.open();
        let miss = missed(&folder, "p");
        assert!(matches!(miss, Miss::ContentSize { .. } | Miss::ContentDigest { .. }), "{miss:?}");
        record(&folder, "forward", 4, "p");
        found(&folder, "p");
        found(&project.open(), "p");
    }
}

#[test]
fn damage_is_noticed_in_the_midst_of_a_run() {
    let project = Project::new();
    let folder = project.open();
    let path = project.path().join(record(&folder, "forward", 4, "p").file);
    found(&folder, "p");
    fs::write(&path, b"short").unwrap();
    insta::assert_snapshot!(project.message(&missed(&folder, "p")), @"~/__sheaf__/forward.cpu.vmfb is damaged: it has 5 bytes instead of 20001");
    fs::remove_file(&path).unwrap();
    insta::assert_snapshot!(project.message(&missed(&folder, "p")), @"~/__sheaf__/forward.cpu.vmfb is missing");
}

#[test]
fn damaged_manifests_are_misses_and_replaced_whole() {
    let project = Project::new();
    record(&project.open(), "forward", 4, "p");
    let whole = project.manifest();
    let damages = [
        whole[..60].to_owned(),
        String::new(),
        "<<<<<<< HEAD\n".to_owned(),
        r#"{"entries": []}"#.to_owned(),
        r#"{"version": 1}"#.to_owned(),
        r#"{"version": 1, "entries": [{"function": "forward"}]}"#.to_owned(),
        whole.replace(r#""digest": ""#, r#""digest": "not one "#),
        "[".repeat(10_000),
    ];
    let mut messages = vec![];
    for damage in damages {
        project.write_manifest(damage);
        let folder = project.open();
        let miss = missed(&folder, "p");
        assert!(matches!(miss, Miss::RecordDamaged { .. }), "{miss:?}");
        assert_eq!(folder.entries(), Err(miss.clone()));
        messages.push(project.message(&miss));
        record(&folder, "forward", 4, "p");
        assert_eq!(project.manifest(), whole);
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    ~/__sheaf__/manifest.json is damaged: EOF while parsing a string at line 5 column 21
    ~/__sheaf__/manifest.json is damaged: EOF while parsing a value at line 1 column 0
    ~/__sheaf__/manifest.json is damaged: expected value at line 1 column 1
    ~/__sheaf__/manifest.json is damaged: missing field `version` at line 1 column 15
    ~/__sheaf__/manifest.json is damaged: missing field `entries` at line 1 column 14
    ~/__sheaf__/manifest.json is damaged: missing field `transform` at line 1 column 50
    ~/__sheaf__/manifest.json is damaged: `not one a0a65ea68211f6743a317ce409fc91041d1dc26d68be721f78e40b91eb97233d` is not a SHA-256 digest; one is written as 64 hexadecimal digits at line 9 column 90
    ~/__sheaf__/manifest.json is damaged: invalid type: sequence, expected u64 at line 1 column 1
    ");
}

#[test]
fn a_manifest_of_a_newer_sheaf_is_never_overwritten() {
    let project = Project::new();
    let folder = project.open();
    record(&folder, "forward", 4, "p");
    let newer = r#"{"version": 2, "programs": {}}"#;
    project.write_manifest(newer);
    let reopened = project.open();
    insta::assert_snapshot!(project.message(&missed(&reopened, "p")), @"~/__sheaf__/manifest.json is written in format 2, but this Sheaf reads format 1");
    for folder in [folder, reopened] {
        let error = folder.record(&action("q"), specialisation("loss", 4), b"q", 0).unwrap_err();
        assert!(matches!(error, FolderError::Newer { found: 2, known: 1, .. }));
        assert_eq!(project.manifest(), newer);
    }
    assert_eq!(files(&project.path()), ["forward.cpu.vmfb", "manifest.json"]);
    let error = project.open().record(&action("q"), specialisation("loss", 4), b"q", 0).unwrap_err();
    insta::assert_snapshot!(project.message(&error), @"~/__sheaf__/manifest.json is written in format 2, but this Sheaf reads format 1");
}

#[test]
fn a_manifest_of_an_unknown_older_format_is_replaced() {
    let project = Project::new();
    record(&project.open(), "forward", 4, "p");
    project.write_manifest(r#"{"version": 0}"#);
    assert!(matches!(missed(&project.open(), "p"), Miss::RecordVersion { found: 0, .. }));
    record(&project.open(), "forward", 4, "p");
    found(&project.open(), "p");
}

/// Before key version 5 entries had a `model`.
#[test]
fn entries_with_a_model_are_read_and_replaced() {
    let project = Project::new();
    let old = record(&project.open(), "forward", 4, "older");
    project.write_manifest(project.manifest().replace("\"file\":", "\"model\": \"hal\", \"file\":"));
    assert_eq!(project.open().entries(), Ok(vec![old]));
    record(&project.open(), "forward", 4, "p");
    assert!(!project.manifest().contains("model"));
    assert_eq!(files(&project.path()), ["forward.cpu.vmfb", "manifest.json"]);
}

#[test]
fn an_unreadable_manifest_is_a_miss_and_stays() {
    let project = Project::new();
    fs::create_dir_all(project.path().join(MANIFEST_FILE)).unwrap();
    let folder = project.open();
    assert!(matches!(missed(&folder, "p"), Miss::RecordUnreadable { .. }));
    let error = folder.record(&action("p"), specialisation("forward", 4), b"p", 0).unwrap_err();
    insta::assert_snapshot!(project.message(&error), @"~/__sheaf__/manifest.json cannot be read: it is not a regular file");
}

#[test]
fn file_names_that_lead_elsewhere_are_refused() {
    let project = Project::new();
    let entry = record(&project.open(), "forward", 4, "p");
    let whole = project.manifest();
    let outside = project.root.path().join("precious.vmfb");
    for name in
        ["../precious.vmfb", &outside.to_string_lossy(), "..", "", "manifest.json", "a/../forward.cpu.vmfb"]
    {
        fs::write(&outside, vmfb("p")).unwrap();
        let quoted = serde_json::to_string(name).unwrap();
        project.write_manifest(whole.replace(&format!("\"{}\"", entry.file), &quoted));
        let miss = missed(&project.open(), "p");
        assert_eq!(miss, Miss::UnsafeName { path: project.path().join(MANIFEST_FILE), name: name.into() });
        // Neither a newer program under its name nor the same one touches the file outside.
        record(&project.open(), "forward", 4, "changed");
        project.write_manifest(whole.replace(&format!("\"{}\"", entry.file), &quoted));
        record(&project.open(), "forward", 4, "p");
        assert_eq!(fs::read(&outside).unwrap(), vmfb("p"));
        assert_eq!(project.manifest(), whole);
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_with_its_path() {
    let project = Project::new();
    fs::write(project.path(), b"a file in the way").unwrap();
    let error = project.open().record(&action("p"), specialisation("forward", 4), b"p", 0).unwrap_err();
    insta::assert_snapshot!(project.message(&error), @"~/__sheaf__ could not be written: File exists (os error 17)");
    insta::assert_snapshot!(error.remedy().unwrap(), @"something else is in its place: move that away");
}

#[test]
fn what_killed_processes_left_unfinished_is_removed() {
    let project = Project::new();
    record(&project.open(), "forward", 4, "p");
    fs::write(project.path().join(".unfinished-x"), b"half").unwrap();
    record(&project.open(), "loss", 4, "q");
    assert_eq!(files(&project.path()), ["forward.cpu.vmfb", "loss.cpu.vmfb", "manifest.json"]);
}
