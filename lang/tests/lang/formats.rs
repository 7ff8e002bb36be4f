//! Files of other tools: arrays of NumPy, pickles, compressed files, tables. What is damaged or hostile is a message.

#![allow(clippy::disallowed_methods, reason = "the tests read golden files from the repository")]

use std::io::Write as _;

use crate::data::check_in;
use crate::support::{World, run_in};

/// A file that NumPy or Python wrote, by `tests/data/make.py`.
fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/../tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A world with golden files, and others.
fn world(names: &[&str], others: &[(&str, Vec<u8>)]) -> World {
    let golden = names.iter().map(|name| (*name, golden(name)));
    World::with(&golden.chain(others.iter().cloned()).collect::<Vec<_>>())
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

/// The messages of programs, for a snapshot.
fn messages(world: &World, programs: &[&str]) -> String {
    programs
        .iter()
        .map(|program| format!("{program}\n---\n{}", run_in(world, program)))
        .collect::<Vec<_>>()
        .join("\n\n==========\n")
}

#[test]
fn arrays_of_numpy() {
    let names =
        ["f.npy", "big.npy", "bool.npy", "half.npy", "scalar.npy", "empty.npy", "stored.npz", "deflated.npz"];
    let world = world(&names, &[]);
    check_in(
        &world,
        &[
            ("(io \"load\" \"f.npy\")", "=> tensor f32[2x3] = [[0. 1. 2.]\n [3. 4. 5.]]"),
            ("(io \"load\" \"big.npy\")", "=> tensor i32[3] = [0 1 2]"),
            ("(io \"load\" \"bool.npy\")", "=> tensor bool[2] = [true false]"),
            ("(io \"load\" \"half.npy\")", "=> tensor f16[2] = [ 1.5 -2. ]"),
            ("(io \"load\" \"scalar.npy\")", "=> tensor f64[] = 2.5"),
            ("(io \"load\" \"empty.npy\")", "=> tensor i64[0x3] = []"),
            ("(io \"load\" \"stored.npz\")", "=> {:l1 {:W [[1. 0.]\n [0. 1.]]} :step 7}"),
            (
                "(let [d (io \"load\" \"deflated.npz\")] (list (sum (:a d)) (:b d)))",
                "=> '[499500 [[1. 1.]\n [1. 1.]]]",
            ),
            ("(io \"load\" \"f.npy\" :f32)", "error: a dtype is a hint for a .bin or a .csv"),
            (
                "(io \"save\" \"x.npy\" [[1 2] [3 4]]) (io \"load\" \"x.npy\")",
                "=> tensor f32[2x2] = [[1. 2.]\n [3. 4.]]",
            ),
            ("(io \"save\" \"x.npy\" 7) (io \"load\" \"x.npy\")", "=> tensor i64[] = 7"),
            ("(io \"save\" \"x.npy\" {:a 1})", "error: a .npy holds a tensor, not a dictionary"),
            (
                "(io \"save\" \"x.npy\" (cast [1] :bf16))",
                "error: x.npy: NumPy has no bf16, the dtype of a tensor bf16[1]",
            ),
            (
                "(io \"save\" \"x.npz\" {:l (list [1] {:b (arange 2)}) :n 3 :t true}) (io \"load\" \"x.npz\")",
                "=> {:l {\"0\" [1.] \"1\" {:b [0 1]}} :n 3 :t true}",
            ),
            ("(io \"save\" \"x.npz\" {:a \"text\"})", "error: x.npz: a string at a cannot be saved"),
            (
                "(io \"save\" \"x.npz\" [1])",
                "error: a .npz holds a dictionary of tensors, not a tensor f32[1]",
            ),
        ],
    );
}

#[test]
fn pickles_of_every_protocol() {
    let names = ["plain0.pkl", "plain1.pkl", "plain2.pkl", "plain3.pkl", "plain4.pkl", "plain5.pkl"];
    let world = world(&names, &[]);
    let wanted = "=> {\"a\" [1 2.5 x nil true [3 -4]] \"n\" 1099511627776 \"w\" [[0. 1. 2.]\n [3. 4. 5.]] \"f\" [[0 1]\n [2 3]] \
                  \"s\" 1.5 \"b\" [  1 255] \"e\" {} \"7\" seven}";
    for name in names {
        assert_eq!(run_in(&world, &format!("(io \"load\" {name:?})")), wanted, "{name}");
        let dtypes = format!("(let [d (io \"load\" {name:?})] (map (fn [k] (dtype (get d k))) '[w f s b]))");
        assert_eq!(run_in(&world, &dtypes), "=> '[:f32 :i16 :f64 :u8]", "{name}");
    }
}

#[test]
fn pickles_that_want_more_than_data_are_refused_by_name() {
    let names = [
        "evil0.pkl",
        "evil2.pkl",
        "evil4.pkl",
        "ordered.pkl",
        "object.pkl",
        "cycle.pkl",
        "laughs.pkl",
        "deep.pkl",
    ];
    let others: Vec<(&str, Vec<u8>)> = vec![
        ("instance.pkl", b"(ios\nsystem\nS'ls'\n.".to_vec()),
        ("torch.pkl", b"PK\x03\x04".to_vec()),
        ("persistent.pkl", b"Pid\n.".to_vec()),
        ("build.pkl", b"]}b.".to_vec()),
        ("call.pkl", b"])R.".to_vec()),
        ("ends.pkl", b"\x80\x04X\xff\xff\xff\x7fabc".to_vec()),
        ("empty.pkl", Vec::new()),
        ("underflow.pkl", b"0.".to_vec()),
        ("mark.pkl", b"e.".to_vec()),
        ("odd.pkl", b"(I1\nd.".to_vec()),
        ("memo.pkl", b"h\x05.".to_vec()),
        ("opcode.pkl", b"\xff.".to_vec()),
        ("huge.pkl", b"\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.".to_vec()),
        ("protocol.pkl", b"\x80\x09.".to_vec()),
        ("key.pkl", b"}N\x88s.".to_vec()),
        ("global.pkl", b"cnumpy\nndarray\n.".to_vec()),
        ("shape.pkl", b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I1000000000000\nI1000000000000\ntcnumpy\ndtype\n(S'f4'\nI0\nI1\ntRI00\nS'abcd'\ntb.".to_vec()),
    ];
    let world = world(&names, &others);
    let all: Vec<String> = names
        .into_iter()
        .chain(others.iter().map(|(name, _)| *name))
        .map(|name| format!("(io \"load\" {name:?})"))
        .collect();
    insta::assert_snapshot!(messages(&world, &all.iter().map(String::as_str).collect::<Vec<_>>()));
}

#[test]
fn damaged_arrays() {
    let npy = golden("big.npy");
    let with = |from: &str, to: &str| {
        let text = String::from_utf8_lossy(&npy[10..]).replace(from, to);
        [&npy[..10], text.as_bytes()].concat()
    };
    let npz = golden("stored.npz");
    let mut bomb = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    bomb.start_file("a.npy", options).expect("memory");
    (0..80).for_each(|_| bomb.write_all(&vec![0; 1 << 20]).expect("memory"));
    let bomb = bomb.finish().expect("memory").into_inner();
    let mut other = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    other.start_file("../notes.txt", options).expect("memory");
    let other = other.finish().expect("memory").into_inner();
    let others: Vec<(&str, Vec<u8>)> = vec![
        ("short.npy", npy[..npy.len() - 1].to_vec()),
        ("long.npy", [&npy[..], &[0]].concat()),
        ("start.npy", b"NUMPY".to_vec()),
        ("header.npy", npy[..40].to_vec()),
        ("version.npy", b"\x93NUMPY\x09\x00".to_vec()),
        ("huge-header.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec()),
        ("shape.npy", with("(3,)", "(9999999999, 9999999999)")),
        ("cut.npz", npz[..npz.len() - 10].to_vec()),
        ("bomb.npz", bomb),
        ("other.npz", other),
        ("not.npz", b"PK".to_vec()),
    ];
    let names = ["records.npy", "text.npy", "complex.npy", "u8.npy", "object.npy"];
    let world = world(&names, &others);
    let all: Vec<String> = names
        .into_iter()
        .chain(others.iter().map(|(name, _)| *name))
        .map(|name| format!("(io \"load\" {name:?})"))
        .collect();
    insta::assert_snapshot!(messages(&world, &all.iter().map(String::as_str).collect::<Vec<_>>()));
}

#[test]
fn compressed_files() {
    let numbers: Vec<u8> = (0..4_u16).flat_map(u16::to_le_bytes).collect();
    let saved = {
        let world = World::default();
        assert_eq!(run_in(&world, "(io \"save\" \"m\" {:a [1 2] :n 3})"), "");
        world.files.take().remove("m").expect("a file")
    };
    let others: Vec<(&str, Vec<u8>)> = vec![
        ("d.json.gz", gz(b"{\"a\": [1, 2]}")),
        ("d.csv.gz", gz(b"1,2\n3,4\n")),
        ("d.txt.GZ", gz(b"text")),
        ("d.jsonl.gz", gz(b"1\n2\n")),
        ("d.bin.gz", gz(&numbers)),
        ("d.npy.gz", gz(&golden("big.npy"))),
        ("d.pkl.gz", gz(&golden("plain4.pkl"))),
        ("m.safetensors.gz", gz(&saved)),
        ("two.txt.gz", [gz(b"one "), gz(b"two")].concat()),
        ("cut.txt.gz", gz(b"some text that is cut off")[..20].to_vec()),
        ("not.txt.gz", b"text without a header".to_vec()),
        ("bomb.txt.gz", gz(&vec![0; 80 << 20])),
        ("d.gz", gz(b"[1]")),
    ];
    let world = world(&[], &others);
    check_in(
        &world,
        &[
            ("(io \"load\" \"d.json.gz\")", "=> {\"a\" [1 2]}"),
            ("(io \"load\" \"d.csv.gz\" :i32)", "=> tensor i32[2x2] = [[1 2]\n [3 4]]"),
            ("(io \"load\" \"d.txt.GZ\")", "=> \"text\""),
            ("(map inc (io \"load\" \"d.jsonl.gz\"))", "=> '[2 3]"),
            ("(tensor (io \"load\" \"d.bin.gz\" :u16))", "=> tensor u16[4] = [0 1 2 3]"),
            ("(io \"load\" \"d.npy.gz\")", "=> tensor i32[3] = [0 1 2]"),
            ("(get (io \"load\" \"d.pkl.gz\") \"n\")", "=> 1099511627776"),
            ("(io \"load\" \"m.safetensors.gz\")", "=> {:a [1. 2.] :n 3}"),
            ("(io \"load\" \"two.txt.gz\")", "=> \"one two\""),
            ("(io \"load\" \"d.gz\" :json)", "=> tensor i32[1] = [1]"),
            ("(io \"load\" \"cut.txt.gz\")", "error: cut.txt.gz: it cannot be unpacked"),
            ("(io \"load\" \"not.txt.gz\")", "error: not.txt.gz: it cannot be unpacked: invalid gzip header"),
            ("(io \"load\" \"bomb.txt.gz\")", "error: bomb.txt.gz: its "),
            ("(io \"save\" \"x.json.gz\" 1)", "error: x.json.gz: files cannot be saved compressed"),
        ],
    );
}

#[test]
fn tables() {
    let others: Vec<(&str, Vec<u8>)> = vec![
        ("t.csv", b"name,age,height\nAda,36,1.65\n\"Grace, H.\",85,1.68\n".to_vec()),
        ("mixed.csv", b"a,b\n1,\n2,x\n".to_vec()),
        ("twice.csv", b"a,a\n1,2\n".to_vec()),
        ("uneven.csv", b"a,b\n1,2\n3\n".to_vec()),
        ("latin.csv", b"a,b\nx,\xe9\n".to_vec()),
        ("float.csv", b"a,b\nx,1.5\n".to_vec()),
    ];
    let world = world(&[], &others);
    check_in(
        &world,
        &[
            (
                "(io \"load\" \"t.csv\")",
                "=> {\"name\" [Ada Grace, H.] \"age\" [36. 85.] \"height\" [1.65 1.68]}",
            ),
            ("(:age (io \"load\" \"t.csv\"))", "=> tensor f32[2] = [36. 85.]"),
            (
                "(map (fn [{:keys [name age]}] (list name age)) (batches (io \"load\" \"t.csv\") 1))",
                "=> '[[[Ada] [36.]] [[Grace, H.] [85.]]]",
            ),
            ("(io \"load\" \"mixed.csv\")", "=> {\"a\" [1. 2.] \"b\" [ x]}"),
            ("(io \"load\" \"twice.csv\")", "error: twice.csv:1: two columns have the name \"a\""),
            ("(io \"load\" \"uneven.csv\")", "error: uneven.csv:3: 1 fields, where the lines before have 2"),
            ("(io \"load\" \"latin.csv\")", "error: latin.csv:2: field 2 is not UTF-8 text"),
            ("(io \"load\" \"float.csv\" :i32)", "error: float.csv:2: field 2 is 1.5, which is no i32"),
            (
                "(io \"save\" \"o.csv\" {:name '[\"a,b\" \"c\"] :x [1 2.5] :k '[:on 3]}) (io \"read\" \"o.csv\")",
                "=> \"name,x,k\\n\\\"a,b\\\",1,on\\nc,2.5,3\\n\"",
            ),
            ("(io \"load\" \"o.csv\")", "=> {\"name\" [a,b c] \"x\" [1.  2.5] \"k\" [on 3]}"),
            (
                "(io \"save\" \"o.csv\" {:a [1] :b [1 2]})",
                "error: the columns of a .csv have one length: the first has 1 fields, :b has 2",
            ),
            ("(io \"save\" \"o.csv\" {:a [[1]]})", "error: a tensor f32[1x1] at :a is no column of a .csv"),
            ("(io \"save\" \"o.csv\" {:a (list nil)})", "error: nil at :a is no column of a .csv"),
            ("(io \"save\" \"o.csv\" {})", "error: a .csv holds at least one number"),
        ],
    );
}
