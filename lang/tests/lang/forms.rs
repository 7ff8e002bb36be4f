//! Forms that involve more than one file or error: several errors at once, spans in expansions, module names in macros,
//! duplicate definitions.

use crate::support::{World, run, run_in};
use insta::assert_snapshot;
use sheaf_lang::eval::{Interp, Options};

/// The first lines of all errors.
fn messages(text: &str) -> Vec<String> {
    run(text).lines().filter(|l| l.starts_with("error")).map(ToString::to_string).collect()
}

#[test]
fn independent_errors_come_together() {
    assert_eq!(
        messages(
            "(defn f [x] (lenght x))\n(let [y] y)\n(defn f [x] x)\n(fn [(z f8 [2])] z)\n(print (wrong 1) (other 2))"
        ),
        [
            "error: unknown name lenght",
            "error: let wants a value for every name",
            "error: f is defined twice",
            "error: there is no dtype f8; there are bool i8 i16 i32 i64 u8 u16 u32 bf16 f16 f32 f64",
            "error: unknown name wrong",
            "error: unknown name other",
        ]
    );
    // Within one function, and each name once.
    assert_eq!(
        messages("(defn f [x]\n (let [a (one x) b (two a)] (if (three a) (one b) {:k (four 1)})))\n(one 2)"),
        [
            "error: unknown name one",
            "error: unknown name two",
            "error: unknown name three",
            "error: unknown name four"
        ]
    );
}

#[test]
fn what_follows_from_an_error_is_not_said() {
    // Names that a failed module or macro would have defined.
    assert_eq!(
        messages("(use nowhere)\n(thing 1)\n(let [x] x)"),
        ["error: cannot use nowhere: nowhere.shf does not exist", "error: let wants a value for every name",]
    );
    assert_eq!(messages("(defmacro m [x] (undefined x))\n(m (y z))"), ["error: unknown name undefined"]);
    // A function with an error is still defined, and so are its bindings.
    assert_eq!(
        messages("(defn f [x] (undefined x))\n(f 1)\n(print (f 2))"),
        ["error: unknown name undefined"]
    );
    assert_eq!(messages("(for [i 3] (print i))"), ["error: unknown name for"]);
    assert_eq!(messages("(dotimes [i 3] (print i))"), ["error: unknown name dotimes"]);
}

#[test]
fn an_error_in_an_expansion_has_two_places() {
    assert_snapshot!(run("(defmacro scaled [x]\n  `(let [y ~x]\n     (+ y :wrong)))\n\n(print (scaled 1))"), @r"
    error: expected a tensor or a number, got the keyword :wrong
      ┌─ test.shf:3:6
      │
    3 │      (+ y :wrong)))
      │      ^^^^^^^^^^^^
    4 │
    5 │ (print (scaled 1))
      │        ---------- in this use of the macro scaled
      │
      = help: it is called (+ a b ...)
    ");
    assert_snapshot!(run("(defmacro inner [x] `(* ~x nothing))\n(defmacro around [x] `(inner (+ ~x 1)))\n(around 1)"), @r"
    error: unknown name nothing
      ┌─ test.shf:1:22
      │
    1 │ (defmacro inner [x] `(* ~x nothing))
      │                      ^^^^^^^^^^^^^^ not defined here
    2 │ (defmacro around [x] `(inner (+ ~x 1)))
      │                       ---------------- in this use of the macro inner
    3 │ (around 1)
      │ ---------- in this use of the macro around
      │
      = help: the empty value is nil
    ");
    // Code from the macro use has its own span only.
    assert_snapshot!(run("(defmacro id [x] `(do ~x))\n(id (+ 1 :a))"), @r"
    error: expected a tensor or a number, got the keyword :a
      ┌─ test.shf:2:5
      │
    2 │ (id (+ 1 :a))
      │     ^^^^^^^^
      │
      = help: it is called (+ a b ...)
    ");
}

/// Names in a macro's code are resolved in the macro's module.
#[test]
fn names_in_macros_are_those_of_their_module() {
    let world = World::with(&[
        (
            "m.shf",
            "(use nn :only [mse-loss])\n(def k 10)\n(defn -twice [x] (* 2 x))\n(defn helper [x] (+ k x))\n(defmacro use-all [x] `(list k (-twice ~x) (helper ~x) (mse-loss ~x 0)))\n(defmacro -inner [x] `(+ k ~x))\n(defmacro outside [x] `(-inner ~x))\n(defmacro named [name] `(def ~name k))\n(defmacro keys-of [p] `(let [{:keys [k]} ~p] k))\n(defmacro data [] `'k)",
        ),
        ("n.shf", "(use m :as m)\n(defmacro through [x] `(m/use-all ~x))"),
    ]);
    let cases = [
        ("(use m :as m) (m/use-all [1])", "=> '[10 [2.] [11.] 1.0]"),
        ("(use m :only [use-all]) (use-all 1)", "=> '[10 2 11 1.0]"),
        ("(use m) (def k 0) (defn helper [x] :mine) (list k (use-all 1))", "=> '[0 [10 2 11 1.0]]"),
        ("(use m) (use-all 1)", "=> '[10 2 11 1.0]"),
        ("(use m :only [outside]) (outside 1)", "=> 11"),
        ("(use m :only [named]) (named ten) (+ ten 1)", "=> 11"),
        ("(use m :only [keys-of]) (keys-of {:k 3})", "=> 3"),
        ("(use m :only [data]) (data)", "=> k"),
        ("(use n) (through 1)", "=> '[10 2 11 1.0]"),
        ("(use n) (let [x 5] (through x))", "=> '[10 10 15 25.0]"),
    ];
    for (program, wanted) in cases {
        assert_eq!(run_in(&world, program), wanted, "{program}");
    }
}

#[test]
fn locals_shadow_macros_but_not_forms() {
    assert_eq!(run("(let [when (fn [x] (* 2 x))] (when 4))"), "=> 8");
    assert_eq!(run("(defn f [comment] (comment 4)) (f neg)"), "=> -4");
    assert_eq!(run("(repeat [i 1] [unless neg] unless)"), "=> <fn:neg>");
    assert_eq!(run("(let [[a {:keys [when]}] (list 1 {:when neg})] (when a))"), "=> -1");
    // Only within their scope.
    assert_eq!(run("(let [x (fn [when] (when 1))] (when true 5))"), "=> 5");
}

#[test]
fn macros_use_constants_above_them() {
    let program = "(print 0) (def n 3) (def twice-n (* 2 n)) (defn get-n [] twice-n) (defmacro m [] (get-n)) (print (m))";
    assert_eq!(run(program), "0\n6");
    // Code run for a macro does not run again.
    assert_eq!(run("(def x (do (print :once) 1)) (defmacro m [] x) (m) x"), ":once\n=> 1");
    assert!(
        run("(defmacro m [] y) (m) (def y 1)").starts_with("error: y is used before its definition has run")
    );
}

#[test]
fn a_macro_is_defined_above_its_uses() {
    let said = run("(defn f [] (m 1))\n(defmacro m [x] x)");
    assert!(said.contains("a macro is defined above its uses"), "{said}");
}

#[test]
fn macros_follow_the_rules_of_names() {
    let files = [
        ("a.shf", "(defmacro m [x] `(+ 1 ~x)) (defmacro -own [x] x)"),
        ("b.shf", "(defmacro m [x] `(+ 2 ~x))"),
        ("c.shf", "(use a)"),
    ];
    let cases = [
        ("(use a) (use b) (m 1)", "error: m is ambiguous: a and b define it"),
        ("(use a) (use b :as b) (list (m 1) (b/m 1))", "=> '[2 3]"),
        ("(use c) (m 1)", "=> 2"),
        ("(use c) (use b) (m 1)", "=> 3"),
        ("(use a) (-own 1)", "error: -own is private to a"),
        ("(use a) (defmacro m [x] `(+ 9 ~x)) (m 1)", "=> 10"),
        ("(defmacro when [x] :mine) (when 1)", ""),
    ];
    for (program, wanted) in cases {
        let found = run_in(&World::with(&files), program);
        assert!(found.starts_with(wanted), "{program}\n{found}");
    }
}

/// In a session, a form with an error has no effect, and a definition replaces an older one.
#[test]
fn a_failed_definition_leaves_the_old_one() {
    let world = World::default();
    let mut interp = Interp::new(Box::new(world.clone()), None, Options::default());
    let module = Interp::program("session");
    let mut say = |text: &str| {
        let result = interp.run_text(&module, "<input>", text);
        world.warned.borrow_mut().clear();
        match result {
            Ok(value) => sheaf_lang::builtins::repr(&value),
            Err(errors) => errors[0].message.clone(),
        }
    };
    assert_eq!(say("(defn relu [x] (nothing x))"), "unknown name nothing");
    assert_eq!(say("(relu -1)"), "0");
    assert_eq!(say("(defn f [x] 1)"), "nil");
    assert_eq!(say("(defn g [x] (f x))"), "nil");
    assert_eq!(say("(defn f [x] 2)"), "nil");
    assert_eq!(say("(g 0)"), "2");
    assert_eq!(say("(defmacro f [x] 3)"), "nil");
    assert_eq!(say("(f 0)"), "3");
    assert_eq!(say("(def f 4)"), "nil");
    assert_eq!(say("f"), "4");
}

#[test]
fn module_paths() {
    let files = [
        ("lib/a.shf", "(use ../top.shf) (defn a [] (top))"),
        ("top.shf", "(defn top [] :top)"),
        ("two/near.shf", "(defn near [] 2)"),
        ("two/user.shf", "(use ./near.shf) (defn user [] (near))"),
        ("near.shf", "(defn near [] 1)"),
    ];
    let cases = [
        ("(use ./lib/a.shf) (a)", "=> :top"),
        ("(use lib/a) (a)", "=> :top"),
        ("(use ./lib/../top.shf) (use top) (top)", "=> :top"),
        ("(use ./two/user.shf) (use near) (list (user) (near))", "=> '[2 1]"),
        ("(use ../outside.shf)", "error: cannot use ../outside.shf: ../outside.shf does not exist"),
        ("(use a/../../b)", "error: a/../../b is not the name of a module"),
        ("(use a//b)", "error: a//b is not the name of a module"),
        ("(use /etc/hosts)", "error: /etc/hosts is an absolute path"),
        ("(use a\\b)", "error: a\\b has a backslash"),
        ("(use ./lib/)", "error: ./lib/ is a folder"),
        ("(use ./lib/..)", "error: ./lib/.. is a folder"),
        ("(use pkg/mod)", "error: cannot use pkg/mod: there is no package pkg"),
        ("(use top.shf)", "error: cannot use top.shf"),
        ("(use ./top)", "error: cannot use ./top"),
        ("(use .)", "error: . is not the name of a module"),
    ];
    for (program, wanted) in cases {
        let found = run_in(&World::with(&files), program);
        assert!(found.starts_with(wanted), "{program}\n{found}");
    }
}

/// Custom gradients, nested and within traces.
#[test]
fn custom_gradients_fit_their_functions() {
    let cases = [
        (
            "(defn f [x] x) (defgrad f [x] [y] [g] [1 2]) ((grad (fn [x] (sum (f x)))) [1 2 3])",
            "error: the gradient of f does not fit: x is a tensor f32[3], its cotangent a tensor f32[2]",
        ),
        ("(defn f [x y] x) (defgrad f [x] [y] [g] g)", "error: f and its gradient take different arguments"),
        ("(defn f [x] x) (defgrad f [x] [y] [g] g) (defgrad f [x] [y] [g] g)", "error: f has two gradients"),
        (
            "(defn f [x y] (* x y)) (defgrad f [x y] [o] [g] g) ((grad f) 1.0 2.0)",
            "error: the gradient of f gives a list of 2 cotangents",
        ),
        (
            "(defn f [x] x) (defgrad f [x] [y] [g] (if (> g 0) [g g] 0)) ((grad f) 1.0)",
            "error: the gradient of f asks for a value that is not known",
        ),
        (
            "(defn f [h x] (h x)) (defgrad f [h x] [y] [g] (list nil (* 5 g))) ((grad (fn [x] (f square x))) 3.0)",
            "=> tensor f32[] = 5.0",
        ),
        (
            "(defn f [h x] (h x)) (defgrad f [h x] [y] [g] (list nil g)) ((grad (fn [x] (f (fn [z] (* x z)) 1.0))) 3.0)",
            "=> tensor f32[] = 1.0",
        ),
        (
            "(defn f [h x] (h x)) (defgrad f [h x] [y] [g] (list nil g)) ((grad (fn [x] (f (fn [z] (* x z)) x))) 3.0)",
            "error: f has a gradient of its own, and uses a tensor that is not an argument",
        ),
        // A number needed by the body is that of the argument, as without a gradient.
        (
            "(defn f [n x] (* x (len (range n)))) (defgrad f [n x] [y] [g] (list nil (* 7 g))) ((grad (fn [x] (f 3 x))) 2.0)",
            "=> tensor f32[] = 7.0",
        ),
    ];
    for (program, wanted) in cases {
        let found = run(program);
        assert!(found.starts_with(wanted), "{program}\n{found}");
    }
}
