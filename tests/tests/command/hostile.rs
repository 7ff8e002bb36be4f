//! Untrusted text is shown, never obeyed by a terminal.

use sheaf_tests::Sandbox;

/// Characters that a terminal obeys.
fn is_obeyed(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

/// Clears the screen, and reverses the direction of the following text.
const OBEYED: &str = "\u{1b}[2J\u{202e}\u{9b}2J";

#[test]
fn sources_in_messages() {
    let sandbox = Sandbox::new();
    let cases = [
        ("excerpt", format!("(print été\"{OBEYED}\" (+ 1 nowhere))\n")),
        ("name", format!("(print x{OBEYED}y)\n")),
        ("error", format!("(io \"load\" \"b{OBEYED}.json\")\n")),
        ("long", format!("(print \"{}{OBEYED}\" (+ 1 nowhere))\n", "x".repeat(3000))),
        ("string", format!("(print \"{OBEYED})\n")),
        ("module", format!("(use x{OBEYED})\n")),
    ];
    for (name, text) in cases {
        let file = format!("{name}.shf");
        sandbox.write(&file, &text);
        for command in
            [&["run", file.as_str()][..], &["check", &file], &["doc", &file], &["fmt", "--check", &file]]
        {
            let output = sandbox.run(command);
            assert!(!output.stderr.contains(is_obeyed), "{name}: {:?}", output.stderr);
            if command[0] == "run" {
                assert_eq!(output.code, Some(1), "{name}: {output}");
            }
        }
    }
}

/// Labels are aligned with the code, whatever precedes it.
#[test]
fn columns_stay_right() {
    let sandbox = Sandbox::new();
    sandbox.write("a.shf", "(print \"\u{1b}[2J\u{202e}é שלום 你好\" nowhere)\n");
    insta::assert_snapshot!(sandbox.run(&["a.shf", "--no-jit"]).stderr);
}

#[test]
fn names_of_files_and_functions() {
    let sandbox = Sandbox::new();
    let file = format!("a{OBEYED}.shf");
    sandbox.write(&file, "(print nowhere)\n");
    for command in [&["run", file.as_str()][..], &["fmt", "--check", &file], &["fmt", &file]] {
        let output = sandbox.run(command);
        assert!(!output.stderr.contains(is_obeyed) && !output.stdout.contains(is_obeyed), "{output:?}");
    }
    let name = "f\u{202e}g";
    sandbox.write("f.shf", format!("(defn {name} [x] (sum x))\n(print ({name} [1 2]))\n"));
    let output = sandbox.run(&["f.shf", "--jit", "always", "--explain"]);
    assert!(!output.stderr.contains(is_obeyed), "{output:?}");
}

/// A project's file is quoted as well.
#[test]
fn settings() {
    let sandbox = Sandbox::new();
    sandbox.write("a.shf", "(print 1)\n");
    sandbox.write("Sheaf.toml", "[cache]\nremote = [\"https://a\\u001b[2J.example\u{202e}\"]\n");
    for command in [&["trust", "--yes"][..], &["trust", "--list"], &["a.shf"]] {
        let output = sandbox.run(command);
        assert!(!output.stderr.contains(is_obeyed) && !output.stdout.contains(is_obeyed), "{output:?}");
    }
    sandbox.write("Sheaf.toml", "[cache]\nx\u{202e} = 1\nmode = \"\\u001b[2J\"\n");
    let output = sandbox.run(&["a.shf"]);
    assert!(output.code == Some(1) && !output.stderr.contains(is_obeyed), "{output:?}");
}
