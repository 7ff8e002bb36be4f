//! Checks of a running program: the same error interpreted and compiled, at any place.

use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::program::Value;
use sheaf_syntax::diagnostic::Diagnostic;

use crate::support::{World, compiling, compiling_at_once, run_with};

/// The first error of a program, or its last value.
type Outcome = Result<String, (String, Vec<(u32, u32)>)>;

fn outcome(interp: &mut Interp, text: &str) -> Outcome {
    let result = interp.run_program("test.shf", text);
    let value = match result {
        Ok(value) => value,
        Err(errors) => return Err(error_of(&errors[0])),
    };
    shown(&value).map_err(|d| error_of(&d))
}

fn shown(value: &Value) -> Result<String, Diagnostic> {
    for leaf in sheaf_lang::eval::flatten(value) {
        if let Value::Tensor(t) = leaf
            && let Err(stop) = t.elements("a text")
        {
            match *stop {
                sheaf_lang::eval::Stop::Error(d) => return Err(d),
                sheaf_lang::eval::Stop::Trace(_) => unreachable!("not in a trace"),
            }
        }
    }
    Ok(sheaf_lang::builtins::show(value))
}

fn error_of(d: &Diagnostic) -> (String, Vec<(u32, u32)>) {
    (d.message.clone(), d.labels.iter().map(|l| (l.span.start, l.span.end)).take(1).collect())
}

fn interpreted(text: &str) -> Outcome {
    let mut interp = Interp::new(Box::new(World::default()), None, Options::default());
    outcome(&mut interp, text)
}

/// The result of the program with every function compiled, and the number of compiled functions.
fn compiled(text: &str) -> (Outcome, usize) {
    let (mut interp, _, log) = compiling(Jit::Always);
    let found = outcome(&mut interp, text);
    let units = log.borrow().units.len();
    (found, units)
}

/// Asserts that both ways agree and that the program was compiled; the outcome.
fn same(text: &str) -> Outcome {
    let plain = interpreted(text);
    let (found, units) = compiled(text);
    assert_eq!(found, plain, "{text}");
    assert!(units > 0, "nothing was compiled of {text}");
    plain
}

fn fails(text: &str, message: &str) {
    match same(text) {
        Err((found, places)) => {
            assert!(found.starts_with(message), "{text}\n  wanted {message}\n  found  {found}");
            assert_eq!(places.len(), 1, "an error has a place: {text}");
        }
        Ok(value) => panic!("{text}\n  wanted {message}\n  found  {value}"),
    }
}

fn gives(text: &str, wanted: &str) {
    assert_eq!(same(text), Ok(wanted.into()), "{text}");
}

/// Ways to index `x`, of five entries, by a number `i`; each gives a number.
const WAYS: [&str; 12] = [
    "(nth x i)",
    "(get x i)",
    "(x i)",
    "(sum (get x (tensor (list i 0))))",
    "(sum (x (tensor (list 0 i))))",
    "(sum (index-update x i 9))",
    "(sum (index-update x (tensor (list i 1)) 9))",
    "(sum (scatter-add x (tensor (list 0 i)) [1 2]))",
    "(sum (embedding (reshape x [5 1]) (tensor (list i))))",
    "((reshape x [1 5]) 0 i)",
    "(sum (get (transpose (stack (list x x))) i))",
    "(let [f (fn [j] (nth x j))] (f i))",
];

/// Contexts: `EXPR` is one of the ways.
const AROUND: [&str; 14] = [
    "(defn f [x i] EXPR) (f [1 2 3 4 5] I)",
    "(defn f [x i] (second (scan (fn [s a] [(+ s EXPR) (+ a s)]) 0.0 (arange 20)))) (f [1 2 3 4 5] I)",
    "(defn f [x i] (repeat [k 30] [s 0.0] (+ s EXPR))) (f [1 2 3 4 5] I)",
    "(defn f [x i n] (repeat [k n] [s 0.0] (+ s EXPR))) (f [1 2 3 4 5] I 3)",
    "(defn f [x i] (while (< s 5) [s 0.0] (+ s (maximum 1 EXPR)))) (f [1 2 3 4 5] I)",
    "(defn f [x i] (while (< (+ s (* 0 EXPR)) 5) [s 0.0] (+ s 1))) (f [1 2 3 4 5] I)",
    "(defn f [x i] (if (> (sum x) 0) EXPR 0.0)) (f [1 2 3 4 5] I)",
    "(defn f [x i] (if (> (sum x) 0) (while (< s 5) [s 0.0] (+ s (maximum 1 EXPR))) 0.0)) (f [1 2 3 4 5] I)",
    "(defn f [x i] (sum ((vmap (fn [a] (+ a EXPR))) x))) (f [1 2 3 4 5] I)",
    "(defn f [x is] (sum ((vmap (fn [i] EXPR)) is))) (f [1 2 3 4 5] [0 I 1])",
    "(defn f [x is] (sum ((vmap (fn [i] (if (> i -50) EXPR 0.0))) is))) (f [1 2 3 4 5] [0 I 1])",
    "(defn f [x i] (first (value-and-grad (fn [x] EXPR)))) (defn g [x i] ((value-and-grad (fn [x] EXPR)) x)) (g [1 2 3 4 5] I)",
    "(defn g [x i] ((value-and-grad (fn [x] ((checkpoint (fn [x] (* 2 EXPR))) x))) x)) (g [1 2 3 4 5] I)",
    "(defn g [x i] ((value-and-grad (fn [x] (first (scan (fn [s a] [(+ s EXPR) nil]) 0.0 (arange 20))))) x)) (g [1 2 3 4 5] I)",
];

fn program(around: &str, way: &str, index: &str) -> String {
    format!("(use nn) {}", around.replace("EXPR", way).replace('I', index))
}

/// An index out of range is the same error everywhere, and one within range is none.
#[test]
fn an_index_out_of_range_is_one_error() {
    for around in AROUND {
        for way in WAYS {
            for index in ["5", "-6"] {
                fails(&program(around, way, index), &format!("index {index} is outside of axis"));
            }
            assert!(same(&program(around, way, "-5")).is_ok(), "{around} {way}");
        }
    }
}

/// Only the taken path counts. Float indices must be integers, and integers wider than indices keep their value.
#[test]
fn an_index_is_a_whole_number_that_keeps_its_value() {
    fails("(defn f [x i] (get x i)) (f [1 2 3] 1.5)", "an index must be a whole number, not 1.5");
    fails("(defn f [x i] (get x i)) (f [1 2 3] [0 0.5 1.5 2])", "an index must be a whole number, not 1.5");
    fails("(defn f [x i] (sum (index-update x i 9))) (f [1 2 3] [0.25])", "an index must be a whole number");
    gives("(defn f [x i] (get x i)) (f [1 2 3] [0 2])", "[1. 3.]");
    fails("(defn f [x i] (get x i)) (f [1 2 3] [4294967296] :i64)", "index 2147483647 is outside");
    fails("(defn f [x i] (get x i)) (f [1 2 3] [4294967295] :u32)", "index 2147483647 is outside");
    gives("(defn f [x i] (get x i)) (f [1 2 3] [-1 2] :i64)", "[3. 3.]");
    fails(
        "(defn f [x n] (ash x n)) (f [1 2.5] [1 1])",
        "what is shifted, and by how much, must be a whole number",
    );
    gives("(defn f [x n] (ash x n)) (f [1 2] [1 -1])", "[2 1]");
    fails(
        "(defn f [l t] (sparse-cross-entropy l t)) (f [[0 0] [0 0]] [0 2])",
        "a target is none of the 2 classes, which are 0 to 1",
    );
}

#[test]
fn what_does_not_happen_is_no_error() {
    gives("(defn f [x i] (if (< i 3) (nth x i) -1.0)) (f [1 2 3] 7)", "-1.0");
    gives("(defn f [x i] (if (and (< i 3) (> (nth x i) 0)) 1.0 -1.0)) (f [1 2 3] 7)", "-1.0");
    gives("(defn f [x i] (or (>= i 3) (> (nth x i) 0))) (f [1 2 3] 7)", "true");
    gives("(defn f [x i n] (repeat [k n] [s 0.0] (+ s (nth x i)))) (f [1 2 3] 7 0)", "0.0");
    gives("(defn f [x i] (while (< s (* 0 (sum x))) [s 0.0] (+ s (nth x i)))) (f [1 2 3] 7)", "0.0");
    gives(
        "(defn f [x is] ((vmap (fn [i] (if (< i 3) (nth x i) 0.0))) is)) (f [1 2 3] [0 9 2])",
        "[1. 0. 3.]",
    );
    gives(
        "(defn f [x is] ((vmap (fn [i] (if (< i 3) (while (< s 5) [s 0.0] (+ s (nth x i))) 0.0))) is)) (f [1 2 3] [0 9 2])",
        "[5. 0. 6.]",
    );
    // Checks apply even if `where` discards the value.
    fails("(defn f [x i] (where (< i 3) (nth x i) 0.0)) (f [1 2 3] 7)", "index 7 is outside");
    // A row whose loop has ended takes no further step.
    gives(
        "(defn f [x ns] ((vmap (fn [n] (while (< k n) [k 0] (+ k (* 0 (int (nth x k))) 1)))) ns)) (f [1 2 3] [1 3 2])",
        "[1 3 2]",
    );
}

/// `assert` of a condition unknown while tracing, with values in its message.
#[test]
fn a_condition_is_asserted_when_it_is_known() {
    fails("(defn f [x] (do (assert (> (sum x) 0) \"sum {:.2f}\" (sum x)) x)) (f [1 -3])", "sum -2.00");
    fails("(defn f [x] (do (assert (> (sum x) 0) \"a sum of\" (sum x)) x)) (f [1 -3])", "a sum of -2.0");
    gives("(defn f [x] (do (assert (> (sum x) 0) \"a sum of\" (sum x)) x)) (f [1 3])", "[1. 3.]");
    fails(
        "(defn f [x n] (do (assert (< n 3) \"{} of {} in {}\" n :three x) x)) (f [1 2] 7)",
        "7 of :three in [1. 2.]",
    );
    let around = [
        "(defn f [x] (repeat [k 30] [s 0.0] (do (assert (< s 5) \"at {} with {}\" k s) (+ s (first x))))) (f [1 2])",
        "(defn f [x] (while (< s 20) [s 0.0] (do (assert (< s 5) \"at {} with {}\" 5 s) (+ s (first x))))) (f [1 2])",
        "(defn f [x] (second (scan (fn [s r] (do (assert (< s 5) \"at {} with {}\" 5 s) [(+ s (first x)) r])) 0.0 (arange 30)))) (f [1 2])",
        "(defn f [x] ((vmap (fn [s] (do (assert (< s 5) \"at {} with {}\" 5 s) s))) x)) (f [1 5 7])",
        "(defn f [x] ((vmap (fn [s] (do (assert (if (> s 4) (< s 5) true) \"at {} with {}\" 5 s) s))) x)) (f [1 5 7])",
        "(defn f [x] ((grad (fn [x] (do (assert (< (sum x) 5) \"at {} with {}\" 5 (sum x)) (sum (square x))))) x)) (f [2 3])",
    ];
    for text in around {
        fails(text, "at 5 with 5.0");
    }
    // Numbers of all dtypes are shown with all their digits.
    for (dtype, value, shown) in [
        ("f32", "0.1", "0.1"),
        ("f64", "0.1", "0.1"),
        ("i32", "-7", "-7"),
        ("i64", "-5000000000", "-5000000000"),
        ("u32", "4000000000", "4000000000"),
        ("u8", "200", "200"),
        ("bf16", "0.5", "0.5"),
        ("bool", "1", "true"),
    ] {
        let text = format!(
            "(defn f [x v] (do (assert (< (sum x) 0) \"v is {{}}\" v) x)) (f [1 2] (cast (tensor {value} :dtype :f64) :{dtype}))"
        );
        fails(&text, &format!("v is {shown}"));
    }
    fails("(defn f [x n] (do (assert (< n 0) \"n is\" n) (* n x))) (f [1 2] 5000000000)", "n is 5000000000");
    fails("(defn f [x] (do (assert (< (sum x) 0) \"x is\" x) (* 2 x))) (f (arange 17.0))", "x is <f32[17]>");
}

/// `error` ends a branch of any structure, and the others are compiled.
#[test]
fn an_error_agrees_with_any_branch() {
    let branches = "(defn f [x] (if (> (sum x) 0) {:a x :b '[1 2]} (error \"sum {}\" (sum x)))) ";
    gives(&format!("{branches} (f [1 2])"), "{:a [1. 2.] :b [1 2]}");
    fails(&format!("{branches} (f [-1 -2])"), "sum -3.0");
    let negated = "(defn f [x] (if (< (sum x) 0) (do (error \"sum\" (sum x)) 7) [(sum x) (max x)])) ";
    gives(&format!("{negated} (f [1 2])"), "[3. 2.]");
    fails(&format!("{negated} (f [-1 -2])"), "sum -3.0");
    let three = "(defn f [x n] (case n 0 (sum x) 1 (error \"one\") (error \"n is {}\" n))) ";
    gives(&format!("{three} (f [1 2] 0)"), "3.0");
    fails(&format!("{three} (f [1 2] 1)"), "one");
    fails(&format!("{three} (f [1 2] 5)"), "n is 5");
    let chosen = "(defn f [x] (cond (> (sum x) 9) (* 2 x) (> (sum x) 0) x :else (error \"none\"))) ";
    gives(&format!("{chosen} (f [4 6])"), "[ 8. 12.]");
    gives(&format!("{chosen} (f [1 2])"), "[1. 2.]");
    fails(&format!("{chosen} (f [-1])"), "none");
    fails("(defn f [x] (do (when (> (sum x) 0) (error \"positive\")) x)) (f [1 2])", "positive");
    gives("(defn f [x] (do (when (> (sum x) 0) (error \"positive\")) x)) (f [-1])", "[-1.]");
    gives(
        "(defn f [x] ((vmap (fn [v] (if (> v 0) (sqrt v) (error \"v is {}\" v)))) x)) (f [1 4])",
        "[1. 2.]",
    );
    fails(
        "(defn f [x] ((vmap (fn [v] (if (> v 0) (sqrt v) (error \"v is {}\" v)))) x)) (f [1 -4 -5])",
        "v is -4.0",
    );
    gives(
        "(defn f [x] (repeat [k 20] [s x] (if (> (sum s) 1e9) (error \"much\") (* s 1)))) (f [1 2])",
        "[1. 2.]",
    );
    fails(
        "(defn f [x] (repeat [k 20] [s x] (if (> (sum s) 1e3) (error \"much\") (* s 3)))) (f [1 2])",
        "much",
    );
    fails(
        "(defn f [x] (repeat [k 20] [s x] (if (> (sum s) 1e3) (error \"much: {}\" k) (* s 3)))) (f [1 2])",
        "much: 6",
    );
    gives("(defn f [x] (or (> (sum x) 0) (error \"not positive\"))) (f [1 2])", "true");
    fails("(defn f [x] (or (> (sum x) 0) (error \"not positive\"))) (f [-1 -2])", "not positive");
}

/// A function that fails in any case, or on known values, is interpreted: the first error is reported.
#[test]
fn what_is_known_stops_at_once() {
    let cases = [
        ("(error \"plain {}\" 3)", "plain 3"),
        ("(error \"plain\" 3 [1 2])", "plain 3 [1. 2.]"),
        ("(defn f [x] (error \"of {}\" (sum x))) (f [1 2])", "of 3.0"),
        (
            "(defn f [x] (do (assert (= (ndim x) 2) \"an axis more than {}\" (ndim x)) x)) (f [1 2])",
            "an axis more than 1",
        ),
        ("(defn f [x] (do (assert (> (sum x) 9) \"first\") (error \"second\"))) (f [1 2])", "first"),
        ("(defn f [x] (do (assert (> (sum x) 9) \"first\") (+ x [1 2 3]))) (f [1 2])", "first"),
        ("(defn f [x n] (repeat [i n] [s x] (error \"step {}\" i))) (f [1 2] 3)", "step 0"),
        ("(defmacro m [x] (if (symbol? x) (error \"a name: {}\" x) x)) (m y)", "a name: y"),
    ];
    for (text, message) in cases {
        let plain = interpreted(text);
        assert_eq!(compiled(text).0, plain, "{text}");
        assert_eq!(plain.map_err(|(message, _)| message), Err(message.into()), "{text}");
    }
    let text = "(defn f [x n] (repeat [i n] [s x] (error \"step {}\" i))) (f [1 2] 0)";
    assert_eq!(interpreted(text), Ok("[1. 2.]".into()));
    assert_eq!(compiled(text).0, Ok("[1. 2.]".into()));
    let own = "(defn assert [x] (* 2 x)) (defn error [x] (+ 1 x)) (list (assert 2) (error 3))";
    assert_eq!(interpreted(own), Ok("[4 4]".into()));
}

const STEP: &str = "(defn look [x i] (nth x i)) (defn double [v] (* 2 v)) (defn add [v w] (+ v w))";

/// A result passed to another compiled call carries its failed checks.
#[test]
fn calls_hand_on_what_is_wrong() {
    let cases = ["(double (look [1 2 3] 9))", "(add (double [1]) (double (double (look [1 2 3] 9))))"];
    for case in cases {
        fails(&format!("{STEP} {case}"), "index 9 is outside");
    }
    // Independent values are unaffected.
    let aside = format!("{STEP} (let [wrong (look [1 2 3] 9)] (double [4]))");
    assert_eq!(compiled(&aside).0, Ok("[8.]".into()));
    // Long chains of calls hold few flags.
    let chain =
        format!("{STEP} (def a (repeat [i 1000] [v (look [1 2 3] 1)] (look (add [0 0 0] v) 2))) (print a)");
    let (mut interp, world, log) = compiling(Jit::Always);
    assert_eq!(run_with(&mut interp, &world, &chain), "2.0");
    assert!(log.borrow().reads <= 1002, "{} reads", log.borrow().reads);
}

/// On a synchronous device the call reports the error, even if the result is not read.
#[test]
fn an_error_is_told_as_soon_as_it_is_known() {
    let (mut interp, world, _) = compiling_at_once(Jit::Always);
    let text = format!("{STEP} (let [wrong (look [1 2 3] 9)] (double [4]))");
    assert!(
        run_with(&mut interp, &world, &text).starts_with("error: index 9 is outside of axis 0 of f32[3]")
    );
}

/// The span and the calls around an error are the same when compiled.
#[test]
fn an_error_shows_the_calls_around_it() {
    let text = "(defn inner [x]\n  (do (assert (> (sum x) 0) \"sum {}\" (sum x)) x))\n(defn around [x]\n  (* 2 (inner x)))\n\
                (print (around [1 -2]))";
    let mut interp = Interp::new(Box::new(World::default()), None, Options::default());
    let plain = run_with(&mut interp, &World::default(), text);
    for (mut interp, world, _) in [compiling(Jit::Always), compiling_at_once(Jit::Always)] {
        assert_eq!(run_with(&mut interp, &world, text), plain);
    }
    insta::assert_snapshot!(plain);
}

/// Without index checks a compiled program clamps, but still asserts.
#[test]
fn bounds_need_not_be_checked() {
    let (mut interp, world, _) = compiling(Jit::Always);
    interp.options.no_bounds_check = true;
    let text = "(defn f [x i] (do (assert (> i 0) \"i is {}\" i) (nth x i)))";
    assert_eq!(run_with(&mut interp, &world, &format!("{text} (print (f [1 2 3] 9))")), "3.0");
    let (mut interp, world, _) = compiling(Jit::Always);
    interp.options.no_bounds_check = true;
    let found = run_with(&mut interp, &world, &format!("{text} (print (f [1 2 3] -9))"));
    assert!(found.starts_with("error: i is -9"), "{found}");
}

/// Operands used only by checks are kept: of a branch, and in the result of a loop.
#[test]
fn what_only_a_check_needs_stays() {
    let branch = "(defn f [c e xs]
      (scan (fn [a b] (list (if (> (sin a) 0) (get (full '[2] 0.5) (argmax e)) (* 2 a)) 0.0)) c xs))
      (first (f 0.8 [-0.7 0.5] [[1 2] [3 4]]))";
    gives(branch, "0.5");
    let after = "(defn f [x xs]
      (let [[h ys] (scan (fn [a b] (list (+ a b) (sum b))) x xs)]
        (do (assert (> (sum ys) 5) \"{} is too little\" (sum ys)) (* 2 x))))";
    gives(&format!("{after} (f [1 2] [[1 2] [3 4]])"), "[2. 4.]");
    fails(&format!("{after} (f [1 2] [[0 1] [1 0]])"), "2.0 is too little");
}

/// A program without checks has no flag, nor has one with known indices.
#[test]
fn what_is_known_costs_nothing() {
    let text = "(defn f [x] (+ (nth x 1) (sum (get x [0 2])))) (f [1 2 3])";
    let (mut interp, world, log) = compiling(Jit::Always);
    run_with(&mut interp, &world, text);
    let units = &log.borrow().units;
    assert_eq!((units[0].outputs.len(), units[0].checks.len()), (1, 0));
}
