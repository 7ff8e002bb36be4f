//! Properties of random programs: no text makes the evaluator panic, compiled and interpreted results agree, arithmetic
//! is elementwise.

use crate::support::{World, compiling, run};
use proptest::prelude::*;
use sheaf_lang::eval::{Interp, Jit, Options, STACK_BYTES};

/// Runs a program on a large stack.
fn survives(text: String) -> bool {
    let run = move || {
        let mut interp = Interp::new(Box::new(World::default()), None, Options::default());
        let _ = interp.run_program("test.shf", &text);
        let _ = interp.expand_program("test.shf", &text);
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread").join().is_ok()
}

/// Forms made of the language's words, so that many pass the reader.
fn forms() -> impl Strategy<Value = String> {
    const WORDS: [&str; 76] = [
        "+",
        "-",
        "*",
        "/",
        "//",
        "mod",
        "**",
        "@",
        "=",
        "<",
        "sum",
        "mean",
        "max",
        "argmax",
        "shape",
        "reshape",
        "transpose",
        "concat",
        "stack",
        "slice",
        "get",
        "get-in",
        "assoc",
        "update",
        "merge",
        "keys",
        "nth",
        "first",
        "rest",
        "map",
        "mapv",
        "reduce",
        "filter",
        "apply",
        "take",
        "drop",
        "reverse",
        "zip",
        "tree-map",
        "flatten",
        "grad",
        "value-and-grad",
        "random-key",
        "random-normal",
        "random-split",
        "random-permutation",
        "zeros",
        "arange",
        "one-hot",
        "tensor",
        "cast",
        "softmax",
        "where",
        "if",
        "let",
        "fn",
        "do",
        "quote",
        "case",
        "repeat",
        "with-params",
        "->",
        "print",
        "str",
        "format",
        "index-update",
        "def",
        "defn",
        "defmacro",
        "cond",
        "and",
        "squeeze",
        "index",
        "scatter-add",
        "full",
        "-options",
    ];
    let atom = prop_oneof![
        4 => prop::sample::select(WORDS.to_vec()).prop_map(String::from),
        2 => prop::sample::select(vec!["x", "y", "acc", "p", "f"]).prop_map(String::from),
        2 => (-3..9_i64).prop_map(|n| n.to_string()),
        1 => prop::sample::select(vec!["1.5", "-0.0", "1e30", "9223372036854775807", "-9223372036854775808"])
            .prop_map(String::from),
        1 => prop::sample::select(vec!["nil", "true", "false", "\"a {}\"", "\"\"", "0:2", "-1:1"]).prop_map(String::from),
        2 => prop::sample::select(vec![":a", ":W", ":axis", ":keepdims", ":i32", ":f32", ":u32", ":bool", ":wrt", ":aux"])
            .prop_map(String::from),
    ];
    atom.prop_recursive(5, 40, 5, |inner| {
        let items = prop::collection::vec(inner.clone(), 0..5).prop_map(|items| items.join(" "));
        prop_oneof![
            5 => items.clone().prop_map(|items| format!("({items})")),
            2 => items.clone().prop_map(|items| format!("[{items}]")),
            1 => inner.clone().prop_map(|form| format!("'{form}")),
            1 => inner.clone().prop_map(|form| format!("`(a ~{form} ~@{form})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{:a {a} :W {b}}}")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(let [x {a} [y p] {b}] (+ x y))")),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!("((fn [x y] {a}) {b} [1 2])")),
        ]
    })
}

/// Definitions for the random forms.
const NAMES: &str = "(def x [1 2 3]) (def y 2) (def acc '[1 2]) (def p {:a 1 :W [[1 2] [3 4]]}) (def f sum)";

/// The output of a program; `None` if it fails.
fn printed(jit: Jit, text: &str) -> Option<String> {
    let (mut interp, world, _) = compiling(jit);
    let result = interp.run_program("test.shf", text);
    result.is_ok().then(|| world.printed.borrow().join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_program_panics(forms in prop::collection::vec(forms(), 1..4)) {
        let text = format!("{NAMES}\n{}", forms.join("\n"));
        prop_assert!(survives(text));
    }

    #[test]
    fn compiled_equals_interpreted(form in forms()) {
        let program = format!("{NAMES}\n(defn g [x y acc p] {form}) (print (g x y acc p) (g x 3 acc p))");
        let results = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            (printed(Jit::Never, &program), printed(Jit::Always, &program), program)
        });
        let (wanted, found, program) = results.expect("a thread").join().expect("no panic");
        // Compiled code may miss errors that depend only on values.
        if let Some(wanted) = wanted {
            prop_assert_eq!(found, Some(wanted), "{}", program);
        }
    }

    #[test]
    fn no_text_panics(text in "[\\[\\](){}'`~@:;\"0-9a-f.+\\-* \n&]{0,60}") {
        prop_assert!(survives(text));
    }

    /// Broadcasting arithmetic against elementwise arithmetic.
    #[test]
    fn arithmetic_is_element_by_element(
        shape in prop::collection::vec(1..4_usize, 0..4),
        stretch in prop::collection::vec(any::<bool>(), 4),
        cut in 0..4_usize,
        op in prop::sample::select(vec!["+", "-", "*", "//", "mod", "maximum", "<"]),
        seed in 0..1000_u64,
    ) {
        let number = |i: usize| { let n = (i as u64 * 7919 + seed * 104_729) % 13; n as i64 - 6 };
        let cut = cut.min(shape.len());
        let other: Vec<usize> = shape[cut..].iter().zip(&stretch).map(|(n, s)| if *s { 1 } else { *n }).collect();
        let size = |shape: &[usize]| shape.iter().product::<usize>();
        let left: Vec<i64> = (0..size(&shape)).map(number).collect();
        let right: Vec<i64> = (0..size(&other)).map(|i| { let n = number(i + 50); if n == 0 { 3 } else { n } }).collect();
        let wanted: Vec<i64> = (0..size(&shape)).map(|flat| {
            // The position in the other operand: axes are aligned at the last.
            let (mut rest, mut at, mut stride) = (flat, 0, 1);
            for (axis, extent) in shape.iter().enumerate().rev() {
                let index = rest % extent;
                rest /= extent;
                if axis >= cut {
                    let there = other[axis - cut];
                    at += if there == 1 { 0 } else { index * stride };
                    stride *= there;
                }
            }
            let (a, b) = (left[flat], right[at]);
            match op {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                "//" => a.div_euclid(b) - i64::from(b < 0 && a.rem_euclid(b) != 0),
                "mod" => a - b * (a.div_euclid(b) - i64::from(b < 0 && a.rem_euclid(b) != 0)),
                "maximum" => a.max(b),
                _ => i64::from(a < b),
            }
        }).collect();
        let literal = |elements: &[i64], shape: &[usize]| {
            let list = |xs: &mut dyn Iterator<Item = String>| xs.collect::<Vec<_>>().join(" ");
            let elements = list(&mut elements.iter().map(ToString::to_string));
            format!("(reshape (tensor '[{elements}] DTYPE) '[{}])", list(&mut shape.iter().map(ToString::to_string)))
        };
        let result = format!("({op} {} {})", literal(&left, &shape), literal(&right, &other));
        let wanted = literal(&wanted, &shape);
        for dtype in [":i32", ":f32", ":i64"] {
            let program = format!("(print (equal? (float {result}) (float {wanted})))").replace("DTYPE", dtype);
            prop_assert_eq!(run(&program), "true", "{}", program);
        }
    }
}
