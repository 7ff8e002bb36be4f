//! Programs found by the fuzz targets that once aborted the process: each gives an error.

use crate::support::check;

#[test]
fn texts_that_double_end_in_an_error() {
    const TOO_LONG: &str = "error: a text of 268435456 bytes is too long: 134217728 are the most";
    check(&[
        ("(repeat [i 40] [s \"ab\"] (str s s))", TOO_LONG),
        ("(repeat [i 40] [s \"ab\"] (concat s s))", TOO_LONG),
        ("(repeat [i 40] [s \"ab\"] (str-call \"join\" \"\" (list s s)))", TOO_LONG),
    ]);
}

#[test]
fn lists_that_double_end_in_an_error() {
    check(&[(
        "(repeat [i 40] [xs '[1 2]] (concat xs xs))",
        "error: a list of 33554432 items is too long: 16777216 are the most",
    )]);
}
