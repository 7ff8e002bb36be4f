//! The REPL without a terminal: forms in, values out.

use sheaf_tests::{Output, Sandbox};

fn entered(text: &str) -> Output {
    Sandbox::new().sheaf(&["repl", "--no-jit"]).input(text).run()
}

#[test]
fn values_are_shown_with_their_types() {
    let text = "(+ 1 2) (/ 7 2)\n[1 2 3]\n(zeros [4 2])\n'[:x :y]\n\"text\"\n{:a 1}\n(do :key)\n(fn [x] x)\nnil\n(print \"bare\")\ntrue";
    insta::assert_snapshot!(entered(text).silent());
}

#[test]
fn nothing_but_the_command_line_says_repl() {
    assert_eq!(Sandbox::new().sheaf(&["--no-jit"]).input("(+ 1 2)").run().silent(), "3\n");
    assert_eq!(Sandbox::new().sheaf(&["--no-jit"]).input("").run().silent(), "");
}

#[test]
fn definitions_stay_and_are_replaced() {
    let text = "(defn g [x] (* 2 x))\n(defn f [x] (g x))\n(f 4)\n(defn g [x] (+ 1 x))\n(f 4)\n(def a 1)\n(def a 2)\na\n\
                (defmacro m [x] `(+ ~x 1))\n(m 1)\n(defmacro m [x] `(+ ~x 2))\n(m 1)";
    assert_eq!(entered(text).silent(), "8\n5\n2\n2\n3\n");
}

#[test]
fn definitions_may_mention_later_ones() {
    let text = "(defn ping [n] (if (= n 0) :done (pong (- n 1))))\n(defn pong [n] (ping n))\n(ping 3)";
    assert_eq!(entered(text).silent(), ":done\n");
}

#[test]
fn modules_can_be_used() {
    let text = "(use nn)\n(mse-loss [1 2] [1 4])\n(use optim :as o)\n(o/sgd-step [1 2] [1 1] 0.5)";
    assert_eq!(entered(text).silent(), "tensor f32[] = 2.0\ntensor f32[2] = [0.5 1.5]\n");
    let sandbox = Sandbox::new();
    sandbox.write("own.shf", "(defn own [x] (+ x 1))");
    let output =
        sandbox.sheaf(&["repl", "--no-jit"]).input("(use ./own.shf)\n(own 1)\n(use own)\n(own 2)").run();
    assert_eq!(output.silent(), "2\n3\n");
}

#[test]
fn a_package_is_seen_from_its_main_program() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["init", "--name", "here"]).code, Some(0));
    let output = sandbox
        .sheaf(&["repl", "--no-jit"])
        .input("(use model)\n(predict {:slope 2.0 :offset 1.0} 3.0)")
        .run();
    assert_eq!(output.silent(), "7.0\n");
}

#[test]
fn errors_show_their_place_and_the_session_goes_on() {
    insta::assert_snapshot!(entered(
        "(+ 1 2)\n(defn f [x] (@ x [1 2]))\n(f [1 2 3])\n(unknwon 1)\n(+ 2 2)\n"
    ));
    insta::assert_snapshot!(entered("(+ 1 2\n"));
}

#[test]
fn commands_stand_on_lines_of_their_own() {
    let text = ":type (zeros [4 2])\n:type '[1 :a]\n:type {:a 1 :b 2}\n:type 1\n:type 1.5\n:type \"abc\"\n:type sum\n\
                (defn f \"(f x)\n twice x\n (f 2) ;=> 4\" [x]\n  (* 2 x))\n:doc f\n:reset\n:doc f\n(f 1)\n:quit\n(print \"never\")";
    insta::assert_snapshot!(entered(text));
    insta::assert_snapshot!(entered(":help\n:help :time\n:type\n:axis\n:shwo f\n").to_string());
    assert!(entered(":help softmax").silent().starts_with("(softmax "));
}

#[test]
fn an_evaluation_is_timed() {
    let text = entered(":time (+ 1 2)").silent();
    let (value, time) = text.trim_end().split_once('\n').expect("two lines");
    assert_eq!(value, "3");
    assert!(time.ends_with('s') && time.starts_with(|c: char| c.is_ascii_digit()), "{time}");
}

const CALLS: &str = "(defn twofold [x] (* x x))\n(defn extent [x] (sqrt (sum (twofold x))))\n";

#[test]
fn calls_are_traced() {
    let text = ":trace twofold\n(extent [3 4])\n(twofold 3)\n:trace sqrt, sum\n(extent [3 4])\n:trace (extent [1])\n(twofold 1)\n\
                :trace\n(extent [3 4])\n:trace twofld\n:trace twofold\n:reset\n(defn twofold [x] x)\n(twofold 2)\n";
    insta::assert_snapshot!(entered(&format!("{CALLS}{text}")));
}

#[test]
fn time_is_blamed_on_functions() {
    let output =
        entered(&format!("{CALLS}:blame (repeat [i 20] [x [3 4]] (* x (extent x)))\n(extent [3 4])\n"));
    let text = output.silent();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("tensor f32[2] = [inf inf]"), "{text}");
    assert!(lines.next().is_some_and(|line| line.starts_with("Profiler: ")), "{text}");
    let row = |name: &str| {
        let mut rows = text.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>());
        rows.find(|row| row.first() == Some(&name)).unwrap_or_else(|| panic!("no {name}: {text}"))[1]
            .to_owned()
    };
    assert_eq!(["extent", "twofold", "sqrt"].map(row), ["20", "20", "20"], "{text}");
    assert!(text.contains("\nCall tree:\n├── extent (") && text.contains(", 20 calls)\n"), "{text}");
    // Afterwards nothing is observed.
    assert!(text.ends_with(")\ntensor f32[] = 5.0\n"), "{text}");
    insta::assert_snapshot!("blame_of_nothing", entered(":blame\n:blame (f\n:trace (unknwon 1)\n"));
}

#[test]
fn compiled_functions_are_traced_and_blamed() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let text =
        format!("{CALLS}:trace twofold\n(extent [3 4])\n:blame (extent [3 4])\n:trace\n(extent [3 4])\n");
    let output = sandbox.sheaf(&["repl", "--jit", "always"]).input(text).run();
    let traced =
        "├─ [twofold] f32[2] [min:3.00e0 max:4.00e0] (8B)\n└─ ← f32[2] [min:9.00e0 max:1.60e1] (8B)\n";
    assert_eq!((output.code, output.stderr.matches(traced).count()), (Some(0), 2), "{output}");
    assert_eq!(output.stdout.matches("tensor f32[] = 5.0\n").count(), 3, "{output}");
    assert!(output.stdout.contains("├── extent (") || output.stdout.contains("└── extent ("), "{output}");
    assert!(output.stdout.contains(", 1 call, compiled)\n"), "{output}");
}

#[test]
fn files_are_loaded_into_the_session() {
    let sandbox = Sandbox::new();
    sandbox.write("defs.shf", "(defn f [x] (* 3 x))\n(print \"loading\")\n");
    let output = sandbox.sheaf(&["repl", "--no-jit"]).input(":load defs.shf\n(f 2)\n:load none.shf\n").run();
    insta::assert_snapshot!(output);
}

#[test]
fn what_is_compiled_is_kept_apart_from_programs_and_is_compiled_anew_where_a_definition_changes() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let text = "(defn g [x] (* 2 x))\n(defn f [x] (sum (g x)))\n(f [1 2 3])\n(defn g [x] (* 3 x))\n(f [1 2 3])\n\
                (def rate 2)\n(defn h [x] (* rate x))\n(h [1 2])\n(def rate 5)\n(h [1 2])";
    let output = sandbox.sheaf(&["repl", "--jit", "always"]).input(text).run();
    let values =
        "tensor f32[] = 12.0\ntensor f32[] = 18.0\ntensor f32[2] = [2. 4.]\ntensor f32[2] = [ 5. 10.]\n";
    assert_eq!(output.compiled(), values);
    assert!(!sandbox.path("__sheaf__").exists());
}

#[test]
fn definitions_are_listed_and_shown() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "own.shf",
        "; Doubles.\n(defn double \"(double x)\n twice x\" [x] (* 2 x))\n(defn -hidden [x] x)\n",
    );
    let text = "(use ./own.shf)\n(def rate 0.1)\n(def p {:W (zeros [4 2])})\n(defn f [x]\n  ; halves\n  (/ x 2))\n\
                (defmacro m [x] x)\n:list\n:env\n:show f\n:show double\n:show rate\n:show softmax\n:show mse-loss\n:show fo\n:show\n\
                (defn f [x] x)\n:show f\n:reset\n:list\n:env\n";
    insta::assert_snapshot!(sandbox.sheaf(&["repl", "--no-jit"]).input(text).run());
}
