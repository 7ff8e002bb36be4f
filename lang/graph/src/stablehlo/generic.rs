//! Tensors whose elements are computed by code that is written out, for GPUs: a `linalg.generic`, of which each thread computes some
//! elements, with searches and loops of its own that `StableHLO` has no operation for.

use super::loop_nest::list;
use super::{LoopNest, Lowering};
use crate::tensor::{DType, TensorType};

impl Lowering<'_> {
    /// Writes tensors of one shape and of these dtypes. `body` writes the computation of their elements, given the indices of these; the
    /// names of the tensors.
    pub fn generic(
        &mut self,
        shape: &[usize],
        dtypes: &[DType],
        body: impl FnOnce(&mut LoopNest, &[String]) -> Vec<String>,
    ) -> Vec<String> {
        let mut nest = LoopNest::default();
        let indices: Vec<String> =
            (0..shape.len()).map(|axis| nest.value(&format!("linalg.index {axis} : index"))).collect();
        let elements = body(&mut nest, &indices);
        nest.line(&format!("linalg.yield {} : {}", list(&elements), list(dtypes.iter().map(|d| d.mlir()))));

        let types: Vec<String> = dtypes.iter().map(|dtype| TensorType::new(*dtype, shape).mlir()).collect();
        let empty: Vec<String> =
            types.iter().map(|ty| self.temporary(&format!("tensor.empty() : {ty}"))).collect();
        let axes = list((0..shape.len()).map(|axis| format!("d{axis}")));
        let map = format!("affine_map<({axes}) -> ({axes})>");
        let names: Vec<String> = types.iter().map(|_| self.name_temporary()).collect();
        let arguments =
            dtypes.iter().enumerate().map(|(i, dtype)| format!("%unwritten{i}: {}", dtype.mlir()));
        self.raw(&format!(
            "{} = linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} outs({} : {}) {{",
            list(&names),
            list(types.iter().map(|_| &map)),
            list(shape.iter().map(|_| "\"parallel\"")),
            list(&empty),
            list(&types),
        ));
        self.raw(&format!("^bb0({}):", list(arguments)));
        nest.lines().iter().for_each(|line| self.raw(line));
        let result = if let [ty] = &types[..] { ty.clone() } else { format!("({})", list(&types)) };
        self.raw(&format!("}} -> {result}"));
        names
    }

    /// Writes unsigned integers as the signless ones of the same bits, which code that is written out computes with; other numbers are left as
    /// they are. The name and the type.
    pub fn signless(&mut self, x: &str, ty: &TensorType) -> (String, TensorType) {
        let into = ty.signless();
        (self.bitcast(x, ty, &into), into)
    }

    /// Writes an index of the host that the compiler takes for unknown: kernels that differ in it alone are one.
    pub fn parameter(&mut self, x: usize) -> String {
        let constant = self.temporary(&format!("arith.constant {x} : index"));
        self.temporary(&format!("util.optimization_barrier {constant} : index"))
    }
}
