//! Data files: tensors and handles from files in memory.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use crate::support::{World, compiling, run_in, run_with};
use sheaf_lang::builtins::repr;
use sheaf_lang::eval::{Interp, Jit, Options};

/// A `.safetensors` file of this header and these bytes.
fn safetensors(header: &str, bytes: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), bytes].concat()
}

fn little<T: bytemuck::NoUninit>(numbers: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(numbers).to_vec()
}

/// Runs programs in a world; each must give the text beside it, or begin with it if that is an error.
pub fn check_in(world: &World, cases: &[(&str, &str)]) {
    let wrong: Vec<String> =
        cases
            .iter()
            .map(|(program, wanted)| (program, wanted, run_in(world, program)))
            .filter(|(_, wanted, found)| {
                if wanted.starts_with("error:") { !found.starts_with(**wanted) } else { found != **wanted }
            })
            .map(|(program, wanted, found)| format!("{program}\n  wanted {wanted}\n  found  {found}"))
            .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn safetensors_of_other_tools() {
    let header = r#"{"__metadata__":{"format":"pt"},"h.0.W":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"h.0.b":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]},"ids":{"dtype":"I64","shape":[1],"data_offsets":[20,28]},"on":{"dtype":"BOOL","shape":[3],"data_offsets":[28,31]}}"#;
    let bytes =
        [little(&[1.5_f32, 2.0, 3.0, 4.0]), little(&[0x3f80_u16, 0x4000]), little(&[7_i64]), vec![1, 0, 1]]
            .concat();
    let world = World::with(&[("m.safetensors", safetensors(header, &bytes))]);
    check_in(
        &world,
        &[
            (
                "(io \"load\" \"m.safetensors\")",
                "=> {:h {\"0\" {:W [[1.5 2. ]\n [3.  4. ]] :b [1. 2.]}} :ids [7] :on [true false true]}",
            ),
            ("(dtype (get-in (io \"load\" \"m.safetensors\") [:h :0 :b]))", "=> :bf16"),
            (
                "(@ (get-in (io \"load\" \"m.safetensors\") [:h \"0\" :W]) [1 1])",
                "=> tensor f32[2] = [3.5 7. ]",
            ),
            ("(io \"load\" \"m.safetensors\" :i32)", "error: a dtype is a hint for a .bin or a .csv"),
        ],
    );
}

#[test]
fn a_value_saved_as_safetensors_comes_back_as_it_was() {
    let world = World::default();
    let value = "{:params {:l1 {:W [[1 2] [3 4]] :b (zeros '[2] :bf16)} \"two words\" (arange 3)} :m (list [1] (list) {} [2]) \
                 :key (random-key 7) :step 12 :rate 0.1 :done false :best nil :name \"run\" :mode :fast :sym 'x :on [true false] :s (cast 3 :i8) :f (float 2)}";
    let program = format!(
        "(def value {value}) (io \"save\" \"run.safetensors\" value) (def back (io \"load\" \"run.safetensors\")) \
         (print back) (print (equal? value back)) (print (= (str value) (str back))) \
         (list (:step back) (dtype (:rate back)) (map dtype (list (get-in back [:params :l1 :b]) (:s back) (:f back))))"
    );
    insta::assert_snapshot!(run_in(&world, &program));
    let saved = world.files.borrow()["run.safetensors"].clone();
    let length = u64::from_le_bytes(saved[..8].try_into().unwrap()) as usize;
    assert_eq!(length % 8, 0);
    insta::assert_snapshot!("header", String::from_utf8_lossy(&saved[8..8 + length]));
}

#[test]
fn raw_numbers_are_a_handle() {
    let world = World::with(&[
        ("a.bin", little(&[0_u16, 1, 2, 3, 4])),
        ("train-01.bin", little(&[10_u16, 11, 12])),
        ("train-02.bin", little(&[20_u16])),
        ("train-03.bin", little(&[30_u16, 31])),
        ("odd.bin", vec![1, 2, 3]),
    ]);
    let a = "(def h (io \"load\" \"a.bin\" :u16)) ";
    let many = "(def h (io \"load\" \"train-*.bin\" :u16)) ";
    let with = |load: &str, code: &str| format!("{load}{code}");
    let cases = [
        (a, "h", "=> <handle u16[5] a.bin>"),
        (a, "(list (len h) (shape h) (dtype h) (size h) (ndim h))", "=> '[5 [5] :u16 5 1]"),
        (a, "(h 1)", "=> tensor u16[] = 1"),
        (a, "(h -1)", "=> tensor u16[] = 4"),
        (a, "(h 1:3)", "=> tensor u16[2] = [1 2]"),
        (a, "(h 3:)", "=> tensor u16[2] = [3 4]"),
        (a, "(h :2)", "=> tensor u16[2] = [0 1]"),
        (a, "(h 1:100)", "=> tensor u16[4] = [1 2 3 4]"),
        (a, "(slice h (+ 1 1) -1)", "=> tensor u16[2] = [2 3]"),
        (a, "(get h 2)", "=> tensor u16[] = 2"),
        (a, "(get h [4 0 -1])", "=> tensor u16[3] = [4 0 4]"),
        (a, "(get h '[1 1])", "=> tensor u16[2] = [1 1]"),
        (a, "(get h (reshape (arange 4) '[2 2]))", "=> tensor u16[2x2] = [[0 1]\n [2 3]]"),
        (a, "(list (first h) (second h) (last h) (nth h 3))", "=> '[0 1 4 3]"),
        (
            a,
            "(list (take 2 h) (drop 3 h) (rest h))",
            "=> '[<handle u16[2] a.bin> <handle u16[2] a.bin> <handle u16[4] a.bin>]",
        ),
        (a, "(tensor (drop 3 h))", "=> tensor u16[2] = [3 4]"),
        (a, "((drop 3 h) -2)", "=> tensor u16[] = 3"),
        (a, "(tensor h)", "=> tensor u16[5] = [0 1 2 3 4]"),
        (a, "(+ h 1)", "=> tensor u16[5] = [1 2 3 4 5]"),
        (a, "(sum (cast h :f32))", "=> tensor f32[] = 10.0"),
        (a, "(map inc (take 2 h))", "=> '[1 2]"),
        (a, "(reduce + 0 h)", "=> tensor u16[] = 10"),
        (a, "(filter (fn [x] (> x 2)) h)", "=> '[3 4]"),
        (a, "(h 5)", "error: index 5 is outside of <handle u16[5] a.bin>"),
        (a, "(get h [1 7])", "error: index 7 is outside of <handle u16[5] a.bin>"),
        (a, "(h 0.5)", "error: an index must be a whole number"),
        (a, "(get h (> [1 2] 1))", "error: indices are integers, got bool[2]"),
        (a, "(str h)", "=> \"<handle u16[5] a.bin>\""),
        (many, "h", "=> <handle u16[6] train-*.bin>"),
        (many, "(tensor h)", "=> tensor u16[6] = [10 11 12 20 30 31]"),
        (many, "(h 2:5)", "=> tensor u16[3] = [12 20 30]"),
        (many, "(get h [5 3 0])", "=> tensor u16[3] = [31 20 10]"),
        (many, "(shuffle (random-key 0) h)", "=> <handle u16[6] train-*.bin>"),
        (many, "(sort (tensor (shuffle (random-key 0) h)))", "=> tensor u16[6] = [10 11 12 20 30 31]"),
        (many, "(equal? (tensor (shuffle (random-key 0) h)) (shuffle (random-key 0) (tensor h)))", "=> true"),
        ("", "(io \"load\" \"a.bin\")", "error: a.bin has no dtype: raw numbers do not say what they are"),
        ("", "(io \"load\" \"no-*.bin\" :u16)", "error: no file matches no-*.bin"),
        ("", "(io \"load\" \"odd.bin\" :u16)", "error: odd.bin: 3 bytes are no whole number of u16"),
        ("", "(io \"load\" \"odd.bin\" :bool)", "error: odd.bin: byte 1 is neither 0 nor 1"),
        ("", "(io \"load\" \"odd.bin\" :bin :u8)", "=> <handle u8[3] odd.bin>"),
        ("", "(io \"save\" \"b.bin\" [1 2]) (io \"load\" \"b.bin\" :f32)", "=> <handle f32[2] b.bin>"),
        ("", "(io \"save\" \"b.bin\" 3)", "error: a .bin holds a tensor, not the number 3"),
        ("", "(io \"save\" \"b.bin\" [1 2] :i32)", "error: a file has the dtype of what is saved"),
    ];
    let programs: Vec<(String, &str)> =
        cases.iter().map(|(load, code, wanted)| (with(load, code), *wanted)).collect();
    let cases: Vec<(&str, &str)> = programs.iter().map(|(p, w)| (p.as_str(), *w)).collect();
    check_in(&world, &cases);
}

#[test]
fn lines_are_decoded_when_they_are_asked_for() {
    let text = "{\"a\": 1, \"x\": [1, 2.5]}\n\n{\"a\": 2}\n[NaN]\n\"last\"";
    let world = World::with(&[("d.jsonl", text)]);
    let h = "(def h (io \"load\" \"d.jsonl\")) ";
    let cases = [
        ("h", "=> <handle lines[4] d.jsonl>"),
        ("(h 0)", "=> {\"a\" 1 \"x\" [1.  2.5]}"),
        ("(list (:a (h 1)) (h -1) (len h))", "=> '[2 last 4]"),
        ("(h 0:2)", "=> '[{\"a\" 1 \"x\" [1.  2.5]} {\"a\" 2}]"),
        ("(map :a (take 2 h))", "=> '[1 2]"),
        ("(get h [3 0 3])", "=> '[last {\"a\" 1 \"x\" [1.  2.5]} last]"),
        ("(h 2)", "error: d.jsonl:4:2: this is not JSON: NaN is a number of other languages"),
        ("(+ h 1)", "error: expected a tensor or a number, got the handle <handle lines[4] d.jsonl>"),
        ("(shape h)", "error: expected a tensor or a number, got the handle <handle lines[4] d.jsonl>"),
        ("((batches (take 2 h) 2) 0)", "=> '[{\"a\" 1 \"x\" [1.  2.5]} {\"a\" 2}]"),
        (
            "(io \"save\" \"o.jsonl\" (list [1 2] :a {:b nil})) (io \"read\" \"o.jsonl\")",
            "=> \"[1.0,2.0]\\n\\\"a\\\"\\n{\\\"b\\\":null}\\n\"",
        ),
        ("(io \"save\" \"o.jsonl\" (take 2 h)) (map :a (io \"load\" \"o.jsonl\"))", "=> '[1 2]"),
        (
            "(io \"save\" \"o.jsonl\" {:a 1})",
            "error: a .jsonl holds the items of a list, not a dictionary with keys :a",
        ),
    ];
    let programs: Vec<(String, &str)> =
        cases.iter().map(|(code, wanted)| (format!("{h}{code}"), *wanted)).collect();
    let cases: Vec<(&str, &str)> = programs.iter().map(|(p, w)| (p.as_str(), *w)).collect();
    check_in(&world, &cases);
}

#[test]
fn batches_of_everything() {
    let world = World::with(&[("a.bin", little(&(0..10_u16).collect::<Vec<_>>()))]);
    check_in(
        &world,
        &[
            ("(batches (arange 5) 2)", "=> <handle batches[3] of 2>"),
            ("(map identity (batches (arange 5) 2))", "=> '[[0 1] [2 3] [4]]"),
            ("(map identity (batches '[:a :b :c] 2))", "=> '[[:a :b] [:c]]"),
            (
                "(map identity (batches (io \"load\" \"a.bin\" :u16) 4 :drop-last true))",
                "=> '[[0 1 2 3] [4 5 6 7]]",
            ),
            ("(map identity (batches (drop 7 (io \"load\" \"a.bin\" :u16)) 2))", "=> '[[7 8] [9]]"),
            (
                "(let [h (io \"load\" \"a.bin\" :u16) k (random-key 3)] \
                 (equal? (apply concat (map identity (batches h 4 :key k))) (shuffle k (tensor h))))",
                "=> true",
            ),
            (
                "(let [h (io \"load\" \"a.bin\" :u16) k (random-key 3)] \
                 (equal? (apply concat (map identity (batches (shuffle k h) 3))) (shuffle k (tensor h))))",
                "=> true",
            ),
            (
                "((batches {:x (reshape (arange 6) '[3 2]) :y '[:p :q :r]} 2) 0)",
                "=> {:x [[0 1]\n [2 3]] :y [:p :q]}",
            ),
            (
                "(let [b ((batches {:x (arange 9) :y (* 2 (arange 9))} 4 :key (random-key 1)) 1)] (equal? (* 2 (:x b)) (:y b)))",
                "=> true",
            ),
            ("(reduce (fn [n b] (+ n (len b))) 0 (batches (arange 5) 2))", "=> 5"),
            (
                "(let [b (batches (arange 5) 2)] (repeat [i (len b)] [s 0] (+ s (sum (b i)))))",
                "=> tensor i32[] = 10",
            ),
            ("((batches (arange 4) 2) 0 1)", "=> tensor i32[] = 1"),
            ("(len (batches (arange 0) 2))", "=> 0"),
            ("(batches (arange 4) 0)", "error: a batch has at least 1 item, not 0"),
            (
                "(batches {:x (arange 3) :y (arange 4)} 2)",
                "error: the columns differ in length: :x has 3 items, :y has 4",
            ),
            ("(batches {} 2)", "error: a dictionary without columns has no items"),
            (
                "(batches \"abc\" 2)",
                "error: batches are made of lists, tensors, handles and dictionaries, not of strings",
            ),
            ("((batches (arange 4) 2) 2)", "error: index 2 is outside of <handle batches[2] of 2>"),
            ("(shuffle (random-key 0) 3)", "error: the number 3 has no length"),
        ],
    );
}

/// A world with `a.bin`, the numbers 0 to 9, a thread for jobs, and a record of who reads the file.
fn watched(sound: Option<usize>) -> (World, Arc<Mutex<Vec<ThreadId>>>) {
    let readers = Arc::new(Mutex::default());
    let world = World::with(&[("a.bin", little(&(0..10_u16).collect::<Vec<_>>()))]);
    (World { readers: Some(Arc::clone(&readers)), sound, ..world }, readers)
}

#[test]
fn the_next_batch_of_a_file_is_read_on_another_thread() {
    let sums = "(map sum (batches (io \"load\" \"a.bin\" :u16) 3 :key (random-key 0)))";
    let (world, readers) = watched(None);
    let found = run_in(&world, sums);
    assert_eq!(found, run_in(&World::with(&[("a.bin", little(&(0..10_u16).collect::<Vec<_>>()))]), sums));
    let this = std::thread::current().id();
    let readers: Vec<bool> = readers.lock().unwrap().iter().map(|reader| *reader == this).collect();
    // The file and the first batch here, then three batches, each by a thread of this world's.
    assert_eq!(readers, [true, false, false, false]);

    // Out of order, what was prepared is of no use, and does no harm.
    let (world, _) = watched(None);
    let program = "(def b (batches (io \"load\" \"a.bin\" :u16) 3)) (map b '[2 0 3 1 0])";
    assert_eq!(run_in(&world, program), "=> '[[6 7 8] [0 1 2] [9] [3 4 5] [0 1 2]]");

    // Batches of what is in memory need no thread.
    let (world, readers) = watched(None);
    assert_eq!(run_in(&world, "(map sum (batches (arange 10) 3))"), "=> '[3 12 21 9]");
    assert!(readers.lock().unwrap().is_empty());
}

#[test]
fn an_error_of_the_other_thread_is_that_of_its_batch() {
    // A batch checks the file before and after.
    let (world, _) = watched(Some(4));
    let program =
        "(def b (batches (io \"load\" \"a.bin\" :u16) 3)) (print (b 0)) (print (b 1)) (print (b 2))";
    insta::assert_snapshot!(run_in(&world, program));
}

#[test]
fn bytes_that_are_lost_while_they_are_read_are_an_error_of_the_call() {
    let (world, _) = watched(None);
    let mut interp = Interp::new(Box::new(world.clone()), None, Options::default());
    let module = Interp::program("test.shf");
    let mut run = |text: &str| {
        let result = interp.run_text(&module, "test.shf", text);
        result.map(|value| repr(&value)).map_err(|errors| errors[0].message.clone())
    };
    let sum = Ok("tensor u32[] = 45".to_owned());
    assert_eq!(run("(def h (io \"load\" \"a.bin\" :u16)) (def x (tensor h)) (sum x)"), sum);
    world.torn.store(true, Ordering::SeqCst);
    for program in ["(sum x)", "(x 1)", "(h 3)", "(print x)", "(io \"save\" \"b.bin\" x)", "(map inc h)"] {
        assert_eq!(run(&format!("(do {program} :went-on)")), Err("a file lost bytes".into()), "{program}");
    }
    world.torn.store(false, Ordering::SeqCst);
    assert_eq!(run("(sum x)"), sum);
}

#[test]
fn a_handle_on_numbers_is_a_tensor_where_one_is_wanted() {
    let world = World::with(&[("a.bin", little(&(0..4_i32).collect::<Vec<_>>()))]);
    let h = "(def h (io \"load\" \"a.bin\" :i32)) ";
    let cases = [
        ("(concat h h)", "=> tensor i32[8] = [0 1 2 3 0 1 2 3]"),
        ("(@ (cast h :f32) (cast h :f32))", "=> tensor f32[] = 14.0"),
        ("(= h (arange 4))", "=> tensor bool[4] = [true true true true]"),
        ("(equal? h (arange 4))", "=> true"),
        ("(equal? (list h) (list h))", "=> true"),
        ("(max h)", "=> tensor i32[] = 3"),
        ("(get [10 20 30 40] h)", "=> tensor f32[4] = [10. 20. 30. 40.]"),
        ("([10 20 30 40] h)", "=> tensor f32[4] = [10. 20. 30. 40.]"),
        ("(scan (fn [s x] [(+ s x) s]) 0 h)", "=> '[6 [0 0 1 3]]"),
        ("((vmap inc) h)", "=> tensor i32[4] = [1 2 3 4]"),
        ("(append h 7)", "=> tensor i32[5] = [0 1 2 3 7]"),
        ("(shape (choice (random-key 0) h '[2]))", "=> '[2]"),
        ("((grad (fn [w] (sum (* w h)))) (ones 4))", "=> tensor f32[4] = [0. 1. 2. 3.]"),
        ("(let [[a b & more] h] (list a b more))", "=> '[0 1 [2 3]]"),
        ("(mapv inc h)", "=> tensor i32[4] = [1 2 3 4]"),
        ("(reverse h)", "=> tensor i32[4] = [3 2 1 0]"),
    ];
    let programs: Vec<(String, &str)> =
        cases.iter().map(|(code, wanted)| (format!("{h}{code}"), *wanted)).collect();
    let cases: Vec<(&str, &str)> = programs.iter().map(|(p, w)| (p.as_str(), *w)).collect();
    check_in(&world, &cases);
}

#[test]
fn what_reads_a_handle_is_interpreted_and_what_it_calls_is_compiled() {
    let (mut interp, world, log) = compiling(Jit::Always);
    world.files.borrow_mut().insert("a.bin".into(), little(&(0..8_u16).collect::<Vec<_>>()));
    let program = "
        (def h (io \"load\" \"a.bin\" :u16))
        (defn step [p x] (+ p (sum (cast x :f32))))
        (defn epoch [p bs] (reduce step p bs))
        (defn counted [p bs] (repeat [i (len bs)] [p p] (step p (bs i))))
        (defn known [p] (step p (h 0:4)))
        (defn asked [p i] (step p (get h (+ i (arange 2)))))
        (list (epoch [0] (batches h 4)) (counted [0] (batches h 4)) (known [0]) (asked [0] 3))";
    assert_eq!(
        run_with(&mut interp, &world, program),
        "warning: asked is interpreted, not compiled: an index into a handle depends on the elements of a tensor i32[2], in (get h (+ i (arange 2))) at test.shf:7:35\n\n\n=> '[[28.] [28.] [6.] [7.]]"
    );
    let units: Vec<String> = log.borrow().units.iter().map(|unit| unit.function.clone()).collect();
    assert_eq!(units, ["step", "known", "step"]);
}

#[test]
fn damaged_safetensors() {
    let entry = |name: &str, dtype: &str, shape: &str, from: u64, to: u64| {
        format!("\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":[{from},{to}]}}")
    };
    let file = |entries: &[String], bytes: usize| {
        safetensors(&format!("{{{}}}", entries.join(",")), &vec![0; bytes])
    };
    let good = file(&[entry("a", "F32", "[2]", 0, 8)], 8);
    let described = |text: &str, name: &str| {
        let metadata = format!("\"__metadata__\":{{\"sheaf\":{}}}", serde_json::to_string(text).unwrap());
        file(&[metadata, entry(name, "I64", "[]", 0, 8)], 8)
    };
    let leaf =
        |path: &str, is: &str| format!("{{\"version\":1,\"leaves\":[{{\"path\":{path},\"is\":\"{is}\"}}]}}");
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("short", vec![1, 2, 3]),
        ("truncated", good[..good.len() - 1].to_vec()),
        ("longer", [&good[..], &[0]].concat()),
        ("header-length", [&(1_u64 << 60).to_le_bytes()[..], b"{}"].concat()),
        ("header-of-100-gb", [&100_000_000_000_u64.to_le_bytes()[..], b"{}"].concat()),
        ("no-json", safetensors("{\"a\":", &[])),
        ("no-text", [&2_u64.to_le_bytes()[..], b"{\xff"].concat()),
        ("other-json", safetensors("[1]", &[])),
        ("no-entry", safetensors("{\"a\":3}", &[])),
        ("deep", safetensors(&"[".repeat(100_000), &[])),
        ("overlap", file(&[entry("a", "F32", "[2]", 0, 8), entry("b", "F32", "[2]", 4, 12)], 12)),
        ("gap", file(&[entry("a", "F32", "[2]", 0, 8), entry("b", "F32", "[2]", 12, 20)], 20)),
        ("backwards", file(&[entry("a", "F32", "[2]", 8, 0)], 8)),
        ("size", file(&[entry("a", "F32", "[3]", 0, 8)], 8)),
        ("shape", file(&[entry("a", "F32", "[4294967296,4294967296]", 0, 8)], 8)),
        ("dtype", file(&[entry("a", "F8_E4M3", "[8]", 0, 8)], 8)),
        ("unknown", file(&[entry("a", "F33", "[2]", 0, 8)], 8)),
        ("bool", safetensors(&format!("{{{}}}", entry("a", "BOOL", "[2]", 0, 2)), &[1, 2])),
        ("clash", file(&[entry("a", "U8", "[1]", 0, 1), entry("a.b", "U8", "[1]", 1, 2)], 2)),
        ("twice", safetensors(&format!("{{{0},{0}}}", entry("a", "U8", "[0]", 0, 0)), &[])),
        ("described-badly", described("{", "a")),
        ("version", described("{\"version\":9,\"leaves\":[]}", "a")),
        ("missing", described(&leaf("[\":b\"]", "tensor"), "a")),
        ("kind", described(&leaf("[\":a\"]", "bool"), "a")),
        ("path", described(&leaf("[\"a\"]", "tensor"), "a")),
        ("order", described(&leaf("[7]", "int"), "7")),
        ("besides", described("{\"version\":1,\"leaves\":[]}", "a")),
    ];
    let names: Vec<String> = files.iter().map(|(name, _)| format!("{name}.safetensors")).collect();
    let named: Vec<(&str, Vec<u8>)> =
        names.iter().map(String::as_str).zip(files.iter().map(|(_, bytes)| bytes.clone())).collect();
    let world = World::with(&named);
    let messages: Vec<String> =
        names.iter().map(|name| run_in(&world, &format!("(io \"load\" {name:?})"))).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn shards_of_a_model() {
    let tensor = |name: &str, n: u8| {
        safetensors(
            &format!("{{\"{name}\":{{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}}}"),
            &[n, n],
        )
    };
    let index =
        |map: &str| format!("{{\"metadata\":{{\"total_size\":4}},\"weight_map\":{map}}}").into_bytes();
    let world = World::with(&[
        ("m/model-1.safetensors", tensor("a.x", 1)),
        ("m/model-2.safetensors", tensor("a.y", 2)),
        ("m/other.safetensors", tensor("a.x", 3)),
        (
            "m/index.safetensors.index.json",
            index("{\"a.y\":\"model-2.safetensors\",\"a.x\":\"model-1.safetensors\"}"),
        ),
        ("m/wrong.safetensors.index.json", index("{\"a.z\":\"model-1.safetensors\"}")),
        ("m/out.safetensors.index.json", index("{\"a.x\":\"../secret.safetensors\"}")),
        ("m/root.safetensors.index.json", index("{\"a.x\":\"/etc/secret.safetensors\"}")),
        ("m/none.safetensors.index.json", b"{}".to_vec()),
        ("m/gone.safetensors.index.json", index("{\"a.x\":\"model-9.safetensors\"}")),
    ]);
    check_in(
        &world,
        &[
            ("(io \"load\" \"m/model-*.safetensors\")", "=> {:a {:x [1 1] :y [2 2]}}"),
            ("(io \"load\" \"m/index.safetensors.index.json\")", "=> {:a {:x [1 1] :y [2 2]}}"),
            (
                "(io \"load\" \"m/*.safetensors\")",
                "error: m/model-1.safetensors m/model-2.safetensors m/other.safetensors: there are two tensors a.x",
            ),
            (
                "(io \"load\" \"m/wrong.safetensors.index.json\")",
                "error: m/wrong.safetensors.index.json: model-1.safetensors has no tensor a.z",
            ),
            (
                "(io \"load\" \"m/out.safetensors.index.json\")",
                "error: m/out.safetensors.index.json: \"../secret.safetensors\" is no file beside the index",
            ),
            (
                "(io \"load\" \"m/root.safetensors.index.json\")",
                "error: m/root.safetensors.index.json: \"/etc/secret.safetensors\" is no file beside the index",
            ),
            (
                "(io \"load\" \"m/none.safetensors.index.json\")",
                "error: m/none.safetensors.index.json: missing field `weight_map`",
            ),
            (
                "(io \"load\" \"m/gone.safetensors.index.json\")",
                "error: m/model-9.safetensors does not exist",
            ),
            (
                "(io \"save\" \"m/x.safetensors.index.json\" {:a 1})",
                "error: an index of shards cannot be saved",
            ),
            ("(io \"load\" \"m/*.csv\")", "error: no file matches m/*.csv"),
        ],
    );
}

#[test]
fn text_that_is_none() {
    let world = World::with(&[
        ("nan.json", b"{\"a\": NaN}".to_vec()),
        ("deep.json", "[".repeat(100_000).into_bytes()),
        ("latin.json", b"\"\xe9\"".to_vec()),
        ("latin.txt", b"caf\xe9".to_vec()),
        ("latin.jsonl", b"1\n\"\xe9\"\n".to_vec()),
    ]);
    let programs = [
        "(io \"load\" \"nan.json\")",
        "(io \"load\" \"deep.json\")",
        "(io \"load\" \"latin.json\")",
        "(io \"load\" \"latin.txt\")",
        "(map identity (io \"load\" \"latin.jsonl\"))",
    ];
    let messages: Vec<String> = programs.iter().map(|program| run_in(&world, program)).collect();
    insta::assert_snapshot!(messages.join("\n"));
}
