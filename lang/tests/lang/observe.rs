//! Observers and guards: what they are told, and that they change nothing. The device of these tests evaluates graphs on
//! the host, so the recorded graph is what runs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::support::{compiling_at_once, compiling_in, run_with};
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::observe::{Breach, Entered, Guard, Inside, Left, Observer, describe};

/// Writes what it is told, one line for each.
#[derive(Clone, Default)]
struct Notebook {
    lines: Rc<RefCell<Vec<String>>>,
    looks_inside: bool,
    time: Rc<Cell<u64>>,
}

impl Observer for Notebook {
    fn now(&self) -> u64 {
        self.time.set(self.time.get() + 1000);
        self.time.get()
    }

    fn looks_inside(&self) -> bool {
        self.looks_inside
    }

    fn enter(&mut self, call: &Entered<'_>) {
        let args: Vec<String> = call.args.iter().map(describe).collect();
        self.note(call.depth, &format!("{:?} {} {}", call.kind, call.name, args.join(", ")));
    }

    fn inside(&mut self, inside: &Inside, depth: usize) {
        for row in &inside.rows {
            self.note(depth + row.depth, &row.text(false));
        }
    }

    fn leave(&mut self, call: &Left<'_>) {
        let result = call.result.map_or_else(|| "failed".into(), describe);
        let compiled = if call.compiled { ", compiled" } else { "" };
        self.note(call.depth, &format!("{} = {result}{compiled}", call.name));
    }
}

impl Notebook {
    fn note(&self, depth: usize, text: &str) {
        self.lines.borrow_mut().push(format!("{}{}", "  ".repeat(depth), text.trim_end()));
    }
}

/// The notes on a program's calls, interpreted or on a device.
fn notes(program: &str, compiles: bool) -> String {
    let (mut interp, world, _) = compiling_at_once(if compiles { Jit::Always } else { Jit::Never });
    let notebook = Notebook { looks_inside: true, ..Notebook::default() };
    interp.observe(Box::new(notebook.clone()), Vec::new());
    let out = run_with(&mut interp, &world, program);
    let mut lines = notebook.lines.borrow().clone();
    lines.push(format!("printed {out}"));
    lines.join("\n")
}

const ROOTS: &str = "
(defn root [x] (sqrt (- x 1.0)))
(defn loss [p x]
  (let [h (* x (get p :w))
        r (root (+ h 1.0))]
    (sum r)))
";

/// Calls of the program's own functions and of the language, not those within the library.
#[test]
fn calls_are_told_as_they_are_nested() {
    let program = "(defn f [x k] (first (map (fn [y] (softmax (* k y))) (list x x)))) (print (f [1 1] 2))";
    insta::assert_snapshot!(notes(program, false));
    insta::assert_snapshot!(notes(program, true));
}

#[test]
fn gradients_are_told_after_the_calls() {
    let program =
        format!("{ROOTS}(defn step [p x] (get ((grad loss) p x) :w)) (print (step {{:w [1 2]}} [1 4]))");
    insta::assert_snapshot!(notes(&program, false));
    insta::assert_snapshot!(notes(&program, true));
}

#[test]
fn loops_in_programs_are_told_once() {
    let program = "(defn f [x] (repeat [i 40] [a x] (tanh (+ a i)))) (print (f [0 1]))";
    insta::assert_snapshot!(notes(program, true));
}

/// The breach of a program under guards; `None` if none was broken.
fn breach(program: &str, guards: &[&str], jit: Jit) -> (Option<Breach>, String) {
    let (mut interp, world, _) = compiling_at_once(jit);
    breach_in(&mut interp, |interp| run_with(interp, &world, program), guards)
}

fn breach_in(
    interp: &mut Interp,
    run: impl FnOnce(&mut Interp) -> String,
    guards: &[&str],
) -> (Option<Breach>, String) {
    let guards: Vec<Guard> = guards.iter().map(|guard| guard.parse().expect("a guard")).collect();
    interp.observe(Box::new(Notebook::default()), guards);
    run(interp);
    let breach = interp.breach();
    let text = breach.as_ref().map_or_else(String::new, |breach| breach.text(&interp.sources, false));
    (breach, text)
}

/// The broken value and its line, interpreted and compiled alike; empty if no guard was broken.
fn broken(program: &str, guards: &[&str]) -> String {
    let found = [Jit::Never, Jit::Always].map(|jit| {
        let (breach, text) = breach(program, guards, jit);
        let line = text.lines().find(|line| line.trim_start().starts_with("┌─")).unwrap_or_default();
        let place = line.trim_start().trim_start_matches("┌─ ").to_owned();
        breach.map_or_else(String::new, |b| format!("{}: {} at {place}", b.function, b.value))
    });
    assert_eq!(found[0], found[1], "{program}");
    found[0].clone()
}

#[test]
fn a_guard_names_the_call_and_the_line() {
    let run = |code: &str| broken(&format!("{ROOTS}{code}"), &["no-nan"]);
    assert_eq!(run("(print (root [2 3]))"), "");
    assert_eq!(run("(print (root [2 0.5]))"), "sqrt: result of sqrt at test.shf:2:16");
    assert_eq!(run("(print (loss {:w [1 2]} [1 -4]))"), "sqrt: result of sqrt at test.shf:2:16");
    let gradient = |w: &str| run(&format!("(print ((value-and-grad loss) {{:w {w}}} [1 1]))"));
    assert_eq!(gradient("[1 2]"), "");
    assert_eq!(gradient("[1 0]"), "sqrt (gradient): gradient of argument 0 of sqrt at test.shf:2:16");
    assert_eq!(gradient("[1 -1]"), "sqrt: result of sqrt at test.shf:2:16");
}

#[test]
fn guards_look_at_arguments_results_and_bindings() {
    assert_eq!(
        broken("(defn f [x] (* x 0)) (print (f (/ [1 1] [1 0])))", &["f:no-nan"]),
        "f: argument 0 of f at test.shf:1:29"
    );
    let attention = "(defn f [x] (let [attention (* x 10) y (- attention 20)] (sum y))) (print (f [1 5]))";
    assert_eq!(broken(attention, &["attention:range:0:40"]), "attention: binding attention at test.shf:1:29");
    assert_eq!(broken(attention, &["attention:range:0:50"]), "");
    assert_eq!(broken(attention, &["range=-20:50"]), "");
    assert_eq!(broken(attention, &["range=-20:40"]), "*: result of * at test.shf:1:29");
    assert_eq!(broken(attention, &["sum:range=-20:19"]), "sum: result of sum at test.shf:1:58");
    let infinite = "(defn f [x] (sum (where (> x 0) (log x) 0.0))) (print (f [1 0]))";
    assert_eq!(broken(infinite, &["no-nan"]), "log: result of log at test.shf:1:33");
    assert_eq!(broken(infinite, &["no-nan:allow-inf"]), "");
}

#[test]
fn a_breach_shows_the_last_calls() {
    let program = format!("{ROOTS}(print ((value-and-grad loss) {{:w [1 0]}} [1 1]))");
    insta::assert_snapshot!(breach(&program, &["no-nan"], Jit::Never).1);
    insta::assert_snapshot!(breach(&program, &["no-nan"], Jit::Always).1);
}

/// In a loop of a program the iteration is found on the host.
#[test]
fn a_loop_in_a_program_breaks_in_an_iteration() {
    let program = "(defn f [x] (repeat [i 40] [a x] (* a a))) (print (f [1.0 1.1]))";
    let (found, text) = breach(program, &["no-nan"], Jit::Always);
    assert_eq!(found.expect("a breach").iteration, Some(9), "{text}");
    let (found, _) = breach(program, &["no-nan"], Jit::Never);
    assert_eq!(found.expect("a breach").function, "*");
}

/// Programs print the same under any observer, and the same functions are compiled.
#[test]
fn observers_change_nothing() {
    let programs = [
        "(defn f [x] (+ (* x x) 1)) (print (f [1 2 3]))",
        "(defn f [x n] (repeat [i n] [a x] (tanh (+ a i)))) (print (f [0 1] 3) (f [0 1] 40))",
        "(defn f [x] (while (< (sum x) 100) [x x] (* x 2))) (print (f [1 2]))",
        "(defn f [x n] (if (> n 2) (exp x) (log (+ x 5.0)))) (print (f [1 2] 1) (f [1 2] 3))",
        "(defn f [x] ((vmap (fn [y] (if (> (sum y) 0) (sqrt (sum y)) 0.0))) x)) (print (f [[1 2] [-3 1]]))",
        "(defn f [p x] (sum (** (- (@ x (get p :w)) 1) 2))) (defn g [p x] ((value-and-grad f) p x)) \
         (print (g {:w [1 2]} [[1 2] [3 4]]))",
        "(defn f [xs] (scan (fn [s x] [(+ s x) (* s x)]) 0.0 xs)) (print (f (arange 0.0 30.0)))",
        "(defn f [xs] (sum (second (scan (fn [s x] [(+ s x) (* s x)]) 0.0 xs)))) (print ((grad f) (linspace 0 1 30)))",
        "(defn cube [x] (* x x x)) (defgrad cube [x] [y] [g] (* g 3 x x)) (print ((grad (fn [x] (sum (cube x)))) [1 2]))",
        "(defn f [x] (sum (map (fn [r] (max r)) x))) (print (f (reshape (arange 0.0 60.0) 20 3)))",
        "(defn f [x] ((checkpoint (fn [y] (exp (* y y)))) x)) (print ((grad (fn [x] (sum (f x)))) [0.5 1]))",
        "(defn f [x y] (and (> (sum x) 1) (< (sum y) 9))) (print (f [1 2] [3 4]))",
        "(defn f [x n] (list (+ n 1) (* n 2.5) (* x n) {:k (sum x)})) (print (f [1 2] 7))",
        "(defn f [x i] (get x i)) (print (f [1 2 3] 2)) (print (f [1 2 3] 5))",
        "(defn f [x] (assert (> (sum x) 0) \"positive, not {}\" (sum x)) (* x 2)) (print (f [1 2])) (print (f [-1 -2]))",
        "(defmodel model [x] (layer :h relu) (layer :o)) \
         (print (model [[1 2]] {:h {:W [[1 2] [3 4]] :b [0 1]} :o {:W [[1] [1]] :b [0]}}))",
        "(print ((jacobian (fn [x] (* x x))) [1 2]) (hessian-of [1 2]))",
    ];
    for program in programs {
        for jit in [Jit::Never, Jit::Auto, Jit::Always] {
            let run = |observe: &dyn Fn(&mut Interp)| {
                let (mut interp, world, log) = compiling_in(jit, &[]);
                observe(&mut interp);
                let out = run_with(&mut interp, &world, program);
                let units: Vec<String> =
                    log.borrow().units.iter().map(|unit| unit.function.clone()).collect();
                let calls: Vec<(String, u64, u64)> = interp
                    .reports()
                    .iter()
                    .map(|r| {
                        let sum = |of: fn(&sheaf_lang::eval::Specialisation) -> u64| {
                            r.specialisations.iter().map(of).sum()
                        };
                        (r.name(), sum(|s| s.compiled_calls), sum(|s| s.interpreted_calls))
                    })
                    .collect();
                (out, units, calls)
            };
            let plain = run(&|_| {});
            let guards = |texts: &[&str]| {
                texts.iter().map(|text| text.parse().expect("a guard")).collect::<Vec<Guard>>()
            };
            for (looks_inside, texts) in
                [(false, &[][..]), (true, &[]), (false, &["no-nan", "range=-1e30:1e30"]), (true, &["no-nan"])]
            {
                let notebook = Notebook { looks_inside, ..Notebook::default() };
                let observed = run(&|interp| interp.observe(Box::new(notebook.clone()), guards(texts)));
                assert_eq!(plain, observed, "{program} {jit:?} {looks_inside} {texts:?}");
            }
        }
    }
}

/// A function that was compiled plainly has its twin once an observer comes, and its own program again after that.
#[test]
fn observers_come_and_go() {
    let (mut interp, _, log) = compiling_at_once(Jit::Always);
    let module = Interp::program("test.shf");
    let run = |interp: &mut Interp, text: &str| interp.run_text(&module, "test", text).expect("a value");
    run(&mut interp, "(defn f [x] (sqrt x)) (f [1 2])");
    interp.observe(Box::new(Notebook { looks_inside: true, ..Notebook::default() }), Vec::new());
    run(&mut interp, "(f [3 4])");
    run(&mut interp, "(f [5 6])");
    interp.unobserve();
    run(&mut interp, "(f [7 8])");
    let units: Vec<&'static str> = log.borrow().units.iter().map(|unit| unit.transform).collect();
    assert_eq!(units, ["", "traced"]);
    assert_eq!(interp.reports()[0].specialisations[0].compiled_calls, 4);
}

/// Errors leave no call open.
#[test]
fn failing_calls_end() {
    let mut interp = Interp::new(Box::new(crate::support::World::default()), None, Options::default());
    let notebook = Notebook::default();
    interp.observe(Box::new(notebook.clone()), vec!["no-nan".parse().expect("a guard")]);
    let module = Interp::program("test.shf");
    for text in
        ["(defn f [x] (g x)) (defn g [x] (@ x [1 2 3])) (f [1 2])", "(f [1 2])", "(sqrt -1.0)", "(f [1 2 3])"]
    {
        let _ = interp.run_text(&module, "test", text);
        notebook.lines.borrow_mut().push(String::new());
    }
    insta::assert_snapshot!(notebook.lines.borrow().join("\n"));
}
