//! 16-bit floats are computed with as `f32` and rounded after each operation, as on the host and by XLA on the CPU.
//!
//! Left to itself, IREE adds sums up in 16 bits (Q05).

use std::fmt::Write;

use super::quirks::rounding;
use super::{Emitter, Lowering};
use crate::graph::{DefUse, Equation, Graph, Var, Vars};
use crate::tensor::{DType, TensorType};

impl Lowering<'_> {
    /// Writes the result: `x`, of type `from`, in the result's dtype. Floats that become 16-bit ones are `f32`.
    pub fn cast(&mut self, x: &str, from: &TensorType) {
        let result = self.result_type(0).clone();
        let rounded = rounding(x, from, result.dtype).map(|text| self.temporary(&text));
        let x = rounded.as_deref().unwrap_or(x);
        self.line(&format!("stablehlo.convert {x} : ({}) -> {}", from.mlir(), result.mlir()));
    }
}

impl Emitter {
    /// Writes the operation of an equation; with operands and results of 16-bit floats as `f32` if it computes.
    pub(super) fn equation(&mut self, recorded: &DefUse<'_>, eqn: &Equation, names: &mut [String]) {
        let graph = recorded.graph;
        let variables = || eqn.inputs.iter().chain(&eqn.outputs);
        if eqn.op.computes() && variables().any(|v| graph.ty(*v).dtype.is_half()) {
            self.in_single(recorded, eqn, names);
        } else {
            let sources = &eqn.inputs;
            let mut to = Lowering { graph, eqn, recorded, sources, names, emitter: self, temporaries: 0 };
            if !to.on_host() {
                eqn.op.stablehlo(&mut to);
            }
        }
    }

    /// The equation alone is a graph of its own, in which the 16-bit floats are `f32`.
    fn in_single(&mut self, recorded: &DefUse<'_>, eqn: &Equation, names: &mut [String]) {
        let graph = recorded.graph;
        let result = names[eqn.outputs[0].index()].replace('%', "%w");
        let mut single = Graph::default();
        let mut single_names = Vec::new();
        let mut variable = |ty: &TensorType, name: String| {
            let ty = if ty.dtype.is_half() { ty.with_dtype(DType::F32) } else { ty.clone() };
            single.types.push(ty);
            single_names.push(name);
            Var(single.types.len() as u32 - 1)
        };
        let mut inputs = Vars::new();
        for (i, operand) in eqn.inputs.iter().enumerate() {
            let (ty, mut name) = (graph.ty(*operand), names[operand.index()].clone());
            if ty.dtype.is_half() {
                let wide = format!("{result}_{i}");
                self.convert(&wide, &name, ty, DType::F32);
                name = wide;
            }
            inputs.push(variable(ty, name));
        }
        let mut outputs = Vars::new();
        for (i, output) in eqn.outputs.iter().enumerate() {
            let ty = graph.ty(*output);
            let name = names[output.index()].clone();
            let name = if ty.dtype.is_half() { format!("{result}_r{i}") } else { name };
            outputs.push(variable(ty, name));
        }
        let wide = Equation { op: eqn.op.clone(), inputs, outputs: outputs.clone(), span: eqn.span };
        eqn.op.stablehlo(&mut Lowering {
            graph: &single,
            eqn: &wide,
            recorded,
            sources: &eqn.inputs,
            names: &mut single_names,
            emitter: self,
            temporaries: 0,
        });
        for (output, wide) in eqn.outputs.iter().zip(outputs) {
            let ty = graph.ty(*output);
            let name = single_names[wide.index()].clone();
            if ty.dtype.is_half() {
                let narrow = names[output.index()].clone();
                self.convert(&narrow, &name, single.ty(wide), ty.dtype);
            } else {
                names[output.index()] = name;
            }
        }
    }

    /// Writes `name`: `x`, of type `ty`, as `dtype`.
    fn convert(&mut self, name: &str, x: &str, ty: &TensorType, dtype: DType) {
        let (from, to) = (ty.mlir(), ty.with_dtype(dtype).mlir());
        let mut x = x.to_owned();
        if let Some(rounded) = rounding(&x, ty, dtype) {
            x = name.replace('%', "%p");
            let _ = writeln!(self.body, "    {x} = {rounded}");
        }
        let _ = writeln!(self.body, "    {name} = stablehlo.convert {x} : ({from}) -> {to}");
    }
}
