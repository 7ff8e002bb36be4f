//! Records equations, one at a time, checking the type of each.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Equation, Graph, Op, Var, Vars};
use crate::primitives as p;
use crate::primitives::{Primitive, TypeFault};
use crate::tensor::{DType, HostTensor, Number, Shape, TensorType};
use sheaf_syntax::Span;

/// The message of the panic that a wrong derivative, batching or composition rule causes. The registry test
/// runs every rule, so users never see it.
pub const RULE: &str = "a rule emits well-typed equations";

/// A graph under construction.
///
/// The short methods (`add`, `mul`, `sum`, ...) are for rules, which know their operands' types; they panic with
/// [`RULE`] if a rule is wrong. Code that handles user input calls [`Builder::bind`].
#[derive(Debug, Default)]
pub struct Builder {
    graph: Graph,
    scalars: HashMap<(DType, u64), Var>,
    /// Recorded as the origin of the next equations.
    pub span: Option<Span>,
}

impl Builder {
    /// An empty graph.
    pub fn new() -> Self {
        Builder::default()
    }

    /// Adds a parameter.
    pub fn input(&mut self, ty: TensorType) -> Var {
        let var = self.fresh(ty);
        self.graph.inputs.push(var);
        var
    }

    fn fresh(&mut self, ty: TensorType) -> Var {
        let var = Var(self.graph.types.len() as u32);
        self.graph.types.push(ty);
        var
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The type of a variable.
    pub fn ty(&self, var: Var) -> &TensorType {
        self.graph.ty(var)
    }

    /// The shape of a variable.
    pub fn shape(&self, var: Var) -> Shape {
        self.ty(var).shape.clone()
    }

    /// Ends the graph with these results.
    pub fn finish(mut self, outputs: Vec<Var>) -> Graph {
        self.graph.outputs = outputs;
        self.graph
    }

    /// Records `op(inputs)` after checking it with the primitive's type rule.
    pub fn bind(&mut self, op: Op, inputs: &[Var]) -> Result<Vars, TypeFault> {
        let types: smallvec::SmallVec<[&TensorType; 4]> = inputs.iter().map(|v| self.graph.ty(*v)).collect();
        let results = op.infer(&types)?;
        drop(types);
        let outputs: Vars = results.into_iter().map(|ty| self.fresh(ty)).collect();
        self.graph.checked |= op.checks();
        self.graph.watched |= op.watches();
        self.graph.equations.push(Equation {
            op,
            inputs: Vars::from_slice(inputs),
            outputs: outputs.clone(),
            span: self.span,
        });
        Ok(outputs)
    }

    /// Records a primitive in a rule; all its results.
    pub fn apply_all(&mut self, op: impl Primitive, inputs: &[Var]) -> Vars {
        self.bind(Arc::new(op), inputs).expect(RULE)
    }

    /// Records a primitive with one result in a rule.
    pub fn apply(&mut self, op: impl Primitive, inputs: &[Var]) -> Var {
        self.apply_all(op, inputs)[0]
    }

    /// Records every equation of `graph` with `inputs` for its parameters; its results.
    pub fn inline(&mut self, graph: &Graph, inputs: &[Var]) -> Vec<Var> {
        graph.rebuild(inputs, |eqn, operands| {
            let saved = std::mem::replace(&mut self.span, eqn.span);
            let results = self.bind(eqn.op.clone(), operands).expect(RULE);
            self.span = saved;
            results
        })
    }

    /// A constant tensor. Equal scalars share one variable.
    pub fn constant(&mut self, value: HostTensor, weak: bool) -> Var {
        let key = (value.shape().is_empty() && !weak).then(|| {
            let bits = match value.element(0) {
                Number::Float(x) => x.to_bits(),
                Number::Int(n) => n as u64,
            };
            (value.dtype(), bits)
        });
        if let Some(var) = key.and_then(|k| self.scalars.get(&k)) {
            return *var;
        }
        let var = self.apply(p::Constant { value, weak }, &[]);
        if let Some(key) = key {
            self.scalars.insert(key, var);
        }
        var
    }

    /// A scalar constant of `dtype`.
    pub fn scalar(&mut self, dtype: DType, value: f64) -> Var {
        self.constant(HostTensor::filled(dtype, Shape::new(), value), false)
    }

    /// A number of the dtype and shape of `x`.
    pub fn full_like(&mut self, x: Var, value: f64) -> Var {
        let ty = self.ty(x).clone();
        self.full(&ty, value)
    }

    /// A tensor of type `ty` with one number everywhere.
    pub fn full(&mut self, ty: &TensorType, value: f64) -> Var {
        let scalar = self.scalar(ty.dtype, value);
        self.broadcast_scalar(scalar, &ty.shape)
    }

    /// Zeros of type `ty`.
    pub fn zeros(&mut self, ty: &TensorType) -> Var {
        self.full(ty, 0.0)
    }

    /// A scalar at every place of `shape`.
    pub fn broadcast_scalar(&mut self, scalar: Var, shape: &[usize]) -> Var {
        if shape.is_empty() { scalar } else { self.broadcast_in_dim(scalar, shape, &[]) }
    }

    /// `x + y`.
    pub fn add(&mut self, x: Var, y: Var) -> Var {
        self.apply(p::Binary(p::Add), &[x, y])
    }

    /// `x - y`.
    pub fn sub(&mut self, x: Var, y: Var) -> Var {
        self.apply(p::Binary(p::Sub), &[x, y])
    }

    /// `x * y`.
    pub fn mul(&mut self, x: Var, y: Var) -> Var {
        self.apply(p::Binary(p::Mul), &[x, y])
    }

    /// `x / y`.
    pub fn div(&mut self, x: Var, y: Var) -> Var {
        self.apply(p::Binary(p::Div), &[x, y])
    }

    /// `-x`.
    pub fn neg(&mut self, x: Var) -> Var {
        self.apply(p::Unary(p::Neg), &[x])
    }

    /// `x * value` with a number of the dtype of `x`.
    pub fn scale(&mut self, x: Var, value: f64) -> Var {
        let c = self.full_like(x, value);
        self.mul(x, c)
    }

    /// `x` with its axes placed at `dims` of `shape`, repeated along the others.
    pub fn broadcast_in_dim(&mut self, x: Var, shape: &[usize], dims: &[usize]) -> Var {
        self.apply(p::BroadcastInDim { shape: Shape::from_slice(shape), dims: Shape::from_slice(dims) }, &[x])
    }

    /// `x` under another shape of the same size; `x` itself if the shape is the same.
    pub fn reshape(&mut self, x: Var, shape: &[usize]) -> Var {
        if self.ty(x).shape.as_slice() == shape {
            return x;
        }
        self.apply(p::Reshape { shape: Shape::from_slice(shape) }, &[x])
    }

    /// `x` with its axes permuted: result axis `i` is axis `permutation[i]` of `x`; `x` itself for the identity.
    pub fn transpose(&mut self, x: Var, permutation: &[usize]) -> Var {
        if permutation.iter().enumerate().all(|(i, axis)| i == *axis) {
            return x;
        }
        self.apply(p::Transpose { permutation: Shape::from_slice(permutation) }, &[x])
    }

    /// The sum over `axes`, which are removed.
    pub fn sum(&mut self, x: Var, axes: &[usize]) -> Var {
        if axes.is_empty() {
            return x;
        }
        self.apply(p::ReduceSum { axes: Shape::from_slice(axes) }, &[x])
    }

    /// `on_true` where `predicate` holds, else `on_false`; all of one shape.
    pub fn select(&mut self, predicate: Var, on_true: Var, on_false: Var) -> Var {
        self.apply(p::Select, &[predicate, on_true, on_false])
    }

    /// Element-wise comparison.
    pub fn compare(&mut self, direction: p::Direction, x: Var, y: Var) -> Var {
        self.apply(p::Compare { direction }, &[x, y])
    }

    /// `x` as `dtype`; `x` itself if it has that (strong) type.
    pub fn convert(&mut self, x: Var, dtype: DType) -> Var {
        if self.ty(x).dtype == dtype && !self.ty(x).weak {
            return x;
        }
        self.apply(p::Convert { dtype, weak: false }, &[x])
    }

    /// `|x|`.
    pub fn abs(&mut self, x: Var) -> Var {
        self.apply(p::Unary(p::Abs), &[x])
    }

    /// The larger of two; NaN if either is.
    pub fn max(&mut self, x: Var, y: Var) -> Var {
        self.apply(p::Binary(p::Max), &[x, y])
    }

    /// The smaller of two; NaN if either is.
    pub fn min(&mut self, x: Var, y: Var) -> Var {
        self.apply(p::Binary(p::Min), &[x, y])
    }

    /// Positions along `dimension`.
    pub fn iota(&mut self, dtype: DType, shape: &[usize], dimension: usize) -> Var {
        self.apply(p::Iota { dtype, shape: Shape::from_slice(shape), dimension }, &[])
    }

    /// Elements `start..limit` along each axis; `x` itself if that is all.
    pub fn slice(&mut self, x: Var, start: &[usize], limit: &[usize]) -> Var {
        if start.iter().all(|s| *s == 0) && self.ty(x).shape.as_slice() == limit {
            return x;
        }
        self.apply(p::Slice { start: Shape::from_slice(start), limit: Shape::from_slice(limit) }, &[x])
    }

    /// Elements `start..limit` along one axis.
    pub fn slice_axis(&mut self, x: Var, axis: usize, start: usize, limit: usize) -> Var {
        let mut from = Shape::from_elem(0, self.ty(x).rank());
        let mut to = self.shape(x);
        from[axis] = start;
        to[axis] = limit;
        self.slice(x, &from, &to)
    }

    /// `x` with a margin of `value` around it; `x` itself if there is no margin.
    pub fn pad(&mut self, x: Var, value: f64, low: &[usize], high: &[usize]) -> Var {
        if low.iter().chain(high).all(|n| *n == 0) {
            return x;
        }
        let value = self.scalar(self.ty(x).dtype, value);
        self.apply(p::Pad { low: Shape::from_slice(low), high: Shape::from_slice(high) }, &[x, value])
    }

    /// Tensors one after the other along `axis`.
    pub fn concatenate(&mut self, parts: &[Var], axis: usize) -> Var {
        if let [x] = parts {
            return *x;
        }
        self.apply(p::Concatenate { axis }, parts)
    }

    /// Integers limited to `0..count`.
    pub fn clamp_indices(&mut self, indices: Var, count: usize) -> Var {
        let zero = self.full_like(indices, 0.0);
        let last = self.full_like(indices, count.saturating_sub(1) as f64);
        let above = self.max(indices, zero);
        self.min(above, last)
    }

    /// Rows of `x` by an `i32` tensor, clamped.
    pub fn gather_rows(&mut self, x: Var, indices: Var) -> Var {
        self.apply(p::GatherRows, &[x, indices])
    }

    /// `x` with `updates` added to the rows that an `i32` tensor names, clamped.
    pub fn scatter_add(&mut self, x: Var, indices: Var, updates: Var) -> Var {
        self.apply(p::ScatterAdd, &[x, indices, updates])
    }

    /// A box of `sizes` at `starts`, scalars of `i32`.
    pub fn dynamic_slice(&mut self, x: Var, starts: &[Var], sizes: &[usize]) -> Var {
        let operands: Vars = std::iter::once(x).chain(starts.iter().copied()).collect();
        self.apply(p::DynamicSlice { sizes: Shape::from_slice(sizes) }, &operands)
    }

    /// `x` with `update` put at `starts`, scalars of `i32`.
    pub fn dynamic_update_slice(&mut self, x: Var, update: Var, starts: &[Var]) -> Var {
        let operands: Vars = [x, update].into_iter().chain(starts.iter().copied()).collect();
        self.apply(p::DynamicUpdateSlice, &operands)
    }
}
