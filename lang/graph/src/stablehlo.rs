//! Emission of `StableHLO` text.
//!
//! Equal graphs give equal text: names are numbered by position, attributes are in a fixed order, floats are printed
//! as their bits if a decimal would not be exact. There are no locations in it.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use crate::graph::{
    DefUse, Donation, Equation, Graph, Var, hold_apart, in_blocks, inline_calls, part_products, part_wide,
    stagger,
};
use crate::primitives::{Constant, Full, Iota, ThinProduct, TiledReduction};
use crate::tensor::{DType, HostTensor, TensorType};

mod generic;
mod host_scalars;
mod kernel;
mod literal;
mod loop_nest;
mod loops;
pub mod quirks;
mod wide;

use kernel::Kernel;
pub use kernel::{Binding, Cell, RowSource, RowTarget};
use literal::{dense, splat};
pub use literal::{float, highest, literal, lowest, one, zero};
pub use loop_nest::{Array, LoopNest, MAX_ARRAYS, Tensor, list, processor_lanes};
use loops::{fit_blocks, without_conditionals};
pub use loops::{has_loops, numbers};

/// Constants of more bytes become trailing arguments of `main`: the text and the action key hold only their type.
pub const INLINE_CONSTANT_BYTES: usize = 1024;

/// A program for the compiler.
#[derive(Clone, Debug)]
pub struct Module {
    /// `module @sheaf` with one function, `@main`.
    pub text: String,
    /// Constants to be passed after the graph's parameters, in this order.
    pub constants: Vec<HostTensor>,
    /// Parts of the program that need flags, or a trial.
    pub features: Features,
}

/// Parts of a program that need flags, or a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Small loops, or all of a small program, as one kernel: the compiler may fail on it. [`KERNEL_FLAGS`] are for it.
    pub kernels: bool,
    /// Loops as blocks of `main`.
    pub blocks: bool,
    /// Values of `f64`: the compiler must be told to keep them.
    pub doubles: bool,
}

impl Features {
    /// True if the compiler may fail on the program, or a trial of it; then the program is written in another form.
    pub fn may_be_rejected(self) -> bool {
        self.kernels || self.blocks
    }
}

/// Flags for programs with kernels that are written out: these are not distributed to workgroups (Q29), and hold
/// intermediate results on the stack.
pub const KERNEL_FLAGS: [&str; 2] =
    ["--iree-llvmcpu-disable-distribution", "--iree-llvmcpu-stack-allocation-limit=131072"];

/// Target of a program, and the form of its loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A processor, with a kernel for each part that IREE makes of the program.
    Hal,
    /// The same, with loops as blocks of `main` if possible: to be tried before they are used.
    Blocks,
    /// One core of a processor, with one kernel for each loop, or for all of a program, that is small enough, and blocks for
    /// other loops.
    Kernels(KernelSize),
    /// A GPU of NVIDIA. GPUs add up side by side, and are slow at doubles or have none: `f32` is added up in `f32`.
    Cuda,
    /// A GPU that runs shaders, under Vulkan or Metal.
    Shaders,
}

impl Model {
    fn has_blocks(self) -> bool {
        matches!(self, Model::Blocks | Model::Kernels(_))
    }

    fn is_gpu(self) -> bool {
        matches!(self, Model::Cuda | Model::Shaders)
    }

    /// Number of buffers that a kernel may read and write: IREE's runtime has these limits for processors, and for CUDA and Metal.
    fn kernel_buffers(self) -> usize {
        match self {
            Model::Hal | Model::Blocks | Model::Kernels(_) => 32,
            Model::Cuda | Model::Shaders => 16,
        }
    }
}

/// Size of the loops and programs that become one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelSize {
    /// Loops and programs that are quicker so.
    Small,
    /// The same, their larger products in parts: for programs that the compiler refuses with whole ones (Q64).
    Parted,
    /// All that the compiler may accept: for tests of it.
    Any,
}

/// `graph` as `StableHLO`.
pub fn emit(graph: &Graph, model: Model) -> Module {
    emit_donating(graph, model, &[])
}

/// `graph` as `StableHLO` in which each reduction is one, however long: the baseline for blocks.
pub fn emit_in_chains(graph: &Graph, model: Model) -> Module {
    emit_reducing(graph, model, &[], false)
}

/// `graph` as `StableHLO`, with results that take the place of arguments.
pub fn emit_donating(graph: &Graph, model: Model, donations: &[Donation]) -> Module {
    emit_reducing(graph, model, donations, true)
}

fn emit_reducing(graph: &Graph, model: Model, donations: &[Donation], in_blocks: bool) -> Module {
    let graph = &inline_calls(graph);
    // Arguments are overwritten only behind a barrier for all gradients.
    let staggered = if donations.is_empty() { stagger(graph) } else { None };
    let graph = staggered.as_ref().unwrap_or(graph);
    let selecting = without_conditionals(graph, model);
    let graph = selecting.as_ref().unwrap_or(graph);
    let mut emitter = Emitter {
        model,
        in_blocks,
        parameters: graph.inputs.len(),
        body: String::new(),
        constants: Vec::new(),
        regions: 0,
        features: Features { blocks: fit_blocks(graph, model), ..Features::default() },
        donated: donations.iter().map(|d| format!("%arg{}", d.argument)).collect(),
        first_joined: HashSet::new(),
        updated: HashSet::new(),
        host_scalars: HashMap::new(),
        kernel: None,
    };
    let arguments = (0..graph.inputs.len()).map(|i| format!("%arg{i}"));
    let returned = if kernel::program_fits(graph, model) {
        emitter.program_as_kernel(graph)
    } else {
        emitter.equations(graph, arguments, "")
    };
    let types = graph.inputs.iter().map(|v| graph.ty(*v).mlir());
    let types = types.chain(emitter.constants.iter().map(|c| c.ty().mlir()));
    let parameter = |(i, ty)| match donations.iter().find(|d| d.argument == i) {
        Some(d) => format!("%arg{i}: {ty} {{tf.aliasing_output = {} : i32}}", d.output),
        None => format!("%arg{i}: {ty}"),
    };
    let parameters: Vec<String> = types.enumerate().map(parameter).collect();
    let results: Vec<String> = graph.outputs.iter().map(|v| graph.ty(*v).mlir()).collect();
    let attributes = if emitter.features.blocks { quirks::ONE_MEMORY } else { "" };
    let mut text = format!("module @sheaf {attributes}{{\n");
    let _ = writeln!(text, "  func.func @main({}) -> ({}) {{", parameters.join(", "), results.join(", "));
    text.push_str(&emitter.body);
    if returned.is_empty() {
        text.push_str("    return\n");
    } else {
        let _ = writeln!(text, "    return {} : {}", returned.join(", "), results.join(", "));
    }
    text.push_str("  }\n}\n");
    Module { text, constants: emitter.constants, features: emitter.features }
}

/// The text of `main` so far.
struct Emitter {
    model: Model,
    /// True if long reductions are written in blocks.
    in_blocks: bool,
    /// Parameters of `main` before the constants.
    parameters: usize,
    body: String,
    constants: Vec<HostTensor>,
    /// Regions of operations around the next one.
    regions: usize,
    /// Those of the program so far. Loops are blocks unless they are kernels.
    features: Features,
    /// Names of the arguments whose memory is that of a result.
    donated: HashSet<String>,
    /// Names of the first operands of each `concatenate` so far.
    first_joined: HashSet<String>,
    /// Names of values that steps of loops update in place.
    updated: HashSet<String>,
    /// Names of scalars that the host has too, with the names there.
    host_scalars: HashMap<String, String>,
    /// The kernel that is being written.
    kernel: Option<Kernel>,
}

impl Emitter {
    /// True if kernels can be written out here.
    fn has_kernels(&self) -> bool {
        !self.model.is_gpu() && self.kernel.is_none()
    }

    /// Writes the equations of a graph whose parameters have these names; the names of its results. Names of variables
    /// are `%`, the prefix and a number.
    fn equations(
        &mut self,
        graph: &Graph,
        arguments: impl Iterator<Item = String>,
        prefix: &str,
    ) -> Vec<String> {
        let blocks =
            if self.in_blocks { in_blocks(graph, !self.model.is_gpu(), self.has_kernels()) } else { None };
        let graph = blocks.as_ref().unwrap_or(graph);
        let parted = part_wide(graph, self.model.kernel_buffers());
        let graph = parted.as_ref().unwrap_or(graph);
        let in_parts = self.kernel.is_some() && self.model == Model::Kernels(KernelSize::Parted);
        let products = if in_parts { part_products(graph) } else { None };
        let graph = products.as_ref().unwrap_or(graph);
        let apart = if self.kernel.is_none() { hold_apart(graph) } else { None };
        let graph = apart.as_ref().unwrap_or(graph);
        self.features.doubles |= graph.types.iter().any(|ty| ty.dtype == DType::F64);
        let mut names: Vec<String> = vec![String::new(); graph.types.len()];
        let recorded = DefUse::of(graph);
        for (var, name) in graph.inputs.iter().zip(arguments) {
            names[var.index()] = name;
        }
        let kept = self.kernel.as_ref().map(|_| quirks::kept_in_memory(graph)).unwrap_or_default();
        let mut next = 0;
        for eqn in &graph.equations {
            let constant = eqn.op.downcast_ref::<Constant>();
            if let Some(name) = constant.and_then(|c| self.large_constant(&c.value)) {
                names[eqn.outputs[0].index()] = name;
                continue;
            }
            for var in &eqn.outputs {
                names[var.index()] = format!("%{prefix}{next}");
                next += 1;
            }
            self.equation(&recorded, eqn, &mut names);
            if let Some(kernel) = &mut self.kernel {
                kernel.note(eqn, &names);
            }
            for var in eqn.outputs.iter().filter(|v| kept.contains(v)) {
                let name = &mut names[var.index()];
                *name = self.in_own_memory(name, graph.ty(*var));
            }
        }
        graph.outputs.iter().map(|v| names[v.index()].clone()).collect()
    }

    /// The argument that stands for a constant, if it is too large for the text.
    fn large_constant(&mut self, value: &HostTensor) -> Option<String> {
        if value.byte_len() <= INLINE_CONSTANT_BYTES || splat(value).is_some() {
            return None;
        }
        let same = |c: &HostTensor| c.data().same(value.data()) && c.shape() == value.shape();
        let position = self.constants.iter().position(same).unwrap_or_else(|| {
            self.constants.push(value.clone());
            self.constants.len() - 1
        });
        let argument = format!("%arg{}", self.parameters + position);
        Some(match &mut self.kernel {
            Some(kernel) => kernel.capture(argument, &value.ty()),
            None => argument,
        })
    }
}

/// Emission of one equation: the names and types of its variables, and the text so far.
pub struct Lowering<'a> {
    /// The graph of the equation, in the types in which it is written.
    graph: &'a Graph,
    eqn: &'a Equation,
    /// The graph that has the operands.
    recorded: &'a DefUse<'a>,
    /// The operands there.
    sources: &'a [Var],
    names: &'a mut [String],
    emitter: &'a mut Emitter,
    temporaries: usize,
}

impl Lowering<'_> {
    /// The name of a variable.
    pub fn name(&self, var: Var) -> &str {
        &self.names[var.index()]
    }

    /// The type of a variable.
    pub fn ty(&self, var: Var) -> &TensorType {
        self.graph.ty(var)
    }

    /// Operand `i`.
    pub fn operand_var(&self, i: usize) -> Var {
        self.eqn.inputs[i]
    }

    /// Result `i`.
    pub fn result_var(&self, i: usize) -> Var {
        self.eqn.outputs[i]
    }

    /// The name of operand `i`.
    pub fn operand(&self, i: usize) -> String {
        self.name(self.eqn.inputs[i]).to_string()
    }

    /// The type of operand `i`.
    pub fn operand_type(&self, i: usize) -> &TensorType {
        self.graph.ty(self.eqn.inputs[i])
    }

    /// The type of result `i`.
    pub fn result_type(&self, i: usize) -> &TensorType {
        self.graph.ty(self.eqn.outputs[i])
    }

    /// The number, as MLIR writes it, of which operand `i` is made throughout, if it is such a constant.
    pub fn repeated_number(&self, i: usize) -> Option<String> {
        repeated_number(self.recorded, self.sources[i])
    }

    /// True if the elements of operand `i`, signed integers, are their positions.
    pub fn counts(&self, i: usize) -> bool {
        let iota = self.recorded.definition(self.sources[i]).and_then(|eqn| eqn.op.downcast_ref::<Iota>());
        iota.is_some_and(Iota::counts_rows)
    }

    /// True if an operation gives operand `i`, which is no parameter then.
    pub fn is_computed(&self, i: usize) -> bool {
        self.recorded.definition(self.sources[i]).is_some()
    }

    /// True if the program runs on a processor.
    pub fn is_for_processor(&self) -> bool {
        !self.emitter.model.is_gpu()
    }

    /// True if kernels can be written out here: on a processor, outside of other kernels.
    pub fn has_kernels(&self) -> bool {
        self.emitter.has_kernels()
    }

    /// The equation as a product of a few vectors and a matrix, if it is one and becomes a kernel that is written out.
    pub fn thin_product(&self) -> Option<ThinProduct> {
        ThinProduct::of(self.recorded_for_kernels()?, self.eqn)
    }

    /// The graph of the equation, if kernels can be written out here; none for one of 16-bit floats, which is in a graph of its own.
    pub fn recorded_for_kernels(&self) -> Option<&DefUse<'_>> {
        (std::ptr::eq(self.graph, self.recorded.graph) && self.has_kernels()).then_some(self.recorded)
    }

    /// True if the program runs on a GPU of NVIDIA.
    pub fn is_for_cuda(&self) -> bool {
        self.emitter.model == Model::Cuda
    }

    /// True if the program runs as shaders of a GPU.
    pub fn is_for_shaders(&self) -> bool {
        self.emitter.model == Model::Shaders
    }

    /// The number of operands.
    pub fn operand_count(&self) -> usize {
        self.eqn.inputs.len()
    }

    /// The types of all results.
    pub fn result_type_names(&self) -> Vec<String> {
        self.eqn.outputs.iter().map(|v| self.graph.ty(*v).mlir()).collect()
    }

    /// The types of all results, separated by commas.
    pub fn result_types(&self) -> String {
        self.result_type_names().join(", ")
    }

    /// All operands, separated by commas.
    pub fn operands(&self) -> String {
        let names: Vec<&str> = self.eqn.inputs.iter().map(|v| self.name(*v)).collect();
        names.join(", ")
    }

    /// `(operand types) -> result types`.
    pub fn signature(&self) -> String {
        let list =
            |vars: &[Var]| vars.iter().map(|v| self.graph.ty(*v).mlir()).collect::<Vec<_>>().join(", ");
        let results = list(&self.eqn.outputs);
        let results = if self.eqn.outputs.len() == 1 { results } else { format!("({results})") };
        format!("({}) -> {results}", list(&self.eqn.inputs))
    }

    /// Marks the program as one with values of `f64`.
    pub fn keep_doubles(&mut self) {
        self.emitter.features.doubles = true;
    }

    /// Writes `results = text`.
    pub fn line(&mut self, text: &str) {
        let names: Vec<&str> = self.eqn.outputs.iter().map(|v| self.names[v.index()].as_str()).collect();
        let _ = writeln!(self.emitter.body, "    {} = {text}", names.join(", "));
    }

    /// A name for a value that only this operation needs.
    pub fn name_temporary(&mut self) -> String {
        let name = format!("{}_{}", self.name(self.eqn.outputs[0]), self.temporaries).replace('%', "%t");
        self.temporaries += 1;
        name
    }

    /// Writes `name = text` for a value that only this operation needs, and gives its name.
    pub fn temporary(&mut self, text: &str) -> String {
        let name = self.name_temporary();
        self.define(&name, text);
        name
    }

    /// Writes a temporary tensor of type `ty` with one number, as MLIR writes it, everywhere.
    pub fn splat(&mut self, ty: &TensorType, number: &str) -> String {
        self.temporary(&format!("stablehlo.constant dense<{number}> : {}", ty.mlir()))
    }

    /// Writes a temporary tensor of type `ty` with `x`, rounded to its dtype, everywhere.
    pub fn full(&mut self, ty: &TensorType, x: f64) -> String {
        self.splat(ty, &float(ty.dtype, x))
    }

    /// Writes a temporary: an operation whose operands and result all have type `ty`.
    pub fn value(&mut self, operation: &str, operands: &[&str], ty: &TensorType) -> String {
        self.temporary(&format!("{operation} {} : {}", operands.join(", "), ty.mlir()))
    }

    /// Writes a temporary: a comparison of two values of type `ty`.
    pub fn compare(&mut self, direction: &str, x: &str, y: &str, ty: &TensorType) -> String {
        let text = self.comparison(direction, x, y, ty);
        self.temporary(&text)
    }

    /// Writes a temporary: a choice between two values of type `ty`.
    pub fn select(&mut self, predicate: &str, x: &str, y: &str, ty: &TensorType) -> String {
        let text = format!(
            "stablehlo.select {predicate}, {x}, {y} : {}, {}",
            ty.with_dtype(DType::Bool).mlir(),
            ty.mlir()
        );
        self.temporary(&text)
    }

    /// Writes temporaries: true for floats of type `ty` with their sign bit set, also zeros and NaN.
    pub fn sign_bit(&mut self, x: &str, ty: &TensorType) -> String {
        let bits = ty.with_dtype(ty.dtype.as_signed_bits());
        let pattern = self.bitcast(x, ty, &bits);
        let none = self.splat(&bits, "0");
        self.compare("LT", &pattern, &none, &bits)
    }

    /// Writes temporaries: indices of type `ty` limited to `0..count`.
    pub fn clamp_indices(&mut self, indices: &str, count: usize, ty: &TensorType) -> String {
        let zero = self.splat(ty, "0");
        let last = self.splat(ty, &count.saturating_sub(1).to_string());
        self.value("stablehlo.clamp", &[&zero, indices, &last], ty)
    }

    /// The text of a comparison of two values of type `ty`.
    pub fn comparison(&self, direction: &str, x: &str, y: &str, ty: &TensorType) -> String {
        let kind = match ty.dtype {
            d if d.is_float() => "FLOAT",
            d if d == DType::Bool || d.is_unsigned() => "UNSIGNED",
            _ => "SIGNED",
        };
        let (operand, truth) = (ty.mlir(), ty.with_dtype(DType::Bool).mlir());
        format!("stablehlo.compare {direction}, {x}, {y}, {kind} : ({operand}, {operand}) -> {truth}")
    }

    /// Makes each result another name of its operand, and writes nothing.
    pub fn alias(&mut self) {
        for (result, operand) in self.eqn.outputs.iter().zip(&self.eqn.inputs) {
            let name = self.names[operand.index()].clone();
            self.names[result.index()] = name;
        }
    }

    /// Makes each result another name of a value that is written already.
    pub fn name_results(&mut self, values: &[String]) {
        for (result, value) in self.eqn.outputs.iter().zip(values) {
            self.names[result.index()].clone_from(value);
        }
    }

    /// Writes a barrier between the code before and after; in a kernel there are none.
    pub fn barrier(&mut self) {
        if self.in_kernel() {
            return self.alias();
        }
        let types = self.result_types();
        self.line(&format!("stablehlo.optimization_barrier {} : {types}", self.operands()));
    }

    /// The names of all results.
    pub fn results(&self) -> Vec<String> {
        self.eqn.outputs.iter().map(|v| self.names[v.index()].clone()).collect()
    }

    /// Writes `name = text`.
    pub fn define(&mut self, name: &str, text: &str) {
        let _ = writeln!(self.emitter.body, "    {name} = {text}");
    }

    /// Writes an operation with regions: `names = head { body } tail`.
    pub fn region(&mut self, names: &[String], head: &str, body: &[String], tail: &str) {
        let _ = writeln!(self.emitter.body, "    {} = {head}{{", names.join(", "));
        for line in body {
            let _ = writeln!(self.emitter.body, "      {line}");
        }
        let _ = writeln!(self.emitter.body, "    }}{tail}");
    }

    /// Writes a line of an operation with regions.
    pub fn raw(&mut self, line: &str) {
        let _ = writeln!(self.emitter.body, "    {line}");
    }

    /// Writes the equations of `graph` with these names for its parameters; the names of its results.
    pub fn nested(&mut self, graph: &Graph, arguments: Vec<String>) -> Vec<String> {
        let prefix = format!("{}_", self.name_temporary().replace('%', "w"));
        self.emitter.equations(&inline_calls(graph), arguments.into_iter(), &prefix)
    }

    /// Writes the equations of `graph` as [`Lowering::nested`] does, inside a region of an operation.
    pub fn nested_region(&mut self, graph: &Graph, arguments: Vec<String>) -> Vec<String> {
        self.enter_region();
        let results = self.nested(graph, arguments);
        self.leave_region();
        results
    }

    /// Begins a region of an operation.
    pub fn enter_region(&mut self) {
        self.emitter.regions += 1;
    }

    /// Ends the region.
    pub fn leave_region(&mut self) {
        self.emitter.regions -= 1;
    }

    /// Writes the end of a region, which gives these values.
    pub fn give(&mut self, values: &[String], types: &str) {
        self.raw(&format!("stablehlo.return {} : {types}", values.join(", ")));
    }

    /// Writes an operation whose operands and results all have one type.
    pub fn elementwise(&mut self, operation: &str) {
        self.line(&format!("{operation} {} : {}", self.operands(), self.result_type(0).mlir()));
    }

    /// Writes `operation operands attributes : signature`.
    pub fn typed(&mut self, operation: &str, attributes: &str) {
        self.line(&format!("{operation} {}{attributes} : {}", self.operands(), self.signature()));
    }

    /// Writes the bits of a tensor of type `from` as numbers of type `into`, unless the types are equal; the name of the result.
    pub fn bitcast(&mut self, x: &str, from: &TensorType, into: &TensorType) -> String {
        if from.dtype == into.dtype {
            return x.to_owned();
        }
        self.temporary(&format!("stablehlo.bitcast_convert {x} : ({}) -> {}", from.mlir(), into.mlir()))
    }

    /// Writes a tensor of type `from` in the shape of `into`, unless it has it; the name of the result.
    pub fn with_shape(&mut self, x: &str, from: &TensorType, into: &TensorType) -> String {
        if from.shape == into.shape {
            return x.to_owned();
        }
        self.temporary(&format!("stablehlo.reshape {x} : ({}) -> {}", from.mlir(), into.mlir()))
    }

    /// Writes operand 0 in the result's shape.
    pub fn reshape(&mut self) {
        if !quirks::reshape_to_number(self) && !quirks::number_to_element(self) {
            self.typed("stablehlo.reshape", "");
        }
    }

    /// Writes a reduction of operand 0 over `axes` by a binary `operation` whose neutral element is `init`.
    pub fn reduce(&mut self, operation: &str, init: &str, axes: &[usize]) {
        if quirks::reduces_nothing(self.operand_type(0), axes) {
            return self.reshape();
        }
        let recorded = self.recorded_for_kernels();
        if let Some(tiled) =
            recorded.and_then(|uses| TiledReduction::of(uses, self.result_var(0), operation, axes))
        {
            return tiled.write(self, init);
        }
        let (mut x, mut from) = (self.operand(0), self.operand_type(0).clone());
        if let Some(found) = quirks::extreme_of_signed(self, operation, &x, &from, axes) {
            return self
                .line(&format!("stablehlo.reshape {found} : ({0}) -> {0}", self.result_type(0).mlir()));
        }
        let scalar = TensorType::scalar(self.operand_type(0).dtype).mlir();
        let init = self.temporary(&format!("stablehlo.constant dense<{init}> : {scalar}"));
        let mut axes = axes;
        let negative = quirks::sums_negatives(self, operation);
        if negative {
            x = self.value("stablehlo.negate", &[&x], &from);
        }
        if let [rest @ .., last] = axes
            && quirks::reduces_by_axis(self, axes)
        {
            let mut shape = from.shape.clone();
            shape.remove(*last);
            let rows = from.with_shape(shape);
            x = self.temporary(&reduction(operation, &init, &[*last], &x, &from, &rows));
            (from, axes) = (rows, rest);
        }
        (x, from) = quirks::filled_up(self, &init, axes, &x, &from);
        let mut text = reduction(operation, &init, axes, &x, &from, self.result_type(0));
        if negative {
            let sum = self.temporary(&text);
            text = format!("stablehlo.negate {sum} : {}", self.result_type(0).mlir());
        }
        self.line(&text);
    }

    /// Writes a tensor of one number throughout.
    pub fn repeated(&mut self, number: &HostTensor) {
        // Without elements there is no number either.
        let number = if self.result_type(0).count() == 0 { String::new() } else { dense(number) };
        self.line(&format!("stablehlo.constant dense<{number}> : {}", self.result_type(0).mlir()));
    }

    /// Writes a constant.
    pub fn constant(&mut self, value: &HostTensor) {
        if self.is_for_cuda() && value.count() > 1 && splat(value).is_none() {
            return quirks::in_buffer(self, value);
        }
        self.line(&format!("stablehlo.constant dense<{}> : {}", dense(value), self.result_type(0).mlir()));
    }
}

/// The number, as MLIR writes it, of which a variable is made throughout, if it is such a constant.
pub fn repeated_number(uses: &DefUse<'_>, var: Var) -> Option<String> {
    let op = &uses.definition(var)?.op;
    let value = match op.downcast_ref::<Full>() {
        Some(full) => &full.value,
        None => &op.downcast_ref::<Constant>()?.value,
    };
    match value.count() {
        1 => Some(dense(value).replace(['[', ']'], "")),
        _ => splat(value),
    }
}

/// The text of a reduction of `x`, of type `from`, by a binary operation along axes, to `into`.
pub fn reduction(
    operation: &str,
    init: &str,
    axes: &[usize],
    x: &str,
    from: &TensorType,
    into: &TensorType,
) -> String {
    format!(
        "stablehlo.reduce({x} init: {init}) applies {operation} across dimensions = {} : ({}, {}) -> {}",
        dims_list(axes),
        from.mlir(),
        TensorType::scalar(from.dtype).mlir(),
        into.mlir(),
    )
}

/// `[0, 1]`.
pub fn dims_list(dims: &[usize]) -> String {
    format!("[{}]", dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
