//! The REPL on a terminal: prompt, multi-line entries, completion, history, Ctrl-C and Ctrl-D.

use std::fs;

use rexpect::process::WaitStatus;
use rexpect::session::{PtySession, spawn_command};
use sheaf_tests::Sandbox;

/// Timeout for expected output, in milliseconds.
const TIMEOUT: u64 = 60_000;

const PROMPT: &str = "sheaf> ";

fn session(sandbox: &Sandbox) -> PtySession {
    session_with(sandbox, &["--no-jit"])
}

fn session_with(sandbox: &Sandbox, arguments: &[&str]) -> PtySession {
    let mut command = sandbox.sheaf(arguments).env("TERM", "xterm").command();
    // The terminal instead of the empty input of other runs.
    command.stdin(std::process::Stdio::inherit());
    let mut session = spawn_command(command, Some(TIMEOUT)).expect("a terminal");
    session.exp_string("Ctrl-D ends.").expect("a greeting");
    session.exp_string(PROMPT).expect("a prompt");
    session
}

/// Types a line, and waits for the expected output and the next prompt.
fn enter(session: &mut PtySession, line: &str, wanted: &str) {
    session.send_line(line).expect("a line");
    session.exp_string(wanted).unwrap_or_else(|e| panic!("{wanted} after {line}: {e}"));
    session.exp_string(PROMPT).unwrap_or_else(|e| panic!("a prompt after {line}: {e}"));
}

fn end(mut session: PtySession) {
    session.send_control('d').expect("Ctrl-D");
    session.exp_eof().expect("the end");
    let status = session.process().wait().expect("a status");
    assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
}

#[test]
fn entries_are_evaluated_and_go_on_until_they_are_closed() {
    let sandbox = Sandbox::new();
    let mut session = session(&sandbox);
    enter(&mut session, "(+ 20 22)", "42\r\n");
    session.send_line("(defn f [x]").expect("a line");
    session.send_line("  (* 2 x").expect("a line");
    enter(&mut session, ")) (+ 1 1000)", "1001\r\n");
    enter(&mut session, "(f 21)", "42\r\n");
    end(session);
}

#[test]
fn names_are_completed() {
    let sandbox = Sandbox::new();
    let mut session = session(&sandbox);
    enter(&mut session, "(defn my-own-name [x] (+ x 41)) (+ 1 1000)", "1001\r\n");
    enter(&mut session, "(my-ow\t 1)", "42\r\n");
    enter(&mut session, "(use opt\t) (fn? sgd-step)", "true\r\n");
    enter(&mut session, ":ty\t 1.5", "weak float\r\n");
    end(session);
}

#[test]
fn ctrl_c_stops_an_evaluation_and_keeps_the_session() {
    let sandbox = Sandbox::new();
    let mut session = session(&sandbox);
    enter(&mut session, "(def kept 42) (+ 1 1000)", "1001\r\n");
    session.send_line("(do (print \"begun\") (while true [x 0] (+ x 1)))").expect("a line");
    session.exp_string("begun\r\n").expect("a sign");
    session.send_control('c').expect("Ctrl-C");
    session.exp_string("interrupted").expect("a message");
    session.exp_string(PROMPT).expect("a prompt");
    enter(&mut session, "kept", "42\r\n");
    // The unfinished input is discarded.
    session.send("(unfinished").expect("keys");
    session.flush().expect("keys");
    session.exp_string("(unfinished").expect("an echo");
    session.send_control('c').expect("Ctrl-C");
    session.exp_string(PROMPT).expect("a prompt");
    enter(&mut session, "(+ kept 1)", "43\r\n");
    end(session);
}

#[test]
fn ctrl_c_ends_a_compilation_and_the_next_one_has_a_compiler() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let steps = "x (+ x y) x (* x y) ".repeat(3000);
    sandbox.write("long.shf", format!("(defn long [x y] (let [{steps}] x))\n(defn short [x] (* 2 x))\n"));
    let mut session = session_with(&sandbox, &["--jit", "always"]);
    enter(&mut session, ":load long.shf", "\n");
    session.send_line("(long [1 2] [3 4])").expect("a line");
    // The elapsed time.
    session.exp_regex("compiling long [0-9]+s").expect("a spinner");
    session.send_control('c').expect("Ctrl-C");
    session.exp_string("interrupted").expect("a message");
    session.exp_string(PROMPT).expect("a prompt");
    enter(&mut session, "(short [20 21])", "[40. 42.]");
    end(session);
}

#[test]
fn entries_come_back_in_the_next_session() {
    let sandbox = Sandbox::new();
    let mut first = session(&sandbox);
    enter(&mut first, "(+ 40 2)", "42\r\n");
    end(first);
    let history = fs::read_to_string(sandbox.home().join("data/repl-history")).expect("a history");
    assert!(history.contains("(+ 40 2)"), "{history}");
    let mut second = session(&sandbox);
    // Up arrow.
    second.send("\u{1b}[A").expect("keys");
    second.flush().expect("keys");
    second.exp_string("(+ 40 2)").expect("the entry");
    enter(&mut second, "", "42\r\n");
    end(second);
}

/// A build on a terminal shows a progress bar, not one line per function.
#[test]
fn a_build_shows_a_bar() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let functions: String =
        (1..=3).map(|n| format!("(defn f{n} [(x f32 [{n}])] (sum (* x {n}.5)))\n")).collect();
    sandbox.write("many.shf", functions);
    let mut command = sandbox.sheaf(&["build", "many.shf", "--jobs", "1"]).env("TERM", "xterm").command();
    command.stdin(std::process::Stdio::inherit());
    let mut session = spawn_command(command, Some(TIMEOUT)).expect("a terminal");
    session.exp_string("compiling 0/3").expect("a bar");
    session.exp_string("f1, f2, f3").expect("what is left");
    session.exp_string("3 compiled, 0 there before").expect("the end");
    let status = session.process().wait().expect("a status");
    assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
}

/// A program with a bar that takes a while.
const SLOW: &str =
    "(defn work [i] (reduce (fn [a k] (+ a (sum (random-normal (random-key k) [40 40])))) 0 (range 60)))
(repeat [i (progress \"steps\" 12)] [x 0]
  (do (work i) (log-metric \"loss\" (/ 1.0 (+ 1 i))) (when (= i 5) (print \"half of it\")) x))
(print \"all of it\")
";

/// A bar shows its rate, the time left and the latest metric; what is printed stands above it.
#[test]
fn progress_is_a_bar() {
    let sandbox = Sandbox::new();
    sandbox.write("slow.shf", SLOW);
    let mut command = sandbox.sheaf(&["slow.shf", "--no-jit"]).env("TERM", "xterm").command();
    command.stdin(std::process::Stdio::inherit());
    let mut session = spawn_command(command, Some(TIMEOUT)).expect("a terminal");
    // The blocks are read byte by byte.
    let bar = r"steps [^ -~]+ +\d+/12 [\d.]+(/s| s each) ETA \d+[\d.]* (s|min \d+ s) loss [\d.]+ ";
    session.exp_regex(bar).expect("a bar");
    session.exp_string("half of it\r\n").expect("a line");
    session.exp_regex(r"steps [^ -~]+ 12/12 [\d.]+(/s| s each) in \d[\d.]* (s|min \d+ s)").expect("the end");
    session.exp_string("all of it\r\n").expect("a line");
    session.exp_eof().expect("the end");
    // Elsewhere there is none: the run is short.
    let piped = sandbox.run(&["slow.shf", "--no-jit"]);
    assert_eq!(piped.silent(), "half of it\nall of it\n");
}

/// A traced and guarded run on a terminal has the lines of one elsewhere.
#[test]
fn traces_and_breaches_are_the_same_on_a_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("root.shf", "(defn root [x] (sqrt x))\n(print (root [4.0]))\n(root [-1.0])\n");
    let arguments = ["root.shf", "--no-jit", "--trace", "--guard", "no-nan"];
    let mut command = sandbox.sheaf(&arguments).env("TERM", "xterm").command();
    command.stdin(std::process::Stdio::inherit());
    let mut session = spawn_command(command, Some(TIMEOUT)).expect("a terminal");
    for line in [
        " [root] f32[1] [min:4.00e0 max:4.00e0] (4B)\r\n",
        " [sqrt] f32[1] [min:4.00e0 max:4.00e0] (4B)\r\n",
        "[2.]\r\n",
        "/!\\ Guard Breached: NoNan\r\nFunction: sqrt\r\n",
        "[NaN DETECTED]\r\nReplay: sheaf replay guard-sqrt-",
    ] {
        session.exp_string(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    session.exp_eof().expect("the end");
    let status = session.process().wait().expect("a status");
    assert!(matches!(status, WaitStatus::Exited(_, 3)), "{status:?}");
}
