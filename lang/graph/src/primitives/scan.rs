//! `scan`: a loop of known length with a state, rows of tensors to read and rows to write, as `jax.lax.scan`.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::region::{
    alike, are_floats, carried, expect_operands, varying_parameters, parameters, picked, picked_varying, positions,
    present, real, spread, strong,
};
use super::scan_updates::{is_read_in_parts, reads_part};
use super::{scan_kernel, scan_lowering, scan_rows};
use super::{
    Concatenate, Cotangents, DotGeneral, Primitive, Reshape, Slice, TypeFault, Types, batch_size, batch_to_front,
};
use crate::graph::{Builder, DefUse, Equation, Graph, Op, Var, evaluate, prune, unchecked};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, Shape, TensorType};
use crate::transform;

/// The operands are constants of the loop, its first state, and tensors whose rows the steps read. The results are the
/// last state, and tensors of the rows that the steps give.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// The constants, a state and a row of each tensor to the next state and a row of each result.
    pub body: Arc<Graph>,
    /// The number of steps.
    pub length: usize,
    /// Number of constants.
    pub constants: usize,
    /// Number of tensors in the state.
    pub states: usize,
    /// True for steps from the last row to the first.
    pub reverse: bool,
}

/// `ty` with an axis of extent `length` in front.
pub(super) fn rows_of(ty: &TensorType, length: usize) -> TensorType {
    let shape: Shape = std::iter::once(length).chain(ty.shape.iter().copied()).collect();
    TensorType::new(ty.dtype, shape)
}

fn row(x: &HostTensor, k: usize) -> HostTensor {
    let mut start = Shape::from_elem(0, x.shape().len());
    let mut limit = Shape::from_slice(x.shape());
    start[0] = k;
    limit[0] = k + 1;
    let row = Slice { start, limit }.evaluate(&[x]);
    Reshape { shape: Shape::from_slice(&x.shape()[1..]) }.evaluate(&[&row[0]]).swap_remove(0)
}

fn stacked(rows: &[HostTensor]) -> HostTensor {
    let shape: Shape = std::iter::once(1).chain(rows[0].shape().iter().copied()).collect();
    let reshape = Reshape { shape };
    let rows: Vec<HostTensor> = rows.iter().map(|x| reshape.evaluate(&[x]).swap_remove(0)).collect();
    Concatenate { axis: 0 }.evaluate(&rows.iter().collect::<Vec<_>>()).swap_remove(0)
}

/// Minimum operations for each element of a result that is saved for the gradient; others are computed again from the state.
/// A product has two for each of its terms.
const SAVED_COST: u64 = 16;

/// Minimum operations of such a result, other than a product: less is computed again in the time that a row of a stack takes.
const SAVED_WORK: u64 = 4096;

impl Scan {
    /// The body's parameters: constants, state, rows.
    pub(super) fn inputs(&self) -> [&[Var]; 3] {
        let (constants, rest) = self.body.inputs.split_at(self.constants);
        let (state, rows) = rest.split_at(self.states);
        [constants, state, rows]
    }

    /// The operands: constants, state, tensors of rows.
    pub(super) fn parts<'a, T>(&self, operands: &'a [T]) -> [&'a [T]; 3] {
        let (constants, rest) = operands.split_at(self.constants);
        let (state, rows) = rest.split_at(self.states);
        [constants, state, rows]
    }

    /// Flags of the body's parameters and results that vary, given those of the operands.
    fn varying(&self, varies: &[bool]) -> (Vec<bool>, Vec<bool>) {
        carried(&self.body, varies, self.constants, self.states)
    }

    /// This scan with further rows for its gradient: the state before each step, and results that are too much work to
    /// compute again.
    fn saving(&self) -> Scan {
        let mut body = (*self.body).clone();
        body.outputs.extend_from_slice(self.inputs()[1]);
        body.outputs.extend(self.saved(&unchecked(&self.body)));
        Scan { body: Arc::new(body), ..self.clone() }
    }

    /// The results of steps that are saved for the gradient, of `plain`, the body without checks: those that are much work for
    /// their size, and differ from step to step, and parts of states that a step reads no more of.
    fn saved(&self, plain: &Graph) -> Vec<Var> {
        let changing = plain.dependents(&plain.inputs[self.constants..]);
        let uses = DefUse::of(plain);
        let states = &plain.inputs[self.constants..][..self.states];
        let in_parts: Vec<Var> = states.iter().copied().filter(|v| is_read_in_parts(&uses, *v)).collect();
        let is_saved = |eqn: &&Equation| {
            if eqn.inputs.first().is_some_and(|v| in_parts.contains(v)) {
                return reads_part(eqn);
            }
            let cost = plain.equation_cost(eqn);
            let elements: usize = eqn.outputs.iter().map(|v| plain.ty(*v).count()).sum();
            let is_large = eqn.op.is::<DotGeneral>() || cost >= SAVED_WORK;
            let is_whole = eqn.op.functions().is_empty() && eqn.op.with_residuals().is_none();
            let is_changing = eqn.outputs.iter().any(|v| changing[v.index()]);
            is_whole && is_changing && is_large && cost >= SAVED_COST * elements as u64
        };
        plain.equations.iter().filter(is_saved).flat_map(|eqn| eqn.outputs.iter().copied()).collect()
    }
}

impl Primitive for Scan {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn parameters(&self) -> String {
        let Scan { length, constants, states, reverse, .. } = self;
        format!("length={length} constants={constants} states={states} reverse={reverse}")
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        if args.len() < self.constants + self.states {
            return Err(TypeFault::new("scan has fewer operands than constants and states"));
        }
        let mut operands: Vec<TensorType> = args.iter().map(|ty| (*ty).clone()).collect();
        for ty in &mut operands[self.constants + self.states..] {
            if ty.shape.first() != Some(&self.length) {
                return Err(TypeFault::new(format!("scan of {} steps over the rows of {ty}", self.length)));
            }
            *ty = ty.with_shape(Shape::from_slice(&ty.shape[1..]));
        }
        expect_operands("scan", &self.body, &operands.iter().collect::<Vec<_>>())?;
        let state = self.inputs()[1];
        if self.body.outputs.len() < state.len() {
            return Err(TypeFault::new("the body of scan changes the number of states"));
        }
        let mut results = Types::new();
        for (i, var) in self.body.outputs.iter().enumerate() {
            let ty = self.body.ty(*var);
            match state.get(i) {
                Some(from) if !alike(self.body.ty(*from), ty) => {
                    let from = self.body.ty(*from);
                    return Err(TypeFault::new(format!("the body of scan makes {ty} of the state {from}")));
                }
                Some(_) => results.push(ty.clone()),
                None => results.push(rows_of(ty, self.length)),
            }
        }
        Ok(results)
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let [constants, state, tensors] = self.parts(args);
        let owned = |xs: &[&HostTensor]| xs.iter().map(|x| (*x).clone()).collect::<Vec<HostTensor>>();
        let constants = owned(constants);
        let mut state = owned(state);
        let mut rows = vec![Vec::with_capacity(self.length); self.body.outputs.len() - self.states];
        for step in 0..self.length {
            let k = if self.reverse { self.length - 1 - step } else { step };
            let mut operands = [constants.as_slice(), &state].concat();
            operands.extend(tensors.iter().map(|x| row(x, k)));
            state = evaluate(&self.body, &operands);
            for (rows, row) in rows.iter_mut().zip(state.split_off(self.states)) {
                rows.push(row);
            }
        }
        let outputs = self.body.outputs[self.states..].iter().zip(rows).map(|(var, mut rows)| {
            if rows.is_empty() {
                let ty = rows_of(self.body.ty(*var), 0);
                return HostTensor::filled(ty.dtype, ty.shape, 0.0);
            }
            if self.reverse {
                rows.reverse();
            }
            stacked(&rows)
        });
        let outputs: Vec<HostTensor> = outputs.collect();
        state.into_iter().chain(outputs).collect()
    }

    fn dependence(&self, varies: &[bool]) -> Option<Vec<bool>> {
        Some(self.varying(varies).1)
    }

    fn no_vjp(&self, varies: &[bool]) -> Option<&'static str> {
        let wrt = positions(&self.varying(varies).0);
        transform::no_vjp(&self.body, &wrt).map(|(_, reason)| reason)
    }

    fn no_jvp(&self, varies: &[bool]) -> Option<&'static str> {
        let wrt = positions(&self.varying(varies).0);
        transform::no_jvp(&self.body, &wrt).map(|(_, reason)| reason)
    }

    fn with_residuals(&self) -> Option<Op> {
        Some(Arc::new(self.saving()))
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        self.vjp_by(b, args, outs, cotangents, &are_floats(&self.body, &self.body.inputs))
    }

    /// A scan in the other direction. Its state is the cotangent of the state, and the sums of those of the constants;
    /// each step computes the body again from the state before it, except saved results.
    fn vjp_by(
        &self,
        b: &mut Builder,
        args: &[Var],
        outs: &[Var],
        cotangents: &[Option<Var>],
        varies: &[bool],
    ) -> Cotangents {
        let body = &*self.body;
        let (results, saved) = if outs.len() > body.outputs.len() {
            let (results, saved) = outs.split_at(body.outputs.len());
            (results.to_vec(), saved.to_vec())
        } else {
            let all = b.apply_all(self.saving(), args);
            (outs.to_vec(), all[body.outputs.len()..].to_vec())
        };
        let cotangents = &cotangents[..results.len()];
        let [constants, state, rows] = self.inputs();
        let (last, given) = body.outputs.split_at(self.states);
        let (varying, _) = self.varying(varies);
        let [in_constants, in_state, _] = self.parts(&varying);

        let plain = unchecked(body);
        let computed_before = self.saved(&plain);

        let mut inner = Builder::new();
        let c = parameters(&mut inner, body, constants);
        let ct_state = varying_parameters(&mut inner, body, &picked(last, in_state));
        let sums = varying_parameters(&mut inner, body, &picked(constants, in_constants));
        let before = parameters(&mut inner, body, state);
        let computed = parameters(&mut inner, body, &computed_before);
        let x = parameters(&mut inner, body, rows);
        let ct_given = varying_parameters(&mut inner, body, given);
        let derivative = transform::vjp_given(&plain, &positions(&varying), &computed_before);
        // The body's VJP takes a cotangent for every float; a state that does not vary has none to pass on.
        let flowing = spread(ct_state.iter().copied(), in_state);
        let ct_last = real(&mut inner, &flowing, &before);
        let operands = [c.as_slice(), &before, &x, &ct_last, &ct_given, &computed].concat();
        let pulled = inner.inline(&derivative, &operands).split_off(body.outputs.len());
        let pulled: Vec<Var> = pulled.into_iter().map(|v| strong(&mut inner, v)).collect();
        let (of_constants, rest) = pulled.split_at(sums.len());
        let (of_state, of_rows) = rest.split_at(ct_state.len());
        let sums: Vec<Var> = sums.iter().zip(of_constants).map(|(sum, ct)| inner.add(*sum, *ct)).collect();
        let outputs = [of_state, &sums, of_rows].concat();
        let back = Scan {
            body: Arc::new(prune(inner.finish(outputs))),
            length: self.length,
            constants: constants.len(),
            states: ct_state.len() + sums.len(),
            reverse: !self.reverse,
        };

        let [c, _, x] = self.parts(args);
        let (ct_last, ct_given) = cotangents.split_at(self.states);
        let mut operands = c.to_vec();
        operands.extend(real(b, &picked_varying(ct_last, in_state), &picked(&results[..self.states], in_state)));
        operands.extend(real(b, &vec![None; sums.len()], &picked(c, in_constants)));
        operands.extend(saved);
        operands.extend_from_slice(x);
        operands.extend(real(b, ct_given, &results[self.states..]));
        let found = b.apply_all(back, &operands);
        let (of_state, rest) = found.split_at(ct_state.len());
        let (of_constants, of_rows) = rest.split_at(sums.len());
        spread([of_constants, of_state, of_rows].concat(), &varying)
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let body = &*self.body;
        let (varies, varying) = self.varying(&present(tangents));

        let mut inner = Builder::new();
        let mut values = Vec::new();
        let mut pushed = Vec::new();
        for (vars, varies) in self.inputs().into_iter().zip(self.parts(&varies)) {
            values.extend(parameters(&mut inner, body, vars));
            pushed.extend(varying_parameters(&mut inner, body, &picked(vars, varies)));
        }
        let derivative = transform::jvp(&unchecked(body), &positions(&varies));
        let results = inner.inline(&derivative, &[values, pushed].concat());
        let (next, tangent) = results.split_at(body.outputs.len());
        let mut tangent = picked(tangent, &varying);
        for x in &mut tangent {
            *x = strong(&mut inner, *x);
        }
        let varying_states = varying[..self.states].iter().filter(|float| **float).count();
        let (last, given) = next.split_at(self.states);
        let (d_last, d_given) = tangent.split_at(varying_states);
        let outputs = [last, d_last, given, d_given].concat();
        let new_body = Arc::new(prune(inner.finish(outputs)));

        let mut operands = Vec::new();
        let mut counts = [0; 3];
        let parts = self.parts(args).into_iter().zip(self.parts(tangents)).zip(self.parts(&varies));
        for (count, ((values, tangents), varies)) in counts.iter_mut().zip(parts) {
            let before = operands.len();
            operands.extend_from_slice(values);
            operands.extend(real(b, &picked_varying(tangents, varies), &picked(values, varies)));
            *count = operands.len() - before;
        }
        let op = Scan { body: new_body, constants: counts[0], states: counts[1], ..self.clone() };
        let results = b.apply_all(op, &operands);
        let given = body.outputs.len() - self.states;
        let d_last = &results[self.states..counts[1]];
        let d_given = &results[counts[1] + given..];
        spread([d_last, d_given].concat(), &varying)
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let mut operands = Vec::new();
        let mut in_axes = Vec::new();
        for (i, (arg, axis)) in args.iter().zip(axes).enumerate() {
            if i < self.constants + self.states {
                let shared = axis.is_none() && i < self.constants;
                operands.push(if shared { *arg } else { batch_to_front(b, *arg, *axis, size) });
                in_axes.push(if shared { None } else { Some(0) });
                continue;
            }
            // The rows stay in front, the batch comes after them.
            let Some(axis) = *axis else {
                operands.push(*arg);
                in_axes.push(None);
                continue;
            };
            let mut permutation: Vec<usize> = (0..b.ty(*arg).rank()).filter(|a| *a != axis).collect();
            permutation.insert(1, axis);
            operands.push(b.transpose(*arg, &permutation));
            in_axes.push(Some(0));
        }
        let body = Arc::new(transform::vmap(&self.body, &in_axes, size));
        let results = b.apply_all(Scan { body, ..self.clone() }, &operands);
        let axis = |i: usize| usize::from(i >= self.states);
        results.into_iter().enumerate().map(|(i, v)| (v, axis(i))).collect()
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let carried = self.inputs()[1].iter().map(|v| self.body.ty(*v));
        if to.in_kernel() {
            scan_kernel::within_kernel(self, to);
        } else if to.can_be_kernel(&[&self.body], carried) {
            scan_kernel::as_kernel(self, to);
        } else if scan_rows::as_kernel(self, to) {
            // All of it is written.
        } else if to.can_branch() {
            scan_lowering::in_blocks(self, to);
        } else {
            scan_lowering::in_region(self, to);
        }
    }

    fn map_bodies(&self, f: &mut dyn FnMut(&Graph) -> Graph) -> Option<Op> {
        Some(Arc::new(Scan { body: Arc::new(f(&self.body)), ..self.clone() }))
    }

    fn functions(&self) -> SmallVec<[&Graph; 2]> {
        smallvec![&*self.body]
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        (self.length as u64).saturating_mul(self.body.cost())
    }
}
