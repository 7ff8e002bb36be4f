//! `repeat` and `while`.

use super::expr::{Expr, ExprKind};
use super::interp::{Frame, Interp};
use super::signal::{Eval, Reason, Signal, TraceStop};
use super::value::Value;
use crate::syntax::Span;

/// Longer loops are not unrolled into the program that is being traced.
const MAX_UNROLLED: u64 = 16;

/// How many iterations a loop of unknown count is taken to have, when the evaluator weighs compiling its body.
const UNKNOWN_COUNT: u64 = 1000;

impl Interp {
    /// Runs `f` as the body of a loop of `count` iterations: calls in it weigh that much more.
    pub(crate) fn in_loop<T>(&mut self, count: u64, f: impl FnOnce(&mut Interp) -> Eval<T>) -> Eval<T> {
        let outer = self.weight;
        self.weight = outer.saturating_mul(count.max(1));
        let result = f(self);
        self.weight = outer;
        result
    }

    /// Stops the trace of a function for compilation, if there is one, before a loop of the call being evaluated that
    /// is too long to be unrolled.
    pub(super) fn check_unrolled(&self, count: u64) -> Eval<()> {
        match self.span {
            Some(span) if count > MAX_UNROLLED => self.stop_unrolling(span),
            _ => Ok(()),
        }
    }

    /// Stops the trace of a function for compilation, if there is one.
    fn stop_unrolling(&self, span: Span) -> Eval<()> {
        if self.recording == 0 {
            return Ok(());
        }
        Err(Signal::Trace(Box::new(TraceStop { reason: Reason::Loop, span: Some(span) })))
    }

    pub(super) fn eval_loop(&mut self, expr: &Expr, frame: Frame) -> Eval<Value> {
        match &expr.kind {
            ExprKind::Repeat { index, count, state, init, body } => {
                let n = self.eval(count, frame)?;
                let n = crate::builtins::as_index(&n, "the count of repeat").map_err(|s| s.at(count.span))?;
                if n > MAX_UNROLLED as i64 {
                    self.stop_unrolling(expr.span)?;
                }
                let mut acc = self.eval(init, frame)?;
                self.in_loop(n.max(0) as u64, |interp| {
                    for i in 0..n {
                        interp.step().map_err(|s| s.at(expr.span))?;
                        interp.stack[frame.base + *index as usize] = Value::Int(i);
                        let value = std::mem::replace(&mut acc, Value::Nil);
                        interp.bind_pattern(state, value, frame.base).map_err(|s| s.at(init.span))?;
                        acc = interp.eval(body, frame)?;
                    }
                    Ok(acc)
                })
            }
            ExprKind::While { condition, state, init, body } => {
                let mut acc = self.eval(init, frame)?;
                let mut iterations = 0;
                self.in_loop(UNKNOWN_COUNT, |interp| {
                    loop {
                        interp.step().map_err(|s| s.at(expr.span))?;
                        iterations += 1;
                        if iterations > MAX_UNROLLED {
                            interp.stop_unrolling(expr.span)?;
                        }
                        interp.bind_pattern(state, acc.clone(), frame.base).map_err(|s| s.at(init.span))?;
                        let go = interp.eval(condition, frame)?;
                        if !go.truthy().map_err(|s| s.at(condition.span))? {
                            return Ok(acc);
                        }
                        acc = interp.eval(body, frame)?;
                    }
                })
            }
            _ => unreachable!("called for loops"),
        }
    }
}
