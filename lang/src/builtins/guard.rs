//! `guard`: a value that goes through unless it breaks a condition, which stops the program.

use super::Builtin;
use super::operands::{as_integers, nil};
use crate::eval::{Eval, Interp, KeyPath, fail, map_trees};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::primitives::Direction;
use sheaf_graph::tensor::{DType, Shape};
use sheaf_syntax::diagnostic::{Diagnostic, Kind};

/// The forms of a guard, for messages.
const FORMS: &str = "a guard is (guard :no-nan x), (guard :range [low high] x), (guard :shape [n m] x), or \
                     (guard name condition x) with a condition of your own";

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "guard",
        "(guard :no-nan x), (guard :range [low high] x), (guard :shape [n m] x) or (guard name condition x)",
        "x, unless it breaks the guard, which stops the run with exit code 3: no NaN or infinity in any leaf of x; its \
         numbers from low to high; its shape, -1 for any extent; or a condition of your own, a truth value or a function \
         of x\n\
         a function with guards is compiled, and a guard on data is looked at when a result of it is read; x keeps its \
         gradient",
        (2, 3),
        guard,
    )
    .examples(
        "(guard :no-nan [1 2]) ;=> [1 2]\n(guard :no-nan (log [0 1])) ;=> error: guard :no-nan: 1 of 2 elements are NaN or infinite\n\
         (guard :range [0 1] 0.5) ;=> 0.5\n(guard :range [0 1] [0.5 2]) ;=> error: guard :range: 1 of 2 elements are not from 0.0 to 1.0\n\
         (guard :shape [2 -1] [[1] [2]]) ;=> [[1] [2]]\n(guard :shape [3] [1 2]) ;=> error: guard :shape: expected the shape [3]\n\
         (guard \"sorted\" (fn [x] (all (>= (slice x 1 3) (slice x 0 2)))) [1 2 3]) ;=> [1 2 3]\n\
         (guard \"positive\" (> -1 0) -1) ;=> error: guard positive: broken by -1",
    ),
];

fn guard(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let kind = if let Value::Keyword(kind) = &args[0] { kind.as_str() } else { "" };
    match (kind, args) {
        ("no-nan", [_, x]) => each(interp, x, &no_nan)?,
        ("range", [_, range, x]) => {
            let bounds = interp.sequence(range)?;
            let [low, high] = bounds.as_slice() else {
                return fail(format!("a range is [low high], two numbers, got {}", bounds.len()));
            };
            each(interp, x, &|interp, t, at| within(interp, t, at, low, high))?;
        }
        ("shape", [_, shape, x]) => {
            let wanted = as_integers(shape, "a shape")?;
            shaped(interp, &wanted, x)?;
        }
        ("no-nan" | "range" | "shape", _) => {
            return Err(Diagnostic::error(format!("guard :{kind} is called otherwise")).help(FORMS).into());
        }
        (_, [name, condition, x]) => own(interp, name, condition, x)?,
        _ => {
            let error = Diagnostic::error(format!("there is no guard {}", super::repr(&args[0])));
            return Err(error.help(FORMS).into());
        }
    }
    Ok(args[args.len() - 1].clone())
}

/// Looks at each number and tensor of a tree, with its place in words.
fn each(interp: &mut Interp, x: &Value, look: &dyn Fn(&mut Interp, &Tensor, &str) -> Eval<()>) -> Eval<()> {
    if matches!(x, Value::Nil) {
        return Err(nil("a value to guard"));
    }
    map_trees(std::slice::from_ref(x), &mut |path: &KeyPath, leaves| {
        if let Value::Int(_) | Value::Float(_) | Value::Tensor(_) = &leaves[0] {
            let at = if path.is_root() { String::new() } else { format!(" at {path}") };
            let t = interp.tensor(&leaves[0])?;
            look(interp, &t, &at)?;
        }
        Ok(Value::Nil)
    })
    .map(drop)
}

fn no_nan(interp: &mut Interp, t: &Tensor, at: &str) -> Eval<()> {
    if !t.ty().dtype.is_float() {
        return Ok(());
    }
    let good = interp.op(p::Unary(p::IsFinite), &[t])?;
    elements_hold(interp, t, at, &good, ":no-nan", "NaN or infinite", false)
}

fn within(interp: &mut Interp, t: &Tensor, at: &str, low: &Value, high: &Value) -> Eval<()> {
    let mut compare = |direction, bound: &Value| {
        let bound = interp.tensor(bound)?;
        let (x, bound) = interp.broadcast(t, &bound)?;
        if x.shape() != t.shape() {
            return fail(format!("the bounds of a range are numbers, got {}", bound.ty()));
        }
        interp.op(p::Compare { direction }, &[&x, &bound])
    };
    let (above, below) = (compare(Direction::Ge, low)?, compare(Direction::Le, high)?);
    let good = interp.op(p::Binary(p::And), &[&above, &below])?;
    let range = format!("not from {} to {}", super::show(low), super::show(high));
    elements_hold(interp, t, at, &good, ":range", &range, true)
}

/// Stops unless `good`, of the shape of `t`, holds everywhere; `wrong` describes the elements where it does not.
fn elements_hold(
    interp: &mut Interp,
    t: &Tensor,
    at: &str,
    good: &Tensor,
    name: &str,
    wrong: &str,
    extremes: bool,
) -> Eval<()> {
    let count = t.ty().count();
    if count == 0 {
        return Ok(());
    }
    let axes: Shape = (0..t.ty().rank()).collect();
    let all = interp.op(p::ReduceAnd { axes: axes.clone() }, &[good])?;
    let known = !all.is_unknown_truth();
    if known && Value::Tensor(all.clone()).truthy()? {
        return Ok(());
    }
    let mut message;
    if t.ty().rank() == 0 {
        let template = format!("guard {name}: the number{at} is {wrong}: {{}}");
        message = vec![Value::text(braced(&template)), Value::Tensor(t.clone())];
    } else {
        let bad = interp.op(p::Unary(p::Not), &[good])?;
        let bad = interp.convert(&bad, DType::I32)?;
        let bad = interp.op(p::ReduceSum { axes: axes.clone() }, &[&bad])?;
        let mut template = format!("guard {name}: {{}} of {count} elements{at} are {wrong}");
        message = vec![Value::Nil, Value::Tensor(bad)];
        if extremes {
            template += "; they reach from {} to {}";
            message.push(Value::Tensor(interp.op(p::ReduceMin { axes: axes.clone() }, &[t])?));
            message.push(Value::Tensor(interp.op(p::ReduceMax { axes }, &[t])?));
        }
        message[0] = Value::text(braced(&template));
    }
    stop_unless(interp, &Value::Tensor(all), &message)
}

/// A template whose one kind of insertion is `{}`.
fn braced(template: &str) -> String {
    let parts = template.split("{}").map(|part| part.replace('{', "{{").replace('}', "}}"));
    parts.collect::<Vec<_>>().join("{}")
}

fn stop_unless(interp: &mut Interp, condition: &Value, message: &[Value]) -> Eval<()> {
    match condition {
        Value::Tensor(truth) if truth.is_unknown_truth() => {
            interp.assert_later(Kind::GuardRaised, truth, message)
        }
        known if known.truthy()? => Ok(()),
        _ => Err(interp.raise(Kind::GuardRaised, message)?),
    }
}

fn shaped(interp: &mut Interp, wanted: &[i64], x: &Value) -> Eval<()> {
    let t = interp.tensor(x)?;
    let fits = |(wanted, extent): (&i64, &usize)| *wanted == -1 || usize::try_from(*wanted) == Ok(*extent);
    if wanted.len() == t.ty().rank() && wanted.iter().zip(t.shape()).all(fits) {
        return Ok(());
    }
    let wanted: Vec<String> = wanted.iter().map(i64::to_string).collect();
    let found: Vec<String> = t.shape().iter().map(usize::to_string).collect();
    let message =
        format!("guard :shape: expected the shape [{}], got [{}]", wanted.join(" "), found.join(" "));
    Err(interp.raise(Kind::GuardRaised, &[Value::text(message)])?)
}

fn own(interp: &mut Interp, name: &Value, condition: &Value, x: &Value) -> Eval<()> {
    let name = match name {
        Value::Str(name) => name.to_string(),
        Value::Keyword(name) | Value::Symbol(name) => name.to_string(),
        other => {
            let error =
                Diagnostic::error(format!("the name of a guard is a string, got {}", other.describe()));
            return Err(error.help(FORMS).into());
        }
    };
    let condition = match condition {
        Value::Function(_) => interp.call(condition, [x.clone()])?,
        condition => condition.clone(),
    };
    stop_unless(interp, &condition, &[Value::text(format!("guard {name}: broken by")), x.clone()])
}
