//! `print` and `io`, in a world in memory.

use crate::support::{World, run_in};

fn check_in(world: &World, cases: &[(&str, &str)]) {
    for (program, wanted) in cases {
        let found = run_in(world, program);
        let same = if wanted.starts_with("error:") { found.starts_with(wanted) } else { found == *wanted };
        assert!(same, "{program}\n  wanted {wanted}\n  found  {found}");
    }
}

#[test]
fn printing() {
    check_in(
        &World::default(),
        &[
            (
                "(print 1 2.5 :a \"text\" [1 2] '[1 :a] {:x 1} nil true)",
                "1 2.5 :a text [1. 2.] [1 :a] {:x 1} nil true",
            ),
            ("(print)", ""),
            ("(println \"{:.2f} of {}\" 0.5 3)", "0.50 of 3"),
            // A template passed as a value, alone, or without placeholder is printed as it is.
            ("(let [s \"{}\"] (print s 1))", "{} 1"),
            ("(print \"{}\")", "{}"),
            ("(print \"{{}}\" 1)", "{{}} 1"),
            ("(print \"{} {}\" 1)", "error:"),
            ("(print \"{:d}\" \"x\")", "error:"),
            // The end of a line and the separators.
            (
                "(print 1 2 :sep \", \") (print :a :end \"-\") (print 3 :end \"\" :sep \"/\") (print)",
                "1, 2\n:a-3",
            ),
            ("(print \"{}:{}\" 1 2 :end \"!\\n\") (let [s \";\"] (print 1 2 :sep s))", "1:2!\n1;2"),
            // Not at the end, not a string, not literal: printed like other values.
            ("(print :end \"\")", ":end "),
            ("(print 1 :end 2)", "1 :end 2"),
            ("(print 1 :end \"\" 2)", "1 :end  2"),
            ("(let [k :end] (print 1 k \"x\"))", "1 :end x"),
            ("(print \"{} \" :end \"x\")", "{} x"),
            ("(do (print \"a\" :end \"\") (time))", "a\n=> tensor f64[] = 1800000000.123"),
            ("(map print '[1 2])", "1\n2\n=> '[nil nil]"),
        ],
    );
}

#[test]
fn json() {
    let world = World::with(&[
        ("c.json", "{\"z\": 1, \"a\": [1, 2.5, \"x\", null, true], \"n\": {\"W\": [[1, 2], [3, 4]]}}"),
        ("wrong.json", "{\"a\": 1,\n \"b\": }"),
        ("data.conf", "[1, 2]"),
        ("big.json", "[9007199254740993, 1e300, -0.1]"),
    ]);
    check_in(
        &world,
        &[
            (
                "(io \"load\" \"c.json\")",
                "=> {\"z\" 1 \"a\" [1 2.5 x nil true] \"n\" {\"W\" [[1 2]\n [3 4]]}}",
            ),
            ("(keys (io \"load\" \"c.json\"))", "=> '[z a n]"),
            ("(map string? (keys (io \"load\" \"c.json\")))", "=> '[true true true]"),
            ("(let [d (io \"load\" \"c.json\")] (list (:z d) (get d \"z\") (get d 'z)))", "=> '[1 1 1]"),
            ("(tensor (get-in (io \"load\" \"c.json\") [:n :W]))", "=> tensor i32[2x2] = [[1 2]\n [3 4]]"),
            ("(io \"load\" \"data.conf\" :json)", "=> tensor i32[2] = [1 2]"),
            ("(nth (io \"load\" \"big.json\") 0)", "=> 9007199254740993"),
            ("(io \"load\" \"wrong.json\")", "error: wrong.json:2:7: this is not JSON: expected value"),
            ("(io \"load\" \"no.json\")", "error: no.json does not exist"),
            (
                "(io \"save\" \"o.json\" {:w [[1 2.5]] :i (arange 2) :n 3 :x 0.1 :s \"a\\\"b\" :k :key :l '[nil true]})",
                "",
            ),
            (
                "(io \"read\" \"o.json\")",
                "=> \"{\\\"w\\\":[[1.0,2.5]],\\\"i\\\":[0,1],\\\"n\\\":3,\\\"x\\\":0.1,\\\"s\\\":\\\"a\\\\\\\"b\\\",\\\"k\\\":\\\"key\\\",\\\"l\\\":[null,true]}\\n\"",
            ),
            ("(get (io \"load\" \"o.json\") :w)", "=> tensor f32[1x2] = [[1.  2.5]]"),
            ("(get (io \"load\" \"o.json\") :i)", "=> tensor i32[2] = [0 1]"),
            (
                "(io \"save\" \"o.json\" (/ 1.0 0))",
                "error: this value cannot be written as JSON: JSON has no inf",
            ),
            (
                "(io \"save\" \"o.json\" {:f print})",
                "error: this value cannot be written as JSON: there is no JSON for",
            ),
        ],
    );
}

#[test]
fn csv_and_text() {
    let world = World::with(&[
        ("a.csv", "x,y\n1,2\n3.5,-4e2\n"),
        ("empty.csv", ""),
        ("header.csv", "x,y\n"),
        ("uneven.csv", "1,2\n3\n"),
        ("word.csv", "1,2\n3,four\n"),
        ("i.csv", "1,2\n3,4\n"),
        ("t.txt", "one\ntwo\r\n\nfour"),
    ]);
    check_in(
        &world,
        &[
            ("(io \"load\" \"a.csv\")", "=> {\"x\" [1.  3.5] \"y\" [   2. -400.]}"),
            ("(io \"load\" \"i.csv\" :i32)", "=> tensor i32[2x2] = [[1 2]\n [3 4]]"),
            ("(io \"load\" \"a.csv\" :i32)", "error: a.csv:3: field 1 is 3.5, which is no i32"),
            ("(io \"load\" \"empty.csv\")", "error: empty.csv:1: the file is empty"),
            ("(io \"load\" \"header.csv\")", "error: header.csv:1: there is a header and no row below it"),
            ("(io \"load\" \"uneven.csv\")", "error: uneven.csv:2: 1 fields, where the lines before have 2"),
            ("(io \"load\" \"word.csv\")", "error: word.csv:2: field 2 is \"four\", not a number"),
            ("(io \"save\" \"o.csv\" [[1 2.5] [0.1 -3]])", ""),
            ("(io \"read\" \"o.csv\")", "=> \"1,2.5\\n0.1,-3\\n\""),
            ("(io \"save\" \"v.csv\" (arange 3))", ""),
            ("(io \"load\" \"v.csv\" :i32)", "=> tensor i32[3x1] = [[0]\n [1]\n [2]]"),
            (
                "(io \"save\" \"o.csv\" 3)",
                "error: a .csv holds a tensor of rank 1 or 2, or a dictionary of columns, not the number 3",
            ),
            ("(io \"save\" \"o.csv\" (zeros '[0 2]))", "error: a .csv holds at least one number"),
            ("(io \"load\" \"t.txt\")", "=> \"one\\ntwo\\r\\n\\nfour\""),
            ("(io \"lines\" \"t.txt\")", "=> '[one two  four]"),
            ("(io \"write\" \"w\" \"text\") (io \"read\" \"w\")", "=> \"text\""),
            ("(io \"write\" \"w\" 3)", "error: (io \"write\" path text) writes a string, not the number 3"),
            ("(io \"save\" \"w.txt\" [1 2])", "error: a text file holds a string, not a tensor f32[2]"),
            ("(io \"save\" \"w.txt\" \"é\") (io \"load\" \"w.txt\")", "=> \"é\""),
        ],
    );
}

#[test]
fn the_rest_of_the_world() {
    let world = World::with(&[("data/b.csv", "1"), ("data/a.csv", "2")]);
    check_in(
        &world,
        &[
            ("(io \"exists\" \"data/a.csv\")", "=> true"),
            ("(io \"exists\" \"data/c.csv\")", "=> false"),
            ("(io \"list\" \"data\")", "=> '[data/a.csv data/b.csv]"),
            ("(random-key (io \"entropy\"))", "=> tensor u32[2] = [         0 4000000000]"),
            ("(io \"args\")", "=> '[--fast 3]"),
            ("(io \"env\" \"HOME\")", "=> \"/home/of/tests\""),
            ("(io \"env\" \"NOT_THERE\")", ""),
            ("(io \"env\" \"NOT_THERE\" \"x\")", "=> \"x\""),
            ("(- (io \"time\") 1800000000000)", "=> 123"),
            ("(io :time)", "=> 1800000000123"),
            ("(io \"raed\" \"x\")", "error: io has no verb \"raed\""),
            ("(io \"read\")", "error: io \"read\" is called (io \"read\" path)"),
            ("(io \"load\" 3)", "error: io \"load\" is called (io \"load\" path hint ...)"),
            ("(io 3)", "error: io takes a verb first, such as \"load\", not the number 3"),
            ("(io \"load\" \"m.safetensors\")", "error: m.safetensors does not exist"),
            ("(io \"save\" \"model\" {:a 1}) (io \"load\" \"model\")", "=> {:a 1}"),
            ("(io \"load\" \"m.xyz\")", "error: m.xyz: .xyz files cannot be loaded"),
            (
                "(io \"load\" \"m.json\" 3)",
                "error: a hint is a keyword such as :json or :i32, not the number 3",
            ),
            (
                "(io \"load\" \"m.json\" :f32)",
                "error: a dtype is a hint for a .bin or a .csv, not for m.json",
            ),
        ],
    );
}
