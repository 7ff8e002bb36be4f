//! `repeat` and `while`.

use super::interp::{Choice, Frame, Interp};
use super::signal::{Eval, Reason, Stop};
use super::staged_loop::RepeatParts;
use crate::program::{Expr, ExprKind, Pattern, Scalar, Value};
use crate::stack::maybe_grow;
use sheaf_syntax::Span;

/// Maximum iterations of a loop that is unrolled. Measured (`benches/benches/unrolling.rs`, `docs/benchmarks.md`): up
/// to here the compiler takes at most twice as long for an unrolled loop of a small step as for one operation, also for
/// its gradient, and a call takes a fraction of the time, since a loop on a device costs time per iteration; beyond,
/// gradients take the compiler up to eight times as long.
const MAX_UNROLLED: u64 = 16;

/// Maximum names of a loop state kept in slots; larger ones are lists.
const MAX_NAMES: usize = 4;

/// Assumed iterations of a loop of unknown count, when estimating the profit of compiling its body.
const UNKNOWN_COUNT: u64 = 1000;

impl Interp {
    /// Runs `f` as the body of a loop of `count` iterations: calls in it count that many times.
    pub(crate) fn in_loop<T>(&mut self, count: u64, f: impl FnOnce(&mut Interp) -> Eval<T>) -> Eval<T> {
        let outer = self.weight;
        self.weight = outer.saturating_mul(count.max(1));
        let result = f(self);
        self.weight = outer;
        result
    }

    /// True if a loop of `count` iterations must be recorded as one operation, in a trace for compilation.
    pub(crate) fn is_long(&self, count: u64) -> bool {
        count > MAX_UNROLLED && self.tracing.staging > 0 && self.tracing.traces_regions()
    }

    /// True if a loop of `count` iterations may be recorded as one operation, in a trace for compilation: a short one
    /// is if its steps are large ([`Interp::unless_unrolled`]).
    pub(super) fn may_stage(&self, count: u64) -> bool {
        count > 1 && self.tracing.staging > 0 && self.tracing.traces_regions()
    }

    /// True if a loop of `count` iterations is preferably unrolled.
    pub(super) fn is_short(count: u64) -> bool {
        count <= MAX_UNROLLED
    }

    /// Stops a trace for compilation at a loop, in the call being evaluated, that is too long to unroll.
    pub(super) fn check_unrolled(&self, count: u64) -> Eval<()> {
        match self.span {
            Some(span) if count > MAX_UNROLLED => self.stop_unrolling(span),
            _ => Ok(()),
        }
    }

    /// Stops a trace for compilation, if there is one.
    fn stop_unrolling(&self, span: Span) -> Eval<()> {
        if self.tracing.staging == 0 {
            return Ok(());
        }
        Err(Stop::trace(Reason::Loop, Some(span)))
    }

    pub(super) fn eval_loop(&mut self, expr: &Expr, frame: Frame) -> Eval<Value> {
        match &expr.kind {
            ExprKind::Repeat { index, count, state, init, body } => {
                let (n, mut ticks) = self.repeat_count(count, frame)?;
                // A number that was read, as of the program's arguments, is a tensor.
                let n = match &n {
                    Value::Tensor(t) if t.concrete().is_some() => {
                        crate::builtins::as_index(&n, "the count of repeat").map_or(n, Value::Int)
                    }
                    _ => n,
                };
                let unknown = matches!(&n, Value::Tensor(t) if t.ty().rank() == 0 && t.concrete().is_none());
                let parts = RepeatParts { index: frame.base + *index as usize, state, body };
                let (mut differing, mut first) = (None, None);
                if (unknown && self.tracing.traces_regions())
                    || matches!(n, Value::Int(n) if self.may_stage(n.max(0) as u64))
                {
                    let state = self.eval(init, frame)?;
                    match self.staged_repeat(&parts, &n, &state, frame)? {
                        Ok(last) => return Ok(last),
                        Err(refusal) => differing = refusal.at(Some([init.span, body.span])),
                    }
                    first = Some(state);
                }
                let n = match crate::builtins::as_index(&n, "the count of repeat") {
                    Ok(n) => n,
                    Err(signal) => return Err(signal.at(count.span).differing(differing)),
                };
                if n > MAX_UNROLLED as i64 {
                    self.stop_unrolling(expr.span).map_err(|signal| signal.differing(differing))?;
                }
                if n <= 0 {
                    let first = self.eval(init, frame)?;
                    return self.empty_repeat(&parts, first, frame);
                }
                let index = frame.base + *index as usize;
                match first {
                    Some(value) => self.bind_state(value, state, init.span, frame)?,
                    None => self.eval_state(init, state, init.span, frame)?,
                };
                self.in_loop(n as u64, |interp| {
                    for i in 0..n - 1 {
                        interp.step().map_err(|s| s.at(expr.span))?;
                        interp.set(index, Some(Scalar::Int(i)))?;
                        interp.eval_state(body, state, init.span, frame)?;
                        ticks.advance();
                    }
                    interp.set(index, Some(Scalar::Int(n - 1)))?;
                    let last = interp.eval(body, frame)?;
                    ticks.advance();
                    Ok(last)
                })
            }
            ExprKind::While { condition, state, init, body } => {
                let unrolled = self.eval_while(expr, condition, state, [init, body], frame);
                match unrolled {
                    // Too long to unroll, or up to an unknown value.
                    Err(signal) if self.tracing.traces_regions() && Self::asks_here(&signal) => {
                        let first = self.eval(init, frame)?;
                        let staged = self.staged_while(condition, state, body, &first, frame)?;
                        staged.map_err(|refusal| signal.differing(refusal.at(Some([init.span, body.span]))))
                    }
                    unrolled => unrolled,
                }
            }
            _ => unreachable!("called for loops"),
        }
    }

    /// Interprets `while`.
    fn eval_while(
        &mut self,
        expr: &Expr,
        condition: &Expr,
        state: &Pattern,
        [init, body]: [&Expr; 2],
        frame: Frame,
    ) -> Eval<Value> {
        let mut iterations = 0;
        let mut whole = self.eval_state(init, state, init.span, frame)?;
        self.in_loop(UNKNOWN_COUNT, |interp| {
            loop {
                let goes_on = match interp.eval_scalar(condition, frame) {
                    Some(scalar) => scalar != Scalar::False,
                    None => interp.other_holds(condition)?,
                };
                if !goes_on && iterations == 0 {
                    let first = whole.unwrap_or_else(|| interp.bound_state(state, frame));
                    return interp.empty_while(state, body, first, frame);
                }
                if !goes_on {
                    return Ok(whole.unwrap_or_else(|| interp.bound_state(state, frame)));
                }
                interp.step().map_err(|s| s.at(expr.span))?;
                iterations += 1;
                if iterations > MAX_UNROLLED {
                    interp.stop_unrolling(expr.span)?;
                }
                whole = interp.eval_state(body, state, init.span, frame)?;
            }
        })
    }

    /// Binds the loop state to the value of `expr`. Returns the value unless all of it is in the slots of `state`: a
    /// vector literal for a pattern of names is destructured without building a list.
    fn eval_state(&mut self, expr: &Expr, state: &Pattern, init: Span, frame: Frame) -> Eval<Option<Value>> {
        match (state, &expr.kind) {
            (Pattern::Name(slot, _), _) => {
                self.assign(frame.base + *slot as usize, expr, frame)?;
                Ok(None)
            }
            (Pattern::Vector(names, None, _), ExprKind::Vector { items, list: true, .. })
                if names.len() == items.len()
                    && names.len() <= MAX_NAMES
                    && names.iter().all(|n| matches!(n, Pattern::Name(..))) =>
            {
                self.assign_all(items, names, frame)?;
                Ok(None)
            }
            (_, ExprKind::Let { bindings, body }) => {
                self.eval_bindings(bindings, frame)?;
                let bound = maybe_grow(|| self.eval_state(body, state, init, frame));
                bound.map_err(|signal| self.leaving_let(signal, bindings))
            }
            (_, ExprKind::If(parts)) => {
                let [condition, yes, no] = &**parts;
                let choice = match self.eval_scalar(condition, frame) {
                    Some(scalar) => Choice::Known(scalar != Scalar::False),
                    None => self.other_choice(parts, frame)?,
                };
                match choice {
                    Choice::Known(holds) => {
                        let branch = if holds { yes } else { no };
                        maybe_grow(|| self.eval_state(branch, state, init, frame))
                    }
                    Choice::Recorded(value) => self.bind_state(value, state, init, frame),
                }
            }
            _ => {
                let value = self.eval(expr, frame)?;
                self.bind_state(value, state, init, frame)
            }
        }
    }

    fn bind_state(&mut self, value: Value, state: &Pattern, init: Span, frame: Frame) -> Eval<Option<Value>> {
        self.bind_pattern(state, value.clone(), frame.base).map_err(|s| s.at(init))?;
        Ok(Some(value))
    }

    /// Binds names, at most [`MAX_NAMES`], to the values of as many expressions. All are computed before any is bound;
    /// non-scalars are kept on the stack.
    #[inline(never)]
    fn assign_all(&mut self, items: &[Expr], names: &[Pattern], frame: Frame) -> Eval<()> {
        let mut scalars = [None; MAX_NAMES];
        for (scalar, item) in scalars.iter_mut().zip(items) {
            *scalar = self.eval_scalar(item, frame);
            if scalar.is_none() {
                let value = self.take_other()?;
                self.stack.push(value);
            }
        }
        for (name, scalar) in names.iter().zip(scalars).rev() {
            let Pattern::Name(slot, _) = name else { unreachable!("all are names") };
            let slot = frame.base + *slot as usize;
            match scalar {
                None => self.stack[slot] = self.stack.pop().expect("it waits"),
                scalar => self.set(slot, scalar)?,
            }
        }
        Ok(())
    }

    /// The value of the loop state, all of which is in the slots of its pattern.
    fn bound_state(&self, state: &Pattern, frame: Frame) -> Value {
        match state {
            Pattern::Name(slot, _) => self.stack[frame.base + *slot as usize].clone(),
            Pattern::Vector(names, ..) => {
                Value::vector(names.iter().map(|name| self.bound_state(name, frame)).collect())
            }
            Pattern::Keys(..) => unreachable!("a dictionary is bound as a whole"),
        }
    }
}
