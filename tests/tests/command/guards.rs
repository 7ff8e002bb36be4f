//! `--guard` and `sheaf replay`: a broken value is located, interpreted and compiled.

use std::fs;

use sheaf_tests::{Output, Sandbox, bigrams, nightly, smaller_gpt};

use super::trace::XOR;

/// The GPT of the example, small, outside of `make nightly` a model of bigrams; and one step of training.
fn model(sandbox: &Sandbox) -> String {
    let small = if nightly() {
        smaller_gpt(8, 16, 1).replace(":n-heads 4", ":n-heads 2")
    } else {
        bigrams().to_owned()
    };
    sandbox.write(
        "train.shf",
        "(use ./model.shf)\n(def state (init-state (init-params (random-key 0) 11 config)))\n\
         (def ids (random-randint (random-key 1) [2 8] 0 11))\n(print (second (train-step state ids ids 0.001)))\n",
    );
    small
}

/// A line of the model, the line with the fault, and the call that breaks.
const FAULTS: [(&str, &str, &str, &str); 3] = [
    (
        "forward",
        "(-> x (linear W1 b1) gelu (linear W2 b2))",
        "(-> x (linear W1 b1) gelu (linear W2 b2) (- 9) log)",
        "log",
    ),
    (
        "backward",
        "(cross-entropy-loss (forward ids p config) targets))",
        "(+ (* 0.0 (sum (sqrt (* 0.0 (get p :positions))))) (cross-entropy-loss (forward ids p config) targets)))",
        "sqrt (gradient)",
    ),
    (
        "optimiser",
        "(list (adam-step p grads m v t lr) value)",
        "(list (adam-step p (tree-map (fn [g] (/ g (sum (* 0.0 g)))) grads) m v t lr) value)",
        "/",
    ),
];

/// Checks the block of a breach, and what a replay of it finds.
fn located(sandbox: &Sandbox, output: &Output, function: &str, line: usize) {
    assert_eq!(output.code, Some(3), "{output}");
    let block = |text: &str| {
        assert!(text.contains("/!\\ Guard Breached: NoNan"), "{text}");
        assert!(text.contains(&format!("\nFunction: {function}\n")), "{function}: {text}");
        assert!(text.contains(&format!("┌─ model.shf:{line}:")), "line {line}: {text}");
        assert!(text.contains("DETECTED]\n"), "{text}");
    };
    block(&output.stderr);
    let name = output.stderr.lines().find_map(|line| line.strip_prefix("Replay: sheaf replay "));
    let again = sandbox.run(&["replay", name.expect("a capsule")]);
    assert_eq!(again.code, Some(3), "{again}");
    block(&again.stderr);
}

/// Compiled, outside of `make nightly`, the fault in the gradient alone: each is a program of the whole step.
#[test]
fn a_nan_in_a_model_is_located_to_its_line() {
    let compiling = Sandbox::with_shared_store();
    for (name, right, wrong, function) in FAULTS {
        for (sandbox, jit) in [
            (Some(Sandbox::new()), "--no-jit"),
            (compiling.as_ref().map(|_| Sandbox::with_shared_store().expect("a compiler")), "--jit=always"),
        ] {
            let Some(sandbox) = sandbox else { continue };
            if jit == "--jit=always" && name != "backward" && !nightly() {
                continue;
            }
            let model = model(&sandbox);
            let planted = model.replace(right, wrong);
            assert_ne!(planted, model, "{name}");
            let line = planted.lines().position(|line| line.contains(wrong)).expect("the line") + 1;
            sandbox.write("model.shf", &planted);
            let output = sandbox.run(&["train.shf", "--guard", "no-nan", jit, "--explain"]);
            located(&sandbox, &output, function, line);
            // Called by way of a program, once.
            let compiled = output.stderr.contains("train-step, model.shf:")
                && output.stderr.contains("  compiled, 1 call\n");
            assert_eq!(compiled, jit == "--jit=always", "{output}");
        }
    }
}

/// The lines of `--explain` on the calls of a function.
fn calls<'a>(output: &'a Output, function: &str) -> &'a str {
    let mut lines = output.stderr.lines().skip_while(|line| !line.starts_with(&format!("{function}, ")));
    lines.nth(1).unwrap_or_else(|| panic!("nothing on {function}: {output}"))
}

/// Functions run compiled as often as without observers, and give the same.
#[test]
#[ignore = "long: make nightly runs it"]
fn observed_functions_stay_compiled() {
    let Some(sandbox) = Sandbox::with_shared_store() else { return };
    sandbox.write("model.shf", model(&sandbox));
    // In the place of the single step.
    sandbox.write(
        "train.shf",
        "(use ./model.shf)\n(def state (init-state (init-params (random-key 0) 11 config)))\n\
         (def ids (random-randint (random-key 1) [2 8] 0 11))\n\
         (repeat [i 3] [s state]\n  (let [[s loss] (train-step s ids ids 0.001)]\n    (print loss)\n    s))\n",
    );
    let plain = sandbox.run(&["train.shf", "--jit", "always", "--explain"]);
    assert_eq!((plain.code, calls(&plain, "train-step")), (Some(0), "  compiled, 3 calls"), "{plain}");
    // Each has a program of its own.
    let all = ["--guard", "no-nan", "--trace", "--blame", "--mem-profile"];
    let others = [&["--guard", "no-nan"][..], &["--trace", "train-step,forward"], &["--blame"]];
    for observed in [&all[..]].into_iter().chain(others) {
        let arguments = [&["train.shf", "--jit", "always", "--explain"][..], observed].concat();
        let output = sandbox.run(&arguments);
        assert_eq!((output.code, &output.stdout), (Some(0), &plain.stdout), "{observed:?}: {output}");
        assert_eq!(calls(&output, "train-step"), "  compiled, 3 calls", "{observed:?}: {output}");
        if observed.contains(&"--trace") {
            let traced = output.stderr.lines().filter(|line| line.starts_with("└─ ← list(2)"));
            assert_eq!(traced.filter(|line| line.ends_with(", compiled)")).count(), 3, "{output}");
            assert_eq!(output.stderr.matches("─ [forward] ").count(), 3, "{output}");
        }
        if observed.contains(&"--blame") {
            let mut rows = output.stderr.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let row = rows.find(|row| row.first() == Some(&"train-step")).expect("a row");
            assert_eq!((row[1], row.last()), ("3", Some(&"compiled")), "{output}");
        }
    }
}

#[test]
fn guards_that_hold_change_nothing() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("xor.shf", XOR);
    for jit in [&["--no-jit"][..], &["--jit", "always"]] {
        let plain = sandbox.run(&[&["xor.shf"][..], jit].concat());
        let guards = ["--guard", "no-nan", "--guard", "loss:range:0:20", "--guard", "range=-100:100"];
        let guarded = sandbox.run(&[&["xor.shf"][..], jit, &guards].concat());
        assert_eq!((guarded.code, &guarded.stdout), (Some(0), &plain.stdout), "{guarded}");
    }
}

/// The block, the exit code, and what is said of guards that are none.
#[test]
fn the_block_of_a_breach() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "root.shf",
        "(defn root [x] (sqrt (- x 1.0)))\n(defn loss [p x]\n  (let [h (* x (get p :w))]\n    (sum (root (+ h 1.0)))))\n\
         (print ((value-and-grad loss) {:w [1 2]} [1 1]))\n(print ((value-and-grad loss) {:w [1 0]} [1 1]))\n",
    );
    insta::assert_snapshot!("gradient", sandbox.run(&["root.shf", "--guard", "no-nan", "--no-jit"]));
    insta::assert_snapshot!("binding", sandbox.run(&["root.shf", "--guard", "h:range:0:1.5", "--no-jit"]));
    assert_eq!(sandbox.run(&["root.shf", "--guard", "loss:range=0:20", "--no-jit"]).code, Some(0));
    insta::assert_snapshot!("no_guard", sandbox.run(&["root.shf", "--guard", "nan"]));
}

/// A capsule that is cut, changed or no capsule is refused.
#[test]
fn damaged_capsules_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("log.shf", "(defn f [x] (log x))\n(f [1 -1])\n");
    let output = sandbox.run(&["log.shf", "--guard", "no-nan", "--no-jit"]);
    let name = output.stderr.lines().find_map(|line| line.strip_prefix("Replay: sheaf replay "));
    let whole = fs::read(sandbox.path(name.expect("a capsule"))).expect("a capsule");
    for length in [0, 5, 14, 60, 79, 90, whole.len() - 1] {
        sandbox.write("cut.capsule", &whole[..length]);
        let refused = sandbox.run(&["replay", "cut.capsule"]);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains("is no capsule that can be replayed"), "{refused}");
    }
    let mut changed = whole;
    let last = changed.len() - 1;
    changed[last] ^= 1;
    sandbox.write("changed.capsule", &changed);
    insta::assert_snapshot!("changed_capsule", sandbox.run(&["replay", "changed.capsule"]));
    insta::assert_snapshot!("no_capsule", sandbox.run(&["replay", "log.shf"]));
}

#[test]
fn guards_in_the_program_stop_it_with_the_exit_code_of_guards() {
    let sandbox = Sandbox::with_compiler();
    let jit = if sandbox.is_some() { "--jit=always" } else { "--no-jit" };
    let sandbox = sandbox.unwrap_or_default();
    sandbox.write(
        "own.shf",
        "(defn root [x] (guard :no-nan (sqrt (guard :range [-9 9] x))))\n\
         (defn f [x] (sum (* 2 (root x))))\n\
         (print (f [1 4]))\n(print ((grad f) [1 4]))\n(print (f [1 -4]))\n",
    );
    for way in ["--no-jit", jit] {
        let output = sandbox.run(&["run", way, "own.shf"]);
        assert_eq!(output.code, Some(3), "{way}: {output}");
        assert_eq!(output.stdout, "6.0\n[1.  0.5]\n", "{way}");
        for expected in [
            "error: guard :no-nan: 1 of 2 elements are NaN or infinite",
            "own.shf:1:16",
            "root was called here",
            "f was called here",
        ] {
            assert!(output.stderr.contains(expected), "{way}: {expected}: {output}");
        }
    }
}

#[test]
fn names_that_the_program_has_not_are_told() {
    let sandbox = Sandbox::new();
    sandbox.write("m.shf", "(defn loss [x] (exp x))\n(print (loss 0.0))\n");
    let run = sandbox.run(&["run", "--no-jit", "m.shf", "--guard", "los:no-nan", "--trace", "loss,nothere"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "1.0\n"), "{run}");
    let told = |text: &str| run.stderr.contains(text);
    assert!(told("--guard watched nothing called los") && told("did you mean loss?"), "{run}");
    assert!(told("--trace watched nothing called nothere") && !told("did you mean other?"), "{run}");
}
