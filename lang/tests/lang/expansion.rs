//! Forms after expansion, as text.

use crate::support::World;
use insta::assert_snapshot;
use sheaf_lang::eval::{Interp, Options};
use sheaf_syntax::render::render;

/// The expanded forms of a program, one per line.
fn expand(text: &str) -> String {
    let mut interp = Interp::new(Box::new(World::default()), None, Options::default());
    match interp.expand_program("test.shf", text) {
        Ok(forms) => forms.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        Err(errors) => errors.iter().map(|d| render(&interp.sources, d, false)).collect(),
    }
}

#[test]
fn threading() {
    assert_snapshot!(expand("(-> 5 (+ 1) neg)"), @"(neg (+ 5 1))");
    assert_snapshot!(expand("(->> '[1 2] (map neg) (reduce + 0))"), @"(reduce + 0 (map neg '[1 2]))");
    assert_snapshot!(expand("(-> {:a 1} :a (fn))"), @"(fn (:a {:a 1}))");
    assert_snapshot!(expand("(as-> 1 x (+ x 1) (* x x))"), @"(let [x 1 x (+ x 1)] (* x x))");
    assert_snapshot!(expand("(-> 1 (->> (- 2)) (-> (- 3)))"), @"(- (- 2 1) 3)");
    assert_snapshot!(expand("(->)"), @r"
    error: (-> x forms...) wants a value to thread
      ┌─ test.shf:1:1
      │
    1 │ (->)
      │ ^^^^
    ");
}

#[test]
fn conditions() {
    assert_snapshot!(expand("(defn f [a b] (cond a 1 (-> b neg) 2 :else 3))"), @"(defn f [a b] (if a 1 (if (neg b) 2 3)))");
    assert_snapshot!(expand("(fn [a] (when a (print 1) 2))"), @"(fn [a] (if a (do (print 1) 2)))");
    assert_snapshot!(expand("(fn [a] (unless a 2))"), @"(fn [a] (if a nil (do 2)))");
}

#[test]
fn macros() {
    assert_snapshot!(
        expand("(defmacro square-of [x] `(* ~x ~x)) (defn f [y] (square-of (+ y 1)))"), @r"
    (defmacro square-of [x] `(* ~x ~x))
    (defn f [y] (* (+ y 1) (+ y 1)))
    ");
    assert_snapshot!(
        expand("(defn twice [n] (* 2 n)) (defmacro m [n & more] `[~(twice n) ~@more :end]) (m 4 a b)"), @r"
    (defn twice [n] (* 2 n))
    (defmacro m [n & more] `[~(twice n) ~@more :end])
    [8 a b :end]
    ");
    assert_snapshot!(expand("(defmacro m [x] `{:a ~x ~x 1}) (m :k)"), @r"
    (defmacro m [x] `{:a ~x ~x 1})
    {:a :k :k 1}
    ");
    assert_snapshot!(expand("(defmacro m [x] `(let [y# ~x] '~x)) (m z)"), @r"
    (defmacro m [x] `(let [y# ~x] '~x))
    (let [y# z] 'z)
    ");
    assert_snapshot!(expand("(defmacro t [a] (let [s (gensym \"tmp\")] `(let [~s ~a] (+ ~s ~s)))) (t 1)"), @r#"
    (defmacro t [a] (let [s (gensym "tmp")] `(let [~s ~a] (+ ~s ~s))))
    (let [tmp__1 1] (+ tmp__1 tmp__1))
    "#);
    assert_snapshot!(expand("(defmacro pair [a b] `(do (def ~a 1) (defn ~b [x] (+ x ~a)))) (pair one plus)"), @r"
    (defmacro pair [a b] `(do (def ~a 1) (defn ~b [x] (+ x ~a))))
    (def one 1)
    (defn plus [x] (+ x one))
    ");
    assert_snapshot!(
        expand("(defmacro outer [n] `(defmacro ~n [x] `(list ~x '~'~n))) (outer inner) (inner 5)"), @r"
    (defmacro outer [n] `(defmacro ~n [x] `(list ~x '~'~n)))
    (defmacro inner [x] `(list ~x '~'inner))
    (list 5 'inner)
    ");
}

#[test]
fn models() {
    assert_snapshot!(expand("(defmodel forward [x] (layer :h relu) (layer :out))"), @"(defn forward [x p] (let [x x x (relu (+ (@ x (get p :h :W)) (get p :h :b)))] (+ (@ x (get p :out :W)) (get p :out :b))))");
}

/// Data is not expanded, except in unquotes.
#[test]
fn quoted_code() {
    assert_snapshot!(expand("'(when a b)"), @"'(when a b)");
    assert_snapshot!(expand("`(when a ~(when b c))"), @"`(when a ~(if b (do c)))");
    assert_snapshot!(expand("``(when ~(when b ~(when c d)))"), @"``(when ~(when b ~(if c (do d))))");
}

/// Only macros and their callees run; the rest of the program does not.
#[test]
fn nothing_runs() {
    let world = World::default();
    let mut interp = Interp::new(Box::new(world.clone()), None, Options::default());
    let forms = interp.expand_program("test.shf", "(use nn) (print (mse-loss 1 2))").expect("forms");
    assert_eq!(forms.len(), 2);
    assert!(world.printed.borrow().is_empty());
}

/// Expansion is idempotent.
#[test]
fn expanded_programs_expand_to_themselves() {
    let program = include_str!("../../../examples/xor/train.shf");
    let once = expand(program);
    assert_eq!(expand(&once), once);
}
