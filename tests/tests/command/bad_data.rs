//! Damaged and hostile files of data, in the formats that programs load: each ends the run with a message that says which file,
//! what was expected and found, and what to do. Nothing of the file is used, nothing crashes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use sheaf_tests::{Output, Sandbox};

/// A file that Python wrote, by `tests/data/make.py`.
fn golden(name: &str) -> Vec<u8> {
    fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/data/").to_owned() + name).expect("a golden file")
}

/// A `.safetensors` file of this header and these bytes.
fn safetensors(header: &str, bytes: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), bytes].concat()
}

/// A file of one tensor.
fn tensor(dtype: &str, shape: &str, bytes: usize) -> Vec<u8> {
    let entry = format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{bytes}]}}}}"#);
    safetensors(&entry, &vec![0; bytes])
}

/// A text file in one of the formats of NumPy with a part of its header replaced.
fn with_header(name: &str, from: &str, to: &str) -> Vec<u8> {
    let file = golden(name);
    let text: String = file.iter().map(|byte| char::from(*byte)).collect();
    assert!(text.contains(from), "{name} has no {from}");
    text.replace(from, to).chars().map(|c| c as u8).collect()
}

/// Runs an expression that loads one of these files, and then prints. It must end with exit code 1 before that.
fn refused(expression: &str, files: &[(&str, Vec<u8>)]) -> Output {
    let sandbox = Sandbox::new();
    for (name, content) in files {
        sandbox.write(name, content);
    }
    sandbox.write("program.shf", format!("(def x {expression})\n(print \"went on\" x)\n"));
    let output = sandbox.run(&["program.shf"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output}");
    output
}

/// The messages of [`refused`] for `(io "load" ...)` of each file, with the help below each.
fn messages(cases: &[(&str, Vec<u8>)]) -> String {
    let message = |(load, content): &(&str, Vec<u8>)| {
        let name = load.split(' ').next().expect("a name");
        let hints = &load[name.len()..];
        let output = refused(&format!("(io \"load\" \"{name}\"{hints})"), &[(name, content.clone())]);
        let lines =
            output.stderr.lines().filter(|line| line.starts_with("error:") || line.contains("= help:"));
        let lines: Vec<&str> = lines.map(str::trim).collect();
        assert_eq!(lines.len(), 2, "a message and a remedy\n{output}");
        assert!(lines[0].contains(name), "the file is not named\n{output}");
        lines.join("\n")
    };
    cases.iter().map(message).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn corrupt_headers() {
    insta::assert_snapshot!(messages(&[
        ("m.safetensors", safetensors("{\"w\":", &[])),
        ("m.safetensors", [&(1_u64 << 60).to_le_bytes()[..], b"{}"].concat()),
        ("m.safetensors", b"<html>not found</html>".to_vec()),
        ("m.safetensors.index.json", b"{\"weight_map\":[1]}".to_vec()),
        ("a.npy", b"\x93NUMPY\x09\x00".to_vec()),
        ("a.npy", with_header("f.npy", "descr", "dascr")),
        ("a.npz", b"PK\x03\x04".to_vec()),
        ("a.npz", b"<html>not found</html>".to_vec()),
        ("d.pkl", b"\x80\x09.".to_vec()),
        ("d.json.gz", b"<html>not found</html>".to_vec()),
        ("d.csv", b"a,a\n1,2\n".to_vec()),
    ]));
}

#[test]
fn wrong_dtypes() {
    insta::assert_snapshot!(messages(&[
        ("m.safetensors", tensor("F8_E4M3", "[8]", 8)),
        ("m.safetensors", tensor("F33", "[8]", 8)),
        ("a.npy", golden("complex.npy")),
        ("a.npy", golden("text.npy")),
        ("a.npy", golden("object.npy")),
        ("a.npy", golden("records.npy")),
        ("a.npy :f32", golden("f.npy")),
        ("d.pkl", golden("object.pkl")),
        ("d.bin", vec![0; 8]),
        ("d.bin :bool", vec![0, 1, 7]),
        ("d.csv :i32", b"1,2\n3,4.5\n".to_vec()),
        ("d.csv :i8", b"1,2\n3,400\n".to_vec()),
    ]));
}

#[test]
fn wrong_shapes() {
    insta::assert_snapshot!(messages(&[
        ("m.safetensors", tensor("F32", "[3]", 8)),
        ("m.safetensors", tensor("F32", "[4294967296,4294967296]", 8)),
        ("m.safetensors", tensor("F32", "[-1]", 8)),
        ("a.npy", with_header("f.npy", "(2, 3)", "(3, 3)")),
        ("a.npy", with_header("f.npy", "(2, 3), }", "(99999999999, 9), }")),
        ("d.csv", b"1,2,3\n4,5\n".to_vec()),
    ]));
}

#[test]
fn wrong_lengths() {
    let whole = tensor("F32", "[4]", 16);
    let (npy, npz, pickle) = (golden("f.npy"), golden("stored.npz"), golden("plain4.pkl"));
    let cut = |file: &[u8], bytes: usize| file[..file.len() - bytes].to_vec();
    insta::assert_snapshot!(messages(&[
        ("m.safetensors", Vec::new()),
        ("m.safetensors", cut(&whole, 1)),
        ("m.safetensors", [&whole[..], b"\n"].concat()),
        ("m.safetensors", whole[..20].to_vec()),
        ("a.npy", Vec::new()),
        ("a.npy", cut(&npy, 1)),
        ("a.npy", [&npy[..], b"\n"].concat()),
        ("a.npy", npy[..40].to_vec()),
        ("a.npz", cut(&npz, 10)),
        ("a.npz", Vec::new()),
        ("d.pkl", cut(&pickle, 5)),
        ("d.pkl", Vec::new()),
        ("d.bin :u16", vec![1, 0, 2]),
        ("d.csv", Vec::new()),
        ("d.json", b"{\"a\": [1, 2".to_vec()),
        ("d.json", Vec::new()),
        ("d.json.gz", golden("deflated.npz")[..9].to_vec()),
    ]));
}

#[test]
fn folders_in_the_place_of_files() {
    let names = [
        "x.safetensors",
        "x",
        "x.safetensors.index.json",
        "x.npy",
        "x.npz",
        "x.bin",
        "x.json",
        "x.jsonl",
        "x.csv",
        "x.txt",
        "x.pkl",
        "x.csv.gz",
    ];
    for name in names {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.path(name)).expect("a folder");
        let hint = if name == "x.bin" { " :u16" } else { "" };
        sandbox.write("program.shf", format!("(print (io \"load\" \"{name}\"{hint}))\n"));
        let output = sandbox.run(&["program.shf"]);
        let text = &output.stderr;
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output}");
        assert!(text.starts_with(&format!("error: {name} is a folder, not a file\n")), "{output}");
        assert!(text.contains("= help: name a file, perhaps one in that folder"), "{output}");
    }
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("out.safetensors")).expect("a folder");
    sandbox.write("program.shf", "(io \"save\" \"out.safetensors\" {:x [1 2]})\n");
    insta::assert_snapshot!(sandbox.run(&["program.shf"]));
    assert_eq!(Sandbox::files(&sandbox.path("")), ["program.shf"]);
}

#[test]
fn a_truncated_shard() {
    let shards = [("train-1.bin", vec![1, 0, 2, 0]), ("train-2.bin", vec![3, 0, 4])];
    insta::assert_snapshot!(refused("(io \"load\" \"train-*.bin\" :u16)", &shards));

    let [first, second] = ["a", "b"].map(|name| {
        safetensors(
            &format!(r#"{{"{name}":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}}}"#),
            &[1, 2, 3, 4],
        )
    });
    let index = br#"{"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}}"#;
    let shards = [
        ("model-1.safetensors", first),
        ("model-2.safetensors", second[..second.len() - 2].to_vec()),
        ("model.safetensors.index.json", index.to_vec()),
    ];
    for path in ["model.safetensors.index.json", "model-*.safetensors"] {
        let output = refused(&format!("(io \"load\" \"{path}\")"), &shards);
        insta::allow_duplicates! {
            let message = output.stderr.lines().next().expect("a message");
            insta::assert_snapshot!(message, @"error: model-2.safetensors: its tensors take 65 bytes with the header, and the file has 63: it is truncated");
        }
    }
    let output =
        refused("(io \"load\" \"model.safetensors.index.json\")", &[shards[0].clone(), shards[2].clone()]);
    insta::assert_snapshot!("a_shard_that_is_not_there", output);
}

#[test]
fn a_pickle_that_runs_code() {
    for name in ["evil0.pkl", "evil2.pkl", "evil4.pkl"] {
        // The code would have printed.
        let output = refused("(io \"load\" \"weights.pkl\")", &[("weights.pkl", golden(name))]);
        insta::allow_duplicates! { insta::assert_snapshot!(output) };
    }
}

#[test]
fn nan_in_json() {
    insta::assert_snapshot!(messages(&[
        ("d.json", b"{\"loss\": [1.5, NaN]}".to_vec()),
        ("d.json", b"[Infinity]".to_vec()),
        ("d.json", b"[1e999]".to_vec()),
    ]));
    let lines = b"{\"loss\": 1}\n{\"loss\": NaN}\n".to_vec();
    insta::assert_snapshot!(
        "nan_in_a_line",
        refused("(map :loss (io \"load\" \"log.jsonl\"))", &[("log.jsonl", lines)])
    );
}

#[test]
fn text_that_is_not_utf8() {
    let latin = b"caf\xe9".to_vec();
    insta::assert_snapshot!(messages(&[
        ("d.txt", latin.clone()),
        ("d.json", b"\"caf\xe9\"".to_vec()),
        ("d.csv", b"name,age\ncaf\xe9,3\n".to_vec()),
        ("d.csv", b"caf\xe9,age\nx,3\n".to_vec()),
        ("m.safetensors", [&4_u64.to_le_bytes()[..], b"{\xff\xff}"].concat()),
        ("m.safetensors.index.json", latin.clone()),
        ("d.pkl", b"\x80\x04\x8c\x04caf\xe9.".to_vec()),
    ]));
    for verb in ["read", "lines"] {
        let output = refused(&format!("(io \"{verb}\" \"d.txt\")"), &[("d.txt", latin.clone())]);
        assert!(output.stderr.starts_with("error: d.txt is not UTF-8 text from byte 3 on\n"), "{output}");
    }
    let output = refused("(tokenizer-load \"vocab.txt\")", &[("vocab.txt", latin.clone())]);
    assert!(output.stderr.starts_with("error: vocab.txt is not UTF-8 text from byte 3 on\n"), "{output}");
    let output =
        refused("(map identity (io \"load\" \"d.jsonl\"))", &[("d.jsonl", b"1\n\"\xe9\"\n".to_vec())]);
    assert!(
        output.stderr.starts_with("error: line 2 of d.jsonl is not UTF-8 text from byte 1 on\n"),
        "{output}"
    );
}

/// A run that waits for a file `go` between loading and use, while another process changes what it has mapped.
#[test]
fn a_file_changed_while_it_is_mapped() {
    let numbers: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let header = r#"{"x":{"dtype":"U32","shape":[100000],"data_offsets":[0,400000]}}"#;
    let uses = [
        "(sum h)",
        "(h 99999)",
        "((batches h 1000) 99)",
        "(sum (:x m))",
        "(io \"save\" \"copy.safetensors\" m)",
    ];
    let message = |code: &str| {
        let sandbox = Sandbox::new();
        sandbox.write("d.bin", &numbers);
        sandbox.write("m.safetensors", safetensors(header, &numbers));
        let program = format!(
            "(def h (io \"load\" \"d.bin\" :u32))\n(def m (io \"load\" \"m.safetensors\"))\n(print (h 99999))\n\
             (while (not (io \"exists\" \"go\")) [n 0] (+ n 1))\n{code}\n(print \"went on\")\n"
        );
        sandbox.write("program.shf", program);
        let run = sandbox.sheaf(&["program.shf", "--no-jit"]);
        let mut command = run.command();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sheaf starts");
        let mut printed = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut text = String::new();
        printed.read_line(&mut text).expect("a line");
        for name in ["d.bin", "m.safetensors"] {
            let file = fs::File::options().write(true).open(sandbox.path(name)).expect("a file");
            file.set_len(8).expect("shorter");
        }
        sandbox.write("go", "");
        printed.read_to_string(&mut text).expect("text");
        let output = child.wait_with_output().expect("an end");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.as_str()), (Some(1), "99999\n"), "{code}: {error}");
        assert!(!sandbox.path("copy.safetensors").exists(), "a partial save");
        let lines = error.lines().filter(|line| line.starts_with("error:") || line.contains("= help:"));
        format!("{code}\n{}", lines.map(str::trim).collect::<Vec<_>>().join("\n"))
    };
    insta::assert_snapshot!(uses.map(message).join("\n\n"));
}
