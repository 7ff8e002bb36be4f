//! Reports on compilation: `--explain`, `--strict`, and the manifest.

use sheaf_tests::Sandbox;

use crate::{FOURTEEN, RUN_SQUARES, SQUARES, manifest};

/// Two sizes, two numbers of heads, any scale; an effect; a function that cannot be compiled.
const HEADS: &str = "(defn heads [x n-heads scale]
  (* scale (reshape x n-heads -1)))
(defn report [x] (print (sum x)))
(report (heads (ones '[8 64]) 2 0.5))
(report (heads (ones '[12 64]) 2 0.25))
(report (heads (ones '[12 64]) 4 0.5))
(report (heads (ones '[12 64]) 4 0.125))
";

/// A shape that depends on data.
const ROWS: &str = "(defn rows [x] (reshape x (int (max x)) -1))
(print (rows [[2 1]]))
(print (rows [[2 1] [2 1]]))
";

/// A program compiled by an earlier run is used, however little work there is now.
#[test]
fn programs_that_are_there_are_used() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("squares.shf", SQUARES);
    let explained = |arguments: &[&str]| {
        let output = sandbox.run(&[&["squares.shf", "--explain"], arguments].concat());
        assert_eq!(output.stdout, FOURTEEN, "{output}");
        output.stderr
    };
    assert!(explained(&[]).contains("too little work to be worth compiling: sum-of-squares"));
    sandbox.run(&["squares.shf", "--jit", "always"]).compiled();
    let again = explained(&[]);
    assert!(again.contains("compiled, 1 call") && !again.contains("compiling"), "{again}");
    assert!(explained(&["--recompile"]).contains("too little work to be worth compiling: sum-of-squares"));
    // The cached program has another source.
    sandbox.write("squares.shf", SQUARES.replace("(* x x)", "(abs (* x x))"));
    assert!(explained(&[]).contains("too little work to be worth compiling: sum-of-squares"));
}

#[test]
fn explained_for_people_and_for_tools() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("heads.shf", HEADS);
    let run = ["heads.shf", "--jit", "always", "--explain"];
    insta::assert_snapshot!(sandbox.run(&run));

    // The numbers that the body needed are in the manifest, and no others.
    let mut statics: Vec<String> =
        manifest(&sandbox.path("")).iter().map(|entry| entry["statics"].to_string()).collect();
    statics.sort();
    let fixed = |n: &str| format!(r#"[{{"path":"n-heads","value":"{n}"}}]"#);
    assert_eq!(statics, [fixed("2"), fixed("2"), fixed("4")]);

    // Found, not compiled: one line of JSON after the program's own output.
    let output = sandbox.run(&[&run[..], &["--json"]].concat());
    let text = output.silent();
    let (printed, line) = text.trim_end().rsplit_once('\n').expect("lines");
    assert_eq!(printed, "256.0\n192.0\n384.0\n96.0");
    let told: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let functions = told["functions"].as_array().expect("functions");
    let names: Vec<&str> = functions.iter().map(|f| f["function"].as_str().expect("a name")).collect();
    assert_eq!(names, ["heads", "report"]);
    let third = &functions[0]["specialisations"][2];
    assert_eq!((&third["outcome"], &third["compiled-calls"]), (&"compiled".into(), &2.into()));
    assert_eq!(third["model"], "local-sync");
    let new = serde_json::json!({ "against": 1, "differences": [
        { "path": "n-heads", "now": { "number": "4" }, "before": { "number": "2" } }] });
    assert_eq!(third["new"], new);
    assert_eq!(functions[1]["interpreted"]["fallback"], false);
}

/// An error does not affect the report on earlier calls; without calls there is no report.
#[test]
fn a_run_that_fails_is_explained_as_far_as_it_came() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("ends.shf", format!("{SQUARES}(print (sum-of-squares {{:a [1 2]}}))\n"));
    insta::assert_snapshot!(
        "calls_before_an_error",
        sandbox.run(&["ends.shf", "--jit", "always", "--explain"])
    );
    sandbox.write("inside.shf", "(defn f [x] (@ x [3 4 5]))\n(print (f [1 2]))\n");
    insta::assert_snapshot!("a_call_that_is_an_error", sandbox.run(&["inside.shf", "--explain"]));
    sandbox.write("first.shf", "(defn f [x] (* 2 x))\n(print (nobody 1))\n(print (f [1 2]))\n");
    insta::assert_snapshot!("an_error_before_any_call", sandbox.run(&["first.shf", "--explain"]));
}

#[test]
fn strict_forbids_to_interpret_what_cannot_be_compiled() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("rows.shf", ROWS);
    insta::assert_snapshot!("said_once", sandbox.run(&["rows.shf"]));
    insta::assert_snapshot!("an_error_when_strict", sandbox.run(&["rows.shf", "--strict"]));
    // Effects are interpreted by design.
    sandbox.write("heads.shf", HEADS);
    let _ = sandbox.run(&["heads.shf", "--strict", "--jit", "always"]).compiled();
}

#[test]
fn strict_forbids_to_go_without_a_compiler() {
    let sandbox = Sandbox::new();
    sandbox.write("squares.shf", SQUARES);
    insta::assert_snapshot!(sandbox.run(&[&RUN_SQUARES[..], &["--offline", "--strict"]].concat()));
    insta::assert_snapshot!(sandbox.run(&["squares.shf", "--no-jit", "--strict"]));
}

/// The REPL reports it once per session, in which a function may be called from many texts.
#[test]
fn the_repl_says_a_fallback_once() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let entries = format!("{ROWS}:type 1\n(rows [[1 1 1]])\n:type 1\n(defn f [x] (rows x))\n(f [[2 2]])\n");
    let output = sandbox.sheaf(&["repl"]).input(entries).run();
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(output.stderr.matches("is interpreted, not compiled").count(), 1, "{output}");
}
