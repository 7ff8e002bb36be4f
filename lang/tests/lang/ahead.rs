//! Specialisation ahead of time: it makes exactly the programs of a run.

#![allow(clippy::disallowed_methods, reason = "the tests read their programs from the repository")]

use std::collections::HashSet;
use std::path::Path;

use crate::support::{World, compiling_in};
use sheaf_graph::simplify::simplify;
use sheaf_graph::stablehlo::{Model, emit};
use sheaf_lang::eval::{AbstractValue, Call, Interp, Jit, Options, Recording};
use sheaf_lang::host::Unit;
use sheaf_syntax::render::render;

/// The emitted text of a unit of a run, with its name.
fn text(unit: &Unit) -> String {
    format!("{} {}\n{}", unit.function, unit.transform, emit(&unit.graph, Model::Hal).text)
}

/// The emitted text of a unit traced ahead.
fn text_ahead(unit: Unit) -> String {
    let graph = simplify(&unit.graph);
    text(&Unit { graph, ..unit })
}

/// The programs compiled by a run, and its recording.
fn run(program: &str, files: &[(String, String)]) -> (HashSet<String>, Recording) {
    let (mut interp, _, log) = compiling_in(Jit::Always, files);
    // An error at the end does not affect them.
    let _ = interp.run_program("test.shf", program);
    let texts = log.borrow().units.iter().map(text).collect();
    (texts, interp.recording())
}

/// An evaluator that has prepared a program.
fn prepared(program: &str, files: &[(String, String)]) -> (Interp, World) {
    let world = World::with(&files.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect::<Vec<_>>());
    let mut interp =
        Interp::new(Box::new(world.clone()), None, Options { jit: Jit::Never, ..Options::default() });
    if let Err(errors) = interp.prepare_program("test.shf", program) {
        let shown: Vec<String> = errors.iter().map(|d| render(&interp.sources, d, false)).collect();
        panic!("{}", shown.join("\n"));
    }
    assert!(world.printed.borrow().is_empty(), "nothing runs");
    (interp, world)
}

fn ahead(interp: &mut Interp, call: &Call) -> String {
    match interp.specialise_ahead(&call.function, &call.arguments) {
        Ok(unit) => text_ahead(unit),
        Err(refused) => panic!("{}", render(&interp.sources, &refused.diagnostic, false)),
    }
}

/// Asserts that the recording of a run gives exactly the programs that it compiled.
#[track_caller]
fn same_as_the_run(program: &str, files: &[(String, String)]) {
    let (compiled, recording) = run(program, files);
    assert_eq!(recording.left_out, [], "{program}");
    let (mut interp, _) = prepared(program, files);
    let again: HashSet<String> = recording.calls.iter().map(|call| ahead(&mut interp, call)).collect();
    assert!(!compiled.is_empty(), "the program compiles something: {program}");
    for text in &compiled {
        assert!(again.contains(text), "not made again:\n{text}\nbut\n{again:#?}");
    }
    assert_eq!(compiled.len(), again.len(), "{program}");
}

#[test]
fn a_recorded_run_is_made_again() {
    for program in [
        "(defn f [x] (+ (* x x) 1)) (print (f [1 2 3]) (f [[1 2]]))",
        "(defn f [x n] (list (reshape x [n -1]) (zeros [n 2]))) (print (f [1 2 3 4] 2) (f [1 2 3 4] 4))",
        "(defn f [x s] (reshape x s)) (print (f [1 2 3 4] [2 2]))",
        "(defn f [x mode] (case mode :sum (sum x) :mean (mean x) nil x)) (print (f [1 3] :sum) (f [1] :mean) (f [1] nil))",
        "(defn f [x flag t] (if flag (concat t \"x\") x)) (defn g [x o] (if (equal? o '[:a \"b\" 1:2]) x (- x))) (f [1] false \"t\") (g [1] '[:a \"b\" 1:2])",
        "(defn f [p] (map (fn [k] (sum (get p k))) (keys p))) (print (f {:b [1] :a [2 3]}) (f {:a [2 3] :b [1]}))",
        "(defn loss [p x] (sum (* (:w p) x))) (print ((value-and-grad loss) {:w [1 2]} [3 4]))",
        "(defn loss [p x] (sum (* p x))) (print ((vmap (grad loss :wrt 1) '[nil 0]) [1 2] [[3 4] [5 6]]))",
        "(defn loss [p x] (sum (* p x))) (print ((value-and-grad loss :wrt '[1 0]) [1 2] [3 4]) ((jvp loss) [1 2] [3 4] [1 1] [0 0]))",
        "(defn twice [x] (* 2 x)) (defn app [f x] (f x)) (print (app twice [1]) (app sqrt [4]) (app relu [1]))",
        "(defn train [x n lr] (repeat [i n] [x x] (- x (* lr x)))) (print (train [1 2] 100 0.1) (train [1 2] 7 0.5))",
        "(defn f [x k] (* x (+ k 0.1))) (print (f (cast [1 2] :f64) 0.1) (f (cast [1 2] :bf16) 0.1))",
        // Pure definitions are computed; their values are constants of the program.
        "(def k (random-normal (random-key 1) '[3])) (defn f [x] (+ x k)) (print (f [1 2 3]))",
        "(def scale (+ 1 2)) (def shift [scale 1]) (defn f [x] (+ (* scale x) shift)) (print (f [1 2]))",
        "(defmacro both [a b] `(list ~a ~b)) (defn f [x] (both (sum x) (mean x))) (print (f [1 2]))",
        // An error ends the run; earlier calls are recorded.
        "(defn f [x] (* x 3)) (f [1 2]) (nth '[1] 4) (f [1 2 3])",
        // Once the body needs this number, it is static, whatever it was before.
        "(defn f [x n k] (if (= k :a) (reshape x n -1) (* x n))) (f [1 2] 2 :a) (f [1 2] 2 :b) (f [1 2] 3 :b)",
    ] {
        same_as_the_run(program, &[]);
    }
}

#[test]
fn functions_of_modules_are_found_again() {
    let part = "(defn inner [x] (* x x)) (defn part [x] (sum (inner x)))";
    let files = [("lib/part.shf".to_owned(), part.to_owned())];
    same_as_the_run("(use nn) (use ./lib/part.shf :as p) (print (p/part [1 2]) (normalize [1 3]))", &files);
}

#[test]
fn the_examples_and_programs_are_made_again() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a program");
    same_as_the_run(&read(&root.join("examples/xor/train.shf")), &[]);
    for name in ["gpt", "rnn", "models", "grow", "prune"] {
        let program = read(&root.join(format!("tests/programs/{name}.shf")));
        let (compiled, recording) = run(&program, &[]);
        let (mut interp, _) = prepared(&program, &[]);
        let again: HashSet<String> = recording.calls.iter().map(|call| ahead(&mut interp, call)).collect();
        let missing = compiled.iter().filter(|text| !again.contains(*text)).count();
        assert!(missing == 0 || !recording.left_out.is_empty(), "{name}: {missing} of {}", compiled.len());
    }
}

#[test]
fn what_has_no_name_is_said() {
    let program = "(defn make [k] (fn [x] (* x k)))
        (defn app [f x] (f x))
        (print ((make [1 2]) [3 4]) ((fn [x] (+ x x)) [1]) (app (fn [x] x) [1]) (app (make [2]) [1]))";
    let (_, recording) = run(program, &[]);
    let left_out: Vec<String> =
        recording.left_out.iter().map(|l| format!("{}: {}", l.function, l.reason)).collect();
    insta::assert_snapshot!(left_out.join("\n"), @r"
    <lambda>: it holds values of the place where it was made
    <lambda>: it has no name at the top level
    app: it is given a function that has no name at the top level
    ");
}

/// The recording has the programs of the run, in its mode or with everything compiled, and not the functions inlined in
/// them.
#[test]
fn parts_of_what_is_called_are_not_recorded() {
    let program = "(defn inner [x] (* x x)) (defn outer [x] (sum (inner x))) (defn alone [x] (inner (+ x 1)))
        (defn report [x] (print (alone x)))
        (print (outer [1 2])) (report [1 2]) (print (outer [1 2]))";
    let recorded = |jit: Jit| {
        let (mut interp, _, _) = compiling_in(jit, &[]);
        interp.run_program("test.shf", program).expect("a run");
        let recording = interp.recording();
        recording.calls.iter().map(|call| call.function.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(recorded(Jit::Auto), ["outer", "alone"]);
    assert_eq!(recorded(Jit::Always), ["outer", "alone"]);
    // One is called from elsewhere too, one was worth a program before the function that calls it.
    let (mut interp, _, log) = compiling_in(Jit::Auto, &[]);
    let program = "(defn inner [x] (@ x x)) (defn outer [x n] (repeat [i n] [x x] (inner x)))
        (defn small [x] (+ x 1)) (defn both [x] (small x))
        (both [1 2]) (small [3 4]) (print (shape (outer (ones '[300 300]) 2)))";
    interp.run_program("test.shf", program).expect("a run");
    let names: Vec<String> = interp.recording().calls.iter().map(|call| call.function.name.clone()).collect();
    assert!(names.contains(&"small".to_owned()) && names.contains(&"both".to_owned()), "{names:?}");
    let compiled: Vec<String> = log.borrow().units.iter().map(|unit| unit.function.clone()).collect();
    assert!(
        !compiled.is_empty() && compiled.iter().all(|name| names.contains(name)),
        "{compiled:?} {names:?}"
    );
}

/// The programs for the declared types of functions, or the first line of the error.
fn declared(program: &str) -> Vec<String> {
    let (mut interp, _) = prepared(program, &[]);
    let functions = interp.declared_functions();
    let mut all = Vec::new();
    for function in functions {
        let mut texts = HashSet::new();
        for arguments in &function.variants {
            match interp.specialise_ahead(&function.name, arguments) {
                Ok(unit) => texts.extend([text_ahead(unit)]),
                Err(refused) => texts.extend([refused.diagnostic.message]),
            }
        }
        all.extend(texts);
    }
    all
}

#[test]
fn declared_types_make_the_programs_of_calls() {
    for program in [
        "(defn f [(x f32 [4 2]) (n f32 [])] (* x n)) (f (ones '[4 2]) 2.5) (f (ones '[4 2]) (sum [1 2]))",
        "(defparams Net {:w [2 3] :b [3]}) (defn f [(p :as Net) (x [5 2])] (+ (@ x (:w p)) (:b p)))
         (f {:w (ones '[2 3]) :b (zeros '[3])} (ones '[5 2]))",
        "(defn train [(x [2]) (epochs i64 []) (lr f32 [])] (repeat [i epochs] [x x] (- x (* lr x))))
         (train [1 2] 100 0.5)",
        "(defn f [(x i32 [3]) (n i32 [])] (+ x n)) (f (cast [1 2 3] :i32) 4)",
        "(defn f [(x f64 [2]) (lr f64 [])] (* x lr)) (f (cast [1 2] :f64) 0.1)",
        "(defn f [(x f16 [2]) (lr f16 [])] (* x lr)) (f (cast [1 2] :f16) 0.5)",
        "(defn f [(x i32 [3]) (n i32 [])] (+ x n)) (f (cast [1 2 3] :i32) (cast 4 :i32))",
    ] {
        let (compiled, _) = run(program, &[]);
        let ahead = declared(program);
        assert!(!compiled.is_empty());
        for text in &compiled {
            assert!(ahead.contains(text), "{program}\n{text}\nbut\n{}", ahead.join("\n"));
        }
    }
}

/// One program if numbers and single tensors give the same.
#[test]
fn a_number_is_no_reason_for_a_second_program() {
    let train = "(defn train [(x [2]) (n i64 []) (lr f32 [])] (repeat [i n] [x x] (- x (* lr x))))";
    assert_eq!(declared(train).len(), 1);
}

#[test]
fn what_cannot_be_compiled_is_said_with_its_place() {
    let programs = [
        "(defn f [(x [4]) (n i64 [])] (reshape x n -1))",
        "(defn f [(x [4])] (print x))",
        "(def data (io \"load\" \"x.csv\"))\n(defn f [(x [4])] (+ x data))",
        "(defn f [(x [4])] (@ x [1 2 3]))",
        "(defn f [(x [4])] (fn [y] (+ x y)))",
        "(defn f [(x [4])] (reshape x (int (max x)) -1))",
    ];
    let mut said = String::new();
    for program in programs {
        let (mut interp, _) = prepared(program, &[]);
        let function = interp.declared_functions().pop().expect("a typed function");
        let refused = interp.specialise_ahead(&function.name, &function.variants[0]).expect_err("refused");
        said += &format!("by design: {}\n", refused.by_design);
        said += &render(&interp.sources, &refused.diagnostic, false);
    }
    insta::assert_snapshot!(said);
}

#[test]
fn names_on_the_command_line() {
    let files = [("part.shf".to_owned(), "(defn part [(x [2])] (sum x))\n(defn -own [x] x)".to_owned())];
    let (interp, _) =
        prepared("(use ./part.shf)\n(use nn :as n)\n(defn forward [x] x)\n(def rate 3)", &files);
    let name = |text: &str| match interp.function_name(text) {
        Ok(name) => format!("{:?} {}", name.module, name.name),
        Err(d) => format!("{} / {}", d.message, d.help.unwrap_or_default()),
    };
    let shown: Vec<String> =
        ["forward", "part", "n/linear", "forwrad", "sum", "relu", "-own", "nothing"].map(name).into();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    None forward
    Some("part.shf") part
    Some("<nn>") linear
    test.shf does not define forwrad / did you mean forward?
    sum is a builtin: what calls it is compiled / name a function of the program
    Some("<core>") relu
    test.shf does not define -own / it defines forward
    test.shf does not define nothing / it defines forward
    "#);
    let texts: Vec<String> = interp.program_texts().into_iter().map(|(name, _)| name).collect();
    assert_eq!(texts, ["part.shf", "test.shf"]);
}

/// A placeholder argument allocates no memory.
#[test]
fn large_arguments_cost_nothing() {
    let program = "(defn f [(x f32 [100000 100000])] (sum x))";
    let (mut interp, _) = prepared(program, &[]);
    let function = interp.declared_functions().pop().expect("a typed function");
    assert!(matches!(&function.variants[0][..], [AbstractValue::Any(ty)] if ty.shape[0] == 100_000));
    interp.specialise_ahead(&function.name, &function.variants[0]).expect("a program");
}
