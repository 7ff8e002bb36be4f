//! Explanations of compilation: reports, warnings, and `--strict`. The device runs graphs on the host.

use std::rc::Rc;

use crate::support::{HostDevice, World, compiling, run_with};
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::eval::{Interp, Jit, Options, explain};
use sheaf_lang::host::{Backend, Buffer, HostError, Placement, Program, Unit};

/// The output of a program, followed by the explanation of its run.
fn explained(jit: Jit, program: &str) -> String {
    let (mut interp, world, _) = compiling(jit);
    let out = run_with(&mut interp, &world, program);
    format!("{out}\n\n{}", explain(&interp.reports()))
}

/// An evaluator with `--strict`.
fn strict() -> (Interp, World) {
    let world = World::default();
    let device = HostDevice { log: Rc::default(), at_once: false };
    let options = Options { jit: Jit::Always, strict: true, ..Options::default() };
    (Interp::new(Box::new(world.clone()), Some(Box::new(device)), options), world)
}

#[test]
fn specialisations_and_what_made_each_new() {
    insta::assert_snapshot!(explained(
        Jit::Always,
        "(defn heads [x n-heads scale]
  (* scale (reshape x n-heads -1)))
(heads (zeros '[8 64]) 2 0.5)
(heads (zeros '[8 64]) 2 0.25)
(heads (zeros '[12 64]) 2 0.5)
(heads (zeros '[12 64]) 4 0.5)
(heads (zeros '[8 64]) 2 3)
(heads (zeros '[8 64]) 4 0.5)
nil"
    ));
}

/// Structure differences: a leaf more or less, another constant, another function, another order of entries.
#[test]
fn structures_make_specialisations_new() {
    insta::assert_snapshot!(explained(
        Jit::Always,
        "(defn f [p mode g] (g (reduce + 0 (map (fn [k] (sum (get p k))) (keys p)))))
(defn twice [x] (* 2 x))
(defn thrice [x] (* 3 x))
(f {:a [1] :b [1 2]} :fast twice)
(f {:b [1 2] :a [1]} :fast twice)
(f {:a [1] :b [1 2] :c [1]} :fast twice)
(f {:a [1]} :slow twice)
(f {:a [1]} :slow thrice)
((value-and-grad f) {:a [1]} :slow thrice)
(let [w [1 2]] (map (fn [x] (+ x w)) [[1 2] [3 4]]))
(defn total [xs] (reduce + 0 xs))
(total (list 1 2 3 4 5 6 7 8 9 [10]))
nil"
    ));
}

/// Every reason to interpret, and functions not worth compiling.
#[test]
fn reasons_of_interpretation() {
    let program = "(defn small [x] (* 2 x))
(defn middling [x] (small x))
(defn loud [x] (print (sum x)) (small x))
(defn given [f x] (f x))
(defn chooses [x n] (reshape x (int (sum x)) n))
(defn around [x] (chooses x 1))
(defn maker [x] (fn [y] (+ x y)))
(defn size-of [x] (len x))
(defn power [x n] (reduce * 1 (map (fn [i] x) (range n))))
(middling [1 2])
(middling [1 2 3])
(loud [1 2])
(given (fn [x] (print \"given\") x) [1])
(around [[1 1]])
(around [[1 1 1]])
(around [[1 1]])
(maker [1])
(size-of [1 2])
(while (< i 1) [[i x] [0 (ones '[64])]]
  [(+ i 1) (second (while (< n 50) [[n x] [0 x]] [(+ n 1) (small x)]))])
(map (fn [n] (power (ones '[64]) (+ n 1))) '(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19))
nil";
    insta::assert_snapshot!(explained(Jit::Auto, program));
    insta::assert_snapshot!(explained(Jit::Always, program));
}

/// The reason a compilation stopped is reported once, for all functions and tensors that reach it, and also if the
/// program continues in another text, as in the REPL.
#[test]
fn a_fallback_is_said_once() {
    let (mut interp, world, _) = compiling(Jit::Always);
    let module = Interp::program("repl");
    let mut enter = |name: &str, text: &str| {
        interp.begin();
        let result = interp.run_text(&module, name, text);
        assert!(result.is_ok(), "{text}: {result:?}");
        std::mem::take(&mut *world.warned.borrow_mut())
    };
    let rows = "(defn rows [x]\n  (reshape x\n           (int (max x)) -1))";
    assert_eq!(enter("repl[1]", rows), Vec::<String>::new());
    assert_eq!(enter("repl[2]", "(defn enter [x] (rows (* 1 x)))"), Vec::<String>::new());
    let said = enter("repl[3]", "(enter [[2 1]]) (enter [[2 1]])");
    let line = "warning: enter is interpreted, not compiled: a shape depends on the data, \
                in (reshape x (int (max x)) -1) at repl[1]:2:3\n\n";
    assert_eq!(said, [line]);
    // Again for other types, by another path, beside other entries.
    for (i, again) in [
        "(enter [[2 1]])",
        "(enter [[2 1 2 1]])",
        "(rows [[2 1] [2 1]])",
        "(map rows [[[1 2]] [[1 2]]])",
        "(defn other [x] (enter x)) (other [[1 2 1 2]])",
        "((grad (fn [x] (sum (rows x)))) [[2 1]])",
        "(defn enter [x] (rows (* 3 x))) (enter [[1 1 1]])",
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(enter(&format!("repl[{}]", i + 4), again), Vec::<String>::new(), "{again}");
    }
    // Another span is another reason; a redefinition is new.
    assert_eq!(enter("repl[20]", "(defn more [x] (zeros (list (int (sum x))))) (more [[1 2]])").len(), 1);
    assert_eq!(enter("repl[21]", &format!("{rows} (enter [[1 1 1]])")).len(), 1);
}

/// Interpretation by design is no fallback.
#[test]
fn strict_forbids_fallbacks_alone() {
    let by_design = "(defn loud [x] (print (sum x)) (* 2 x))
(defn given [f x] (f x))
(defn maker [x] (fn [y] (+ x y)))
(defn size-of [x] (len x))
(print (loud [1]) (given (fn [x] (print \"given\") x) [1]) ((maker [1]) [2]) (size-of [1 2]))";
    let (mut interp, world) = strict();
    assert_eq!(run_with(&mut interp, &world, by_design), "1.0\ngiven\n[2.] [1.] [3.] 2");
    // Each time, without an earlier warning.
    let program = "(defn rows [x] (reshape x (int (max x)) -1))\n(defn enter [x] (rows x))\n(enter [[2 1]])";
    for _ in 0..2 {
        let (mut interp, world) = strict();
        let first = run_with(&mut interp, &world, program);
        assert_eq!(run_with(&mut interp, &world, program), first);
        insta::assert_snapshot!("strict_names_place_and_remedy", first);
    }
    let (mut interp, world) = strict();
    let changing = "(defn power [x n] (* x (len (range n))))
(print (map (fn [n] (sum (power [1 1] n))) '(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18)))";
    insta::assert_snapshot!("strict_numbers_that_keep_changing", run_with(&mut interp, &world, changing));
}

/// Type differences in loops and conditionals are reported once, with both types, and forbidden by `--strict`; short or
/// known ones need no such loop.
#[test]
fn types_that_differ_are_said_once() {
    let programs = [
        (
            "(defn f [x] (repeat [i 20] [a x] (concat a x)))",
            "the state of a loop changes its type: from a tensor f32[2] to a tensor f32[4]",
        ),
        (
            "(defn f [x] (repeat [i 20] [[a n] [x (cast 9 :i32)]] [(* a 2) (/ n 2)]))",
            "the state of a loop changes its type at [1]: from a tensor i32[] to a tensor f32[]",
        ),
        (
            "(defn f [x] (repeat [i (argmax x)] [p {:a x}] {:a x :b x}))",
            "the state of a loop changes its type: from a dictionary with keys :a to a dictionary with keys :a :b",
        ),
        (
            "(defn f [x] (while (< (sum x) 99) [x x] (concat x x)))",
            "the state of a loop changes its type: from a tensor f32[2] to a tensor f32[4]",
        ),
        (
            "(defn f [x] (first (scan (fn [s row] [(concat s [1]) nil]) x (ones [20 2]))))",
            "the state of a loop changes its type: from a tensor f32[2] to a tensor f32[3]",
        ),
        (
            "(defn f [x] (repeat [i 20] [k :a] (if (> (sum x) 0) :b :c)))",
            "the branches of a condition that depends on the data differ: the keyword :b and the keyword :c",
        ),
        (
            "(defn f [x] (when (> (sum x) 1) x))",
            "the branches of a condition that depends on the data differ: a tensor f32[2] and nil",
        ),
        (
            "(defn f [x] (case (argmax x) 0 {:a [x 1]} 1 {:a [x nil]} {:a [x 2]}))",
            "the branches of a condition that depends on the data differ at [:a 1]: nil and a number",
        ),
        (
            "(defn f [x] (and (> (sum x) 1) x))",
            "the branches of a condition that depends on the data differ: a tensor f32[2] and a tensor bool[]",
        ),
    ];
    for (program, clause) in programs {
        let (mut interp, world, _) = compiling(Jit::Always);
        let out = run_with(&mut interp, &world, &format!("{program} (f [1 2]) (f [1 3]) (print \"done\")"));
        let said = format!("warning: f is interpreted, not compiled: {clause}");
        assert!(out.starts_with(&said) && out.ends_with("done"), "{program}: {out}");
        assert_eq!(out.matches("warning").count(), 1, "{program}: {out}");
        let (mut interp, world) = strict();
        let out = run_with(&mut interp, &world, &format!("{program} (f [1 2]) (print \"done\")"));
        assert!(out.starts_with(&format!("error: f cannot be compiled: {clause}")), "{program}: {out}");
        assert!(
            out.contains("--strict forbids interpreting it") && out.contains("help: "),
            "{program}: {out}"
        );
    }
    for program in [
        "(defn f [x] (repeat [i 3] [a x] (concat a x)))",
        "(defn f [x n] (repeat [i n] [a x] (concat a x)))",
        "(defn f [x n] (if (> n 2) x (sum x)))",
    ] {
        let (mut interp, world) = strict();
        let call = if program.contains("n]") { "(f [1 2] 3)" } else { "(f [1 2])" };
        let out = run_with(&mut interp, &world, &format!("{program} {call} (print \"done\")"));
        assert_eq!(out, "done", "{program}");
    }
}

/// A `case` gives nil if no key equals, unlike its arms: the whole form is shown as that branch.
#[test]
fn a_case_without_a_default_is_nil_elsewhere() {
    let f = "(defn f [x]\n  (case (argmax x)\n    0 x\n    1 (* 2 x)))";
    let (mut interp, world) = strict();
    insta::assert_snapshot!(run_with(&mut interp, &world, &format!("{f}\n(f [1 2])")));
    let (mut interp, world, _) = compiling(Jit::Always);
    let out = run_with(&mut interp, &world, &format!("{f} (print (f [1 2]) (f [0 0]) (f [1 2 3]))"));
    assert!(out.starts_with("warning: f is interpreted") && out.ends_with("\n[2. 4.] [0. 0.] nil"), "{out}");
}

/// A device with a suboptimal placement.
struct Slow(HostDevice);

struct SlowProgram(Rc<dyn Program>);

impl Backend for Slow {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        Ok(self.0.prepare(unit)?.map(|program| -> Rc<dyn Program> { Rc::new(SlowProgram(program)) }))
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        self.0.upload(tensor)
    }
}

impl Program for SlowProgram {
    fn call(&self, arguments: &mut Vec<Buffer>, results: &mut Vec<Buffer>) -> Result<(), HostError> {
        self.0.call(arguments, results)
    }

    fn placement(&self) -> Placement {
        Placement {
            model: "slow".into(),
            note: Some("not run inline: the compiler failed on that".into()),
            ..Placement::default()
        }
    }
}

/// A suboptimal placement is explained with the reason.
#[test]
fn a_second_choice_is_not_silent() {
    let world = World::default();
    let options = Options { jit: Jit::Always, ..Options::default() };
    let device = Slow(HostDevice { log: Rc::default(), at_once: false });
    let mut interp = Interp::new(Box::new(world.clone()), Some(Box::new(device)), options);
    assert_eq!(run_with(&mut interp, &world, "(defn f [x] (* 2 x)) (print (f [1]))"), "[2.]");
    let explained = explain(&interp.reports());
    assert!(
        explained.contains("  compiled, 1 call\n  not run inline: the compiler failed on that\n"),
        "{explained}"
    );
}

/// A device without a compiler.
struct Uncompiling;

impl Backend for Uncompiling {
    fn prepare(&mut self, _unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        Ok(None)
    }

    fn upload(&mut self, _tensor: &HostTensor) -> Result<Buffer, HostError> {
        unreachable!("nothing runs here")
    }
}

#[test]
fn without_a_compiler() {
    let run = |strict| {
        let world = World::default();
        let options = Options { jit: Jit::Always, strict, ..Options::default() };
        let mut interp = Interp::new(Box::new(world.clone()), Some(Box::new(Uncompiling)), options);
        let out = run_with(&mut interp, &world, "(defn f [x] (* 2 x)) (f [1])\n(print (f [1]))");
        (out, explain(&interp.reports()))
    };
    let (out, explained) = run(false);
    assert_eq!(out, "[2.]");
    assert!(explained.contains("interpreted, 2 calls: there is no compiler"), "{explained}");
    let (out, _) = run(true);
    assert!(out.starts_with("error: f cannot be compiled: there is no compiler\n"), "{out}");
    assert!(out.contains("test.shf:1:22") && out.contains("--strict"), "{out}");
}

/// A call that fails while traced counts as a call.
#[test]
fn calls_that_end_in_an_error() {
    let text = explained(Jit::Always, "(defn f [x] (@ x [3 4 5])) (f [1 2 3]) (f [1 2])");
    let told = "f, test.shf:1:1:\n  compiled, 1 call\n  for x f32[3]\n  1 call for other arguments ended in an error\n";
    assert!(text.ends_with(&format!("\n{told}")), "{text}");
    let text = explained(Jit::Always, "(defn g [x] (@ x [3 4 5])) (g [1 2])");
    assert!(text.ends_with("\ng, test.shf:1:1:\n  1 call ended in an error\n"), "{text}");
}

/// The size of a program counts everywhere: here in the body of a loop with zero steps, in a branch that is not taken.
#[test]
fn large_bodies_are_not_compiled() {
    let steps = "(reduce (fn [s k] (* s k)) s (map (fn [k] 0.5) (range 51000)))";
    for body in [format!("(while (> (sum s) 9) [s s] {steps})"), format!("(if (> (sum s) 9) {steps} s)")] {
        let text = explained(Jit::Always, &format!("(defn f [s] {body}) (f [1 2])"));
        assert!(text.contains("f is interpreted, not compiled: its program would have 5"), "{text}");
        assert!(text.contains(" of them here, in (* s k)"), "{text}");
    }
}
