//! Faults of the compiler, IREE 3.13, and what is done about each: one room for all of them.
//!
//! A fault has a number, which no other fault gets, also after it is mended: `Q07` in comments, `07-` before the names of its
//! programs in `tests/quirks`. Each of these programs is what emission would write without the workaround. A test compiles and
//! runs all of them, and fails as soon as one is right: then the workaround is deleted, with the program and the line of
//! [`QUIRKS`].
//!
//! Workarounds that are a few lines of text are in the files of this folder. Some are passes over graphs, or lowerings that are
//! subjects of their own: [`Quirk::place`] says where each is.

mod angle;
mod blocks;
mod constants;
mod convolutions;
mod cut;
pub mod doubles;
mod extents;
mod extremes;
mod fusion;
mod gathers;
mod halves;
mod kernels;
mod loops;
mod packing;
mod power;
mod reversal;
mod shaders;
mod starts;
mod sums;
mod turns;
mod updates;
mod widened;

pub use angle::angle;
pub use blocks::ONE_MEMORY;
pub use constants::in_buffer;
pub use convolutions::{padded, padded_input, padded_type};
pub use cut::cut_to_unsigned;
pub use extents::filled_up;
pub use extremes::extreme_of_signed;
pub use fusion::{apart_for_transpose, apart_from_reduction};
pub use gathers::{gather, gather_of_one_number, indices_in_bounds, to_be_indexed};
pub use halves::rounding;
pub use kernels::{
    accumulates, is_refused_in_kernels, kept_in_memory, number_to_element, padding, reshape_to_number,
};
pub use loops::hold_states;
pub use packing::apart_for_packing;
pub use power::power;
pub use reversal::reverse;
pub use shaders::{divide_by_zero, log_plus_one};
pub use starts::{slice_from, update_from};
pub use sums::{reduces_by_axis, reduces_nothing, sums_negatives};
pub use turns::by_half_turns;
pub use widened::widened;

/// A fault of the compiler.
#[derive(Clone, Copy, Debug)]
pub struct Quirk {
    /// Its number.
    pub number: u8,
    /// The fault in a few words.
    pub name: &'static str,
    /// Symptom of a program without the workaround, and the workaround.
    pub reason: &'static str,
    /// The file that applies the workaround, from the workspace's root. It names the quirk: `Q07`.
    pub place: &'static str,
    /// Evidence that the compiler still has the fault.
    pub shown: Shown,
}

/// Evidence of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The programs of this number in `tests/quirks`.
    ByPrograms,
    /// No small program, for this reason.
    Otherwise(&'static str),
}

/// All faults, by number.
pub const QUIRKS: &[Quirk] = &[
    Quirk {
        number: 1,
        name: "updates write over arguments",
        reason: "`dynamic_update_slice`, `scatter` and `sort` are done in the memory of the operand, also where it is an argument, which the caller still has: the operand gets a copy.",
        place: "lang/graph/src/stablehlo/quirks/updates.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 2,
        name: "updates write over values that are read again",
        reason: "The copy before an update in place is left out where the value is a result as well: the operand gets a copy that the compiler does not know to be one.",
        place: "lang/graph/src/stablehlo/quirks/updates.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 3,
        name: "joins with one first operand share their memory",
        reason: "Two `concatenate` that begin with the same tensor become updates of one buffer, and each result has parts of the other one: the second gets a copy.",
        place: "lang/graph/src/stablehlo/quirks/updates.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 4,
        name: "long sums are one chain",
        reason: "The rounding errors of a million additions, one after the other, are lost digits: long reductions are taken in blocks.",
        place: "lang/graph/src/graph/blocks.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 5,
        name: "16-bit floats are added up in 16 bits",
        reason: "A sum of ones in `f16` ends at 2048: what computes with 16-bit floats computes with `f32`.",
        place: "lang/graph/src/stablehlo/wide.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 6,
        name: "conversions to `bf16` and back are dropped",
        reason: "Values within a kernel keep digits that their dtype does not have: `reduce_precision` rounds them.",
        place: "lang/graph/src/stablehlo/quirks/halves.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 7,
        name: "an `f16` product and sum are joined to one operation",
        reason: "With the processor's `f16` arithmetic LLVM does not round a product before it is added: these features are not named to the compiler.",
        place: "toolchain/target/src/cpu.rs",
        shown: Shown::Otherwise("only processors with such arithmetic run the programs"),
    },
    Quirk {
        number: 8,
        name: "angles of special points are not numbers",
        reason: "`atan2` is NaN at the origin and where both coordinates are infinite: these points are replaced by others of the same angle.",
        place: "lang/graph/src/stablehlo/quirks/angle.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 9,
        name: "powers of negative numbers are not numbers",
        reason: "`power` is computed as `e^(y log x)`: the power of |x| is taken, and signs and special cases are put around it.",
        place: "lang/graph/src/stablehlo/quirks/power.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 10,
        name: "unsigned integers are not reversed",
        reason: "The compiler refuses `reverse` of them: signed integers of the same bits are reversed.",
        place: "lang/graph/src/stablehlo/quirks/reversal.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 11,
        name: "sine and cosine have few digits far from zero and near their zeros",
        reason: "Quarters of a turn are taken off in one step, whose rounding is 2e-5 at 1000 radians, and also of small negative numbers: half turns are taken off in three parts before, and the sine of what is left is that of its size.",
        place: "lang/graph/src/stablehlo/quirks/turns.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 12,
        name: "functions of doubles are not linked",
        reason: "Programs would call a mathematical library that is not there: these functions are written out.",
        place: "lang/graph/src/stablehlo/quirks/doubles.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 13,
        name: "sorts are not stable",
        reason: "`is_stable` of `sort` is ignored: sorts are written as comparisons, digit by digit, or as a network.",
        place: "lang/graph/src/primitives/sort_lowering.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 14,
        name: "long sorts are slow",
        reason: "`sort` becomes a quadratic loop on one core, which takes 0.3 s for 10,000 pairs: sorts are written as in Q13.",
        place: "lang/graph/src/primitives/sort_lowering.rs",
        shown: Shown::Otherwise("it takes time, and gives right results"),
    },
    Quirk {
        number: 15,
        name: "scalar indices are not kept within bounds",
        reason: "A `gather` by a scalar index reads what lies behind the tensor: indices are clamped before.",
        place: "lang/graph/src/stablehlo/quirks/gathers.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 16,
        name: "rows of one number throughout are that number alone",
        reason: "A `gather` from such a constant has the elements of one row: it is written as a constant.",
        place: "lang/graph/src/stablehlo/quirks/gathers.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 17,
        name: "single numbers that are gathered are not computed with",
        reason: "A kernel that takes one number by `gather`, as a row of one element too, and computes with it does not compile: a barrier makes two kernels.",
        place: "lang/graph/src/stablehlo/quirks/gathers.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 18,
        name: "single integers are cut to signed ones",
        reason: "`arith.trunci` is applied to an unsigned integer and refused: the integer is cut to a signed one, whose bits are taken.",
        place: "lang/graph/src/stablehlo/quirks/cut.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 19,
        name: "loops and what is computed before them depend on each other",
        reason: "One submission has what is computed before a loop and from its results (\"circular dependency\"): results of loops and conditionals are behind a barrier.",
        place: "lang/graph/src/stablehlo/quirks/loops.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 20,
        name: "states that no step reads leave a loop",
        reason: "The loop that is left has other parameters than its body, and is refused: the new value is behind a barrier with the one before.",
        place: "lang/graph/src/stablehlo/quirks/loops.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 21,
        name: "sums of products with a repeated factor are taken for contractions",
        reason: "The sum over several axes is refused (\"invalid accumulator/result vector shape\"): axes are reduced one after the other.",
        place: "lang/graph/src/stablehlo/quirks/sums.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 22,
        name: "reductions over axes of extent 1 fail for CUDA",
        reason: "They are refused inside larger programs: they are written as reshapes.",
        place: "lang/graph/src/stablehlo/quirks/sums.rs",
        shown: Shown::Otherwise("the primitives compile for CUDA without it, also many in one program"),
    },
    Quirk {
        number: 23,
        name: "convolutions of dilated inputs and with negative padding fail",
        reason: "The rules of the compiler know neither in all cases: the input is padded by an operation of its own.",
        place: "lang/graph/src/stablehlo/quirks/convolutions.rs",
        shown: Shown::Otherwise("the primitives are right without it on processors"),
    },
    Quirk {
        number: 24,
        name: "reshapes to no axes are refused in kernels",
        reason: "The one element is written as a sum.",
        place: "lang/graph/src/stablehlo/quirks/kernels.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 25,
        name: "numbers that get axes are refused in kernels",
        reason: "\"rank 0 memrefs can only be extended/collapsed with/from ones\": the number is repeated twice, and the first is taken.",
        place: "lang/graph/src/stablehlo/quirks/kernels.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 26,
        name: "operations are refused in kernels",
        reason: "Booleans that are padded have another element type in a kernel, sorts and running sums fail beside others, and convolutions are slow there: such programs have no kernels written out.",
        place: "lang/graph/src/stablehlo/quirks/kernels.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 27,
        name: "results of kernels take each other's memory",
        reason: "Reductions and products that start from the same initial value are made in the memory of one result, which is written before the others are read: such results are copied element by element.",
        place: "lang/graph/src/stablehlo/quirks/kernels.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 28,
        name: "loops in kernels carry no tensors",
        reason: "A loop that carries a number or a vector is refused: the state is memory of the kernel.",
        place: "lang/graph/src/stablehlo/kernel.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 29,
        name: "kernels that are written out are distributed",
        reason: "The one workgroup of such a kernel computes a part of the results: programs with kernels get a flag.",
        place: "lang/graph/src/stablehlo.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 30,
        name: "no memory of booleans and unsigned integers",
        reason: "Kernels with such operands are refused, and allocations of unsigned integers: memory holds integers of the same bits.",
        place: "lang/graph/src/stablehlo/kernel/memory.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 31,
        name: "kernels have more buffers than a device binds",
        reason: "At most 32 are bound, and the compiler joins operations beyond that: barriers part what would have more.",
        place: "lang/graph/src/graph/part.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 32,
        name: "loops copy what they carry",
        reason: "A `while` copies its state, stacks of rows included, in every iteration, so that a `scan` takes quadratic time: loops are blocks of `main`, or kernels.",
        place: "lang/graph/src/stablehlo/loops.rs",
        shown: Shown::Otherwise("it takes time, and gives right results"),
    },
    Quirk {
        number: 33,
        name: "values that blocks are given are copied for each use",
        reason: "They have no device, and each use is a transfer to it: an attribute of the module says that the device's memory is one with itself.",
        place: "lang/graph/src/stablehlo/quirks/blocks.rs",
        shown: Shown::Otherwise("it takes time, and gives right results"),
    },
    Quirk {
        number: 34,
        name: "blocks write over values that are read again",
        reason: "A transfer that is left out, as Q33 asks for, is one also where an operation writes over its operand: the operand gets a copy.",
        place: "lang/graph/src/stablehlo/quirks/updates.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 35,
        name: "equal constants are one buffer, which two loops write to",
        reason: "Two stacks that start from equal constants have each other's rows: each is an allocation of its own.",
        place: "lang/graph/src/stablehlo/quirks/blocks.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 36,
        name: "loops as blocks fail beside conditionals",
        reason: "A call ends with \"ref is null\", by the fault of Q37: programs with conditionals have no loops as blocks.",
        place: "lang/graph/src/stablehlo/loops.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 37,
        name: "programs with loops as blocks fail in a call",
        reason: "\"indirect buffer reference slot 0 is out of range\": a buffer that a branch hands to two arguments is null in the one that has its register. First values of loops are buffers to themselves, and such programs are tried before they are used.",
        place: "lang/graph/src/stablehlo/quirks/blocks.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 38,
        name: "donated arguments are written over before they are read",
        reason: "A result takes the place of an argument that something still reads: arguments are donated by rules that leave these out.",
        place: "lang/graph/src/graph/donation.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 39,
        name: "data tiling fails on products of three axes",
        reason: "\"large vector sizes\", after the time of a whole compilation: programs with such products do without the flag.",
        place: "lang/graph/src/graph/tiles.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 40,
        name: "barriers do not keep an order",
        reason: "What a checkpoint computes again is moved to where it was computed before, and kept: its operands depend on the cotangent by arithmetic.",
        place: "lang/graph/src/primitives/checkpoint.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 41,
        name: "products and sums of `f32` are joined to one operation",
        reason: "LLVM rounds `x * y + z` once, as XLA does: random numbers that the host computes are rounded so, too.",
        place: "lang/src/builtins/threefry.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 42,
        name: "products of patches fail for depthwise convolutions",
        reason: "The flag that makes products of convolutions makes ones of wrong shapes where each channel is a group: programs are compiled without flags after that.",
        place: "engine/loader/src/flags.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 43,
        name: "parts of computed values have no end in kernels",
        reason: "The compiler of a kernel may not end with a slice of a padding or of a comparison, or with a padding of one: a slice of what is computed is copied element by element, and a padding is written to memory of its own.",
        place: "lang/graph/src/stablehlo/kernel/memory.rs",
        shown: Shown::Otherwise("it takes for ever"),
    },
    Quirk {
        number: 44,
        name: "products that meet are incomplete in kernels",
        reason: "The sum of two products in a kernel, as the gradient by weights that are used twice, has a part of one of them: each is copied to memory of its own.",
        place: "lang/graph/src/stablehlo/quirks/kernels.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 45,
        name: "reductions of what is read elsewhere have a piece only in kernels",
        reason: "Made together with the pieces of its operand, a sum has the last piece only, as the mean of a vector beside its first element: operands of reductions that are not fused with them are copied to memory of their own.",
        place: "lang/graph/src/stablehlo/quirks/kernels.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 46,
        name: "products take narrow unsigned numbers for signed ones",
        reason: "A conversion of booleans or unsigned integers to wider numbers is joined with the product that reads it, and extends the sign: true is -1. A selection stands for the conversion of booleans, and a maximum with 0 follows the others.",
        place: "lang/graph/src/stablehlo/quirks/widened.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 47,
        name: "kernels read a reduction in one arrangement",
        reason: "Element-wise operations that read the result of a reduction in two arrangements, such as its rows and its columns, are joined with it, and read memory that was never written for one of them. A barrier stands before that one.",
        place: "lang/graph/src/graph/arrangements.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 48,
        name: "a column that is taken and reversed in one step is refused",
        reason: "A slice of a matrix whose elements are not beside each other in memory, in another shape, is not reversed (\"unrealized_conversion_cast\"): a barrier stands before the reversal.",
        place: "lang/graph/src/stablehlo/quirks/reversal.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 49,
        name: "loads of a kernel's result are taken for values that never change",
        reason: "Two loads of an element with a store in between become one: the place of each depends on a zero that is read from memory.",
        place: "lang/graph/src/stablehlo/loop_nest.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 50,
        name: "logarithms near 1, and divisions by 0, of shaders",
        reason: "Under Vulkan `log_plus_one` is the logarithm of a rounded sum, and a division by the constant 0 stores nothing: other operations stand for both.",
        place: "lang/graph/src/stablehlo/quirks/shaders.rs",
        shown: Shown::Otherwise(
            "the programs run on a processor, where they are right: `tests/tests/examples/gpu.rs` runs those of Vulkan",
        ),
    },
    Quirk {
        number: 51,
        name: "parts of constants in the code of kernels",
        reason: "For CUDA a kernel is rejected that reads a part of a constant in its code, where IREE puts those of up to 256 bytes: constants are parts of larger ones, which are in buffers.",
        place: "lang/graph/src/stablehlo/quirks/constants.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 52,
        name: "sums of negatives",
        reason: "A kernel for CUDA is rejected that adds up negatives along a long axis, as differences have no neutral element: it is written as the negative of the sum.",
        place: "lang/graph/src/stablehlo/quirks/sums.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 53,
        name: "uses of reductions in their kernel",
        reason: "For Vulkan a reduction and a use of its result along other axes than the first are one kernel, whose workgroups read what others have yet to compute: the result is in memory of its own.",
        place: "lang/graph/src/stablehlo/quirks/fusion.rs",
        shown: Shown::Otherwise(
            "the programs run on a processor, where they are right: `tests/tests/examples/gpu.rs` runs those of Vulkan",
        ),
    },
    Quirk {
        number: 54,
        name: "extremes of signed integers",
        reason: "For CUDA the least of signed integers along a long axis is at most -1 and the greatest at least 0, as if they were unsigned: they are compared as unsigned ones whose first bit is turned.",
        place: "lang/graph/src/stablehlo/quirks/extremes.rs",
        shown: Shown::Otherwise(
            "the programs run on a processor, where they are right; a GPU that runs them is no part of the tests",
        ),
    },
    Quirk {
        number: 55,
        name: "transpositions of positions",
        reason: "The transposition of the positions of a reduction of pairs is fused with it, which loses one of its two results, and the program is rejected: the positions are in memory of their own.",
        place: "lang/graph/src/stablehlo/quirks/fusion.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 56,
        name: "gathers of slices",
        reason: "For CUDA the rows of a slice that is gathered are read as if they were next to each other in memory: the slice is in memory of its own.",
        place: "lang/graph/src/stablehlo/quirks/gathers.rs",
        shown: Shown::Otherwise(
            "the programs run on a processor, where they are right; a GPU that runs them is no part of the tests",
        ),
    },
    Quirk {
        number: 57,
        name: "long axes that one thread works off",
        reason: "On a GPU the threads of a workgroup share an axis only if their number divides its extent: others are filled up with the neutral element of the reduction.",
        place: "lang/graph/src/stablehlo/quirks/extents.rs",
        shown: Shown::Otherwise("the numbers are right, and the time of a GPU is no part of the tests"),
    },
    Quirk {
        number: 58,
        name: "starts of slices that the host reads",
        reason: "The host reads the start of a dynamic slice from a GPU's memory before it submits the work behind, which takes 1.5 ms with CUDA: a kernel reads it.",
        place: "lang/graph/src/stablehlo/quirks/starts.rs",
        shown: Shown::Otherwise("the numbers are right, and the time of a GPU is no part of the tests"),
    },
    Quirk {
        number: 59,
        name: "fused values are made again for each reader",
        reason: "In a kernel, a chain of values that two operations read each takes the compiler twice the time with each link: a value that would be made more than 16 times is in memory of its own.",
        place: "lang/graph/src/stablehlo/quirks/kernels.rs",
        shown: Shown::Otherwise("the fault is time alone: eleven steps of such a chain compile in 36 s"),
    },
    Quirk {
        number: 60,
        name: "paddings in kernels become vectors as long as the tensor",
        reason: "LLVM takes most of the compilation with them, half a minute for a loop over a grid of 37x29: a padding is written element by element to memory of its own.",
        place: "lang/graph/src/stablehlo/quirks/kernels.rs",
        shown: Shown::Otherwise("the fault is time alone"),
    },
    Quirk {
        number: 61,
        name: "products over an axis of extent 0",
        reason: "The compiler crashes at them. Results of operands without elements are constants, which simplification knows.",
        place: "lang/graph/src/simplify/fold.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 62,
        name: "packed operands of batches of products",
        reason: "With data tiling, an operand that is computed from rows, such as a matrix times a column, is packed from wrong elements if the last tile has 3, 5, 6 or 7 rows of eight: a barrier stands before the product.",
        place: "lang/graph/src/stablehlo/quirks/packing.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 63,
        name: "aggressive fusion",
        reason: "Sums and the sum of what is computed with them become one kernel, which adds to the sums again for each part that reads them; two values of one kernel that are put into larger tensors are written over each other: tuning records have neither this flag nor the levels of optimisation that imply it.",
        place: "cache/artifacts/src/tuning.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 64,
        name: "products in kernels are one vector",
        reason: "Beside reductions and products of other extents, a product in a kernel is not tiled, and vectors of 16 KiB are refused (\"large vector sizes\"): where the compiler refuses a kernel, the next candidate has its larger products in parts.",
        place: "lang/graph/src/graph/part_products.rs",
        shown: Shown::ByPrograms,
    },
    Quirk {
        number: 65,
        name: "states that share memory with another state or with a value from outside",
        reason: "A `stablehlo.while` whose body gives a value as the next state that it did not compute frees the memory once for each name, and a later reader fails (\"transient buffer has not been committed\"), on `local-task` alone: the state gets a copy that the compiler does not know to be one.",
        place: "lang/graph/src/stablehlo/quirks/loops.rs",
        shown: Shown::ByPrograms,
    },
];
