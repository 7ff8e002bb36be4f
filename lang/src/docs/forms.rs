//! The entries of the special forms.

/// A special form.
pub(super) struct SpecialForm {
    pub name: &'static str,
    pub signature: &'static str,
    pub help: &'static str,
    /// One `code ;=> result` a line.
    pub examples: &'static str,
}

const fn form(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    examples: &'static str,
) -> SpecialForm {
    SpecialForm { name, signature, help, examples }
}

/// Every special form.
pub(super) const FORMS: &[SpecialForm] = &[
    form(
        "if",
        "(if condition then else?)",
        "then where the condition holds, otherwise else or nil; false, nil and a false scalar do not hold",
        "(if (> 2 1) :yes :no) ;=> :yes",
    ),
    form(
        "let",
        "(let [pattern value ...] body...)",
        "binds names for the body, each visible to the next; patterns take lists, tensors and dictionaries apart",
        "(let [x 2 [a b] '[3 4]] (+ x a b)) ;=> 9",
    ),
];
