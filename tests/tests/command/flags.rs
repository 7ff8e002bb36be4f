//! Programs that are compiled with flags which the user names.

use std::fs;

use sheaf_tests::{Output, Sandbox};

const PROGRAM: &str = "\
(defn products [(x f32 [64 64])] (sum (@ x x) :axis 0))
(print (sum (products (ones '[64 64]))))
";

/// Runs the program as kernels of the compiler, which take flags, with further options.
fn run(sandbox: &Sandbox, options: &[&str]) -> Output {
    sandbox.write("products.shf", PROGRAM);
    let program = ["products.shf", "--jit", "always", "--strict", "--kernels", "never"];
    sandbox.run(&[&program[..], options].concat())
}

/// The sets of flags that were to be tried for each entry of the manifest.
fn alternatives(sandbox: &Sandbox) -> Vec<serde_json::Value> {
    let manifest = fs::read_to_string(sandbox.path("__sheaf__/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let entries = manifest["entries"].as_array().expect("a list");
    entries.iter().map(|entry| entry["alternatives"].clone()).collect()
}

#[test]
fn named_flags_are_tried_first_and_in_that_run_alone() {
    let Some(sandbox) = Sandbox::with_shared_store() else { return };
    for (options, sets) in [
        (
            &["--flags", "data-tiling,ukernels"][..],
            serde_json::json!([["--iree-opt-data-tiling=true", "--iree-llvmcpu-enable-ukernels=all"], []]),
        ),
        (&[], serde_json::Value::Null),
    ] {
        let output = run(&sandbox, options);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "262144.0\n"), "{output}");
        assert!(alternatives(&sandbox).contains(&sets), "{:#?}", alternatives(&sandbox));
    }
}

/// Q62: packed operands had the elements of other rows.
#[test]
fn a_batch_of_products_of_seven_computed_rows_is_packed_rightly() {
    let Some(sandbox) = Sandbox::with_shared_store() else { return };
    let rows = "(reshape (cast (+ 1 (arange 14)) :f32) [2 7])";
    sandbox.write(
        "rows.shf",
        format!(
            "(defn f [x r y] (@ (* x (expand-dims r -1)) y))\n\
             (let [z (f (ones [2 7 4]) {rows} (ones [2 4 16]))] (print (reshape (max z :axis -1) [14])))\n"
        ),
    );
    let options = ["rows.shf", "--jit", "always", "--strict", "--kernels", "never", "--flags", "data-tiling"];
    let output = sandbox.run(&options);
    assert_eq!(output.stdout, "[ 4.  8. 12. 16. 20. 24. 28. 32. 36. 40. 44. 48. 52. 56.]\n", "{output}");
}

#[test]
fn flags_are_those_of_the_table() {
    let sandbox = Sandbox::new();
    let unknown = run(&sandbox, &["--flags", "data-tiling,--iree-opt-level=O3"]).stderr;
    assert!(
        unknown.contains("unknown variant `--iree-opt-level=O3`, expected one of `data-tiling`,"),
        "{unknown}"
    );
}
