//! Long reductions in blocks against single chains, as IREE accumulates by default: the time of a call on all cores, as a run takes it,
//! and the processor time of one on one core. The calls alternate, so that other load on the machine affects both. The device is that of
//! a run, for the second figure with one worker if it has any: the hand-over to a worker takes longer than small programs, which run
//! without. Its pool keeps memory, while page faults take up to five times as long as a program on a device without one.
//!
//! Both are compiled with the engine's flags; chains are also compiled with the target's flags alone. `cargo bench -p
//! sheaf-benches --bench reductions -- softmax` measures the cases whose name contains that.

use std::cell::RefCell;
use std::num::NonZero;
use std::rc::Rc;

use rustix::time::{ClockId, Timespec, clock_gettime};
use sheaf_benches::{median_of, paired_ratio};
use sheaf_graph::graph::Graph;
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::stablehlo::{self, Module};
use sheaf_graph::tensor::{DType, HostTensor, element_count};
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::host::{Backend, HostError, Program, Unit};
use sheaf_loader::SystemHost;
use sheaf_loader::{PlacementPolicy, alternatives, plan};
use sheaf_runtime::{CallFrame, ElementType, Runtime, Target, Vmfb, Workers, sha256};
use sheaf_toolchain::Compiler;
use std::sync::Arc;

/// Set-ups of each program, in each of which its arguments have other places in memory: equal programs differ by that, up to a fifth.
const SETUPS: usize = 7;

/// Rounds of a set-up. The median of all rounds counts.
const ROUNDS: usize = 7;

/// Minimum seconds per round.
const TURN: f64 = 0.02;

/// A measured program: a name, a function `f`, and a call of it.
const CASES: &[[&str; 3]] = &[
    ["sum of a million", "(defn f [x] (sum x))", "(f (zeros [1000000]))"],
    ["sum of 2048x2048", "(defn f [x] (sum x))", "(f (zeros [2048 2048]))"],
    ["sum of 2048x2048 by axis 0", "(defn f [x] (sum x :axis 0))", "(f (zeros [2048 2048]))"],
    ["sum of 2048x2048 by axis 1", "(defn f [x] (sum x :axis 1))", "(f (zeros [2048 2048]))"],
    ["logsumexp of 64x50257", "(defn f [x] (logsumexp x :axis -1))", "(f (zeros [64 50257]))"],
    [
        "cross entropy of 64x50257, gradient",
        "(defn f [x y] ((value-and-grad (fn [x] (sparse-cross-entropy x y))) x))",
        "(f (zeros [64 50257]) (int (zeros [64])))",
    ],
    [
        "layer norm of 1024x768",
        "(use nn) (defn f [x p] (layer-norm x p))",
        "(f (zeros [1024 768]) {:gamma (ones [768]) :beta (zeros [768])})",
    ],
    [
        "layer norm of 1024x768, gradient",
        "(use nn) (defn f [x p w] ((grad (fn [[x p]] (sum (* w (layer-norm x p))))) [x p]))",
        "(f (zeros [1024 768]) {:gamma (ones [768]) :beta (zeros [768])} (zeros [1024 768]))",
    ],
    ["softmax of 64x12x64x64", "(defn f [x] (softmax x))", "(f (zeros [64 12 64 64]))"],
    ["softmax of 64x1024", "(defn f [x] (softmax x))", "(f (zeros [64 1024]))"],
    ["dot of a million", "(defn f [x y] (dot x y))", "(f (zeros [1000000]) (zeros [1000000]))"],
    ["Gram matrix of 100000x8", "(defn f [x] (@ (transpose x) x))", "(f (zeros [100000 8]))"],
    ["64x50257 by 50257x64", "(defn f [x y] (@ x y))", "(f (zeros [64 50257]) (zeros [50257 64]))"],
    ["sum of 4096x3072 by axis 0", "(defn f [x] (sum x :axis 0))", "(f (zeros [4096 3072]))"],
    ["mean of a million", "(defn f [x] (mean x))", "(f (zeros [1000000]))"],
    ["variance of a million", "(defn f [x] (var x))", "(f (zeros [1000000]))"],
];

fn main() {
    sheaf_benches::run(measure);
}

fn measure() {
    let environment = |name: &str| std::env::var(name).ok();
    let home = sheaf_project::Home::locate(environment).expect("a home folder");
    let toolchain = sheaf_toolchain::locate(home.data()).expect("an installed compiler: run a program once");
    let mut compiler = sheaf_benches::compiler(toolchain);
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!(
        "time of a call in ms on all cores, processor time on one; medians of {SETUPS} set-ups, {ROUNDS} turns each; ratios within each turn"
    );
    for [name, definition, call] in CASES.iter().filter(|case| case[0].contains(&wanted)) {
        let graph = graph(definition, call);
        let further = alternatives(&graph).into_iter().next().unwrap_or_default();
        let blocks = stablehlo::emit(&graph, stablehlo::Model::Hal);
        let chains = stablehlo::emit_in_chains(&graph, stablehlo::Model::Hal);
        let modules = [(&blocks, &further[..]), (&chains, &further[..]), (&chains, &[]), (&chains, &[])];
        let programs = modules.map(|(module, further)| Compiled::new(module, further, &mut compiler));
        let placed = plan(PlacementPolicy::Auto, &graph).target;
        let alone = match placed {
            Target::LocalTask(_) => Target::LocalTask(Workers::Exactly(NonZero::<usize>::MIN)),
            other => other,
        };
        println!("  {name}");
        for (cores, target, clock) in
            [("all cores", placed, wall_time as fn() -> f64), ("one core", alone, processor_time)]
        {
            let mut times: [Vec<f64>; 4] = Default::default();
            for _ in 0..SETUPS {
                let mut variants =
                    programs.each_ref().map(|program| Variant::new(&graph, program, target, clock));
                for _ in 0..ROUNDS {
                    variants.iter_mut().for_each(Variant::turn);
                }
                variants.into_iter().zip(&mut times).for_each(|(variant, times)| times.extend(variant.times));
            }
            let [blocks, chains, plain, again] = &times;
            println!(
                "    {cores:10} {:8.3}, {:4.2} of chains, {:4.2} of chains without further flags, which take {:4.2} of themselves",
                median_of(blocks.clone()) * 1e3,
                paired_ratio(blocks, chains),
                paired_ratio(blocks, plain),
                paired_ratio(again, plain),
            );
        }
    }
}

/// The graph of a call of `f`.
fn graph(definition: &str, call: &str) -> Graph {
    let taken = Rc::new(RefCell::new(None));
    let options = Options { jit: Jit::Always, ..Options::default() };
    let backend = Taker(Rc::clone(&taken));
    let mut interp =
        Interp::new(Box::new(SystemHost::new(Vec::new(), Arc::new(()))), Some(Box::new(backend)), options);
    let module = Interp::program("bench");
    let ended = interp.run_text(&module, "bench", &format!("{definition} {call}"));
    taken.take().unwrap_or_else(|| panic!("no graph: {ended:?}"))
}

/// Stores the graph, and ends the run.
struct Taker(Rc<RefCell<Option<Graph>>>);

impl Backend for Taker {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        if unit.function != "f" {
            return Ok(None);
        }
        *self.0.borrow_mut() = Some(unit.graph.clone());
        Err(HostError { message: "taken".into(), help: None })
    }

    fn upload(&mut self, _: &HostTensor) -> Result<sheaf_lang::host::Buffer, HostError> {
        unreachable!("nothing runs")
    }
}

/// A compiled program and its constants.
struct Compiled {
    vmfb: Vmfb,
    constants: Vec<HostTensor>,
}

impl Compiled {
    fn new(module: &Module, further: &[String], compiler: &mut Compiler) -> Compiled {
        let flags = sheaf_target::Target::CPU.flags_for(module.features.doubles);
        let vmfb = compiler.compile(&module.text, &[&flags, further].concat()).expect("a program");
        let digest = sha256(&vmfb);
        Compiled {
            vmfb: Vmfb::verify(vmfb, &digest).expect("its digest"),
            constants: module.constants.clone(),
        }
    }
}

/// A program with its arguments on a device, and the times of its calls.
struct Variant {
    frame: CallFrame,
    clock: fn() -> f64,
    calls: u32,
    times: Vec<f64>,
}

impl Variant {
    fn new(graph: &Graph, program: &Compiled, target: Target, clock: fn() -> f64) -> Variant {
        let device = Runtime::new().and_then(|runtime| runtime.device(target)).expect("a device");
        let mut frame = device.load(&program.vmfb).and_then(|p| p.call_frame()).expect("a program");
        let operands = graph.inputs.iter().map(|var| numbers(graph.ty(*var).dtype, &graph.ty(*var).shape));
        for (i, tensor) in operands.chain(program.constants.iter().cloned()).enumerate() {
            let element = match tensor.dtype() {
                DType::F32 => ElementType::F32,
                DType::I32 => ElementType::I32,
                other => panic!("{other}"),
            };
            let buffer = device.upload(element, tensor.shape(), tensor.bytes()).expect("a buffer");
            frame.set(i, &buffer).expect("an argument");
        }
        let mut variant = Variant { frame, clock, calls: 1, times: Vec::new() };
        variant.turn();
        while variant.times.pop().expect("a turn") * f64::from(variant.calls) < TURN {
            variant.calls *= 2;
            variant.turn();
        }
        variant
    }

    fn turn(&mut self) {
        let start = (self.clock)();
        for _ in 0..self.calls {
            self.frame.invoke().expect("a call");
        }
        self.times.push(((self.clock)() - start) / f64::from(self.calls));
    }
}

/// Numbers of 0 to 1, or classes.
fn numbers(dtype: DType, shape: &[usize]) -> HostTensor {
    let mut random = Random(7);
    let count = element_count(shape);
    if dtype == DType::I32 {
        return HostTensor::new(shape, (0..count as i32).collect::<Vec<i32>>());
    }
    HostTensor::new(shape, (0..count).map(|_| random.uniform(0.0, 1.0) as f32).collect::<Vec<f32>>())
}

/// Time in seconds since the machine started.
fn wall_time() -> f64 {
    seconds(clock_gettime(ClockId::Monotonic))
}

/// Processor time of this process in seconds, of which IREE's one worker takes most. `/proc/thread-self/schedstat` moves in
/// steps of 4 ms, a fifth of a turn.
fn processor_time() -> f64 {
    seconds(clock_gettime(ClockId::ProcessCPUTime))
}

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
