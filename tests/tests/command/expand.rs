//! `sheaf expand`.

use sheaf_tests::Sandbox;

const GOOD: &str = "; What the program says about itself.\n(defmacro twice [form] `(do ~form ~form))\n\
    (defmodel forward [x] (layer :hidden relu) (layer :out))\n(defn side [x] (cond (> x 0) 1 (< x 0) -1 :else 0))\n\
    (twice (print (-> [1 2] (* 2) sum)))\n";

const BAD: &str = "(defmacro root [x]\n  (sqrt x))\n(defn f [a]\n  (root (+ a 1)))\n(print (f 3))\n";

fn expanded(program: &str) -> String {
    let sandbox = Sandbox::new();
    sandbox.write("program.shf", program);
    sandbox.run(&["expand", "program.shf"]).to_string()
}

#[test]
fn every_macro_is_replaced_and_nothing_runs() {
    insta::assert_snapshot!(expanded(GOOD));
}

#[test]
fn an_error_in_a_macro_shows_its_use() {
    insta::assert_snapshot!(expanded(BAD));
}

#[test]
fn the_expansion_is_a_program_of_the_same_meaning() {
    let sandbox = Sandbox::new();
    sandbox.write("program.shf", GOOD);
    let expansion = sandbox.run(&["expand", "program.shf"]).silent();
    sandbox.write("expanded.shf", &expansion);
    assert_eq!(sandbox.run(&["expanded.shf", "--no-jit"]).silent(), "6.0\n6.0\n");
    assert_eq!(sandbox.run(&["expand", "expanded.shf"]).silent(), expansion);
}

#[test]
fn no_program() {
    let output = Sandbox::new().run(&["expand", "missing.shf"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("missing.shf does not exist"), "{output}");
}
