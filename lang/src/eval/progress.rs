//! Sequences that `(progress label seq)` has marked, and the bars of the loops over them.

use std::rc::{Rc, Weak};

use super::Interp;
use super::interp::Frame;
use super::signal::Eval;
use crate::builtins;
use crate::host::Bar;
use crate::program::{Concrete, Dict, Expr, ExprKind, Function, List, Tensor, Value};

/// The marked sequences that still exist.
#[derive(Default)]
pub(super) struct Marks(Vec<(Marked, Rc<str>)>);

/// A marked sequence, known by its identity.
enum Marked {
    List(Weak<List>),
    Dict(Weak<Dict>),
    Tensor(Weak<Concrete>),
}

impl Marked {
    fn exists(&self) -> bool {
        match self {
            Marked::List(list) => list.strong_count() > 0,
            Marked::Dict(dict) => dict.strong_count() > 0,
            Marked::Tensor(tensor) => tensor.strong_count() > 0,
        }
    }

    fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Marked::List(known), Value::List(list)) => known.as_ptr() == Rc::as_ptr(list),
            (Marked::Dict(known), Value::Dict(dict)) => known.as_ptr() == Rc::as_ptr(dict),
            (Marked::Tensor(known), Value::Tensor(Tensor::Concrete(tensor))) => {
                known.as_ptr() == Rc::as_ptr(tensor)
            }
            _ => false,
        }
    }
}

/// The bar of a loop, if its sequence is marked. It ends when dropped.
#[derive(Default)]
pub(crate) struct Ticks(Option<Box<dyn Bar>>);

impl Ticks {
    /// Notes that a step is done.
    pub(crate) fn advance(&mut self) {
        if let Some(bar) = &mut self.0 {
            bar.advance();
        }
    }
}

impl Interp {
    /// The sequence, with an identity of its own that is marked with the label. A tracer is given back as it is: its loop
    /// is recorded, not run.
    pub(crate) fn marked(&mut self, label: &str, sequence: &Value) -> Value {
        let (marked, value) = match sequence {
            Value::List(list) => {
                let List { bracket, items, origin } = &**list;
                let own = Rc::new(List { bracket: *bracket, items: items.clone(), origin: *origin });
                (Marked::List(Rc::downgrade(&own)), Value::List(own))
            }
            Value::Dict(dict) => {
                let own = Rc::new((**dict).clone());
                (Marked::Dict(Rc::downgrade(&own)), Value::Dict(own))
            }
            Value::Tensor(Tensor::Concrete(tensor)) => {
                let own = tensor.anew();
                (Marked::Tensor(Rc::downgrade(&own)), Value::Tensor(Tensor::Concrete(own)))
            }
            other => return other.clone(),
        };
        self.marks.0.retain(|(marked, _)| marked.exists());
        self.marks.0.push((marked, label.into()));
        value
    }

    /// The bar of a loop of `count` steps over one of these sequences, if it is marked.
    pub(crate) fn ticks(&mut self, sequences: &[Value], count: usize) -> Ticks {
        if self.marks.0.is_empty() {
            return Ticks::default();
        }
        let marks = || self.marks.0.iter().rev();
        let label = marks().find(|(marked, _)| sequences.iter().any(|value| marked.is(value)));
        let label = label.map(|(_, label)| Rc::clone(label));
        Ticks(label.map(|label| self.host.progress(&label, count as u64)))
    }

    /// The count of a repeat, and its bar if it is written `(progress label n)`.
    pub(super) fn repeat_count(&mut self, count: &Expr, frame: Frame) -> Eval<(Value, Ticks)> {
        let ExprKind::Call { head, args, .. } = &count.kind else {
            return Ok((self.eval(count, frame)?, Ticks::default()));
        };
        let is_progress = matches!(&head.kind, ExprKind::Const(Value::Function(f))
            if matches!(&**f, Function::Builtin(builtin) if builtin.name == "progress"));
        let ([label, count], true) = (args.as_slice(), is_progress) else {
            return Ok((self.eval(count, frame)?, Ticks::default()));
        };
        let label = self.eval(label, frame)?;
        let label = builtins::label(&label).map_err(|signal| signal.at(count.span))?;
        let n = self.eval(count, frame)?;
        if self.passes_over("progress") {
            return Ok((n, Ticks::default()));
        }
        self.effect("progress").map_err(|signal| signal.at(count.span))?;
        // An error of the count is the repeat's own.
        let total = builtins::as_index(&n, "the count of repeat").ok();
        let total = total.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let bar = self.host.progress(&label, total);
        Ok((n, Ticks(Some(bar))))
    }
}
