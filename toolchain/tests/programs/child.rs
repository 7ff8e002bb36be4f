//! A child process for tests, which can be killed, run out of space, or crash.
//!
//!     toolchain-child worker LIBRARY
//!     toolchain-child install HOME PLACE [WHEEL SIZE SHA256 MEMBERS]
//!
//! `install` without a wheel installs the pinned compiler. It prints each step of its progress on a line of its own.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use sheaf_target::{Member, Platform, Release};
use sheaf_toolchain::{Limits, Progress, Setting, Settings, Stage, install_release, run_worker};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["worker", library] => return run_worker(Path::new(library)),
        ["install", home, place] => pinned().and_then(|release| install(home, place, &release)),
        ["install", home, place, release @ ..] => {
            parse(release).and_then(|release| install(home, place, &release))
        }
        _ => Err("wrong usage".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn pinned() -> Result<Release<'static>, Box<dyn Error>> {
    Release::host().ok_or_else(|| "no compiler for this platform".into())
}

fn parse<'a>(arguments: &[&'a str]) -> Result<Release<'a>, Box<dyn Error>> {
    let [wheel, size, sha256, members] = arguments else { return Err("wrong usage".into()) };
    let members = members.split(',').map(|member| {
        let mut parts = member.split(':');
        let mut part = || parts.next().ok_or("wrong usage");
        Ok(Member { path: part()?, size: part()?.parse()?, sha256: part()? })
    });
    let members: Vec<_> = members.collect::<Result<_, Box<dyn Error>>>()?;
    let [library, linker, program, notice] = members[..] else { return Err("wrong usage".into()) };
    Ok(Release {
        version: "0.0.1",
        platform: Platform::LinuxX86_64,
        wheel,
        size: size.parse()?,
        sha256,
        library,
        linker,
        program,
        notice,
        backends: &["llvm-cpu"],
        bytecode: (17, 0),
    })
}

/// An empty place means pip's configuration.
fn install(home: &str, place: &str, release: &Release<'_>) -> Result<(), Box<dyn Error>> {
    let index =
        (!place.is_empty()).then(|| Setting { value: place.to_owned(), origin: "the test".to_owned() });
    let limits = Limits { pause: Duration::from_millis(10), ..Limits::default() };
    let toolchain = install_release(
        release,
        Path::new(home),
        &Settings { index, limits, ..Settings::default() },
        &Steps,
    )?;
    println!("installed {}", toolchain.library.display());
    Ok(())
}

/// One line for each step.
struct Steps;

impl Progress for Steps {
    fn waiting(&self, _: &Path) {
        println!("waiting");
    }

    fn begin(&self, stage: Stage, _: &str, total: u64) {
        println!("{stage:?} {total}");
    }

    fn advance(&self, bytes: u64) {
        println!("{bytes}");
    }

    fn retrying(&self, _: &str) {
        println!("retrying");
    }

    fn warning(&self, message: &str) {
        eprintln!("warning: {message}");
    }

    fn finished(&self, stage: Stage) {
        println!("{stage:?} done");
    }
}
