//! Primitives: the operations that graphs are made of, after `StableHLO` and `jax.lax`.
//!
//! Each primitive is one small file with everything that can be said of it side by side: name, type rule, host
//! evaluation, VJP, JVP, batching rule and `StableHLO` text. The trait has no defaults for them, so a missing rule
//! does not compile; `elementwise` and `reduction` offer the rules that a whole mathematical class shares.
//! Operands have one dtype and exactly matching shapes; promotion and broadcasting happen in the builtins.
//! [`registry`] lists samples of each, which a test checks against finite differences, loops and the compiler.

use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::graph::{Builder, Graph, Op, Var, Vars};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, TensorType};

mod check;
mod classes;
mod direct_convolution;
mod element;
mod elementary;
mod elementwise;
mod folding;
mod host_product;
mod operation;
mod patches;
mod products;
mod reduction;
mod region;
pub mod registry;
mod rounding;
mod samples;
mod scan_counter;
mod scan_kernel;
mod scan_lowering;
mod scan_rows;
mod scan_updates;
mod scatter_segments;
mod sort_lowering;
mod sort_merges;
mod sort_radix;
mod sort_ranks;
mod thin_product;
mod tiled_product;
mod tiled_reduction;
mod watch;

macro_rules! primitives {
    ($($module:ident),* $(,)?) => {
        $(
            mod $module;
            pub use $module::*;
        )*

        /// The name of every primitive.
        pub const NAMES: &[&str] = &[$(stringify!($module)),*];
    };
}
pub use check::{Check, Part, Question, Site};
use classes::{Extremes, Ring, accumulate, with_numbers};
pub use classes::{map_half, zip_half};
pub use element::{elements_like, stored_like};
pub use elementwise::{Binary, BinaryRule, Unary, UnaryRule};
use folding::{TERMS, Terms, fold, running_sums, sum_of_products};
use products::sums_of_products;
use reduction::reduction_rules;
pub use reduction::{Groups, axes_except, broadcast_back, kept_shape, reduced_shape, shift_axes};
pub use scan_counter::Counter;
pub use scan_rows::is_by_rows;
pub use thin_product::ThinProduct;
pub use tiled_reduction::TiledReduction;
pub use watch::Watch;

primitives!(
    abs,
    add,
    and,
    arg_reduce,
    atan2,
    bitcast_convert,
    broadcast_in_dim,
    ceil,
    checkpoint,
    compare,
    concatenate,
    cond,
    constant,
    convert,
    convolution,
    cos,
    cumsum,
    custom_kernel,
    custom_vjp,
    div,
    dot_general,
    dynamic_slice,
    dynamic_update_slice,
    erf,
    erf_inv,
    erfc,
    exp,
    expm1,
    floor,
    full,
    gather_rows,
    iota,
    is_finite,
    log,
    log1p,
    logistic,
    max,
    min,
    mul,
    neg,
    not,
    optimization_barrier,
    or,
    pad,
    pow,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    rem,
    reshape,
    reverse,
    round,
    rsqrt,
    scan,
    scatter_add,
    select,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sign,
    sin,
    slice,
    sort,
    split,
    sqrt,
    stop_gradient,
    sub,
    tanh,
    threefry,
    top_k,
    transpose,
    while_loop,
    xor,
);

/// Types of an equation's results.
pub type Types = SmallVec<[TensorType; 2]>;

/// Reason why operands do not fit a primitive: one sentence with the shapes, and a remedy if one is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeFault {
    /// The error, with shapes and dtypes.
    pub message: String,
    /// A remedy.
    pub help: Option<String>,
}

impl TypeFault {
    /// A fault without a remedy.
    pub fn new(message: impl Into<String>) -> Self {
        TypeFault { message: message.into(), help: None }
    }

    /// With a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Effect of an operation's VJP on zeros in a cotangent that stand for elements not chosen by a `select`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zeros {
    /// It is the choice, and makes them.
    Made,
    /// They stay zeros, perhaps in another place.
    Kept,
    /// It multiplies each with a derivative that can be infinite or NaN, and zero times that is NaN.
    Endangered,
    /// They go into sums with chosen elements, and stand for nothing any more.
    Lost,
}

/// Structural equality and hashing behind `dyn Primitive`.
pub trait Comparable: Any {
    /// True if both are the same operation with the same parameters.
    fn is_equal(&self, other: &dyn Any) -> bool;

    /// Hashes the type and the parameters.
    fn hash_into(&self, state: &mut dyn Hasher);
}

impl<T: Any + Eq + Hash> Comparable for T {
    fn is_equal(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }

    fn hash_into(&self, mut state: &mut dyn Hasher) {
        TypeId::of::<T>().hash(&mut state);
        self.hash(&mut state);
    }
}

impl PartialEq for dyn Primitive {
    fn eq(&self, other: &dyn Primitive) -> bool {
        self.is_equal(other)
    }
}

impl Eq for dyn Primitive {}

impl dyn Primitive {
    /// True if this is a `P`.
    pub fn is<P: Primitive>(&self) -> bool {
        self.downcast_ref::<P>().is_some()
    }

    /// This operation if it is a `P`.
    pub fn downcast_ref<P: Primitive>(&self) -> Option<&P> {
        (self as &dyn Any).downcast_ref()
    }
}

impl Hash for dyn Primitive {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash_into(state);
    }
}

/// An operation on tensors with all its rules. The fields of an implementor are the operation's static parameters.
pub trait Primitive: Comparable + Debug + Send + Sync {
    /// The name in graphs and messages, as in `StableHLO` or `jax.lax`.
    fn name(&self) -> &'static str;

    /// The static parameters as printed in graphs, empty if there are none.
    fn parameters(&self) -> String;

    /// The type rule: types of the results, or why the operands do not fit.
    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault>;

    /// Host evaluation. The operands have passed [`Primitive::infer`].
    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]>;

    /// The vector-Jacobian product: for cotangents of the results (`None`: zero) the cotangents of the operands
    /// (`None`: zero, also for integers and booleans). At least one cotangent is there.
    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents;

    /// The Jacobian-vector product: for tangents of the operands (`None`: zero) the tangents of the results.
    /// At least one tangent is there.
    fn jvp(&self, b: &mut Builder, args: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents;

    /// The batching rule: operands with the batch axes `axes`; the results and their batch axes.
    /// At least one operand has one.
    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]>;

    /// True if elements of the result are computed, not only moved: 16-bit floats are then computed with as `f32`, and
    /// [`Primitive::stablehlo`] sees no other floats than `f32` and `f64`.
    fn computes(&self) -> bool {
        false
    }

    /// Writes the operation as `StableHLO`.
    fn stablehlo(&self, to: &mut Lowering<'_>);

    /// The operation that gives, after the results of this one, the residuals of its VJP, if there is such:
    /// differentiation records it instead, and hands [`Primitive::vjp`] all of its results.
    fn with_residuals(&self) -> Option<Op> {
        None
    }

    /// [`Primitive::vjp`] for the operands at which `varies` holds alone: operations with regions walk only the paths
    /// from these to the results.
    fn vjp_by(
        &self,
        b: &mut Builder,
        args: &[Var],
        outs: &[Var],
        cotangents: &[Option<Var>],
        _varies: &[bool],
    ) -> Cotangents {
        self.vjp(b, args, outs, cotangents)
    }

    /// Flags of the results that depend on the operands at which `varies` holds; `None` if each result depends on each
    /// operand.
    fn dependence(&self, _varies: &[bool]) -> Option<Vec<bool>> {
        None
    }

    /// Reason why there is no VJP by the operands at which `varies` holds.
    fn no_vjp(&self, _varies: &[bool]) -> Option<&'static str> {
        None
    }

    /// True if derivatives treat the results as constants, for any operands.
    fn is_constant(&self) -> bool {
        false
    }

    /// Effect of the VJP on the zeros of elements not chosen, given a flag per operand: true for a constant.
    fn zeros(&self, _constant: &[bool]) -> Zeros {
        Zeros::Kept
    }

    /// True if a compiler computes the result along with its uses: each element needs one of each operand.
    fn is_elementwise(&self) -> bool {
        false
    }

    /// Reason why there is no JVP by the operands at which `varies` holds.
    fn no_jvp(&self, _varies: &[bool]) -> Option<&'static str> {
        None
    }

    /// The function that this is a call of, if it is one: emission puts its equations in the place of the call.
    fn call(&self) -> Option<Graph> {
        None
    }

    /// This operation with each of the functions inside it replaced, if there are such inside: the branches of a
    /// conditional, the body of a loop. Calls are not meant, which emission inlines.
    fn map_bodies(&self, _: &mut dyn FnMut(&Graph) -> Graph) -> Option<Op> {
        None
    }

    /// The functions inside that a program has along with it.
    fn functions(&self) -> SmallVec<[&Graph; 2]> {
        SmallVec::new()
    }

    /// True if it checks something of the program, by itself or inside: it stays then, used or not.
    fn checks(&self) -> bool {
        self.functions().into_iter().any(|function| function.checked)
    }

    /// True if it is a watch of an observer, or has one inside.
    fn watches(&self) -> bool {
        self.functions().into_iter().any(|function| function.watched)
    }

    /// An estimate of the scalar operations, for the choice between interpreting and compiling.
    fn cost(&self, _args: &[&TensorType], outs: &[&TensorType]) -> u64 {
        outs.iter().map(|ty| ty.count() as u64).sum()
    }
}

/// Cotangents or tangents, `None` for a symbolic zero.
pub type Cotangents = SmallVec<[Option<Var>; 4]>;

/// Moves the batch axis of `x` to the front, or repeats an unbatched `x` along a new front axis of `size`.
pub fn batch_to_front(b: &mut Builder, x: Var, axis: Option<usize>, size: usize) -> Var {
    let shape = b.shape(x);
    match axis {
        Some(0) => x,
        Some(axis) => {
            let mut permutation: Vec<usize> = (0..shape.len()).filter(|i| *i != axis).collect();
            permutation.insert(0, axis);
            b.transpose(x, &permutation)
        }
        None => {
            let mut to = shape.to_vec();
            to.insert(0, size);
            let dims: Vec<usize> = (1..to.len()).collect();
            b.broadcast_in_dim(x, &to, &dims)
        }
    }
}

/// The size of the batch, from an operand that has the axis.
pub fn batch_size(b: &Builder, args: &[Var], axes: &[Option<usize>]) -> usize {
    let batched = args.iter().zip(axes).find_map(|(x, axis)| axis.map(|a| b.ty(*x).shape[a]));
    batched.expect("batching rules are called with a batched operand")
}

/// All operands with the batch axis in front.
pub fn batch_all_to_front(b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> Vars {
    let size = batch_size(b, args, axes);
    args.iter().zip(axes).map(|(x, axis)| batch_to_front(b, *x, *axis, size)).collect()
}

/// A symbolic zero for each variable.
pub fn zeros_for(args: &[Var]) -> Cotangents {
    args.iter().map(|_| None).collect()
}

/// Fails unless there are `n` operands; only a wrong rule or composition can cause it.
pub fn expect_arity(name: &str, args: &[&TensorType], n: usize) -> Result<(), TypeFault> {
    if args.len() == n {
        Ok(())
    } else {
        Err(TypeFault::new(format!("{name} takes {n} operands, got {}", args.len())))
    }
}
