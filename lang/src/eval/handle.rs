//! Items of handles.

use std::ops::Range;
use std::rc::Rc;

use super::index::clip;
use super::interp::Interp;
use super::signal::{Eval, Reason, Signal, Stop, fail};
use crate::builtins::as_index;
use crate::formats::read_json_line;
use crate::host::{HostError, Pending};
use crate::program::{
    Batches, Column, Dict, Handle, Lazy, Lines, Picked, Prepared, Rows, Source, Tensor, Value,
};
use sheaf_graph::tensor::{DType, FileChanged, HostTensor, format_float};
use sheaf_syntax::diagnostic::Diagnostic;

/// The use of an index, for messages and reports.
pub(crate) const HANDLE_INDEX: &str = "an index into a handle";

/// The items of a sequence, one after the other. Those of a handle are read when it is their turn.
pub(crate) enum ItemsOf {
    /// All of them.
    Listed(std::vec::IntoIter<Value>),
    /// A handle, and the position of the next.
    Read(Rc<Handle>, usize),
}

impl ItemsOf {
    /// The number of items that are left.
    pub fn len(&self) -> usize {
        match self {
            ItemsOf::Listed(items) => items.len(),
            ItemsOf::Read(handle, next) => handle.count() - next,
        }
    }

    /// The next item.
    pub fn next(&mut self, interp: &mut Interp) -> Eval<Option<Value>> {
        match self {
            ItemsOf::Listed(items) => Ok(items.next()),
            ItemsOf::Read(handle, next) if *next < handle.count() => {
                *next += 1;
                interp.handle_item(handle, *next - 1).map(Some)
            }
            ItemsOf::Read(..) => Ok(None),
        }
    }
}

impl From<FileChanged> for Signal {
    fn from(changed: FileChanged) -> Signal {
        HostError::from(changed).into()
    }
}

impl Interp {
    /// The items of a list, a tensor, a string or a handle, for a loop over them.
    pub(crate) fn items_in(&mut self, value: &Value) -> Eval<ItemsOf> {
        match value {
            Value::Handle(handle) => {
                self.may_read()?;
                Ok(ItemsOf::Read(Rc::clone(handle), 0))
            }
            other => Ok(ItemsOf::Listed(self.sequence(other)?.into_iter())),
        }
    }

    /// Stops a trace for compilation: the items that a loop reads are arguments of the functions that it calls, no constants
    /// of a program.
    pub(crate) fn may_read(&self) -> Eval<()> {
        if self.tracing.staging == 0 {
            return Ok(());
        }
        Err(Stop::trace(Reason::Reads, self.span))
    }

    /// All items of a handle.
    pub(super) fn handle_items(&mut self, handle: &Rc<Handle>) -> Eval<Vec<Value>> {
        self.may_read()?;
        (0..handle.count()).map(|i| self.handle_item(handle, i)).collect()
    }

    /// `(h i j ...)`: the first index is that of an item, or of several; the others are for what that gives.
    pub(super) fn index_handle(&mut self, handle: &Rc<Handle>, indices: &[Value]) -> Eval<Value> {
        let [first, rest @ ..] = indices else {
            return fail(format!("{} wants an index", handle.text()));
        };
        let found = match super::index::range_from_the_start(first).as_ref().unwrap_or(first) {
            Value::Range(range) => {
                let (start, end) = clip(range.start, range.end, handle.count());
                self.handle_slice(handle, start..end)?
            }
            index => self.handle_get(handle, index)?,
        };
        match (&found, rest) {
            (_, []) => Ok(found),
            (Value::Tensor(_), _) => self.index_tensor(&found, rest),
            (Value::Handle(inner), _) => self.index_handle(&Rc::clone(inner), rest),
            (other, _) => fail(format!("{} cannot be indexed", other.describe())),
        }
    }

    /// `(get h i)`: the item at an index, or the items at a list or a tensor of them.
    pub(crate) fn handle_get(&mut self, handle: &Rc<Handle>, index: &Value) -> Eval<Value> {
        let (shape, positions) = match index {
            Value::Tensor(t) if t.concrete().is_none() => {
                let Tensor::Traced(traced) = t else { unreachable!("a concrete tensor has a value") };
                let (level, ty) = (traced.trace.level, traced.ty.clone());
                return Err(Stop::trace(
                    Reason::Elements { level, wanted: HANDLE_INDEX.into(), ty },
                    self.span,
                ));
            }
            Value::Tensor(t) if t.ty().rank() > 0 => {
                let host = t.elements(HANDLE_INDEX)?;
                if host.dtype() == DType::Bool {
                    return Err(Diagnostic::error(format!("indices are integers, got {}", t.ty()))
                        .help("(tensor h) is the whole as a tensor, which a mask of booleans selects from")
                        .into());
                }
                let position = |i: usize| match host.element_f64(i) {
                    x if x.fract() != 0.0 => {
                        fail(format!("an index must be a whole number, not {}", format_float(x as f32)))
                    }
                    _ => item_place(handle, host.element_i64(i)),
                };
                (t.shape().to_vec(), (0..host.count()).map(position).collect::<Eval<Vec<usize>>>()?)
            }
            Value::List(list) => {
                let positions = list.items.iter().map(|i| item_place(handle, as_index(i, "an index")?));
                (vec![list.items.len()], positions.collect::<Eval<Vec<usize>>>()?)
            }
            one => {
                let at = item_place(handle, as_index(one, "an index")?)?;
                return self.handle_item(handle, at);
            }
        };
        let found = self.handle_gather(handle, &positions)?;
        match found {
            Value::Tensor(t) if shape.len() != 1 => {
                let shape: Vec<usize> = shape.iter().chain(&t.shape()[1..]).copied().collect();
                self.reshape(&t, &shape).map(Value::from)
            }
            found => Ok(found),
        }
    }

    /// Item `i` of a handle, which has more than that.
    pub(crate) fn handle_item(&mut self, handle: &Rc<Handle>, i: usize) -> Eval<Value> {
        let at = handle.position(i);
        match &*handle.lazy {
            Lazy::Rows(rows) => {
                let row = unchanged(rows, |rows| rows.slice(at..at + 1))?;
                Ok(Value::Tensor(Tensor::made(row.reshaped(rows.row()), self.span)))
            }
            Lazy::Lines(lines) => line(lines, at),
            Lazy::Batches(batches) => {
                self.may_read()?;
                let next = (i + 1 < handle.count()).then(|| handle.position(i + 1));
                self.batch(batches, at, next)
            }
        }
    }

    /// Consecutive items: a tensor of rows, which stay in their file until they are used, or a list.
    pub(crate) fn handle_slice(&mut self, handle: &Rc<Handle>, items: Range<usize>) -> Eval<Value> {
        if let Lazy::Rows(rows) = &*handle.lazy {
            let taken = if let Picked::At(at) = &handle.picked {
                unchanged(rows, |rows| rows.gather(&at[items]))?
            } else {
                let start = handle.position(items.start);
                unchanged(rows, |rows| rows.slice(start..start + items.len()))?
            };
            return Ok(Value::Tensor(Tensor::made(taken, self.span)));
        }
        items.map(|i| self.handle_item(handle, i)).collect::<Eval<Vec<Value>>>().map(Value::list)
    }

    /// The items at these positions: a tensor of rows, or a list.
    pub(crate) fn handle_gather(&mut self, handle: &Rc<Handle>, items: &[usize]) -> Eval<Value> {
        if let Lazy::Rows(rows) = &*handle.lazy {
            let at: Vec<usize> = items.iter().map(|i| handle.position(*i)).collect();
            let taken = unchanged(rows, |rows| rows.gather(&at))?;
            return Ok(Value::Tensor(Tensor::made(taken, self.span)));
        }
        items.iter().map(|i| self.handle_item(handle, *i)).collect::<Eval<Vec<Value>>>().map(Value::list)
    }

    /// All rows of a handle as one tensor; an error if its items are no rows of numbers.
    pub(crate) fn whole(&mut self, handle: &Rc<Handle>) -> Eval<Tensor> {
        if let Some(whole) = handle.whole.get() {
            return Ok(whole.clone());
        }
        if handle.rows().is_none() {
            let found = handle.text();
            return Err(Diagnostic::error(format!("expected a tensor or a number, got the handle {found}"))
                .help("(h i) is one of its items, (map f h) calls f with each")
                .into());
        }
        let Value::Tensor(whole) = self.handle_slice(handle, 0..handle.count())? else {
            unreachable!("rows are a tensor")
        };
        Ok(handle.whole.get_or_init(|| whole).clone())
    }

    /// Values with handles on numbers as tensors.
    pub(crate) fn wholes(&mut self, values: &[Value]) -> Eval<Vec<Value>> {
        let whole = |value: &Value| match value {
            Value::Handle(handle) if handle.rows().is_some() => self.whole(handle).map(Value::Tensor),
            other => Ok(other.clone()),
        };
        values.iter().map(whole).collect()
    }

    /// Batch `i`, while batch `next` is prepared on another thread if it comes from files.
    fn batch(&mut self, batches: &Batches, i: usize, next: Option<usize>) -> Eval<Value> {
        let waiting = batches.ahead.take();
        let prepared = match waiting {
            Some((at, pending)) if at == i => pending.wait(),
            _ => None,
        };
        let prepared = match prepared {
            Some(prepared) => {
                batches.used.set(batches.used.get() + 1);
                prepared
            }
            None => batches.preparation(i)(),
        };
        if let Some(next) = next.filter(|_| batches.reads_files()) {
            let pending = Pending::start(self.host.as_mut(), batches.preparation(next));
            batches.ahead.replace(pending.map(|pending| (next, pending)));
        }
        let mut prepared = prepared.into_iter();
        match &batches.source {
            Source::One(column) => self.column(batches, column, i, &mut prepared),
            Source::Named(columns) => {
                let mut dict = Dict::default();
                for (key, column) in columns {
                    dict.insert(*key, self.column(batches, column, i, &mut prepared)?);
                }
                Ok(Value::Dict(Rc::new(dict)))
            }
        }
    }

    /// The items of one column of batch `i`.
    fn column(
        &mut self,
        batches: &Batches,
        column: &Column,
        i: usize,
        prepared: &mut impl Iterator<Item = Result<HostTensor, FileChanged>>,
    ) -> Eval<Value> {
        let items = batches.items_of(i);
        let order = batches.order.as_deref();
        match column {
            Column::Rows(..) => {
                let rows = prepared.next().expect("one for each column of rows")?;
                Ok(Value::Tensor(Tensor::made(rows, self.span)))
            }
            Column::List(list) => Ok(match order {
                None => Value::from(list.part(items)),
                Some(order) => Value::list(order[items].iter().map(|at| list[*at].clone()).collect()),
            }),
            Column::Handle(handle) => match order {
                None => self.handle_slice(handle, items),
                Some(order) => self.handle_gather(handle, &order[items]),
            },
        }
    }
}

/// The position of an index, which may count from the end.
fn item_place(handle: &Handle, index: i64) -> Eval<usize> {
    let count = handle.count() as i64;
    if (-count..count).contains(&index) {
        return Ok(if index < 0 { index + count } else { index } as usize);
    }
    let error = Diagnostic::error(format!("index {index} is outside of {}", handle.text()));
    Err(match count {
        0 => error.help("it has no items"),
        1 => error.help("its only item is 0, or -1 counted from the end"),
        n => error.help(format!("its {n} items are 0 to {}, or -{n} to -1 counted from the end", n - 1)),
    }
    .into())
}

/// Reads rows whose files are as they were, before and after.
fn unchanged(rows: &Rows, read: impl FnOnce(&Rows) -> HostTensor) -> Result<HostTensor, FileChanged> {
    rows.check()?;
    let found = read(rows);
    rows.check()?;
    Ok(found)
}

impl Batches {
    /// The positions of the items of batch `i`, in the order of the batches.
    fn items_of(&self, i: usize) -> Range<usize> {
        i * self.size..((i + 1) * self.size).min(self.items)
    }

    fn columns(&self) -> Vec<&Column> {
        match &self.source {
            Source::One(column) => vec![column],
            Source::Named(columns) => columns.iter().map(|(_, column)| column).collect(),
        }
    }

    /// True if a column of numbers is in files.
    fn reads_files(&self) -> bool {
        self.columns().into_iter().any(|column| matches!(column, Column::Rows(rows, _) if rows.in_files()))
    }

    /// Reads the rows of batch `i`, for each column of rows, on any thread.
    fn preparation(&self, i: usize) -> impl FnOnce() -> Prepared + Send + use<> {
        let rows = self.columns().into_iter().filter_map(|column| match column {
            Column::Rows(rows, picked) => Some((rows.clone(), picked.clone())),
            _ => None,
        });
        let columns: Vec<(Rows, Picked)> = rows.collect();
        let items = self.items_of(i);
        let order = self.order.clone();
        move || {
            let place = |i: usize| order.as_ref().map_or(i, |order| order[i]);
            let read = |(rows, picked): &(Rows, Picked)| {
                let at: Vec<usize> = items.clone().map(|i| picked.position(place(i))).collect();
                unchanged(rows, |rows| rows.gather(&at))
            };
            columns.iter().map(read).collect()
        }
    }
}

/// The value of line `at` of a file.
fn line(lines: &Lines, at: usize) -> Eval<Value> {
    lines.file.check()?;
    let (range, number) = lines.places()[at].clone();
    // A copy: another process may write to the file while the text is read.
    let bytes = lines.file.bytes()[range].to_vec();
    lines.file.check()?;
    read_json_line(&lines.name, number, bytes)
}
