//! `while_loop`: a function of a state, again and again while a condition of the state holds, as `jax.lax.while_loop`.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::region::{
    alike, carried, expect_operands, varying_parameters, parameters, picked, picked_varying, positions, present, real, spread,
    strong, type_list,
};
use super::{Cotangents, Primitive, ReduceOr, TypeFault, Types, batch_size, batch_to_front, zeros_for};
use crate::graph::{Builder, Graph, Op, Var, Vars, evaluate, masked, prune, unchecked};
use crate::stablehlo::{Cell, Lowering, quirks};
use crate::tensor::{DType, HostTensor, Shape, TensorType};
use crate::transform;

/// The operands are constants of the loop, then its first state; the results are its last state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WhileLoop {
    /// The constants and a state to a boolean scalar.
    pub condition: Arc<Graph>,
    /// The constants and a state to the next state.
    pub body: Arc<Graph>,
    /// Number of constants.
    pub constants: usize,
}

/// Number of iterations assumed by estimates of the cost.
const TYPICAL_COUNT: u64 = 1000;

impl WhileLoop {
    /// Writes the loop as a kernel.
    fn as_kernel(&self, to: &mut Lowering<'_>) {
        to.as_kernel(|to, read, written| {
            let operands: Vec<String> = read.iter().map(|x| to.load(x)).collect();
            let last = self.within_kernel(to, &operands);
            for (value, result) in last.iter().zip(written) {
                to.store(value, result);
            }
        });
    }

    /// Writes the loop inside of a kernel; its last state.
    fn within_kernel(&self, to: &mut Lowering<'_>, operands: &[String]) -> Vec<String> {
        let (constants, first) = operands.split_at(self.constants);
        let types = || self.body.outputs.iter().map(|v| self.body.ty(*v));
        // A step reads all of its state before any of it changes.
        let now: Vec<Cell> = types().map(|ty| to.new_cell(ty)).collect();
        let next: Vec<Cell> = types().map(|ty| to.new_cell(ty)).collect();
        for (cell, value) in now.iter().zip(first) {
            to.write_cell(cell, value);
        }
        let operands = |to: &mut Lowering<'_>| {
            let mut operands = constants.to_vec();
            operands.extend(now.iter().map(|cell| to.read_cell(cell)));
            operands
        };
        to.raw("scf.while : () -> () {");
        let arguments = operands(to);
        let holds = to.nested(&self.condition, arguments).swap_remove(0);
        let predicate = to.temporary(&format!("tensor.extract {holds}[] : tensor<i1>"));
        to.raw(&format!("scf.condition({predicate})"));
        to.raw("} do {");
        let arguments = operands(to);
        let made = to.nested(&self.body, arguments);
        for (cell, value) in next.iter().zip(&made) {
            to.write_cell(cell, value);
        }
        for (from, into) in next.iter().zip(&now) {
            to.copy_cell(from, into);
        }
        to.raw("scf.yield");
        to.raw("}");
        now.iter().map(|cell| to.read_cell(cell)).collect()
    }

    /// Flags of the body's parameters and results that vary, given those of the operands.
    fn varying(&self, varies: &[bool]) -> (Vec<bool>, Vec<bool>) {
        carried(&self.body, varies, self.constants, self.body.outputs.len())
    }
}

impl Primitive for WhileLoop {
    fn name(&self) -> &'static str {
        "while_loop"
    }

    fn parameters(&self) -> String {
        format!("constants={}", self.constants)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_operands("while_loop", &self.condition, args)?;
        expect_operands("while_loop", &self.body, args)?;
        let [holds] = self.condition.outputs[..] else {
            return Err(TypeFault::new("the condition of while_loop is one value"));
        };
        if *self.condition.ty(holds) != TensorType::scalar(DType::Bool) {
            let found = self.condition.ty(holds);
            return Err(TypeFault::new(format!("the condition of while_loop is one boolean, not {found}")));
        }
        let state = &self.body.inputs[self.constants..];
        if state.len() != self.body.outputs.len() {
            return Err(TypeFault::new("the body of while_loop changes the number of states"));
        }
        for (from, to) in state.iter().zip(&self.body.outputs) {
            let (from, to) = (self.body.ty(*from), self.body.ty(*to));
            if !alike(from, to) {
                return Err(TypeFault::new(format!("the body of while_loop makes {to} of the state {from}")));
            }
        }
        Ok(self.body.outputs.iter().map(|v| self.body.ty(*v).clone()).collect())
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let mut operands: Vec<HostTensor> = args.iter().map(|x| (*x).clone()).collect();
        while evaluate(&self.condition, &operands)[0].element_i64(0) != 0 {
            let state = evaluate(&self.body, &operands);
            operands.truncate(self.constants);
            operands.extend(state);
        }
        operands.split_off(self.constants).into()
    }

    fn dependence(&self, varies: &[bool]) -> Option<Vec<bool>> {
        Some(self.varying(varies).1)
    }

    fn no_vjp(&self, _: &[bool]) -> Option<&'static str> {
        Some("the number of iterations of a loop is not known")
    }

    fn no_jvp(&self, varies: &[bool]) -> Option<&'static str> {
        let wrt = positions(&self.varying(varies).0);
        transform::no_jvp(&self.body, &wrt).map(|(_, reason)| reason)
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        debug_assert!(false, "refused before, since it has no VJP");
        zeros_for(args)
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let (body, condition) = (&*self.body, &*self.condition);
        let (varies, varying) = self.varying(&present(tangents));
        let (constants, state) = body.inputs.split_at(self.constants);
        let (in_constants, in_state) = varies.split_at(self.constants);

        // The operands of the new loop: constants and their tangents, a state and its tangents.
        let inputs = |inner: &mut Builder| {
            let c = parameters(inner, body, constants);
            let dc = varying_parameters(inner, body, &picked(constants, in_constants));
            let s = parameters(inner, body, state);
            let ds = varying_parameters(inner, body, &picked(state, in_state));
            (c, dc, s, ds)
        };
        let mut inner = Builder::new();
        let (c, _, s, _) = inputs(&mut inner);
        let holds = inner.inline(&unchecked(condition), &[c, s].concat());
        let new_condition = inner.finish(holds);

        let mut inner = Builder::new();
        let (c, dc, s, ds) = inputs(&mut inner);
        let derivative = transform::jvp(&unchecked(body), &positions(&varies));
        let results = inner.inline(&derivative, &[c, s, dc, ds].concat());
        let (next, tangent) = results.split_at(body.outputs.len());
        let mut outputs = next.to_vec();
        for x in picked(tangent, &varying) {
            outputs.push(strong(&mut inner, x));
        }
        let new_body = prune(inner.finish(outputs));

        let (c, s) = args.split_at(self.constants);
        let (dc, ds) = tangents.split_at(self.constants);
        let dc = real(b, &picked_varying(dc, in_constants), &picked(c, in_constants));
        let ds = real(b, &picked_varying(ds, in_state), &picked(s, in_state));
        let op = WhileLoop {
            condition: Arc::new(new_condition),
            body: Arc::new(new_body),
            constants: c.len() + dc.len(),
        };
        let results = b.apply_all(op, &[c, &dc, s, &ds].concat());
        spread(results[s.len()..].iter().copied(), &varying)
    }

    /// The loop runs while it does for any entry; the state of ended ones stays.
    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let mut operands = Vars::new();
        let mut in_axes = Vec::new();
        for (i, (arg, axis)) in args.iter().zip(axes).enumerate() {
            let shared = axis.is_none() && i < self.constants;
            operands.push(if shared { *arg } else { batch_to_front(b, *arg, *axis, size) });
            in_axes.push(if shared { None } else { Some(0) });
        }
        let condition = transform::vmap(&self.condition, &in_axes, size);
        // A step's checks count for the entries that go on only.
        let counted: Vec<Option<usize>> = in_axes.iter().copied().chain([Some(0)]).collect();
        let body = transform::vmap(&masked(&self.body), &counted, size);

        let mut any = Builder::new();
        let inputs = parameters(&mut any, &condition, &condition.inputs);
        let each = any.inline(&condition, &inputs);
        let holds = any.apply(ReduceOr { axes: Shape::from_slice(&[0]) }, &each);
        let any = any.finish(vec![holds]);

        let mut step = Builder::new();
        let inputs = parameters(&mut step, &condition, &condition.inputs);
        let each = step.inline(&unchecked(&condition), &inputs)[0];
        let next = step.inline(&body, &[inputs.as_slice(), &[each]].concat());
        let mut outputs = Vec::new();
        for (old, new) in inputs[self.constants..].iter().zip(next) {
            let shape = step.shape(new);
            let going = step.broadcast_in_dim(each, &shape, &[0]);
            outputs.push(step.select(going, new, *old));
        }
        let step = step.finish(outputs);
        let op = WhileLoop { condition: Arc::new(any), body: Arc::new(step), constants: self.constants };
        b.apply_all(op, &operands).into_iter().map(|v| (v, 0)).collect()
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let operands: Vec<String> = (0..to.operand_count()).map(|i| to.operand(i)).collect();
        let carried = self.body.outputs.iter().map(|v| self.body.ty(*v));
        if to.in_kernel() {
            let last = self.within_kernel(to, &operands);
            return to.name_results(&last);
        }
        if to.can_be_kernel(&[&self.condition, &self.body], carried) {
            return self.as_kernel(to);
        }
        let constants = &operands[..self.constants];
        let (held, types) = (to.results_to_hold(), to.result_types());
        let mut states = Vec::new();
        let mut bindings = Vec::new();
        for i in self.constants..to.operand_count() {
            let name = to.name_temporary();
            bindings.push(format!("{name} = {}", to.operand(i)));
            states.push(name);
        }
        let operands = [constants, &states].concat();
        to.raw(&format!("{} = stablehlo.while({}) : {types}", held.join(", "), bindings.join(", ")));
        to.raw("cond {");
        let holds = to.nested_region(&self.condition, operands.clone());
        to.give(&holds, "tensor<i1>");
        to.raw("} do {");
        let mut next = to.nested_region(&self.body, operands.clone());
        quirks::hold_states(to, &self.body, &self.body.inputs[self.constants..], &states, &mut next);
        to.give(&next, &type_list(self.body.outputs.iter().map(|v| self.body.ty(*v))));
        to.raw("}");
        to.hold(&held);
    }

    fn map_bodies(&self, f: &mut dyn FnMut(&Graph) -> Graph) -> Option<Op> {
        let (condition, body) = (Arc::new(f(&self.condition)), Arc::new(f(&self.body)));
        Some(Arc::new(WhileLoop { condition, body, constants: self.constants }))
    }

    fn functions(&self) -> SmallVec<[&Graph; 2]> {
        smallvec![&*self.condition, &*self.body]
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        TYPICAL_COUNT.saturating_mul(self.body.cost().saturating_add(self.condition.cost()))
    }
}
