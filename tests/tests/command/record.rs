//! `sheaf run --record` and `sheaf build --shapes`.

use std::fs;

use sheaf_tests::Sandbox;

/// Untyped functions: sizes, a static number, a keyword, a transformation, a module, a function as argument, one of the library that
/// the program does not mention.
const PROGRAM: &str = "(use nn)
(use ./part.shf)
(defn heads [x n mode] (case mode :split (sum (reshape x n -1) :axis 1) (mean x)))
(defn loss [p x] (mean (square (- (@ x (:w p)) 1))))
(defn app [f x] (f x))
(print (heads (ones '[4 6]) 8 :split))
(print (heads (ones '[2 3]) 1 :mean))
(let [[value grads] ((value-and-grad loss) {:w [1 2]} [[3 4] [5 6]])] (print value grads))
(print ((vmap (grad loss) '[nil 0]) {:w [1 2]} [[[3 4]] [[5 6]]]))
(print (app twice [1 2]) (app relu [-1 1]) (normalize [1 3]))
(print (norm [3 -4] :ord 1))
";

const PART: &str = "(defn twice [x] (+ x x))\n";

fn sandbox(program: &str) -> Option<Sandbox> {
    let sandbox = Sandbox::with_compiler()?;
    sandbox.write("p/train.shf", program);
    sandbox.write("p/part.shf", PART);
    Some(sandbox)
}

#[test]
fn what_a_run_called_is_built() {
    let Some(sandbox) = sandbox(PROGRAM) else { return };
    let run = sandbox.run(&["p/train.shf", "--record", "shapes.json"]).compiled_nothing();
    let shapes = fs::read_to_string(sandbox.path("shapes.json")).expect("a shapes file");
    let sources = regex(r#""sources": "[0-9a-f]{64}""#);
    insta::assert_snapshot!(sources.replace(&shapes, r#""sources": "[sha-256]""#));

    let built = sandbox.run(&["build", "p/train.shf", "--shapes", "shapes.json"]);
    assert_eq!(built.code, Some(0), "{built}");
    // On another machine, without a compiler, everything runs compiled.
    let other = Sandbox::new();
    other.copy_from(&sandbox);
    fs::remove_dir_all(other.home()).expect("a home");
    assert_eq!(other.run(&["p/train.shf", "--jit", "always", "--strict", "--offline"]).silent(), run);

    // The shapes apply there too, whatever the folder's name, and a single function can be built.
    sandbox.write("q/train.shf", PROGRAM);
    sandbox.write("q/part.shf", PART);
    let picked = sandbox.run(&["build", "q/train.shf", "heads", "--shapes", "shapes.json"]);
    assert!(picked.stdout.contains("0 compiled, 2 there before"), "{picked}");
}

/// Recording needs no compilation: a machine without a compiler records the same.
#[test]
fn a_run_without_a_compiler_records_the_same() {
    let Some(with) = sandbox(PROGRAM) else { return };
    let _ = with.run(&["p/train.shf", "--record", "a.json", "--jit", "always"]).compiled();
    let without = Sandbox::new();
    without.copy_from(&with);
    let output =
        without.run(&["p/train.shf", "--record", "b.json", "--jit", "always", "--offline", "--recompile"]);
    assert_eq!(output.code, Some(0), "{output}");
    // Interpreted functions call more functions from interpreted code.
    let calls = |sandbox: &Sandbox, name: &str| {
        let json = fs::read(sandbox.path(name)).expect("a shapes file");
        let shapes: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        shapes["calls"].as_array().expect("calls").clone()
    };
    let (a, b) = (calls(&with, "a.json"), calls(&without, "b.json"));
    assert!(!a.is_empty() && a.iter().all(|call| b.contains(call)), "{a:#?}{b:#?}");
}

#[test]
fn a_run_that_fails_is_recorded_as_far_as_it_came() {
    let Some(sandbox) = sandbox("(defn f [x] (* x 2))\n(f [1 2])\n(nth '[1] 3)\n(f [1 2 3])\n") else {
        return;
    };
    insta::assert_snapshot!(sandbox.run(&["p/train.shf", "--record", "shapes.json"]));
    let shapes = fs::read_to_string(sandbox.path("shapes.json")).expect("a shapes file");
    assert_eq!(shapes.matches("\"function\": \"f\"").count(), 1, "{shapes}");
    assert_eq!(sandbox.run(&["build", "p/train.shf", "--shapes", "shapes.json"]).code, Some(0));
}

#[test]
fn what_cannot_be_named_is_said() {
    let program = "(defn app [f x] (f x))\n(let [k [1 2]] (print ((fn [x] (* k x)) [3 4])))\n(print (app (fn [x] (+ x x)) [1]))\n";
    let Some(sandbox) = sandbox(program) else { return };
    insta::assert_snapshot!(sandbox.run(&["p/train.shf", "--record", "shapes.json"]));
    let Some(sandbox) = self::sandbox("(print 1)\n") else { return };
    insta::assert_snapshot!(
        "where_it_cannot_be_written",
        sandbox.run(&["p/train.shf", "--record", "p/part.shf/x.json"])
    );
    insta::assert_snapshot!(
        "nothing_is_recorded_of_what_is_interpreted",
        sandbox.run(&["p/train.shf", "--record", "x.json", "--no-jit"])
    );
}

#[test]
fn shapes_files_that_do_not_serve() {
    let Some(sandbox) = sandbox("(defn f [x n] (reshape x n -1))\n(f [1 2 3 4] 2)\n") else { return };
    assert_eq!(sandbox.run(&["p/train.shf", "--record", "good.json"]).code, Some(0));
    let good = fs::read_to_string(sandbox.path("good.json")).expect("a shapes file");
    let build = |name: &str, text: &str| {
        sandbox.write("shapes.json", text);
        let output = sandbox.run(&["build", "p/train.shf", "--shapes", "shapes.json"]);
        assert_eq!(output.code, Some(1), "{name}: {output}");
        assert!(!sandbox.path("p/__sheaf__").exists(), "{name}");
        insta::assert_snapshot!(name, output);
    };
    build("shapes_cut_short", &good[..good.len() / 2]);
    build("shapes_that_are_none", "[1, 2]\n");
    build("shapes_of_another_format", &good.replace("shapes 1", "shapes 9"));
    build("shapes_of_an_unknown_function", &good.replace("\"f\"", "\"g\""));
    build("shapes_of_an_unknown_dtype", &good.replace("\"f32\"", "\"f33\""));
    build("shapes_with_a_word_too_many", &good.replace("\"shape\":", "\"shapes\":"));
    build("shapes_that_no_memory_holds", &good.replace("[4]", "[4000000000, 4000000000]"));
    build("shapes_of_another_number", &good.replace("{\"int\": 2}", "{\"int\": 3}"));
    let output = sandbox.run(&["build", "p/train.shf", "--shapes", "missing.json"]);
    insta::assert_snapshot!("shapes_that_are_missing", output);
    sandbox.write("p/train.shf", "(defn f [x n] (reshape x n 2))\n");
    build("shapes_of_another_program", &good);
}

fn regex(pattern: &str) -> regex::Regex {
    regex::Regex::new(pattern).expect("a pattern")
}
