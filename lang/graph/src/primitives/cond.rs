//! `cond`: one of two functions, by a truth value, as `jax.lax.cond`.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::region::{
    are_floats, expect_operands, varying_parameters, parameters, picked, picked_varying, positions, present, real,
    spread, strong, type_list,
};
use super::{Cotangents, Not, Primitive, TypeFault, Types, Unary, batch_size, batch_to_front};
use crate::graph::{Builder, Graph, Op, Var, evaluate, masked, prune, unchecked};
use crate::stablehlo::{Cell, Lowering};
use crate::tensor::{DType, HostTensor, TensorType};
use crate::transform;

/// The first operand, a scalar boolean, chooses the function; the others are the operands of either.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cond {
    /// The function for true.
    pub on_true: Arc<Graph>,
    /// The function for false.
    pub on_false: Arc<Graph>,
}

impl Cond {
    fn map(&self, mut f: impl FnMut(&Graph) -> Graph) -> Cond {
        Cond { on_true: Arc::new(f(&self.on_true)), on_false: Arc::new(f(&self.on_false)) }
    }

    /// Flags of the results that vary in one of the functions, given those of the operands.
    fn varying(&self, varies: &[bool]) -> Vec<bool> {
        let [yes, no] = [&self.on_true, &self.on_false].map(|branch| transform::varying(branch, varies));
        yes.iter().zip(no).map(|(yes, no)| *yes || no).collect()
    }
}

impl Cond {
    /// The results of both functions for `args`, of which the first chooses.
    pub fn select(&self, b: &mut Builder, args: &[Var]) -> Vec<Var> {
        chosen(b, &self.masked(), args[0], &args[1..])
    }

    /// The functions with a further parameter, whether the function is chosen: only then do its checks count.
    fn masked(&self) -> [Graph; 2] {
        [masked(&self.on_true), masked(&self.on_false)]
    }

    /// Writes the conditional inside of a kernel: the branch that is taken writes the results into memory.
    fn within_kernel(&self, to: &mut Lowering<'_>) {
        let operands: Vec<String> = (1..to.operand_count()).map(|i| to.operand(i)).collect();
        let types: Vec<TensorType> = self.on_true.outputs.iter().map(|v| self.on_true.ty(*v).clone()).collect();
        let cells: Vec<Cell> = types.iter().map(|ty| to.new_cell(ty)).collect();
        let predicate = to.temporary(&format!("tensor.extract {}[] : tensor<i1>", to.operand(0)));
        to.raw(&format!("scf.if {predicate} {{"));
        for (branch, end) in [(&self.on_true, "} else {"), (&self.on_false, "}")] {
            let given = to.nested(branch, operands.clone());
            for (cell, value) in cells.iter().zip(&given) {
                to.write_cell(cell, value);
            }
            to.raw(end);
        }
        let results: Vec<String> = cells.iter().map(|cell| to.read_cell(cell)).collect();
        to.name_results(&results);
    }
}

impl Primitive for Cond {
    fn name(&self) -> &'static str {
        "cond"
    }

    fn parameters(&self) -> String {
        format!("{} {}", self.on_true.equations.len(), self.on_false.equations.len())
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        let Some((predicate, operands)) = args.split_first() else {
            return Err(TypeFault::new("cond without a condition"));
        };
        if **predicate != TensorType::scalar(DType::Bool) {
            return Err(TypeFault::new(format!("cond chooses by one boolean, not by {predicate}")));
        }
        expect_operands("cond", &self.on_true, operands)?;
        expect_operands("cond", &self.on_false, operands)?;
        let types = |g: &Graph| g.outputs.iter().map(|v| g.ty(*v).clone()).collect::<Types>();
        let (yes, no) = (types(&self.on_true), types(&self.on_false));
        if yes != no {
            return Err(TypeFault::new(format!("the branches of cond give {yes:?} and {no:?}")));
        }
        Ok(yes)
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let operands: Vec<HostTensor> = args[1..].iter().map(|x| (*x).clone()).collect();
        let branch = if args[0].element_i64(0) == 0 { &self.on_false } else { &self.on_true };
        evaluate(branch, &operands).into()
    }

    fn dependence(&self, varies: &[bool]) -> Option<Vec<bool>> {
        Some(self.varying(&varies[1..]))
    }

    fn no_vjp(&self, varies: &[bool]) -> Option<&'static str> {
        let wrt = positions(&varies[1..]);
        let branches = [&self.on_true, &self.on_false].into_iter();
        branches.filter_map(|g| transform::no_vjp(g, &wrt)).map(|(_, reason)| reason).next()
    }

    fn no_jvp(&self, varies: &[bool]) -> Option<&'static str> {
        let wrt = positions(&varies[1..]);
        let branches = [&self.on_true, &self.on_false].into_iter();
        branches.filter_map(|g| transform::no_jvp(g, &wrt)).map(|(_, reason)| reason).next()
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let floats = are_floats(&self.on_true, &self.on_true.inputs);
        let varies: Vec<bool> = std::iter::once(false).chain(floats).collect();
        self.vjp_by(b, args, outs, cotangents, &varies)
    }

    fn vjp_by(
        &self,
        b: &mut Builder,
        args: &[Var],
        outs: &[Var],
        cotangents: &[Option<Var>],
        varies: &[bool],
    ) -> Cotangents {
        let wrt = positions(&varies[1..]);
        let back = self.map(|branch| {
            let derivative = transform::vjp(&unchecked(branch), &wrt);
            let mut inner = Builder::new();
            let inputs = parameters(&mut inner, &derivative, &derivative.inputs);
            let mut results = inner.inline(&derivative, &inputs).split_off(branch.outputs.len());
            for x in &mut results {
                *x = strong(&mut inner, *x);
            }
            prune(inner.finish(results))
        });
        let mut operands = args.to_vec();
        operands.extend(real(b, cotangents, outs));
        spread(b.apply_all(back, &operands), varies)
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let (args_of, tangents) = (&args[1..], &tangents[1..]);
        let varies = present(tangents);
        let varying = self.varying(&varies);
        let push = self.map(|branch| {
            let derivative = transform::jvp(&unchecked(branch), &positions(&varies));
            let mut inner = Builder::new();
            let mut inputs = parameters(&mut inner, branch, &branch.inputs);
            inputs.extend(varying_parameters(&mut inner, branch, &picked(&branch.inputs, &varies)));
            let results = inner.inline(&derivative, &inputs).split_off(branch.outputs.len());
            let results = picked(&results, &varying);
            let results = results.into_iter().map(|x| strong(&mut inner, x)).collect();
            prune(inner.finish(results))
        });
        let mut operands = args.to_vec();
        operands.extend(real(b, &picked_varying(tangents, &varies), &picked(args_of, &varies)));
        spread(b.apply_all(push, &operands), &varying)
    }

    /// A condition that all share chooses for all; one for each chooses among the results of both functions.
    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let front = |b: &mut Builder, i: usize| {
            if axes[i].is_some() { batch_to_front(b, args[i], axes[i], size) } else { args[i] }
        };
        let operands: Vec<Var> = (0..args.len()).map(|i| front(b, i)).collect();
        let mut in_axes: Vec<Option<usize>> = axes[1..].iter().map(|axis| axis.map(|_| 0)).collect();
        if axes[0].is_none() {
            let batched = self.map(|branch| transform::vmap(branch, &in_axes, size));
            return b.apply_all(batched, &operands).into_iter().map(|v| (v, 0)).collect();
        }
        in_axes.push(Some(0));
        let branches = self.masked().map(|branch| transform::vmap(&branch, &in_axes, size));
        let results = chosen(b, &branches, operands[0], &operands[1..]);
        results.into_iter().map(|v| (v, 0)).collect()
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        if to.in_kernel() {
            return self.within_kernel(to);
        }
        let operands: Vec<String> = (1..to.operand_count()).map(|i| to.operand(i)).collect();
        let (held, types) = (to.results_to_hold(), to.result_types());
        to.raw(&format!("{} = \"stablehlo.if\"({}) ({{", held.join(", "), to.operand(0)));
        let given = to.nested_region(&self.on_true, operands.clone());
        to.give(&given, &types);
        to.raw("}, {");
        let given = to.nested_region(&self.on_false, operands);
        to.give(&given, &types);
        let types = type_list(self.on_true.outputs.iter().map(|v| self.on_true.ty(*v)));
        to.raw(&format!("}}) : (tensor<i1>) -> ({types})"));
        to.hold(&held);
    }

    fn map_bodies(&self, f: &mut dyn FnMut(&Graph) -> Graph) -> Option<Op> {
        Some(Arc::new(self.map(f)))
    }

    fn functions(&self) -> SmallVec<[&Graph; 2]> {
        smallvec![&*self.on_true, &*self.on_false]
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        self.on_true.cost().max(self.on_false.cost())
    }
}

/// The results of two functions for the same operands, chosen among by `holds`, one truth value or one for each row.
fn chosen(b: &mut Builder, [yes, no]: &[Graph; 2], holds: Var, operands: &[Var]) -> Vec<Var> {
    let yes = b.inline(yes, &[operands, &[holds]].concat());
    let other = b.apply(Unary(Not), &[holds]);
    let no = b.inline(no, &[operands, &[other]].concat());
    let axes: Vec<usize> = (0..b.ty(holds).rank()).collect();
    let choose = |(yes, no): (Var, Var)| {
        let shape = b.shape(yes);
        let predicate = b.broadcast_in_dim(holds, &shape, &axes);
        b.select(predicate, yes, no)
    };
    yes.into_iter().zip(no).map(choose).collect()
}
