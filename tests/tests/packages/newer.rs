//! Projects of another Sheaf: its version in `Sheaf.toml`, its format of `Sheaf.lock`.

use std::fs;

use sheaf_tests::Sandbox;

/// Commands that run or prepare programs.
const COMMANDS: [&[&str]; 7] = [
    &["run", "--no-jit"],
    &["run"],
    &["build"],
    &["check"],
    &["test", "--no-jit"],
    &["expand", "src/main.shf"],
    &["repl", "--no-jit"],
];

fn project(manifest: &str) -> Sandbox {
    let user = Sandbox::new();
    user.write("demo/Sheaf.toml", manifest);
    user.write("demo/src/main.shf", "(print 1)\n");
    user.write("demo/tests/t.shf", "(+ 1 1) ;=> 2\n");
    user
}

/// Regression: what a project says of itself was looked at in dependencies alone.
#[test]
fn a_project_for_another_sheaf_is_not_run() {
    let user = project("[package]\nname = \"demo\"\nsheaf = \">=99\"\n");
    for command in COMMANDS {
        let refused = user.sheaf(command).at("demo").run();
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused.stderr.replace(&*user.path("").to_string_lossy(), "~/"), @r#"
            error: ~/demo/Sheaf.toml:3:9: this package works with Sheaf >=99, and this is Sheaf 0.1.0; install a Sheaf that it works with, or change `sheaf`
             3 | sheaf = ">=99"
               |         ^^^^^^
            "#);
        }
    }
    for range in [">=0.1", "0.1", "*"] {
        let user = project(&format!("[package]\nsheaf = \"{range}\"\n"));
        assert_eq!(user.sheaf(&["run", "--no-jit"]).at("demo").run().silent(), "1\n");
    }
}

/// Regression: a project without dependencies ran with it, and `sheaf toolchain pin` wrote into it.
#[test]
fn a_lock_of_the_future_is_neither_used_nor_changed() {
    const LOCK: &str = "# of Sheaf 9\nversion = 2\n\n[toolchain]\niree = { release = \"9.0\" }\n";
    let dependency = "[package]\nname = \"demo\"\n\n[dependencies]\nmaths = { path = \"../maths\" }\n";
    for manifest in ["[package]\nname = \"demo\"\n", dependency] {
        let user = project(manifest);
        user.write("maths/Sheaf.toml", "[package]\nname = \"maths\"\n");
        user.write("maths/src/lib.shf", "");
        user.write("demo/Sheaf.lock", LOCK);
        let others: [&[&str]; 10] = [
            &["add", "maths", "--path", "../maths"],
            &["remove", "maths"],
            &["install"],
            &["update"],
            &["tree"],
            &["vendor"],
            &["audit"],
            &["sbom"],
            &["toolchain", "pin", "3.13.0", "--offline"],
            &["toolchain", "update", "--offline"],
        ];
        for command in COMMANDS.iter().chain(&others) {
            // Of nothing nothing can be removed.
            if command[0] == "remove" && manifest != dependency {
                continue;
            }
            let refused = user.sheaf(command).at("demo").run();
            assert_eq!(refused.code, Some(1), "{refused}");
            assert!(
                refused.stderr.contains("written by a newer Sheaf, in format 2")
                    && refused.stderr.contains("update this Sheaf"),
                "{refused}"
            );
            let read = |name: &str| fs::read_to_string(user.path(&format!("demo/{name}"))).expect("a file");
            assert_eq!(
                (read("Sheaf.lock").as_str(), read("Sheaf.toml").as_str()),
                (LOCK, manifest),
                "{refused}"
            );
        }
    }
}
