//! The command line.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lexopt::prelude::*;
use sheaf_lang::eval::{Interp, Jit};
use sheaf_lang::observe::Guard;
use sheaf_loader::DevicePolicy;
use sheaf_observe::{Metrics, Times, Wanted};
use sheaf_syntax::visible::visible;

use crate::program::Failure;
use crate::terminal;

const HELP: &str = "\
Runs a program whose functions were compiled before: a bundle, or a program with its __sheaf__.

Usage: sheaf-rt [OPTIONS] [FOLDER | PROGRAM.shf] [-- ARGUMENTS]

Without a path: the bundle in this executable, or that of the folder it is in.

      --frozen-shapes        A call with shapes that were not compiled is an error
      --device DEVICE        auto (the first GPU that has programs here, or the processor), cpu, cuda, vulkan or metal
      --no-jit               Interpret everything
      --strict               It is an error that a function which should be compiled is interpreted
      --trace[=F,G]          Show the calls as a tree, of all functions or of those named
      --guard GUARD          Stop where a value breaks a condition: no-nan, range=LOW:HIGH, loss:no-nan; may be repeated
      --blame                Say at the end where the time went
      --mem-profile          Say at the end how much memory compiled functions took
      --trace-out FILE.json  Write calls and transfers for Perfetto
      --log FILE.jsonl|DIR   Write the numbers of (log-metric name value); may be repeated
      --verify               Compare all files with the bundle's manifest, and run nothing
  -h, --help                 Print this
  -V, --version              Print the version

Example: sheaf-rt digits --guard no-nan -- --epochs 10
";

/// The optional parts that are linked; `sheaf bundle` looks for this line in the file.
const PARTS: &str = sheaf_bundle::parts_line(sheaf_lang::HAS_TOKENIZERS, sheaf_loader::HAS_PICTURES);

/// Request of the command line.
pub enum Command {
    /// A text to print.
    Text(String),
    /// Verification of a bundle.
    Verify(Option<PathBuf>),
    /// A run.
    Run(Options),
}

/// Options of a run.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Options {
    /// The bundle's folder or the program.
    pub path: Option<PathBuf>,
    /// The program's own arguments.
    pub arguments: Vec<String>,
    pub frozen_shapes: bool,
    pub strict: bool,
    pub jit: Jit,
    pub device: DevicePolicy,
    trace: Option<String>,
    guards: Vec<Guard>,
    blame: bool,
    mem_profile: bool,
    trace_out: Option<PathBuf>,
    log: Vec<PathBuf>,
}

impl Command {
    /// Reads the arguments of this process.
    pub fn parse() -> Result<Command, lexopt::Error> {
        let mut options = Options::default();
        let mut verify = false;
        let mut parser = lexopt::Parser::from_env();
        loop {
            // Arguments after `--` are the program's.
            if let Some(mut raw) = parser.try_raw_args()
                && raw.peek().is_some_and(|next| next == "--")
            {
                raw.next();
                options.arguments = raw.map(text).collect::<Result<_, _>>()?;
                break;
            }
            let Some(argument) = parser.next()? else { break };
            match argument {
                Long("frozen-shapes") => options.frozen_shapes = true,
                Long("device") => options.device = parser.value()?.parse()?,
                Long("no-jit") => options.jit = Jit::Never,
                Long("strict") => options.strict = true,
                Long("trace") => {
                    options.trace = Some(parser.optional_value().map_or(Ok(String::new()), text)?);
                }
                Long("guard") => options.guards.push(parser.value()?.parse()?),
                Long("blame") => options.blame = true,
                Long("mem-profile") => options.mem_profile = true,
                Long("trace-out") => options.trace_out = Some(parser.value()?.into()),
                Long("log") => options.log.push(parser.value()?.into()),
                Long("verify") => verify = true,
                Short('h') | Long("help") => return Ok(Command::Text(HELP.into())),
                Short('V') | Long("version") => {
                    let version = env!("CARGO_PKG_VERSION");
                    return Ok(Command::Text(format!("sheaf-rt {version}\n{PARTS}")));
                }
                Value(path) if options.path.is_none() => options.path = Some(path.into()),
                other => return Err(other.unexpected()),
            }
        }
        Ok(if verify { Command::Verify(options.path) } else { Command::Run(options) })
    }
}

fn text(argument: OsString) -> Result<String, lexopt::Error> {
    argument.into_string().map_err(lexopt::Error::NonUnicodeValue)
}

impl Options {
    /// The files of metrics.
    pub fn metrics(&self) -> Result<Metrics, Failure> {
        let mut metrics = Metrics::default();
        for path in &self.log {
            metrics.add(path).map_err(|error| unwritable(path, &error))?;
        }
        Ok(metrics)
    }

    /// Observes the run of an evaluator, if anything is to be observed.
    pub fn observe(&self, interp: &mut Interp) -> Result<Option<Rc<Times>>, Failure> {
        let Options { trace, guards, blame, mem_profile, trace_out, .. } = self;
        if trace.is_none() && guards.is_empty() && !blame && !mem_profile && trace_out.is_none() {
            return Ok(None);
        }
        let events = match trace_out {
            Some(path) => {
                let file = std::fs::File::create(path).map_err(|error| unwritable(path, &error))?;
                Some(Box::new(BufWriter::new(file)) as Box<dyn Write>)
            }
            None => None,
        };
        let wanted = Wanted { trace: trace.as_deref(), blame: *blame, memory: *mem_profile, events };
        let observers = wanted.observers(Box::new(|line| terminal::note(&visible(line))));
        let times = observers.times();
        interp.observe(Box::new(observers), guards.clone());
        Ok(Some(times))
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let help = "name a file in a folder that is there and may be written";
    Failure::new(format!("{} cannot be written: {error}", path.display()), Some(help))
}
