//! The command line: what can be typed.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    run: Option<RunOptions>,
}

/// The version of each part: itself, the runtime that is linked in, and the compiler that it downloads.
fn version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let (runtime, compiler) = (sheaf_runtime::Runtime::version(), sheaf_toolchain::COMPILER[0].version);
        format!("{}\nIREE runtime {runtime}\nIREE compiler {compiler} (pinned)", env!("CARGO_PKG_VERSION"))
    });
    &TEXT
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run a program
    #[command(after_help = "Example:\n  sheaf run train.shf --device cpu")]
    Run(RunOptions),
    /// Check the examples in source files: expressions with a comment `;=> value` or `;=> error: text` after them
    #[command(after_help = "Examples:\n  sheaf test\n  sheaf test --no-jit src/model.shf")]
    Test(TestOptions),
    /// Show a program with every macro use replaced; nothing runs but macros and what they need
    #[command(after_help = "Example:\n  sheaf expand train.shf")]
    Expand(ExpandOptions),
    /// Compile for another process, over a pipe
    #[command(hide = true)]
    CompileWorker {
        /// The compiler's shared library
        library: PathBuf,
    },
}

/// How to run a program.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// The program; without one, the main program of the package
    pub file: Option<PathBuf>,
    /// How to evaluate.
    #[command(flatten)]
    pub engine: EngineOptions,
    /// Say at the end which functions ran compiled, and why others did not
    #[arg(long)]
    pub explain: bool,
    /// Arguments of the program
    #[arg(last = true)]
    pub arguments: Vec<String>,
}

/// How to check examples.
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
    /// How to evaluate: by default each example is interpreted, and also compiled if there is a compiler; `--no-jit`
    /// only interprets, `--jit always` only compiles
    #[command(flatten)]
    pub engine: EngineOptions,
}

/// What to expand.
#[derive(Args, Clone, Debug)]
pub struct ExpandOptions {
    /// The program
    pub file: PathBuf,
}

/// How code is evaluated, whatever the command.
#[derive(Args, Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct EngineOptions {
    /// Where compiled functions run
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// When pure functions are compiled
    #[arg(long, value_enum, default_value_t = JitMode::Auto, conflicts_with = "no_jit")]
    pub jit: JitMode,
    /// Interpret everything
    #[arg(long)]
    pub no_jit: bool,
    /// Compile anew, whatever __sheaf__ and the cache hold
    #[arg(long)]
    pub recompile: bool,
    /// Use no network
    #[arg(long)]
    pub offline: bool,
    /// Where the compiler is looked for: a package index, a mirror or a folder
    #[arg(long, value_name = "PLACE")]
    pub toolchain_index: Option<String>,
}

/// Devices of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceName {
    /// The processor
    Cpu,
}

/// When pure functions are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JitMode {
    /// Where it pays, by counts and sizes
    Auto,
    /// Every eligible call
    Always,
}

impl Cli {
    /// The command; a file alone is run.
    pub fn command(self) -> Command {
        match (self.command, self.run) {
            (Some(command), _) => command,
            (None, Some(run)) => Command::Run(run),
            (None, None) => unreachable!("clap asks for a file or a command"),
        }
    }
}
