//! Loops as blocks of `main`, and what keeps IREE 3.13 from computing wrong numbers with them.
//!
//! A `stablehlo.while` copies what it carries, whole, in every iteration: IREE's elision of copies looks at blocks of a
//! function, and not into regions. In blocks, the rows of a stack are written in place, and the time of a `scan` grows
//! with its length. Three things come with that:
//!
//! - What a block is given has no device as IREE sees it, so it is "transferred" to one for each use: a copy, unless the
//!   module says that the memory of the device is one with itself ([`ONE_MEMORY`]).
//! - Such a transfer is left out even where an operation then writes over a value that is read again. Operations that IREE
//!   updates in place get a copy of their own ([`Lowering::overwritten`]), except for the stacks of loops, each of which
//!   has one user.
//! - Equal constants are one buffer, which two stacks would share: each starts from a number that the compiler does not
//!   know ([`Lowering::new_stack`]).

use super::{Emitter, Lowering, zero};
use crate::graph::Graph;
use crate::primitives::{Full, Scan, WhileLoop};
use crate::tensor::{DType, TensorType};

/// Attribute of a module: transfers between the device and itself are none.
pub(super) const ONE_MEMORY: &str = "attributes {stream.topology = #hal.device.topology<links = \
     [(@__device_0 -> @__device_0 = {unified_memory = true, transparent_access = true})]>} ";

/// True if a graph has loops, also inside of its operations.
pub(super) fn has_loops(graph: &Graph) -> bool {
    let mut found = false;
    graph.visit(&mut |_, eqn| {
        let op = eqn.op.as_ref() as &dyn std::any::Any;
        found |= op.is::<Scan>() || op.is::<WhileLoop>();
    });
    found
}

/// The blocks of a loop: one that decides, one that steps, one after the loop.
pub struct Blocks {
    head: String,
    body: String,
    exit: String,
}

impl Emitter {
    /// True if the loops of this program are blocks of `main`.
    pub(super) fn in_blocks_of_main(&self) -> bool {
        self.loops
    }
}

impl Lowering<'_> {
    /// True if a loop here can be blocks of `main`: not inside of a region, which has one block.
    pub fn can_branch(&self) -> bool {
        self.emitter.in_blocks_of_main() && self.emitter.regions == 0
    }

    /// Writes the beginning of a loop whose state has these names, types and first values. What is written next decides
    /// whether there is another iteration.
    pub fn loop_head(&mut self, names: &[String], types: &[String], first: &[String]) -> Blocks {
        let label = self.name_temporary().replace('%', "^");
        let blocks =
            Blocks { head: label.clone(), body: format!("{label}_body"), exit: format!("{label}_exit") };
        self.loop_again(&blocks, first, types);
        let arguments: Vec<String> =
            names.iter().zip(types).map(|(name, ty)| format!("{name}: {ty}")).collect();
        let arguments = arguments.join(", ");
        let given = if arguments.is_empty() { arguments } else { format!("({arguments})") };
        self.raw(&format!("{}{given}:", blocks.head));
        blocks
    }

    /// Writes the decision; what is written next is the step.
    pub fn loop_body(&mut self, blocks: &Blocks, predicate: &str) {
        self.raw(&format!("cf.cond_br {predicate}, {}, {}", blocks.body, blocks.exit));
        self.raw(&format!("{}:", blocks.body));
    }

    /// Writes the end of the step, with the next state; what is written next comes after the loop.
    pub fn loop_exit(&mut self, blocks: &Blocks, next: &[String], types: &[String]) {
        self.loop_again(blocks, next, types);
        self.raw(&format!("{}:", blocks.exit));
    }

    fn loop_again(&mut self, blocks: &Blocks, values: &[String], types: &[String]) {
        let (values, types) = (values.join(", "), types.join(", "));
        let given = if values.is_empty() { values } else { format!("({values} : {types})") };
        self.raw(&format!("cf.br {}{given}", blocks.head));
    }

    /// Writes a tensor for the rows of a loop, all of whose elements the loop writes.
    pub fn new_stack(&mut self, ty: &TensorType) -> String {
        if ty.count() == 0 {
            return self.splat(ty, "");
        }
        let scalar = TensorType::scalar(ty.dtype);
        let number = self.unknown_zero(&scalar);
        self.broadcast(&number, &scalar, ty)
    }

    /// Operand `i`, which the operation writes over.
    pub fn overwritten(&mut self, i: usize) -> String {
        let x = self.operand(i);
        let ty = self.operand_type(i).clone();
        if !self.emitter.in_blocks_of_main() || self.in_kernel() || ty.count() == 0 || self.is_full(i) {
            return x;
        }
        let bits =
            if ty.dtype == DType::Bool { ty.clone() } else { ty.with_dtype(ty.dtype.as_signed_bits()) };
        let cast = bits.dtype != ty.dtype;
        let convert = |from: &TensorType, to: &TensorType, x: &str| {
            format!("stablehlo.bitcast_convert {x} : ({}) -> {}", from.mlir(), to.mlir())
        };
        let x = if cast { self.temporary(&convert(&ty, &bits, &x)) } else { x };
        let scalar = TensorType::scalar(bits.dtype);
        let none = self.unknown_zero(&scalar);
        let none = self.broadcast(&none, &scalar, &bits);
        let same = self.value("stablehlo.or", &[&x, &none], &bits);
        if cast { self.temporary(&convert(&bits, &ty, &same)) } else { same }
    }

    /// Writes a zero that the compiler does not know to be one, another with each call.
    fn unknown_zero(&mut self, scalar: &TensorType) -> String {
        let number = self.splat(scalar, &zero(scalar.dtype));
        self.temporary(&format!("stablehlo.optimization_barrier {number} : {}", scalar.mlir()))
    }

    fn broadcast(&mut self, number: &str, scalar: &TensorType, ty: &TensorType) -> String {
        self.temporary(&format!(
            "stablehlo.broadcast_in_dim {number}, dims = [] : ({}) -> {}",
            scalar.mlir(),
            ty.mlir()
        ))
    }

    /// True if operand `i` is one number throughout.
    fn is_full(&self, i: usize) -> bool {
        let maker = self.recorded.maker(self.sources[i]);
        maker.is_some_and(|eqn| (eqn.op.as_ref() as &dyn std::any::Any).is::<Full>())
    }
}
