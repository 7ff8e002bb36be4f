//! Evaluation of scalar expressions in registers.

use super::interp::{Frame, Interp};
use super::signal::{Eval, Signal};
use crate::program::{Expr, ExprKind, Function, OnNumbers, Scalar, Value, VarLocation};
use crate::stack::maybe_grow;

impl Interp {
    /// Evaluates an expression. A non-scalar result or an error is left for [`Interp::take_other`].
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "numbers in variables are read where they are used")]
    pub(super) fn eval_scalar(&mut self, expr: &Expr, frame: Frame) -> Option<Scalar> {
        let value = match &expr.kind {
            ExprKind::Const(value) => value,
            ExprKind::Local(VarLocation::Frame(slot), _) => &self.stack[frame.base + *slot as usize],
            _ => return self.eval_unlikely_scalar(expr, frame),
        };
        match value {
            Value::Int(n) => Some(Scalar::Int(*n)),
            Value::Float(x) => Some(Scalar::from(*x)),
            _ => self.eval_unlikely_scalar(expr, frame),
        }
    }

    #[inline(never)]
    fn eval_unlikely_scalar(&mut self, expr: &Expr, frame: Frame) -> Option<Scalar> {
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::Local(..) | ExprKind::Global(_) => {
                let value = self.eval(expr, frame);
                self.scalar_or_other(value)
            }
            ExprKind::Call { on_numbers: Some(on_numbers), args, .. } => {
                maybe_grow(|| self.eval_arithmetic(expr, *on_numbers, args, frame))
            }
            _ => maybe_grow(|| self.eval_compound(expr, frame)),
        }
    }

    /// [`Interp::eval_scalar`] for the call `expr` of a builtin with a fast path for two scalars.
    pub(super) fn eval_arithmetic(
        &mut self,
        expr: &Expr,
        on_numbers: OnNumbers,
        args: &[Expr],
        frame: Frame,
    ) -> Option<Scalar> {
        let [x, y] = args else { unreachable!("arithmetic is on two numbers") };
        let Some(a) = self.eval_scalar(x, frame) else {
            let values = self.take_other().and_then(|a| Ok([a, self.eval(y, frame)?]));
            return self.call_arithmetic(expr, values);
        };
        let Some(b) = self.eval_scalar(y, frame) else {
            let values = self.take_other().map(|b| [Value::from(a), b]);
            return self.call_arithmetic(expr, values);
        };
        on_numbers(a, b).or_else(|| self.call_arithmetic(expr, Ok([Value::from(a), Value::from(b)])))
    }

    /// [`Interp::eval_arithmetic`] if the operands are not two numbers.
    #[inline(never)]
    fn call_arithmetic(&mut self, expr: &Expr, operands: Eval<[Value; 2]>) -> Option<Scalar> {
        let ExprKind::Call { head, .. } = &expr.kind else { unreachable!("a call") };
        let ExprKind::Const(Value::Function(function)) = &head.kind else { unreachable!("a known function") };
        let Function::Builtin(builtin) = &**function else { unreachable!("a builtin") };
        self.in_call(expr, operands, |i, operands, place| i.call_builtin(builtin, &operands, place))
    }

    /// Returns a value like [`Interp::eval_scalar`].
    #[inline]
    pub(super) fn scalar_or_other(&mut self, value: Eval<Value>) -> Option<Scalar> {
        let scalar = value.as_ref().ok().and_then(Scalar::of);
        if scalar.is_none() {
            self.other = value;
        }
        scalar
    }

    /// Non-scalar result or error of the last [`Interp::eval_scalar`].
    pub(super) fn take_other(&mut self) -> Eval<Value> {
        std::mem::replace(&mut self.other, Ok(Value::Nil))
    }

    /// The result of the last [`Interp::eval_scalar`] as a value.
    #[inline]
    pub(super) fn given(&mut self, scalar: Option<Scalar>) -> Eval<Value> {
        scalar.map_or_else(|| self.take_other(), |scalar| Ok(Value::from(scalar)))
    }

    /// Adds slots to the stack, to be assigned: pushing a value writes it twice. Returns the first slot.
    #[inline]
    pub(super) fn add_slots(&mut self, count: usize) -> usize {
        let first = self.stack.len();
        self.stack.resize_with(first + count, || Value::Int(0));
        first
    }

    /// Assigns to a stack slot the value of an expression that is probably a number.
    #[inline]
    pub(super) fn assign(&mut self, slot: usize, expr: &Expr, frame: Frame) -> Eval<()> {
        let scalar = self.eval_scalar(expr, frame);
        self.set(slot, scalar)
    }

    /// Assigns to a stack slot the result of the last [`Interp::eval_scalar`].
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "numbers go from registers to their slots")]
    pub(super) fn set(&mut self, slot: usize, scalar: Option<Scalar>) -> Eval<()> {
        match (scalar, &mut self.stack[slot]) {
            // Usually the old value is a number of the same kind.
            (Some(Scalar::Int(n)), Value::Int(old)) => *old = n,
            (Some(Scalar::Float(x)), Value::Float(old)) => *old = x.value(),
            _ => self.set_other(slot, scalar)?,
        }
        Ok(())
    }

    /// Assigns to a stack slot a value that is probably a number.
    #[inline]
    pub(super) fn set_value(&mut self, slot: usize, value: Value) {
        match Scalar::of(&value) {
            None => self.stack[slot] = value,
            scalar => self.set(slot, scalar).expect("a scalar is no error"),
        }
    }

    #[inline(never)]
    fn set_other(&mut self, slot: usize, scalar: Option<Scalar>) -> Eval<()> {
        self.stack[slot] = self.given(scalar)?;
        Ok(())
    }

    /// Adds context to the error of the last [`Interp::eval_scalar`], if it is one.
    #[inline]
    pub(super) fn amend(
        &mut self,
        scalar: Option<Scalar>,
        f: impl FnOnce(&Interp, Signal) -> Signal,
    ) -> Option<Scalar> {
        if scalar.is_none() && self.other.is_err() {
            self.other = self.take_other().map_err(|signal| f(self, signal));
        }
        scalar
    }
}
