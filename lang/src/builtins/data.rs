//! Helpers of the standard module `data`: batches and other orders of sequences.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::list::length;
use super::{Builtin, as_index};
use crate::eval::{Eval, Interp, fail};
use crate::program::{Batches, Column, Dict, Handle, Key, Lazy, Picked, Rows, Source, Value};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "-items",
        "(-items x)",
        "the number of items, in each column of a dictionary",
        (1, 1),
        |_, a| count(&a[0]).map(|n| Value::Int(n as i64)),
    ),
    Builtin::new(
        "-batches",
        "(-batches x n order drop-last)",
        "a handle on batches of n items, in the order of the positions `order`, or in their own if that is nil",
        (4, 4),
        batches,
    ),
    Builtin::new(
        "-reordered",
        "(-reordered x order)",
        "the items of a list or a handle at the positions `order`",
        (2, 2),
        |i, a| reordered(i, &a[0], &a[1]),
    ),
];

/// The number of items of a sequence, or of each column of a dictionary.
fn count(value: &Value) -> Eval<usize> {
    let Value::Dict(columns) = value else { return length(value).map(|n| n as usize) };
    let mut columns = columns.iter();
    let Some((first, column)) = columns.next() else {
        return fail("a dictionary without columns has no items to make batches of");
    };
    let count = length(column)? as usize;
    for (key, column) in columns {
        let n = length(column)? as usize;
        if n != count {
            return Err(Diagnostic::error(format!(
                "the columns differ in length: {} has {count} items, {} has {n}",
                first.form(),
                key.form()
            ))
            .help("each batch takes the same items of all columns; slice makes them equally long")
            .into());
        }
    }
    Ok(count)
}

fn batches(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    interp.may_read()?;
    let [x, size, order, drop_last] = args else { return fail("-batches takes four arguments") };
    let size = match as_index(size, "the size of a batch")? {
        n if n > 0 => n as usize,
        n => return fail(format!("a batch has at least 1 item, not {n}")),
    };
    if matches!(x, Value::Str(_)) {
        return Err(Diagnostic::error(
            "batches are made of lists, tensors, handles and dictionaries, not of strings",
        )
        .help("(chars s) is a list, (encode t s) a tensor of token numbers")
        .into());
    }
    let items = count(x)?;
    let source = match x {
        Value::Dict(columns) => {
            let columns = columns.iter().map(|(key, value)| Ok((key, column(value)?)));
            Source::Named(columns.collect::<Eval<Vec<(Key, Column)>>>()?)
        }
        one => Source::One(column(one)?),
    };
    let order = match order {
        Value::Nil => None,
        order => Some(positions(order)?.into()),
    };
    let count = if drop_last.truthy()? { items / size } else { items.div_ceil(size) };
    let batches =
        Batches { source, size, count, items, order, ahead: RefCell::default(), used: Cell::default() };
    Ok(Value::from(Handle::new(Lazy::Batches(batches))))
}

fn column(value: &Value) -> Eval<Column> {
    Ok(match value {
        Value::Tensor(t) => {
            let host = t.elements("a batch")?.clone();
            Column::Rows(Rows::new("tensor", vec![host]), Picked::All)
        }
        Value::List(list) => Column::List(list.items.clone()),
        Value::Handle(handle) => match &*handle.lazy {
            Lazy::Rows(rows) => Column::Rows(rows.clone(), handle.picked.clone()),
            _ => Column::Handle(Rc::clone(handle)),
        },
        other => {
            return fail(format!(
                "batches are made of lists, tensors and handles, not of {}",
                other.describe()
            ));
        }
    })
}

/// Known positions.
fn positions(order: &Value) -> Eval<Vec<usize>> {
    let Value::Tensor(t) = order else {
        return fail(format!("an order is a tensor of positions, not {}", order.describe()));
    };
    let host = t.elements("an order")?;
    Ok((0..host.count()).map(|i| host.element_i64(i) as usize).collect())
}

/// The items of a list, a handle or the columns of a dictionary at these positions.
fn reordered(interp: &mut Interp, x: &Value, order: &Value) -> Eval<Value> {
    Ok(match x {
        Value::Dict(columns) => {
            let columns = columns.iter().map(|(key, value)| Ok((key, reordered(interp, value, order)?)));
            Value::Dict(Rc::new(columns.collect::<Eval<Dict>>()?))
        }
        Value::Tensor(t) => interp.row(t, order)?,
        Value::List(list) => {
            Value::list(positions(order)?.into_iter().map(|at| list.items[at].clone()).collect())
        }
        Value::Handle(handle) => {
            interp.may_read()?;
            Value::from(handle.reordered(&positions(order)?))
        }
        other => {
            return fail(format!(
                "expected a list, a tensor, a handle or a dictionary, got {}",
                other.describe()
            ));
        }
    })
}
