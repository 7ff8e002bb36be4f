//! Small loops and small programs as one kernel.
//!
//! A dispatch of IREE takes about a microsecond, even for little work. The operations of a small program are therefore
//! written into one `flow.dispatch.workgroups`, and so is a loop with a small step. The state of such a loop is memory
//! of the kernel, its rows are read from the operands and written to the results in place: neither is a loop-carried
//! tensor, which IREE fails on if an extent is 1 or a vector is carried ("operand #0 does not dominate this use",
//! "Yield operand is not equivalent to the corresponding iter bbArg", Q28).

mod memory;

use std::collections::HashSet;
use std::mem::{replace, take};

pub use memory::{Binding, Cell, RowSource, RowTarget};
use memory::{binding_type, stored};

use super::loops::has_loops;
use super::{Emitter, KernelSize, Lowering, Model, quirks};
use crate::graph::{Equation, Graph, Var};
use crate::primitives::Pad;
use crate::tensor::TensorType;

/// Limits of a kernel.
struct Limits {
    /// Elements of a value.
    elements: usize,
    /// Scalar operations (as [`Graph::cost`] has them), those of a step of its loop.
    work: u64,
    /// Bytes that a loop carries. They are on the stack, twice.
    carried: usize,
}

/// Scalar operations that take the time of an element of a padding, which a kernel writes one by one (`docs/benchmarks.md`).
const PADDED: u64 = 16;

impl Limits {
    /// None for a model without such kernels.
    fn of(model: Model) -> Option<Limits> {
        match model {
            Model::Hal | Model::Blocks | Model::Cuda | Model::Shaders => None,
            // More are quicker as several kernels, each with its tiles (`docs/benchmarks.md`).
            Model::Kernels(KernelSize::Small | KernelSize::Parted) => {
                Some(Limits { elements: 4096, work: 40_000, carried: 8 << 10 })
            }
            Model::Kernels(KernelSize::Any) => {
                Some(Limits { elements: 1 << 16, work: 10_000_000, carried: 32 << 10 })
            }
        }
    }

    /// True if the equations of a graph fit.
    fn hold(&self, graph: &Graph) -> bool {
        let mut fits = true;
        let mut work = graph.cost();
        graph.visit(&mut |function, eqn| {
            fits &= !quirks::is_refused_in_kernels(function, eqn);
            if eqn.op.is::<Pad>() {
                work += PADDED * function.ty(eqn.outputs[0]).count() as u64;
            }
            let sizes = eqn.inputs.iter().chain(&eqn.outputs).map(|v| function.ty(*v).count());
            fits &= sizes.clone().all(|count| (1..=self.elements).contains(&count));
        });
        fits && work <= self.work
    }
}

/// The kernel that is being written.
#[derive(Default)]
pub(super) struct Kernel {
    /// Constants of the program that are arguments of `main`: the argument, and its type.
    captured: Vec<(String, TensorType)>,
    /// Names of the values so far that accumulate in memory ([`quirks::accumulates`]).
    accumulated: HashSet<String>,
}

impl Kernel {
    /// Takes note of an equation that has been written, its variables having these names.
    pub(super) fn note(&mut self, eqn: &Equation, names: &[String]) {
        let name = |var: &Var| names[var.index()].clone();
        if quirks::accumulates(eqn, |operand| self.accumulates(&name(operand))) {
            self.accumulated.extend(eqn.outputs.iter().map(name));
        }
    }

    /// True if a value so far accumulates in memory.
    pub(super) fn accumulates(&self, value: &str) -> bool {
        self.accumulated.contains(value)
    }

    /// The name in the kernel of a constant that is an argument of `main`.
    pub(super) fn capture(&mut self, argument: String, ty: &TensorType) -> String {
        let known = self.captured.iter().position(|(name, _)| *name == argument);
        let place = known.unwrap_or_else(|| {
            self.captured.push((argument, ty.clone()));
            self.captured.len() - 1
        });
        format!("%kernelconstant{place}")
    }
}

/// Maximum operands and results of a kernel: IREE binds 32 buffers (Q31), and constants come besides.
const BINDINGS: usize = 24;

/// True if a program is one kernel: it has no loops, which are kernels of their own.
pub(super) fn program_fits(graph: &Graph, model: Model) -> bool {
    let mut variables = graph.inputs.iter().chain(&graph.outputs);
    !graph.outputs.is_empty()
        && graph.inputs.len() + graph.outputs.len() <= BINDINGS
        && graph.equations.len() > 1
        && variables.all(|v| graph.ty(*v).count() > 0)
        && !has_loops(graph)
        && Limits::of(model).is_some_and(|limits| limits.hold(graph))
}

/// True if a loop with these functions and states is small enough for a kernel.
pub(super) fn loop_fits<'a>(
    functions: &[&Graph],
    carried: impl Iterator<Item = &'a TensorType>,
    model: Model,
) -> bool {
    let Some(limits) = Limits::of(model) else { return false };
    let carried: usize = carried.map(|ty| ty.count() * ty.dtype.byte_width()).sum();
    carried <= limits.carried && functions.iter().all(|function| limits.hold(function))
}

impl Emitter {
    pub(super) fn put(&mut self, line: &str) {
        self.body.push_str("    ");
        self.body.push_str(line);
        self.body.push('\n');
    }

    /// Writes a kernel of these operands, each with its type. `write` writes its body, given the names of its bindings
    /// for operands and results. The names of the results start with `prefix`.
    pub(super) fn kernel(
        &mut self,
        operands: &[(String, TensorType)],
        results: &[TensorType],
        prefix: &str,
        write: impl FnOnce(&mut Emitter, &[Binding], &[Binding]),
    ) -> Vec<String> {
        let mut outer: Vec<(String, TensorType)> = Vec::new();
        for (i, (name, ty)) in operands.iter().enumerate() {
            let held = stored(ty);
            outer.push((self.stored_as(name, ty, &held, &format!("{prefix}in{i}")), held));
        }
        let bindings = |kind: &str, types: &[TensorType]| -> Vec<Binding> {
            let binding = |(i, ty): (usize, &TensorType)| Binding {
                name: format!("{prefix}{kind}{i}"),
                ty: ty.clone(),
            };
            types.iter().enumerate().map(binding).collect()
        };
        let types: Vec<TensorType> = operands.iter().map(|(_, ty)| ty.clone()).collect();
        let (read, written) = (bindings("d", &types), bindings("o", results));

        self.features.kernels = true;
        let before = take(&mut self.body);
        self.kernel = Some(Kernel::default());
        write(self, &read, &written);
        let inside = replace(&mut self.body, before);
        let captured = self.kernel.take().map_or_else(Vec::new, |kernel| kernel.captured);

        let mut parameters: Vec<String> = outer
            .iter()
            .enumerate()
            .map(|(i, (_, ty))| format!("{prefix}d{i}: {}", binding_type("readonly", ty)))
            .collect();
        let mut loads = Vec::new();
        for (i, (argument, ty)) in captured.into_iter().enumerate() {
            let held = stored(&ty);
            parameters.push(format!("{prefix}c{i}: {}", binding_type("readonly", &held)));
            let name = self.stored_as(&argument, &ty, &held, &format!("{prefix}cin{i}"));
            outer.push((name, held));
            loads.push(ty);
        }
        let held: Vec<TensorType> = results.iter().map(stored).collect();
        parameters.extend(
            held.iter().enumerate().map(|(i, ty)| format!("{prefix}o{i}: {}", binding_type("writeonly", ty))),
        );
        let list = |types: &mut dyn Iterator<Item = String>| types.collect::<Vec<_>>().join(", ");
        let raw: Vec<String> = (0..results.len()).map(|i| format!("{prefix}r{i}")).collect();
        self.put(&format!(
            "{} = flow.dispatch.workgroups({}) : ({}) -> ({}) = ({}) {{",
            raw.join(", "),
            list(&mut outer.iter().map(|(name, _)| name.clone())),
            list(&mut outer.iter().map(|(_, ty)| ty.mlir())),
            list(&mut held.iter().map(TensorType::mlir)),
            parameters.join(", "),
        ));
        for (i, ty) in loads.iter().enumerate() {
            let (read, name, held) = (format!("{prefix}cl{i}"), format!("%kernelconstant{i}"), stored(ty));
            self.load_whole(&read, &format!("{prefix}c{i}"), ty);
            let loaded = self.stored_as(&read, &held, ty, &name);
            if loaded != name {
                let ty = ty.mlir();
                self.put(&format!("{name} = stablehlo.reshape {loaded} : ({ty}) -> {ty}"));
            }
        }
        self.body.push_str(&inside);
        self.put("flow.return");
        self.put("} count() -> (index, index, index) {");
        self.put(&format!("{prefix}one = arith.constant 1 : index"));
        self.put(&format!("flow.return {prefix}one, {prefix}one, {prefix}one : index, index, index"));
        self.put("}");
        let mut names = Vec::new();
        for (i, (ty, held)) in results.iter().zip(&held).enumerate() {
            names.push(self.stored_as(&raw[i], held, ty, &format!("{prefix}v{i}")));
        }
        names
    }

    /// Writes a program as one kernel; the names of its results.
    pub(super) fn program_as_kernel(&mut self, graph: &Graph) -> Vec<String> {
        let operands: Vec<(String, TensorType)> = graph
            .inputs
            .iter()
            .enumerate()
            .map(|(i, v)| (format!("%arg{i}"), graph.ty(*v).clone()))
            .collect();
        let results: Vec<TensorType> = graph.outputs.iter().map(|v| graph.ty(*v).clone()).collect();
        self.kernel(&operands, &results, "%k", |emitter, read, written| {
            let loaded: Vec<String> = read.iter().map(|x| emitter.load(x)).collect();
            let made = emitter.equations(graph, loaded.into_iter(), "");
            for (value, result) in made.iter().zip(written) {
                emitter.store(value, result);
            }
        })
    }
}

impl Lowering<'_> {
    /// True inside of a kernel.
    pub fn in_kernel(&self) -> bool {
        self.emitter.kernel.is_some()
    }

    /// True if a loop here, with these functions and states, is to be a kernel.
    pub fn can_be_kernel<'a>(
        &self,
        functions: &[&Graph],
        carried: impl Iterator<Item = &'a TensorType>,
    ) -> bool {
        let operands = (0..self.operand_count()).map(|i| self.operand_type(i));
        let results = (0..self.eqn.outputs.len()).map(|i| self.result_type(i));
        self.emitter.kernel.is_none()
            && self.emitter.regions == 0
            && self.operand_count() + self.eqn.outputs.len() <= BINDINGS
            && operands.chain(results).all(|ty| ty.count() > 0)
            && loop_fits(functions, carried, self.emitter.model)
    }

    /// Writes a kernel of the operation's operands and results. `write` writes its body.
    pub fn as_kernel(&mut self, write: impl FnOnce(&mut Lowering<'_>, &[Binding], &[Binding])) {
        let operands: Vec<(String, TensorType)> =
            (0..self.operand_count()).map(|i| (self.operand(i), self.operand_type(i).clone())).collect();
        let results: Vec<TensorType> =
            (0..self.eqn.outputs.len()).map(|i| self.result_type(i).clone()).collect();
        let prefix = format!("{}k", self.name_temporary());
        let Lowering { graph, eqn, recorded, sources, names, emitter, temporaries } = self;
        let made = emitter.kernel(&operands, &results, &prefix, |emitter, read, written| {
            let mut inside =
                Lowering { graph, eqn, recorded, sources, names, emitter, temporaries: *temporaries };
            write(&mut inside, read, written);
            *temporaries = inside.temporaries;
        });
        self.name_results(&made);
    }
}
