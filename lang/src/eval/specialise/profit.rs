//! Profit: when a call is worth tracing, and a specialisation worth compiling. Work is counted, never timed, so that
//! runs are reproducible.
//!
//! This is the ski rental problem: interpreting a call is renting, a trace or a program is buying. A specialisation is
//! compiled once its calls have done, or the loops around it promise, as much work as the compilation takes; each one
//! that has not paid for itself doubles this threshold for the next one of that function, each that has halves it. So
//! useless traces and programs cost at most a small multiple of interpreting, however the arguments change.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use smallvec::SmallVec;

use sheaf_graph::graph::{Equation, Graph, Op, Var};
use sheaf_graph::primitives::{self as p, DotGeneral, Scan, WhileLoop};

/// Work of the evaluator per equation or call, besides its arithmetic. The unit is a scalar operation, about 1 ns. An
/// operation of few elements takes 1.35 us, one of a gradient, which is traced in every call, 2 to 4
/// (`docs/benchmarks.md`).
const STEP: u64 = 2000;

/// Multiply-adds of a product that take the evaluator as long as one other operation: 3 to 7 in products of 64x32 by
/// 32x32 to 512x512 by 512x512.
const PRODUCT_OPERATIONS: u64 = 4;

/// Work of tracing an equation: recording, pruning and verifying it.
const TRACED_EQUATION: u64 = 2 * STEP;

/// Work of tracing a leaf of the arguments: its path, its pattern, its position among the results.
const TRACED_LEAF: u64 = STEP;

/// Fixed work of a compilation. This and the two below are fitted to the compiler's processor time for 28 programs of 2
/// to 2,555 operations, 1 ns per unit; they give 0.6 to 1.4 times that (`docs/benchmarks.md`).
const COMPILATION: u64 = 250_000_000;

/// Work of compiling one equation: most are fused into a kernel.
const COMPILED_EQUATION: u64 = 2_000_000;

/// Work of compiling a separate kernel. Equal kernels are compiled once: each layer of a model adds little.
const COMPILED_KERNEL: u64 = 160_000_000;

/// Maximum unpaid traces of a function before new ones are delayed.
const MAX_UNPAID_TRACES: u32 = 4;

/// Work of interpreting one call of `graph`.
pub(super) fn call_work(graph: &Graph) -> u64 {
    work(graph).saturating_add(STEP)
}

fn work(graph: &Graph) -> u64 {
    let equation = |eqn: &Equation| STEP.saturating_add(equation_work(graph, eqn));
    graph.equations.iter().map(equation).fold(0, u64::saturating_add)
}

/// Arithmetic of an equation, including nested loops and branches.
fn equation_work(graph: &Graph, eqn: &Equation) -> u64 {
    let types = |vars: &[Var]| vars.iter().map(|var| graph.ty(*var)).collect::<SmallVec<[_; 4]>>();
    let cost = || eqn.op.cost(&types(&eqn.inputs), &types(&eqn.outputs));
    let op = &eqn.op;
    if op.is::<DotGeneral>() {
        return cost() / PRODUCT_OPERATIONS;
    }
    if let Some(scan) = op.downcast_ref::<Scan>() {
        return work(&scan.body).saturating_mul(scan.length as u64);
    }
    match eqn.op.functions().into_iter().map(work).max() {
        // The iteration count of a `while_loop` is a guess, so it does not multiply its steps.
        Some(inside) if !op.is::<WhileLoop>() => inside,
        _ => cost(),
    }
}

/// Work of tracing that many equations and leaves.
pub(super) fn trace_work(equations: usize, leaves: usize) -> u64 {
    TRACED_EQUATION * equations as u64 + TRACED_LEAF * leaves as u64
}

/// Work of compiling a program, including loops and branches.
pub(super) fn compilation_work(graph: &Graph) -> u64 {
    let mut equations = 0;
    let mut kernels = HashSet::new();
    graph.visit(&mut |function, eqn| {
        equations += 1;
        if makes_kernel(&eqn.op) {
            let types = |vars: &[Var]| vars.iter().map(|var| function.ty(*var).clone()).collect::<Vec<_>>();
            kernels.insert((eqn.op.name(), types(&eqn.inputs), types(&eqn.outputs)));
        }
    });
    COMPILATION + COMPILED_EQUATION * equations + COMPILED_KERNEL * kernels.len() as u64
}

/// True if the compiler makes a kernel of an operation, and fuses others with it.
fn makes_kernel(op: &Op) -> bool {
    op.is::<p::Convolution>()
        || op.is::<p::Cumsum>()
        || op.is::<p::DotGeneral>()
        || op.is::<p::DynamicUpdateSlice>()
        || op.is::<p::GatherRows>()
        || op.is::<p::Scan>()
        || op.is::<p::ScatterAdd>()
        || op.is::<p::Sort>()
        || op.is::<p::TopK>()
        || op.is::<p::WhileLoop>()
        || op.is::<p::ArgReduce>()
        || op.is::<p::ReduceAnd>()
        || op.is::<p::ReduceMax>()
        || op.is::<p::ReduceMin>()
        || op.is::<p::ReduceOr>()
        || op.is::<p::ReduceProd>()
        || op.is::<p::ReduceSum>()
}

/// Unpaid costs of the specialisations of one function.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Number of specialisations whose calls have done less work than tracing them took.
    traces: Cell<u32>,
    /// Number of programs whose calls have done less work than compiling them took.
    programs: Cell<u32>,
    /// Work of the calls since the last trace that fitted no specialisation.
    waited: Cell<u64>,
    /// Work of the last trace, and of a call of the traced function.
    latest: Cell<(u64, u64)>,
}

impl Account {
    /// True if a call that fits no specialisation should be traced. Counts the call.
    pub fn may_trace(&self) -> bool {
        let doubts = self.traces.get().saturating_sub(MAX_UNPAID_TRACES);
        if doubts == 0 {
            return true;
        }
        let (trace, call) = self.latest.get();
        let waited = self.waited.get().saturating_add(call);
        self.waited.set(waited);
        waited >= doubled(trace, doubts)
    }

    /// True if a program of `compilation` work should be compiled: interpreting one call is `call` work, the loops
    /// around this one repeat it `weight` times, and all calls so far took `spent`.
    fn may_compile(&self, compilation: u64, call: u64, weight: u64, spent: u64) -> bool {
        match self.programs.get() {
            0 => spent.max(call.saturating_mul(weight)) >= compilation,
            // The loops were wrong before.
            doubts => spent >= doubled(compilation, doubts),
        }
    }

    /// Opens the account of a specialisation whose trace was `trace` work; `call` is that of interpreting a call.
    pub fn open(self: &Rc<Self>, trace: u64, call: u64) -> Debt {
        self.traces.set(self.traces.get() + 1);
        self.waited.set(0);
        self.latest.set((trace, call));
        Debt { account: Rc::clone(self), call, trace: Cell::new(trace), program: Cell::new(0) }
    }
}

/// `work` doubled `times` times.
fn doubled(work: u64, times: u32) -> u64 {
    work.saturating_mul(1 << times.min(62))
}

/// Unpaid work of one specialisation.
#[derive(Debug)]
pub(super) struct Debt {
    account: Rc<Account>,
    /// Work of interpreting a call.
    call: u64,
    trace: Cell<u64>,
    program: Cell<u64>,
}

impl Debt {
    /// Counts a call: it pays the work of interpreting it.
    pub fn pay(&self) {
        pay(&self.trace, &self.account.traces, self.call);
        pay(&self.program, &self.account.programs, self.call);
    }

    /// True if a program of `compilation` work should be compiled: the loops around the call repeat it `weight` times,
    /// and all calls so far were `spent` work to interpret.
    pub fn may_compile(&self, compilation: u64, weight: u64, spent: u64) -> bool {
        self.account.may_compile(compilation, self.call, weight, spent)
    }

    /// Counts a compilation.
    pub fn compiled(&self, compilation: u64) {
        self.program.set(compilation);
        self.account.programs.set(self.account.programs.get() + 1);
    }
}

#[inline]
fn pay(debt: &Cell<u64>, owing: &Cell<u32>, work: u64) {
    let left = debt.get();
    if left == 0 {
        return;
    }
    debt.set(left.saturating_sub(work));
    if left <= work {
        owing.set(owing.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::collections::hash_map::Entry;

    use super::*;
    use sheaf_graph::graph::Builder;
    use sheaf_graph::primitives::{Binary, Mul};
    use sheaf_graph::tensor::{DType, Shape, TensorType};

    /// A chain of products of square matrices of `sizes`, each followed by an elementwise operation.
    fn products(sizes: &[usize]) -> Graph {
        let mut b = Builder::new();
        let mut outputs = Vec::new();
        for n in sizes {
            let x = b.input(TensorType::new(DType::F32, [*n, *n].as_slice()));
            let contract = [Shape::from_slice(&[1]), Shape::from_slice(&[0])];
            let y = b.apply(DotGeneral { contract, ..DotGeneral::default() }, &[x, x]);
            outputs.push(b.apply(Binary(Mul), &[y, x]));
        }
        b.finish(outputs)
    }

    /// Equal kernels are counted once.
    #[test]
    fn kernels_that_are_alike_cost_one_compilation() {
        let one = compilation_work(&products(&[8]));
        assert_eq!(compilation_work(&products(&[8, 8])) - one, 2 * COMPILED_EQUATION);
        assert_eq!(compilation_work(&products(&[8, 9])) - one, 2 * COMPILED_EQUATION + COMPILED_KERNEL);
    }

    /// The evaluator's work per equation counts in each iteration of a loop.
    #[test]
    fn a_loop_is_as_much_work_as_its_iterations() {
        let body = products(&[8]);
        let step = call_work(&body) - STEP;
        assert_eq!(step, 2 * STEP + 2 * 512 / PRODUCT_OPERATIONS + 64);
        let mut b = Builder::new();
        let x = b.input(TensorType::new(DType::F32, [8, 8].as_slice()));
        let body = std::sync::Arc::new(body);
        let scan = Scan { body, length: 100, constants: 0, states: 1, reverse: false };
        let y = b.apply(scan, &[x]);
        assert_eq!(call_work(&b.finish(vec![y])), 100 * step + 2 * STEP);
    }

    /// Work of compiling a small program.
    const PROGRAM: u64 = 500_000_000;

    /// Runs calls, given by the specialisation they fit: the number of traces and programs, and the ratio of the total
    /// work to that of interpreting all calls.
    fn run(calls: impl Iterator<Item = usize>, call: u64, trace: u64, weight: u64) -> (usize, usize, f64) {
        let compilation = PROGRAM;
        let account = Rc::new(Account::default());
        let mut known: HashMap<usize, (Debt, u64, bool)> = HashMap::new();
        let (mut traces, mut programs, mut work, mut interpreting) = (0, 0, 0, 0);
        for fits in calls {
            interpreting += call;
            let (debt, spent, compiled) = match known.entry(fits) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    if !account.may_trace() {
                        work += call;
                        continue;
                    }
                    traces += 1;
                    work += trace;
                    entry.insert((account.open(trace, call), 0, false))
                }
            };
            *spent += call;
            if !*compiled && debt.may_compile(compilation, weight, *spent) {
                programs += 1;
                work += compilation;
                debt.compiled(compilation);
                *compiled = true;
            }
            work += if *compiled { 0 } else { call };
            debt.pay();
        }
        (traces, programs, work as f64 / interpreting as f64)
    }

    /// A list that grows in every call, in a loop.
    #[test]
    fn arguments_that_are_always_new_cost_a_small_multiple() {
        for (call, trace) in [(1_000, 800_000), (50_000, 150_000), (100_000_000, 1_000_000)] {
            for calls in [10, 100, 1_000, 10_000] {
                let (traces, programs, ratio) = run(0..calls, call, trace, 1);
                let free = (u64::from(MAX_UNPAID_TRACES + 1) * trace) as f64 / (calls as f64 * call as f64);
                assert!(ratio <= 3.0 + free, "{calls} calls of {call}: {traces} traces, ratio {ratio}");
                assert_eq!(programs, 0, "{calls} calls of {call}");
            }
        }
        // The loop promises to call the first again, once.
        let (traces, programs, _) = run(0..800, 1_000_000, 10_000_000, 800);
        assert_eq!(programs, 1);
        assert!(traces <= 16, "{traces}");
    }

    /// Recurring shapes are all compiled, also one after the other, and immediately if a loop promises.
    #[test]
    fn arguments_that_come_again_are_compiled() {
        let call = 10_000_000;
        let (traces, programs, ratio) = run((0..20_000).map(|i| i % 20), call, 200_000, 1);
        assert_eq!((traces, programs), (20, 20));
        assert!(ratio < 0.6, "{ratio}");
        let (traces, programs, ratio) = run((0..20_000).map(|i| i / 1_000), call, 200_000, 1_000);
        assert_eq!((traces, programs), (20, 20));
        assert!(ratio < 0.1, "{ratio}");
    }

    /// Programs that did not pay delay the next ones.
    #[test]
    fn each_program_in_vain_doubles_what_the_next_must_show() {
        let call = PROGRAM / 4;
        // Each is called often enough to be compiled, and then never again.
        let (_, programs, ratio) = run((0..6_000).map(|i| i / 6), call, 1_000, 1);
        assert!(programs <= 2, "{programs}");
        assert!(ratio < 1.1, "{ratio}");
    }

    /// If a function is called again as before, its debts are paid and new specialisations are not delayed.
    #[test]
    fn a_debt_that_is_paid_is_forgotten() {
        let account = Rc::new(Account::default());
        let debts: Vec<Debt> = (0..10).map(|_| account.open(1_000_000, 1_000)).collect();
        assert!(!account.may_trace());
        for debt in &debts {
            (0..1_000).for_each(|_| debt.pay());
        }
        assert!(account.may_trace());
        debts[0].compiled(1_000_000);
        assert!(!account.may_compile(10, 10, 1_000, 10));
        (0..1_000).for_each(|_| debts[0].pay());
        assert!(account.may_compile(10, 10, 1_000, 10));
    }
}
