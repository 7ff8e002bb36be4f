//! The `sheaf` command.

use std::process::ExitCode;

use clap::Parser;
use sheaf::cli::{Cli, Command};

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Cli::parse().command() {
        Command::Run(options) => sheaf::run::run(&options),
        Command::Replay(options) => sheaf::replay::replay(&options),
        Command::Build(options) => sheaf::build::build(&options),
        Command::Tune(options) => sheaf::build::tune(&options),
        Command::Verify(options) => sheaf::build::verify(&options),
        Command::Step(command) => sheaf::step::step(&command),
        Command::Bundle(command) => sheaf::bundle::bundle(&command),
        Command::Test(options) => sheaf::test::test(&options),
        Command::Check(options) => sheaf::check::check(&options),
        Command::Expand(options) => sheaf::expand::expand(&options),
        Command::Repl(options) => sheaf::repl::repl(&options),
        Command::Fmt(options) => sheaf::fmt::fmt(&options),
        Command::Doc(options) => sheaf::doc::doc(&options),
        Command::New(options) => sheaf::new::new(&options),
        Command::Init(options) => sheaf::new::init(&options),
        Command::InitAi(options) => sheaf::init_ai::init_ai(&options),
        Command::Add(options) => sheaf::packages::add::add(&options),
        Command::Remove(options) => sheaf::packages::add::remove(&options),
        Command::Install(options) => sheaf::packages::install::install(&options),
        Command::Update(options) => sheaf::packages::install::update(&options),
        Command::Publish(options) => sheaf::packages::publish::publish(&options),
        Command::Vendor(options) => sheaf::packages::vendor::vendor(&options),
        Command::Yank(options) => sheaf::packages::yank::yank(&options),
        Command::Audit(options) => sheaf::packages::audit::audit(&options),
        Command::Sbom(options) => sheaf::packages::sbom::sbom(&options),
        Command::Tree(options) => sheaf::packages::tree::tree(&options),
        Command::Outdated(options) => sheaf::packages::outdated::outdated(&options),
        Command::Search(options) => sheaf::packages::outdated::search(&options),
        Command::Login(options) => sheaf::login::login(&options),
        Command::Clean(options) => sheaf::clean::clean(&options),
        Command::Registry(command) => sheaf::registry::registry(&command),
        Command::Trust(options) => sheaf::trust::trust(&options),
        Command::Cache(command) => sheaf::cache::cache(&command),
        Command::Device(options) => sheaf::device::device(&options),
        Command::Toolchain(options) => sheaf::toolchain::toolchain(&options),
        Command::CompileWorker { library } => {
            // Ctrl-C reaches the whole group of processes; the one that the user sees decides the end.
            let _ = ctrlc::set_handler(|| {});
            sheaf_toolchain::run_worker(&library)
        }
    }
}
