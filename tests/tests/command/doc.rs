//! `sheaf doc`.

use sheaf_tests::{Output, Sandbox};

fn doc(arguments: &[&str]) -> Output {
    Sandbox::new().run(&[&["doc"], arguments].concat())
}

#[test]
fn an_overview_has_each_section_with_its_names() {
    let text = doc(&[]).silent();
    assert!(text.starts_with("Special forms\n  "), "{text}");
    for part in ["\nModule nn\n", "\nModule optim\n", " softmax", " let", "`sheaf doc NAME`"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(text.lines().all(|line| line.len() <= 100));
}

#[test]
fn a_name_has_its_signature_help_and_examples() {
    let text = doc(&["if"]).silent();
    assert!(text.starts_with("(if "), "{text}");
    assert!(text.contains(";=>"), "{text}");
    let text = doc(&["adam-step"]).silent();
    assert!(text.contains("of the standard library, module optim"), "{text}");
}

#[test]
fn a_module_lists_its_functions() {
    let text = doc(&["optim"]).silent();
    assert!(text.contains("(sgd-step ") && text.contains("(adam-step "), "{text}");
}

#[test]
fn json_is_for_tools() {
    let json: serde_json::Value = serde_json::from_str(&doc(&["if", "--json"]).silent()).unwrap();
    assert_eq!(json[0]["name"], "if");
    assert!(json[0]["examples"][0]["code"].as_str().unwrap().starts_with("(if "));
    let all: serde_json::Value = serde_json::from_str(&doc(&["--json"]).silent()).unwrap();
    assert!(all.as_array().unwrap().len() > 100);
}

#[test]
fn an_unknown_name_has_a_neighbour() {
    insta::assert_snapshot!(doc(&["sotfmax"]));
    insta::assert_snapshot!(doc(&["if", "let"]));
}

#[test]
fn a_program_documents_itself() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "model.shf",
        "(defn twice \"(twice x)\n two times x\n (twice 3) ;=> 6\" [x] (* 2 x))\n(defn -own [x] x)\n(defn bare [x y] x)\n",
    );
    insta::assert_snapshot!(sandbox.run(&["doc", "model.shf"]).silent());
    assert_eq!(sandbox.run(&["doc", "model.shf", "bare"]).silent(), "(bare x y)\n");
    insta::assert_snapshot!(sandbox.run(&["doc", "model.shf", "twize"]).stderr);
    sandbox.write("wrong.shf", "(defn f [x]");
    assert!(sandbox.run(&["doc", "wrong.shf"]).stderr.contains("never closed"));
}
