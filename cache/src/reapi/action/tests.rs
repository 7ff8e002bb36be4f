use super::*;
use sheaf_foundation::Digest;

fn file(path: &str, content: &[u8], executable: bool) -> ToolFile {
    ToolFile { path: path.into(), address: Address::of(content), executable }
}

fn tool() -> Vec<ToolFile> {
    vec![
        file("iree-compile", b"run", true),
        file("lib/b.so", b"b", false),
        file("lib/a.so", b"a", false),
        file("iree-lld", b"link", true),
    ]
}

fn flags() -> Vec<String> {
    vec!["--a=1".into(), "--b".into()]
}

fn with(
    program: &[u8],
    flags: &[String],
    key: [u8; 32],
    tool: &[ToolFile],
) -> Result<CompileAction, ActionError> {
    Compilation { program, flags, key: ActionKey(Digest(key)), tool, command: "iree-compile" }.action()
}

fn numbered_key() -> [u8; 32] {
    std::array::from_fn(|index| index as u8)
}

fn sample() -> CompileAction {
    with(b"module @sheaf {}", &flags(), numbered_key(), &tool()).expect("an action")
}

/// The digests computed by the Python program of `docs/keys.md`, which was also checked against protobuf's generated
/// code.
#[test]
fn the_digest_is_that_of_the_documented_encoding() {
    let action = sample();
    assert_eq!(
        action.address.digest.to_string(),
        "4461893982a9afa7aa7c589126e93026c3334d890aa994dab8e95b59858f1ab5"
    );
    assert_eq!(action.address.size, 216);

    let large = Address { digest: Digest([0x11; 32]), size: 335774656 };
    let one = [ToolFile { path: "iree-compile".into(), address: large, executable: true }];
    let action = with(b"", &[], [0; 32], &one).expect("an action");
    assert_eq!(
        action.address.digest.to_string(),
        "8b083e074a1156a5ff4f7563dce3d657acbbe75734275cb65a6b45700abb2da2"
    );
}

#[test]
fn everything_that_the_action_names_is_among_its_blobs_and_the_compiler_is_not() {
    let action = sample();
    let find = |address: Address| {
        let blob = action.blobs.iter().find(|(found, _)| *found == address).map(|(_, bytes)| bytes.clone());
        blob.unwrap_or_else(|| panic!("{address:?} is not there"))
    };
    let named = |digest: &Option<api::Digest>| {
        super::super::address(digest.as_ref().expect("a digest")).expect("SHA-256")
    };
    for (address, bytes) in &action.blobs {
        assert_eq!(Address::of(bytes), *address);
    }
    let message = api::Action::decode(find(action.address)).expect("an action");
    let command = api::Command::decode(find(named(&message.command_digest))).expect("a command");
    assert_eq!(command.arguments, ["./iree-compile", "--a=1", "--b", "program.mlir", "-o", "main.vmfb"]);
    assert_eq!(command.output_paths, ["main.vmfb"]);
    let root = api::Directory::decode(find(named(&message.input_root_digest))).expect("a folder");
    let names: Vec<_> = root.files.iter().map(|file| (file.name.as_str(), file.is_executable)).collect();
    assert_eq!(names, [("iree-compile", true), ("iree-lld", true), ("program.mlir", false)]);
    assert_eq!(find(named(&root.files[2].digest)), &b"module @sheaf {}"[..]);
    let lib = api::Directory::decode(find(named(&root.directories[0].digest))).expect("a folder");
    assert_eq!(lib.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a.so", "b.so"]);
    assert_eq!(action.blobs.len(), 5);
}

#[test]
fn every_ingredient_changes_the_digest_and_the_order_of_files_does_not() {
    let before = sample().address;
    let changed = |program: &[u8], flags: &[String], key: [u8; 32], tool: &[ToolFile]| {
        with(program, flags, key, tool).expect("an action").address
    };
    let program = b"module @sheaf {}";
    let mut other_tool = tool();
    other_tool[1].address = Address::of(b"c");
    let mut not_run = tool();
    not_run[1].executable = true;
    for other in [
        changed(b"module @sheaf { }", &flags(), numbered_key(), &tool()),
        changed(program, &["--b".into(), "--a=1".into()], numbered_key(), &tool()),
        changed(program, &flags(), [0; 32], &tool()),
        changed(program, &flags(), numbered_key(), &other_tool),
        changed(program, &flags(), numbered_key(), &not_run),
    ] {
        assert_ne!(other.digest, before.digest);
    }
    let mut reversed = tool();
    reversed.reverse();
    assert_eq!(changed(program, &flags(), numbered_key(), &reversed), before);
}

#[test]
fn paths_that_leave_the_tree_or_meet_are_refused() {
    let refused = |path: &str| {
        let files = [file("iree-compile", b"run", true), file(path, b"x", false)];
        with(b"", &[], [0; 32], &files).expect_err(path)
    };
    for path in ["", "/a", "../a", "a/../b", "a//b", "./a", "a/", "a\\b", "a\0"] {
        assert_eq!(refused(path), ActionError::Path { path: path.into() });
    }
    for path in ["iree-compile", "iree-compile/a", "program.mlir", "main.vmfb"] {
        assert_eq!(refused(path), ActionError::Twice { path: path.into() });
    }
    let nested = [file("a/b", b"x", false), file("a", b"y", false), file("iree-compile", b"run", true)];
    assert_eq!(
        with(b"", &[], [0; 32], &nested).expect_err("a folder"),
        ActionError::Twice { path: "a".into() }
    );
    let error = with(b"", &[], [0; 32], &tool()[1..]).expect_err("no command");
    insta::assert_snapshot!(error, @"`iree-compile`, which is to be run, is none of the compiler's files");
}
