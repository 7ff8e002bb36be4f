//! Checked examples: expressions of a source file with a comment that gives their result.
//!
//! ```text
//! (sum [1 2 3]) ;=> 6.
//! (sum "abc")   ;=> error: expected a tensor
//! ```
//!
//! Such lines in the docstrings of functions and macros are examples too, after all others.
//!
//! Each is evaluated, and, if a compiler is available, also run as a compiled program: its tensor literals become
//! arguments of a function, since tracing would fold them; without such literals, its numbers do. Many examples make
//! one program, which compiles in a fraction of the time of many programs.

mod case;
mod compare;
mod compiled;
mod docstring;
mod lift;

use std::rc::Rc;

use crate::builtins::repr;
use crate::eval::{Interp, Jit, Loaded};
use crate::program::{Module, Value};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Form, Span};

use case::{Expected, Item, Kind};
use compiled::Waiting;

/// Test options.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum relative difference of floats.
    pub tolerance: f64,
    /// Evaluate each example; a failing one is not compiled.
    pub interpreted: bool,
    /// Run each example as a compiled program.
    pub compiled: Compile,
    /// Number of examples per program.
    pub batch: usize,
}

/// Default number of examples per program: more take longer to compile than they save.
pub const BATCH: usize = 24;

/// Compilation of examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compile {
    /// No.
    Never,
    /// Yes, if there is a compiler.
    IfPossible,
    /// Yes; without a compiler they fail.
    Always,
}

/// Test results of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file's name in messages.
    pub name: String,
    /// Examples in it.
    pub cases: usize,
    /// Examples that gave the expected result in every run.
    pub passed: usize,
    /// Those of them that ran as a compiled program.
    pub compiled: usize,
    /// Those whose value tracing knew: errors, shapes, text.
    pub known: usize,
    /// Of those, the ones with a tensor as value, with the reason that their literals must be known, such as a shape.
    pub fixed: Vec<String>,
    /// Those that can only be interpreted, in a file marked as pending.
    pub pending: usize,
    /// Failures, in file order.
    pub failures: Vec<Diagnostic>,
}

/// Runs the examples of files in order.
pub struct Tester<'a> {
    interp: &'a mut Interp,
    options: Options,
    waiting: Vec<Waiting>,
    reports: Vec<FileReport>,
}

/// One example during a check.
#[derive(Clone)]
struct Case {
    /// The position of its file's report.
    file: usize,
    form: Form,
    module: Rc<Module>,
    /// The module in which expected values are evaluated.
    expectations: Rc<Module>,
    expected: Rc<Expected>,
    /// True if the file's examples need not compile yet.
    pending: bool,
}

/// Outcome of one run of an example; the error is its failure.
type Checked = Result<(), Box<Diagnostic>>;

impl<'a> Tester<'a> {
    /// A tester that evaluates in `interp`, which needs a backend for compiled runs.
    pub fn new(interp: &'a mut Interp, options: Options) -> Tester<'a> {
        Tester { interp, options, waiting: Vec::new(), reports: Vec::new() }
    }

    /// Runs the examples of a file. Compiled ones may be batched with those of other files until [`Tester::finish`].
    /// With `pending`, examples of the file may fail to compile, and at least one must.
    pub fn file(&mut self, path: &str, text: &str, pending: bool) {
        self.reports.push(FileReport { name: path.into(), ..FileReport::default() });
        let file = self.reports.len() - 1;
        if let Err(errors) = self.run_file(file, path, text, pending) {
            self.reports[file].failures.extend(errors);
        }
    }

    /// Compiles and runs the pending examples; returns the reports of all files.
    pub fn finish(mut self) -> Vec<FileReport> {
        self.run_waiting();
        self.reports
    }

    fn run_file(&mut self, file: usize, path: &str, text: &str, pending: bool) -> Loaded<()> {
        let (id, forms) = self.interp.read_forms(path, text)?;
        let documented = docstring::examples(text, &forms);
        let items = case::items(text, id, forms)?;
        let definitions: Vec<Form> =
            items.iter().filter(|i| i.expected.is_none()).map(|i| i.form.clone()).collect();
        let module = Interp::program(path);
        Interp::declare(&module, &definitions);
        let expectations = Interp::module_over(&module);
        self.interp.run_text(&expectations, "<expected values>", "(def nan (/ 0 0)) (def inf (/ 1 0))")?;
        let outer = std::mem::replace(&mut self.interp.options.jit, Jit::Never);
        for Item { form, expected } in items {
            let Some(expected) = expected else {
                if let Err(errors) = self.interp.run_forms(&module, vec![form]) {
                    // Later examples would fail as a consequence.
                    self.reports[file].failures.extend(errors);
                    break;
                }
                continue;
            };
            let (module, expectations) = (Rc::clone(&module), Rc::clone(&expectations));
            let case = Case { file, form, module, expectations, expected: Rc::new(expected), pending };
            self.case(case);
        }
        let documented = match documented {
            Some(text) => self.documented(path, &text),
            None => Ok(Vec::new()),
        };
        for (form, expected) in documented.unwrap_or_else(|errors| {
            self.reports[file].failures.extend(errors);
            Vec::new()
        }) {
            let (module, expectations) = (Rc::clone(&module), Rc::clone(&expectations));
            self.case(Case { file, form, module, expectations, expected: Rc::new(expected), pending });
        }
        self.interp.options.jit = outer;
        Ok(())
    }

    /// The examples of a text without other code.
    fn documented(&mut self, path: &str, text: &str) -> Loaded<Vec<(Form, Expected)>> {
        let (id, forms) = self.interp.read_forms(path, text)?;
        let items = case::items(text, id, forms)?;
        Ok(items.into_iter().filter_map(|item| Some((item.form, item.expected?))).collect())
    }

    fn case(&mut self, case: Case) {
        self.reports[case.file].cases += 1;
        if self.options.interpreted {
            let found = self.interp.run_forms(&case.module, vec![case.form.clone()]);
            if let Err(failure) = self.judge(&case, found, "") {
                self.reports[case.file].failures.push(*failure);
                return;
            }
        }
        if self.options.compiled == Compile::Never {
            self.reports[case.file].passed += 1;
            return;
        }
        self.interp.options.jit = Jit::Always;
        self.prepare(case);
        self.interp.options.jit = Jit::Never;
    }

    /// Checks `found`, computed in the way named by `how`, against the example.
    fn judge(&mut self, case: &Case, found: Loaded<Value>, how: &str) -> Checked {
        let expected = &case.expected;
        let wrong = |message: String, note: String| {
            let d = Diagnostic::error(message).at(expected.span, "expected here").at(case.form.span, "");
            Box::new(if note.is_empty() { d } else { d.note(note) })
        };
        match (expected.kind, found) {
            (Kind::Error, Ok(value)) => Err(wrong(
                format!("this{how} gives no error"),
                format!("expected error: {}\nfound    {}", expected.text, repr(&value)),
            )),
            (Kind::Error, Err(errors)) => {
                if errors.iter().any(|d| said(d).any(|text| text.contains(&expected.text))) {
                    return Ok(());
                }
                let messages: Vec<&str> = errors.iter().map(|d| d.message.as_str()).collect();
                Err(wrong(
                    format!("this{how} gives another error"),
                    format!("expected error: {}\nfound    error: {}", expected.text, messages.join("; ")),
                ))
            }
            (Kind::Value, Err(mut errors)) => {
                let first = errors.swap_remove(0);
                Err(Box::new(Diagnostic {
                    message: format!("this{how} gives an error: {}", first.message),
                    ..first.at(expected.span, "a value is expected here")
                }))
            }
            (Kind::Value, Ok(value)) => match self.mismatch(case, &value)? {
                None => Ok(()),
                Some(difference) => Err(wrong(format!("this{how} gives another value"), difference)),
            },
        }
    }

    /// The difference of a value and the expected result.
    fn mismatch(&mut self, case: &Case, found: &Value) -> Result<Option<String>, Box<Diagnostic>> {
        let expected = &case.expected;
        let failed = |d: Diagnostic| {
            let message = format!("the expected value gives an error: {}", d.message);
            Box::new(Diagnostic { message, labels: Vec::new(), ..d }.at(expected.span, "expected here"))
        };
        let mut text = expected.text.as_str();
        if text.starts_with("<fn:") {
            let shown = repr(found);
            return Ok((shown != text).then(|| format!("expected {text}\nfound    {shown}")));
        }
        if let Some((ty, value)) = text.strip_prefix("tensor ").and_then(|t| t.split_once(" = ")) {
            match found {
                Value::Tensor(t) if t.ty().to_string() == ty => {}
                _ => return Ok(Some(format!("expected tensor {ty} = {value}\nfound    {}", repr(found)))),
            }
            text = value;
        }
        let value = self
            .interp
            .run_text(&case.expectations, "<expected value>", text)
            .map_err(|mut errors| failed(errors.swap_remove(0)))?;
        compare::difference(&value, found, self.options.tolerance)
            .map_err(|signal| failed(crate::eval::as_diagnostic(*signal)))
    }
}

/// All sentences of a message.
fn said(d: &Diagnostic) -> impl Iterator<Item = &str> {
    let labels = d.labels.iter().map(|l| l.text.as_str());
    std::iter::once(d.message.as_str())
        .chain(labels)
        .chain(d.notes.iter().map(String::as_str))
        .chain(d.help.as_deref())
}

/// A failure of an example with its span.
fn failure(message: impl Into<String>, span: Span) -> Diagnostic {
    Diagnostic::error(message).at(span, "")
}
