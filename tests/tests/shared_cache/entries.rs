//! Invalid entries: damaged, moved, forged, or by an unknown signer. None is used, each is reported once, and the next
//! machine with a compiler and write access repairs it.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use prost::Message as _;
use sheaf_cache::remote::Address;
use sheaf_cache::{Claim, SignedClaim};
use sheaf_foundation::SecretKey;
use sheaf_target::bytecode_version;
use sheaf_tests::sample;

use crate::faults::story;
use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, Remote, SQUARES, warnings, writer};
use crate::shared::taken;
use crate::web::{Fault, Files, Web};

/// The files pushed by a machine that compiled [`SQUARES`]. `None`, after a message, without a compiler.
pub fn pushed() -> Option<&'static Files> {
    static FILES: OnceLock<Option<Files>> = OnceLock::new();
    FILES.get_or_init(|| push("squares.shf", SQUARES)).as_ref()
}

/// The files pushed by a machine that compiled a program.
pub fn push(name: &str, program: &str) -> Option<Files> {
    let web = Web::start(Files::new(), Fault::None);
    let machine = Machine::writing(&web.remote())?;
    machine.sandbox.write(name, program);
    let _ = machine.run(&[name, "--jit", "always"]).compiled();
    let files = web.files().clone();
    Some(files)
}

/// The entry of the only program: its path, the result and the claim.
fn entry(files: &Files) -> (String, ActionResult, SignedClaim) {
    let results = files.iter().filter(|(path, _)| path.starts_with("/ac/"));
    let results = results.map(|(path, bytes)| (path, ActionResult::decode(&bytes[..]).expect("a result")));
    let mut programs = results.filter(|(_, result)| !result.output_files.is_empty());
    let (path, result) = programs.next().expect("an entry");
    assert!(programs.next().is_none(), "one program");
    let signed = SignedClaim::read(&result.stdout_raw).expect("a claim");
    (path.clone(), result, signed)
}

/// The path of a blob.
fn blob(address: Address) -> String {
    format!("/cas/{}", address.digest)
}

/// The path of the VMFB.
pub fn vmfb(files: &Files) -> String {
    blob(entry(files).2.claim.vmfb)
}

/// Changes the text of the claim.
fn rewrite(files: &mut Files, change: impl FnOnce(Vec<u8>, Claim) -> Vec<u8>) {
    let (path, mut result, signed) = entry(files);
    result.stdout_raw = change(signed.text().to_vec(), signed.claim);
    files.insert(path, result.encode_to_vec());
}

/// Replaces the VMFB's bytes: the claim names them, and is signed with `key`.
pub fn replace_program(files: &mut Files, bytes: &[u8], key: Option<&SecretKey>) {
    let address = Address::of(bytes);
    files.insert(blob(address), bytes.to_vec());
    rewrite(files, |_, mut claim| {
        claim.vmfb = address;
        SignedClaim::new(claim, key).text().to_vec()
    });
}

type Damage = fn(&mut Files);

/// Entries that are reported and not used.
const DAMAGES: [(&str, Damage); 14] = [
    ("wrong_bytes", |files| {
        let path = vmfb(files);
        let middle = files[&path].len() / 2;
        files.get_mut(&path).expect("a blob")[middle] ^= 0x10;
    }),
    ("truncated", |files| {
        let path = vmfb(files);
        let half = files[&path].len() / 2;
        files.get_mut(&path).expect("a blob").truncate(half);
    }),
    ("longer", |files| {
        let path = vmfb(files);
        files.get_mut(&path).expect("a blob").push(0);
    }),
    ("no_result", |files| {
        let path = entry(files).0;
        files.insert(path, b"<html>It works!</html>".into());
    }),
    ("no_claim", |files| rewrite(files, |_, _| b"hello".into())),
    ("claim_altered", |files| {
        rewrite(files, |text, _| {
            String::from_utf8(text).expect("a text").replace("\"seconds\":", "\"seconds\":9").into()
        });
    }),
    // Forged without a key: the claim names other bytes, under the old signature.
    ("program_swapped", |files| {
        let poison = b"a program that nobody compiled";
        files.insert(blob(Address::of(poison)), poison.into());
        rewrite(files, |text, claim| {
            let names = |address: Address| serde_json::to_string(&address).expect("JSON");
            let text = String::from_utf8(text).expect("a text");
            text.replace(&names(claim.vmfb), &names(Address::of(poison))).into()
        });
    }),
    // Forged from a valid entry: another program under this action.
    ("entry_of_another_program", |files| {
        let other = push("other.shf", "(defn exp-of-sum [x] (exp (sum x)))\n(print (exp-of-sum [1 2 3]))\n");
        let other = other.expect("a compiler, as before");
        let (_, result, _) = entry(&other);
        let path = entry(files).0;
        files.extend(other.into_iter().filter(|(path, _)| path.starts_with("/cas/")));
        files.insert(path, result.encode_to_vec());
    }),
    // A trusted writer with a wrong claim: it names another text than the one of its key.
    ("text_of_another_program", |files| {
        rewrite(files, |_, mut claim| {
            claim.program = Address::of(b"module @sheaf {}");
            SignedClaim::new(claim, Some(writer())).text().to_vec()
        });
    }),
    ("signed_by_a_stranger", |files| {
        let stranger = SecretKey::generate("mallory").expect("a key");
        replace_program(files, b"poison", Some(&stranger));
    }),
    // An unknown key with the writers' name: a name is no proof.
    ("signed_by_a_namesake", |files| {
        let namesake = SecretKey::generate("trunk").expect("a key");
        replace_program(files, b"poison", Some(&namesake));
    }),
    // No trusted signature, but its function's name is shown in the warning.
    ("unsigned_with_a_name_that_is_none", |files| {
        rewrite(files, |text, claim| {
            let name = serde_json::to_string(&claim.function).expect("JSON");
            let end = text.iter().position(|byte| *byte == b'\n').expect("a line");
            let line = std::str::from_utf8(&text[..=end]).expect("a text");
            line.replace(&name, r#""f\u001b[2J\nerror: run this instead""#).into()
        });
    }),
    ("unsigned", |files| replace_program(files, b"poison", None)),
    ("signature_cut_off", |files| {
        rewrite(files, |text, _| {
            let end = text.iter().position(|byte| *byte == b'\n').expect("a line");
            text[..=end].to_vec()
        });
    }),
];

#[test]
fn what_cannot_be_believed_is_not_used() {
    let Some(files) = pushed() else { return };
    let compiling: Vec<_> = sample(DAMAGES, 3).map(|(name, _)| name).collect();
    for (name, damage) in DAMAGES {
        let mut damaged = files.clone();
        damage(&mut damaged);
        assert_ne!(&damaged, files, "{name}");
        let web = Web::start(damaged, Fault::None);

        let without = Machine::reading(&web.remote()).squares().run(&RUN_SQUARES);
        assert_eq!((without.code, without.stdout.as_str()), (Some(0), FOURTEEN), "{name}: {without}");
        let told = warnings(&without);
        assert_eq!(told.len(), 2, "{name}: {without}");
        assert!(told[1].starts_with("warning: there is no compiler"), "{name}: {without}");
        insta::with_settings!({ filters => vec![(r"\d+ bytes", "[n] bytes")] }, {
            insta::assert_snapshot!(format!("entry_{name}"), story(&without));
        });

        if !compiling.contains(&name) {
            continue;
        }
        let Some(with) = Machine::compiling(&web.remote()) else { return };
        let with = with.squares().run(&RUN_SQUARES);
        assert_eq!((with.code, with.stdout.as_str()), (Some(0), FOURTEEN), "{name}: {with}");
        assert_eq!(
            (warnings(&with).len(), with.stderr.matches("compiling ").count()),
            (1, 1),
            "{name}: {with}"
        );
        assert_eq!(warnings(&with)[0], told[0], "{name}");
    }
}

/// The next machine that compiles and writes repairs it for all.
#[test]
fn what_cannot_be_believed_is_mended_by_the_next_writer() {
    let Some(files) = pushed() else { return };
    for (name, damage) in sample(DAMAGES, 3) {
        let mut damaged = files.clone();
        damage(&mut damaged);
        let web = Web::start(damaged, Fault::None);
        let Some(writing) = Machine::writing(&web.remote()) else { return };
        let output = writing.squares().run(&RUN_SQUARES);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{name}: {output}");
        assert_eq!(warnings(&output).len(), 1, "{name}: {output}");

        let reading = Machine::reading(&web.remote()).squares();
        let output = reading.run(&[&RUN_SQUARES[..], &["--strict"]].concat());
        assert_eq!((output.code, warnings(&output).len()), (Some(0), 0), "after {name}: {output}");
    }
}

/// The list of a function's latest programs is only for explanations, so its damage affects no run.
#[test]
fn a_damaged_list_of_the_latest_programs_is_replaced() {
    let Some(files) = pushed() else { return };
    let program = entry(files).0;
    let list = files.keys().find(|path| path.starts_with("/ac/") && **path != program).expect("a list");
    let damaged = b"<html>It works!</html>".to_vec();
    let web = Web::start([(list.clone(), damaged.clone())].into(), Fault::None);
    let Some(writing) = Machine::writing(&web.remote()) else { return };
    let _ = writing.push_squares();
    assert_ne!(web.files()[list], damaged);
    let reading = Machine::reading(&web.remote()).squares();
    assert_eq!(taken(reading.run(&[&RUN_SQUARES[..], &["--strict"]].concat())), FOURTEEN);
}

/// An entry whose blob has been collected is no entry, and is not reported.
#[test]
fn an_entry_without_its_blob_is_none() {
    let Some(files) = pushed() else { return };
    let mut files = files.clone();
    files.remove(&vmfb(&files)).expect("a blob");
    let web = Web::start(files, Fault::None);
    let Some(writing) = Machine::writing(&web.remote()) else { return };
    let output = writing.squares().run(&RUN_SQUARES);
    assert_eq!(warnings(&output), [""; 0], "{output}");
    assert_eq!(output.compiled(), FOURTEEN);
    let reading = Machine::reading(&web.remote()).squares();
    assert_eq!(taken(reading.run(&[&RUN_SQUARES[..], &["--strict"]].concat())), FOURTEEN);
}

/// A writer's wrong clock, by years, is harmless: no decision depends on the time of a claim.
#[test]
fn clocks_may_differ() {
    let Some(files) = pushed() else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    for time in [0, now + 10 * 365 * 86_400, u64::MAX] {
        let mut files = files.clone();
        rewrite(&mut files, |_, mut claim| {
            claim.time = time;
            SignedClaim::new(claim, Some(writer())).text().to_vec()
        });
        let web = Web::start(files, Fault::None);
        let reading = Machine::reading(&web.remote()).squares();
        assert_eq!(taken(reading.run(&[&RUN_SQUARES[..], &["--strict"]].concat())), FOURTEEN);
        let why = reading.run(&["cache", "why", "sum-of-squares"]);
        assert_eq!(why.code, Some(0), "{why}");
    }
}

/// Signed by a trusted key, but invalid: the writer's machine was broken. A program that does not load is compiled.
#[test]
fn what_was_signed_and_does_not_load_is_compiled() {
    let Some(files) = pushed() else { return };
    let mut files = files.clone();
    replace_program(&mut files, b"no program at all", Some(writer()));
    let web = Web::start(files, Fault::None);
    let Some(compiling) = Machine::compiling(&web.remote()) else { return };
    let compiling = compiling.squares();
    assert_eq!(compiling.run(&RUN_SQUARES).compiled(), FOURTEEN);
    assert_eq!(taken(compiling.run(&RUN_SQUARES)), FOURTEEN);
    let without = Machine::reading(&web.remote()).squares().run(&RUN_SQUARES);
    assert_eq!((without.code, without.stdout.as_str()), (Some(0), FOURTEEN), "{without}");
}

/// A valid program for another release of the runtime: IREE is not called, and a machine with a compiler replaces it.
#[test]
fn what_another_runtime_loads_is_refused_with_what_to_do() {
    let Some(files) = pushed() else { return };
    let mut files = files.clone();
    let program = files[&vmfb(&files)].clone();
    replace_program(&mut files, &of_the_next_runtime(&program), Some(writer()));
    let web = Web::start(files, Fault::None);
    let without = Machine::reading(&web.remote()).squares();
    let output = without.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    insta::assert_snapshot!(story(&output));
    let Some(compiling) = Machine::compiling(&web.remote()) else { return };
    let compiling = compiling.squares();
    let output = compiling.run(&RUN_SQUARES);
    assert_eq!(
        (output.code, output.stdout.as_str(), warnings(&output).len()),
        (Some(0), FOURTEEN, 1),
        "{output}"
    );
    assert_eq!(taken(compiling.run(&RUN_SQUARES)), FOURTEEN, "the new one is kept");
}

/// The same program with the next major version of the bytecode.
fn of_the_next_runtime(program: &[u8]) -> Vec<u8> {
    let (major, minor) = bytecode_version(program).expect("a program");
    let field = |major: u16| ((u32::from(major) << 16) | u32::from(minor)).to_le_bytes();
    let places = program.windows(4).enumerate().filter(|(_, bytes)| *bytes == field(major));
    let mut changed = places.map(|(place, _)| {
        let mut program = program.to_vec();
        program[place..place + 4].copy_from_slice(&field(major + 1));
        program
    });
    changed
        .find(|program| bytecode_version(program) == Some((major + 1, minor)))
        .expect("the version's place")
}

/// Of several remotes the first with a valid program serves, and fills those before it.
#[test]
fn a_better_remote_fills_the_one_before_it() {
    let Some(files) = pushed() else { return };
    let mut damaged = files.clone();
    DAMAGES[0].1(&mut damaged);
    let (bad, good) = (Web::start(damaged, Fault::None), Web::start(files.clone(), Fault::None));
    let empty = Web::start(Files::new(), Fault::None);
    let addresses = [&empty, &bad, &good].map(|web| web.remote().address).join(",");
    let reading = Machine::reading(&Remote::at(addresses)).squares();
    let output = reading.run(&[&RUN_SQUARES[..], &["--strict"]].concat());
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    assert_eq!(warnings(&output).len(), 1, "{output}");
    assert_eq!(vmfb(&empty.files()), vmfb(files));
    assert_eq!(empty.files()[&vmfb(files)], files[&vmfb(files)]);
}
