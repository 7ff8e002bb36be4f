//! Checked examples: passing and failing ones, and their messages.

use crate::support::compiling;
use insta::assert_snapshot;
use sheaf_lang::eval::Jit;
use sheaf_lang::testing::{BATCH, Compile, FileReport, Options, Tester};
use sheaf_syntax::render::render;

/// The report of one file, and its failures as text.
fn test(text: &str) -> (FileReport, String) {
    let (mut interp, _, _) = compiling(Jit::Never);
    let options = Options { tolerance: 1e-5, interpreted: true, compiled: Compile::Always, batch: BATCH };
    let mut tester = Tester::new(&mut interp, options);
    tester.file("test.shf", text, false);
    let report = tester.finish().remove(0);
    let failures: Vec<String> = report.failures.iter().map(|d| render(&interp.sources, d, false)).collect();
    (report, failures.join("\n"))
}

/// Counts of examples: all, passed, compiled, known.
fn counts(text: &str) -> [usize; 4] {
    let (report, failures) = test(text);
    assert_eq!(failures, "");
    [report.cases, report.passed, report.compiled, report.known]
}

#[test]
fn values_compare_with_a_tolerance_and_by_kind() {
    let text = "
        (defn twice [x] (* 2 x))
        (twice [1 2]) ;=> [2 4]
        (twice 3) ;=> 6
        (/ [1 2 4] 3)
        ;=> [0.3333333 0.6666667 1.3333333]
        (= [1 2] 1) ;=> [true false]
        (list 1 :a \"b\" [1 2]) ;=> '[1 :a \"b\" [1 2]]
        {:a [1 2] :b 2} ;=> {:b 2 :a [1. 2.]}
        (/ [1 -1 0] 0) ;=> (list inf (neg inf) nan)
        twice ;=> <fn:twice>
        (arange 3) ;=> tensor i32[3] = [0 1 2]
        (shape [[1 2]]) ;=> '[1 2]";
    assert_eq!(counts(text), [10, 10, 7, 3]);
}

#[test]
fn errors_are_found_by_a_part_of_their_message() {
    assert_eq!(counts("(+ 1 \"a\") ;=> error: number\n(f) ;=> error: unknown name f"), [2, 2, 0, 2]);
}

#[test]
fn failures_say_what_was_expected_and_what_was_found() {
    assert_snapshot!(test("(+ [1 2 3] 1) ;=> [2 3 5]").1);
    assert_snapshot!(test("(+ 1 2) ;=> 3.").1);
    assert_snapshot!(test("(shape [1 2]) ;=> '[3]\n{:a 1} ;=> {:b 1}").1);
    assert_snapshot!(test("(+ 1 2) ;=> error: no\n(+ 1 nil) ;=> error: other").1);
    assert_snapshot!(test("(+ [1 2] [1 2 3]) ;=> [1 2]").1);
    assert_snapshot!(test("(arange 2) ;=> tensor f32[2] = [0 1]").1);
    assert_snapshot!(test(";=> 1\n(+ 1 2)\n\n;=> 3\n(+ 1 1) ;=>").1);
}

#[test]
fn a_literal_that_must_be_known_is_not_lifted_and_patterns_stay() {
    let text = "
        (zeros [2 1]) ;=> [[0] [0]]
        (let [[a b] [1 2]] (+ a b)) ;=> 3
        (sum [[1 2] [3 4]] :axis [0 1]) ;=> 10
        (+ [1 2] :i32 1) ;=> tensor i32[2] = [2 3]
        ((fn [x & rest] x) [1 2]) ;=> [1 2]
        (case 1 1 [1 2] 2 [3 4]) ;=> [1 2]
        (map (fn [x] (* x [1 2])) '[1 2]) ;=> (list [1 2] [2 4])";
    assert_eq!(counts(text), [7, 7, 5, 2]);
}

#[test]
fn examples_in_documentation_strings_are_checked() {
    let text = "
        (defn twice \"(twice x)
          two times x
          (twice [1 2]) ;=> [2 4]
          (twice \\\"é\\\") ;=> error: expected a tensor\" [x] (* 2 (base x)))
        (defn base \"(base 1) ;=> 2\" [x] x)
        (defmacro same \"the form (same 5) ;=> 5\" [x] x)";
    let (report, failures) = test(text);
    assert_eq!((report.cases, report.passed), (4, 3));
    assert_snapshot!(failures);
    assert_eq!(counts("(defn f \"(f 1) ;=> 2\" [x] (+ x 1))\n(f 2) ;=> 3"), [2, 2, 2, 0]);
}
