//! The command line.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sheaf_engine::{DevicePolicy, PlacementPolicy, TuningFlag};
use sheaf_target::{Destination, Processor};

use crate::bundle::BundleCommand;
use crate::cache::CacheCommand;
use crate::device::DeviceOptions;
use crate::observe::ObserveOptions;
use crate::packages::options::{
    AddOptions, AuditOptions, DependencyOptions, InstallOptions, LockOptions, OutdatedOptions,
    PublishOptions, RemoveOptions, SbomOptions, SearchOptions, TreeOptions, UpdateOptions, VendorOptions,
    YankOptions,
};
use crate::registry::RegistryCommand;
use crate::step::StepCommand;
use crate::toolchain::ToolchainOptions;

/// Run and train Sheaf programs.
#[derive(Debug, Parser)]
#[command(
    name = "sheaf",
    version = version(),
    about = "A functional language for differentiable computation",
    after_help = "Examples:\n  sheaf                 # the REPL\n  sheaf train.shf --device cpu",
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunOptions,
}

/// The version of each part: itself, the runtime that is linked in, and the compiler that it downloads.
fn version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let (runtime, compiler) = (sheaf_runtime::Runtime::version(), sheaf_target::COMPILER[0].version);
        format!("{}\nIREE runtime {runtime}\nIREE compiler {compiler} (pinned)", env!("CARGO_PKG_VERSION"))
    });
    &TEXT
}

/// Commands of `sheaf`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run a program
    #[command(
        after_help = "Examples:\n  sheaf run train.shf --device cpu\n  sheaf run train.shf --explain\n  sheaf run -c '(print (sum [1 2 3]))'"
    )]
    Run(RunOptions),
    /// Compile ahead of time: functions whose parameters have types, and what a recorded run called
    #[command(
        after_help = "Examples:\n  sheaf build train.shf\n  sheaf build train.shf forward --cpu x86-64-v3\n  \
                      sheaf run train.shf --record shapes.json && sheaf build train.shf --shapes shapes.json\n  \
                      sheaf build --emit stablehlo train.shf forward"
    )]
    Build(BuildOptions),
    /// Measure each program with sets of the compiler's flags, and keep the fastest, for this machine and all that share its cache
    #[command(
        after_help = "Examples:\n  sheaf tune train.shf\n  sheaf run train.shf --record shapes.json && sheaf tune train.shf --shapes shapes.json"
    )]
    Tune(TuneOptions),
    /// Compare compiled programs with their manifest, and with what the compiler makes of the sources now
    #[command(
        after_help = "Examples:\n  sheaf verify train.shf\n  sheaf verify train.shf --rebuild --shapes shapes.json\n  \
                      sheaf verify train.shf --rebuild --shapes shapes.json --programs digits/__sheaf__"
    )]
    Verify(VerifyOptions),
    /// Compile ahead of time in three commands, for build systems: each reads and writes only the files that it is given
    #[command(
        subcommand,
        after_help = "Example:\n  sheaf step lower train.shf --shapes shapes.json --cpu x86-64-v3 --output lowered\n  \
                      sheaf step compile lowered/0.json --program 0.vmfb --claim 0.claim\n  \
                      sheaf step link lowered --program 0.vmfb --claim 0.claim --output __sheaf__"
    )]
    Step(StepCommand),
    /// Put a program, its packages, compiled functions, data and the runtime into one folder or file, which runs without `sheaf`
    #[command(
        after_help = "Examples:\n  sheaf run train.shf --record shapes.json && sheaf bundle train.shf --shapes shapes.json\n  \
                      sheaf bundle --platform linux-aarch64 --data 'data/*.csv' --output digits.tar.gz\n  \
                      sheaf bundle verify digits.tar.gz"
    )]
    Bundle(BundleCommand),
    /// Check the examples in source files and documentation strings: expressions with a comment `;=> value` or `;=> error: text` after them
    #[command(after_help = "Examples:\n  sheaf test\n  sheaf test --no-jit src/model.shf")]
    Test(TestOptions),
    /// Show a program with every macro use replaced; nothing runs but macros and what they need
    #[command(after_help = "Example:\n  sheaf expand train.shf")]
    Expand(ExpandOptions),
    /// Type expressions and see their values
    #[command(after_help = "Examples:\n  sheaf repl --no-jit\n  echo '(sum [1 2 3])' | sheaf repl")]
    Repl(EngineOptions),
    /// Lay programs out in the usual way
    #[command(after_help = "Examples:\n  sheaf fmt\n  sheaf fmt src/main.shf\n  sheaf fmt --check src tests")]
    Fmt(FmtOptions),
    /// Show what names mean
    #[command(
        after_help = "Examples:\n  sheaf doc\n  sheaf doc softmax\n  sheaf doc nn\n  sheaf doc src/model.shf forward\n  sheaf doc attention-lib"
    )]
    Doc(DocOptions),
    /// Make a folder with a new package, which runs at once
    #[command(after_help = "Example:\n  sheaf new my-model")]
    New(NewOptions),
    /// Make a package of the current folder
    #[command(after_help = "Example:\n  sheaf init --name my-model")]
    Init(InitOptions),
    /// Write what a coding assistant needs to know of the language, in the file that it reads
    #[command(
        name = "init-ai",
        after_help = "Examples:\n  sheaf init-ai                # sheaf-context.md\n  sheaf init-ai --for claude   # a section of CLAUDE.md"
    )]
    InitAi(InitAiOptions),
    /// Add packages to the dependencies, and fetch them
    #[command(after_help = "Examples:\n  sheaf add attention-lib\n  sheaf add attention-lib@1.2 --dev\n  \
                      sheaf add vision --git https://git.example/vision --tag v1.2\n  sheaf add maths --path ../maths")]
    Add(AddOptions),
    /// Remove packages from the dependencies
    #[command(after_help = "Example:\n  sheaf remove attention-lib")]
    Remove(RemoveOptions),
    /// Fetch the dependencies of Sheaf.toml, as Sheaf.lock has them
    #[command(
        after_help = "Examples:\n  sheaf install\n  sheaf install --locked\n  sheaf install --minimal-versions"
    )]
    Install(InstallOptions),
    /// Take newer versions of the dependencies, as far as Sheaf.toml allows
    #[command(
        after_help = "Examples:\n  sheaf update\n  sheaf update attention-lib\n  sheaf update attention-lib --precise 1.2.0"
    )]
    Update(UpdateOptions),
    /// Publish the tagged version of this package in a registry
    #[command(
        after_help = "Example, after git tag v0.1.0 && git push origin v0.1.0:\n  sheaf publish --dry-run\n  sheaf publish"
    )]
    Publish(PublishOptions),
    /// Withdraw a published version from new resolutions; projects that have locked it keep it
    #[command(
        after_help = "Examples:\n  sheaf yank attention-lib 1.2.0 --reason 'wrong mask at even lengths'\n  sheaf yank attention-lib \
                      1.2.0 --undo"
    )]
    Yank(YankOptions),
    /// Pack the dependencies as archives in the folder vendor, from which they are taken without a network
    #[command(after_help = "Example:\n  sheaf vendor")]
    Vendor(VendorOptions),
    /// Check the locked packages: yanked versions, and sources or registries that have changed
    #[command(after_help = "Examples:\n  sheaf audit\n  sheaf audit --json")]
    Audit(AuditOptions),
    /// Write a bill of materials of the project, in the format `CycloneDX`
    #[command(after_help = "Examples:\n  sheaf sbom\n  sheaf sbom --output bom.json")]
    Sbom(SbomOptions),
    /// Show the dependencies of the project
    #[command(after_help = "Examples:\n  sheaf tree\n  sheaf tree --why maths\n  sheaf tree --duplicates")]
    Tree(TreeOptions),
    /// Show dependencies of which there are newer versions
    #[command(after_help = "Example:\n  sheaf outdated")]
    Outdated(OutdatedOptions),
    /// Look for packages in a registry
    #[command(after_help = "Example:\n  sheaf search attention")]
    Search(SearchOptions),
    /// Keep the token of a registry or a git server; without a host, list the hosts
    #[command(
        after_help = "Examples:\n  sheaf login git.example\n  sheaf login git.example --user ada < token-file\n  \
                      sheaf login git.example --remove"
    )]
    Login(LoginOptions),
    /// Remove the compiled programs of the project
    #[command(after_help = "Example:\n  sheaf clean")]
    Clean(CleanOptions),
    /// Look after a registry, in a checkout of its repository
    #[command(
        subcommand,
        after_help = "Examples:\n  sheaf registry init team-registry\n  sheaf registry check --base origin/main"
    )]
    Registry(RegistryCommand),
    /// Run the call in which a guard was broken again, interpreted, and show the way to the first value that breaks it
    #[command(
        after_help = "Example:\n  sheaf train.shf --guard no-nan\n  sheaf replay guard-log-0b7c1d2e.capsule"
    )]
    Replay(ReplayOptions),
    /// Check programs without running them: names, numbers of arguments, shapes where parameters are typed
    #[command(after_help = "Examples:\n  sheaf check\n  sheaf check src train.shf")]
    Check(CheckOptions),
    /// Allow what a project's Sheaf.toml asks for: keys that are trusted, remote caches, mirrors of the compiler
    #[command(
        after_help = "Examples:\n  sheaf trust\n  sheaf trust ../vision --yes\n  sheaf trust --list\n  sheaf trust --revoke"
    )]
    Trust(TrustOptions),
    /// Look after compiled programs: their store, shared caches, keys
    #[command(
        subcommand,
        after_help = "Examples:\n  sheaf cache size\n  sheaf cache why train-step\n  sheaf cache key new ada-laptop"
    )]
    Cache(CacheCommand),
    /// Show the devices that run compiled functions
    #[command(after_help = "Example:\n  sheaf device list")]
    Device(DeviceOptions),
    /// Install, verify and choose compilers
    #[command(after_help = "Examples:\n  sheaf toolchain list\n  sheaf toolchain pin 3.13.0")]
    Toolchain(ToolchainOptions),
    /// Compile for another process, over a pipe
    #[command(hide = true)]
    CompileWorker {
        /// The compiler's shared library
        library: PathBuf,
    },
}

/// Options of `sheaf login`.
#[derive(Args, Clone, Debug)]
pub struct LoginOptions {
    /// The host, with its port if it is not the usual one
    pub host: Option<String>,
    /// The user's name, for servers that want one
    #[arg(long, requires = "host", conflicts_with = "remove")]
    pub user: Option<String>,
    /// Remove what is kept for the host
    #[arg(long, requires = "host")]
    pub remove: bool,
}

/// Options of `sheaf clean`.
#[derive(Args, Clone, Debug)]
pub struct CleanOptions {
    /// The folder of the project, or one in it; by default the current folder
    pub folder: Option<PathBuf>,
}

/// Options of `sheaf trust`.
#[derive(Args, Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct TrustOptions {
    /// The folder of the project, or one in it; by default the current folder
    pub folder: Option<PathBuf>,
    /// Ask nothing; what is trusted is shown all the same
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    pub yes: bool,
    /// Show the projects that are trusted, with what was allowed to each
    #[arg(long, conflicts_with_all = ["folder", "revoke"])]
    pub list: bool,
    /// With --list: as JSON
    #[arg(long, requires = "list")]
    pub json: bool,
    /// Trust nothing any more that the project asks for
    #[arg(long)]
    pub revoke: bool,
}

/// Options of `sheaf check`.
#[derive(Args, Clone, Debug)]
pub struct CheckOptions {
    /// Programs, or folders with programs, by default the current one; modules that they use are checked with them
    pub paths: Vec<PathBuf>,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
    /// Dependencies
    #[command(flatten)]
    pub dependencies: DependencyOptions,
}

/// Options of `sheaf run`.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// The program; `sheaf run` without one runs the main program of the package
    pub file: Option<PathBuf>,
    /// A program as a text, instead of a file
    #[arg(short, value_name = "CODE", conflicts_with_all = ["file", "record"])]
    pub code: Option<String>,
    /// Options of evaluation.
    #[command(flatten)]
    pub engine: EngineOptions,
    /// Options of observation.
    #[command(flatten)]
    pub observe: ObserveOptions,
    /// Say at the end which functions ran compiled, for which arguments, and why others did not
    #[arg(long)]
    pub explain: bool,
    /// With --explain: as JSON, the last line of standard output
    #[arg(long, requires = "explain")]
    pub json: bool,
    /// Write down at the end which functions were called for which types, for `sheaf build --shapes`
    #[arg(long, value_name = "SHAPES.json", conflicts_with = "no_jit")]
    pub record: Option<PathBuf>,
    /// Arguments of the program
    #[arg(last = true)]
    pub arguments: Vec<String>,
}

/// Options of `sheaf replay`.
#[derive(Args, Clone, Debug)]
pub struct ReplayOptions {
    /// The capsule that a run with --guard has written
    pub file: PathBuf,
    /// Show all calls, or those of the functions named
    #[arg(long, value_name = "F,G", num_args = 0..=1, default_missing_value = "")]
    pub trace: Option<String>,
}

/// Options of `sheaf build`.
#[derive(Args, Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct BuildOptions {
    /// The functions to compile
    #[command(flatten)]
    pub selection: FunctionOptions,
    /// Show what becomes of one function instead, or write its program for any runtime of IREE to a file
    #[arg(long, value_enum, value_name = "FORM", requires = "functions")]
    pub emit: Option<Emit>,
    /// With --emit vmfb: the file; by default FUNCTION.DEVICE.vmfb
    #[arg(long, short, value_name = "FILE", requires = "emit")]
    pub output: Option<PathBuf>,
    /// The device to compile for, which need not be here: `cpu`, `cuda[:sm_89]`, `vulkan[:rdna3]` or `metal`
    #[arg(long, default_value = "cpu")]
    pub device: Destination,
    /// The processor to compile for: `host`, `x86-64`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4` or `aarch64`
    #[arg(long, value_name = "NAME", default_value = "host")]
    pub cpu: Processor,
    /// Keep what helps in finding errors in the programs
    #[arg(long)]
    pub debug: bool,
    /// Number of functions compiled at a time; by default that of the processors, or 16 on a cluster
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Print what was built as JSON
    #[arg(long)]
    pub json: bool,
    /// Compile anew, whatever __sheaf__ and the cache hold
    #[arg(long)]
    pub recompile: bool,
    /// First measure each program that has no tuning record, as `sheaf tune` does
    #[arg(long, conflicts_with_all = ["emit", "recompile"])]
    pub tune: bool,
    /// Leave out the checks of indices: one out of range is clamped then. `assert` stays
    #[arg(long)]
    pub no_bounds_check: bool,
    /// Dependencies
    #[command(flatten)]
    pub lock: LockOptions,
    /// Sources of compilers and compiled programs
    #[command(flatten)]
    pub network: NetworkOptions,
}

impl BuildOptions {
    /// A build for this machine.
    pub fn plain(selection: FunctionOptions, lock: LockOptions, network: NetworkOptions) -> BuildOptions {
        BuildOptions {
            selection,
            emit: None,
            output: None,
            device: Destination::HOST,
            cpu: Processor::Host,
            debug: false,
            jobs: None,
            json: false,
            recompile: false,
            tune: false,
            no_bounds_check: false,
            lock,
            network,
        }
    }
}

/// The functions to compile.
#[derive(Args, Clone, Debug)]
pub struct FunctionOptions {
    /// The program; without one, the main program of the package
    pub file: Option<PathBuf>,
    /// Functions; without any, all with typed parameters and all that were recorded
    #[arg(value_name = "FUNCTION")]
    pub functions: Vec<String>,
    /// Record of a run, written with --record
    #[arg(long, value_name = "SHAPES.json")]
    pub shapes: Option<PathBuf>,
}

impl FunctionOptions {
    /// All that have typed parameters or were recorded.
    pub fn all(file: Option<PathBuf>, shapes: Option<PathBuf>) -> FunctionOptions {
        FunctionOptions { file, functions: Vec::new(), shapes }
    }
}

/// Options of `sheaf tune`.
#[derive(Args, Clone, Debug)]
pub struct TuneOptions {
    /// The functions to compile
    #[command(flatten)]
    pub selection: FunctionOptions,
    /// Device to measure on, as of a run: auto (the first GPU, or the processor), cpu, cuda, vulkan or metal; a GPU with its index, as in
    /// cuda:1
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: DevicePolicy,
    /// Measure programs that have a tuning record too
    #[arg(long)]
    pub again: bool,
    /// Print what was measured and built as JSON
    #[arg(long)]
    pub json: bool,
    /// Dependencies
    #[command(flatten)]
    pub lock: LockOptions,
    /// Sources of compilers and compiled programs
    #[command(flatten)]
    pub network: NetworkOptions,
}

/// Options of `sheaf verify`.
#[derive(Args, Clone, Debug)]
pub struct VerifyOptions {
    /// The program; without one, the main program of the package
    pub file: Option<PathBuf>,
    /// The folder of compiled programs, such as that of a bundle; by default the project's `__sheaf__`
    #[arg(long, value_name = "FOLDER")]
    pub programs: Option<PathBuf>,
    /// Compile again, and compare: programs that these sources do not give are an error
    #[arg(long)]
    pub rebuild: bool,
    /// With --rebuild: record of a run, for functions whose parameters have no types
    #[arg(long, value_name = "SHAPES.json", requires = "rebuild")]
    pub shapes: Option<PathBuf>,
    /// Dependencies
    #[command(flatten)]
    pub lock: LockOptions,
    /// Sources of compilers and compiled programs
    #[command(flatten)]
    pub network: NetworkOptions,
}

/// Options of `sheaf cache pull`.
#[derive(Args, Clone, Debug)]
pub struct PullOptions {
    /// The program; without one, the main program of the package
    pub file: Option<PathBuf>,
    /// Record of a run, written with --record
    #[arg(long, value_name = "SHAPES.json")]
    pub shapes: Option<PathBuf>,
    /// The device, which need not be here: `cpu`, `cuda[:sm_89]`, `vulkan[:rdna3]` or `metal`
    #[arg(long, default_value = "cpu")]
    pub device: Destination,
    /// The processor: `host`, `x86-64`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4` or `aarch64`
    #[arg(long, value_name = "NAME", default_value = "host")]
    pub cpu: Processor,
    /// Print what was fetched as JSON
    #[arg(long)]
    pub json: bool,
    /// Dependencies
    #[command(flatten)]
    pub lock: LockOptions,
    /// The remotes.
    #[command(flatten)]
    pub network: NetworkOptions,
}

/// Forms of a function that `sheaf build` can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// Its definition with every macro use replaced
    Forms,
    /// The operations it was traced to
    Graph,
    /// Those of its value and gradient
    Grad,
    /// The text that the compiler is given
    Stablehlo,
    /// The compiled program, in a file
    Vmfb,
}

/// Options of `sheaf test`.
#[derive(Args, Clone, Debug)]
pub struct TestOptions {
    /// Files, and folders to search; by default the current folder
    pub paths: Vec<PathBuf>,
    /// The relative difference that floats may have
    #[arg(long, default_value_t = 1e-5)]
    pub tolerance: f64,
    /// Print the counts of every file as JSON
    #[arg(long)]
    pub json: bool,
    /// Options of evaluation: by default each example is interpreted, and also compiled if there is a compiler;
    /// `--no-jit` only interprets, `--jit always` only compiles
    #[command(flatten)]
    pub engine: EngineOptions,
}

/// Options of `sheaf expand`.
#[derive(Args, Clone, Debug)]
pub struct ExpandOptions {
    /// The program
    pub file: PathBuf,
    /// Dependencies
    #[command(flatten)]
    pub dependencies: DependencyOptions,
}

/// Options of evaluation, for all commands.
#[derive(Args, Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct EngineOptions {
    /// Device of compiled functions: auto (the first GPU, or the processor), cpu, cuda, vulkan or metal; a GPU with its index, as
    /// in cuda:1
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<DevicePolicy>,
    /// Pure functions that are compiled
    #[arg(long, value_enum, default_value_t = JitMode::Auto, conflicts_with = "no_jit")]
    pub jit: JitMode,
    /// Interpret everything
    #[arg(long)]
    pub no_jit: bool,
    /// Fail where a function that should be compiled cannot be, rather than interpret it
    #[arg(long, conflicts_with = "no_jit")]
    pub strict: bool,
    /// Compile anew, whatever __sheaf__ and the cache hold
    #[arg(long)]
    pub recompile: bool,
    /// Leave out the checks of indices in compiled functions: one out of range is clamped then. `assert` stays
    #[arg(long)]
    pub no_bounds_check: bool,
    /// Threads of compiled programs, on the processor: auto (by their work), local-sync, local-task or
    /// local-task:WORKERS
    #[arg(long, value_name = "WAY")]
    pub place: Option<PlacementPolicy>,
    /// Small loops, and small programs, that are compiled as one kernel
    #[arg(long, value_enum, default_value_t = KernelsMode::Auto)]
    pub kernels: KernelsMode,
    /// Flags of the compiler, by their names in tuning records, in place of those that rules and records choose: to
    /// find out whether a result depends on them. Kernels, and programs of GPUs, have none
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub flags: Option<Vec<TuningFlag>>,
    /// A compiled function is called with the shapes in __sheaf__ alone: another call is an error
    #[arg(long, conflicts_with_all = ["no_jit", "recompile"])]
    pub frozen_shapes: bool,
    /// Calls that write results over arguments which nobody else holds
    #[arg(long, value_enum, default_value_t = DonateMode::Auto)]
    pub donate: DonateMode,
    /// Dependencies
    #[command(flatten)]
    pub lock: LockOptions,
    /// Sources of compilers and compiled programs
    #[command(flatten)]
    pub network: NetworkOptions,
}

/// Sources of compilers.
#[derive(Args, Clone, Debug, Default)]
pub struct PlaceOptions {
    /// Use no network
    #[arg(long)]
    pub offline: bool,
    /// Source of the compiler: a package index, a mirror or a folder
    #[arg(long, value_name = "PLACE")]
    pub toolchain_index: Option<String>,
}

/// Sources of compilers and compiled programs.
#[derive(Args, Clone, Debug, Default)]
pub struct NetworkOptions {
    /// Sources of compilers
    #[command(flatten)]
    pub place: PlaceOptions,
    /// A cache of compiled programs that is shared: an address with http, https, grpc, grpcs, s3 or file; may be given
    /// several times
    #[arg(long, value_name = "ADDRESS")]
    pub cache_remote: Vec<String>,
    /// Take compiled programs from shared caches, and send none
    #[arg(long)]
    pub read_only: bool,
    /// A cluster that compiles what no cache has: the grpc or grpcs address of a Remote Execution service
    #[arg(long, value_name = "ADDRESS")]
    pub remote_executor: Option<String>,
}

/// Options of `sheaf fmt`.
#[derive(Args, Clone, Debug)]
pub struct FmtOptions {
    /// Programs, folders of programs, or - for standard input; without any, the current folder
    pub paths: Vec<PathBuf>,
    /// Change nothing; list what is not formatted, and fail if there is any
    #[arg(long)]
    pub check: bool,
}

/// Options of `sheaf doc`.
#[derive(Args, Clone, Debug)]
pub struct DocOptions {
    /// A name or a section of the language, or a program or a dependency and perhaps a name in it; without any, an overview
    #[arg(value_name = "FILE|NAME", num_args = 0..=2)]
    pub subject: Vec<String>,
    /// As JSON
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// As Markdown
    #[arg(long)]
    pub markdown: bool,
    /// Dependencies
    #[command(flatten)]
    pub dependencies: DependencyOptions,
}

/// Options of `sheaf new`.
#[derive(Args, Clone, Debug)]
pub struct NewOptions {
    /// The folder to make; its last part is the name of the package
    #[arg(value_name = "NAME")]
    pub path: PathBuf,
}

/// Options of `sheaf init`.
#[derive(Args, Clone, Debug)]
pub struct InitOptions {
    /// The name of the package; otherwise that of the folder
    #[arg(long)]
    pub name: Option<String>,
}

/// Options of `sheaf init-ai`.
#[derive(Args, Clone, Debug)]
pub struct InitAiOptions {
    /// The assistant whose file is written; what else is in it stays
    #[arg(long = "for", value_enum, value_name = "ASSISTANT")]
    pub assistant: Option<Assistant>,
}

/// Coding assistants that read a file of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Assistant {
    /// CLAUDE.md
    Claude,
    /// .cursor/rules/sheaf.mdc
    Cursor,
    /// .github/copilot-instructions.md
    Copilot,
}

/// Policy for consumption of arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DonateMode {
    /// Those that save much memory
    #[default]
    Auto,
    /// All for which it can be done
    Always,
    /// None
    Never,
}

/// Policy for writing a small loop, or all of a small program, as one kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KernelsMode {
    /// Those that are quicker so
    #[default]
    Auto,
    /// All that the compiler accepts
    Always,
    /// None
    Never,
}

/// Policy for compilation of pure functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum JitMode {
    /// Those that pay, by counts and sizes
    #[default]
    Auto,
    /// Every eligible call
    Always,
}

impl Cli {
    /// The command. A file alone is run; nothing, or only how to evaluate, is the REPL.
    pub fn command(self) -> Command {
        let run = self.run;
        let command = self.command.unwrap_or_else(|| {
            let observes = run.observe.any();
            if run.file.is_some()
                || run.code.is_some()
                || run.explain
                || observes
                || !run.arguments.is_empty()
            {
                Command::Run(run)
            } else {
                Command::Repl(run.engine)
            }
        });
        match command {
            Command::Run(mut run) if run.file.is_none() => {
                run.file = run.observe.take_file();
                Command::Run(run)
            }
            command => command,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Cli, Command};

    #[test]
    fn a_file_is_run_and_nothing_is_the_repl() {
        let command = |words: &[&str]| Cli::try_parse_from(words).expect("right usage").command();
        for words in
            [&["sheaf", "a.shf"][..], &["sheaf", "a.shf", "--no-jit"], &["sheaf", "--no-jit", "a.shf"]]
        {
            assert!(matches!(command(words), Command::Run(run) if run.file.is_some()), "{words:?}");
        }
        assert!(matches!(command(&["sheaf", "--explain"]), Command::Run(_)));
        for words in [&["sheaf"][..], &["sheaf", "--no-jit"]] {
            assert!(matches!(command(words), Command::Repl(_)), "{words:?}");
        }
        assert!(matches!(command(&["sheaf", "--no-jit"]), Command::Repl(engine) if engine.no_jit));
    }
}
