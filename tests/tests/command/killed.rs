//! Runs killed at any moment of a download, an installation, a compilation or a save: the next run succeeds.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use sheaf_target::Release;
use sheaf_tests::{Sandbox, Server, nightly, sample};

use crate::xor::check;

/// Phases in which a run is killed, by the line printed at their start; and the maximum delay until the kill in
/// seconds, about the duration of the phase.
const MOMENTS: [(&str, u64); 6] = [
    ("", 400),
    ("fetching", 900),
    ("unpacking", 1500),
    ("installing", 150),
    ("compiling", 1200),
    // From the end of the worker.
    (SAVING, 3),
];

/// A save prints nothing; it is detected by its first file.
const SAVING: &str = "save";

/// A training that is compiled though it is short.
const RUN: [&str; 3] = ["xor/train.shf", "--jit", "always"];

/// Longer than any phase on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn at_a_random_moment_of_each_phase() {
    let Some(wheel) = sheaf_tests::wheel() else { return };
    let server = Server::mirror(&wheel, Duration::from_millis(8));
    let sandbox = Sandbox::new();
    sandbox.example("xor/train.shf");
    let seed = SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_nanos() as u64;
    let mut random = seed;
    eprintln!("seed {seed}");

    let rounds = if nightly() { 2 } else { 1 };
    for (moment, longest) in sample(MOMENTS.repeat(rounds), 2) {
        let mut longest = longest * 1000;
        loop {
            // A linear congruential generator, whose upper bits are good.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let delay = Duration::from_micros((random >> 33) % longest);
            make_work(&sandbox, moment);
            let over = run_and_kill(&sandbox, &server, moment, delay);
            eprintln!("{moment} + {delay:?}: {}", if over { "over before" } else { "killed" });
            if !over {
                break;
            }
            // A fast machine: kill sooner.
            longest = (longest / 2).max(1);
        }
    }

    let run = || sandbox.sheaf(&RUN).env("SHEAF_TOOLCHAIN_INDEX", server.url()).run();
    let last = run();
    assert_eq!(last.code, Some(0), "seed {seed}\n{last}");
    check(&last.stdout);
    // A second run has nothing to do.
    check(&run().silent());
    assert_no_leftovers(&sandbox);
}

/// Starts a run, waits for the phase and the delay, and kills it. True if it had ended before.
fn run_and_kill(sandbox: &Sandbox, server: &Server, moment: &str, delay: Duration) -> bool {
    let run = sandbox.sheaf(&RUN).env("SHEAF_TOOLCHAIN_INDEX", server.url());
    let mut child = run.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("sheaf starts");
    let lines = lines(&mut child);
    if moment == SAVING {
        let cache = sandbox.home().join("cache");
        let start = Instant::now();
        while !cache.exists() && !sandbox.path("xor/__sheaf__").exists() && start.elapsed() < PATIENCE {
            thread::yield_now();
        }
    } else if !moment.is_empty() {
        let mut said = String::new();
        loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) if line.starts_with(moment) => break,
                Ok(line) => said += &(line + "\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("no `{moment}` after {PATIENCE:?}:\n{said}"),
            }
        }
    }
    thread::sleep(delay);
    let ended = child.try_wait().expect("a child");
    child.kill().expect("killed");
    child.wait().expect("a child");
    if let Some(status) = ended {
        assert!(
            status.success(),
            "a run after a kill failed:\n{}",
            lines.iter().collect::<Vec<_>>().join("\n")
        );
    }
    ended.is_some()
}

fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

/// Removes the results of an earlier run, so that the phase has work to do. Unfinished files stay.
fn make_work(sandbox: &Sandbox, moment: &str) {
    let remove = |folder: PathBuf| {
        let _ = fs::remove_dir_all(folder);
    };
    if matches!(moment, "compiling" | SAVING) {
        remove(sandbox.home().join("cache"));
        remove(sandbox.path("xor/__sheaf__"));
    } else {
        let release = Release::host().expect("a compiler for this machine");
        remove(sandbox.home().join("data/toolchains").join(release.folder()));
    }
}

/// Asserts that no unexpected files are left.
fn assert_no_leftovers(sandbox: &Sandbox) {
    let release = Release::host().expect("a compiler for this machine");
    // A kill directly after the installation leaves an empty folder.
    let installed = Sandbox::files(&sandbox.home().join("data/toolchains"));
    let strange = installed.iter().filter(|name| *name != ".lock" && !name.starts_with(&release.folder()));
    assert_eq!(strange.collect::<Vec<_>>(), [""; 0]);
    assert_eq!(installed.len(), 6, "lock, marker, library, linker, program, notice");
    let programs = ["forward.cpu.vmfb", "init-params.cpu.vmfb", "manifest.json", "train-step.cpu.vmfb"];
    assert_eq!(Sandbox::files(&sandbox.path("xor/__sheaf__")), [&[".lock"][..], &programs].concat());
    // Unfinished files of other processes in the store are not removed for a day; at most a few.
    let unfinished = Sandbox::files(&sandbox.home().join("cache"));
    assert!(unfinished.iter().filter(|name| name.contains(".unfinished-")).count() <= 3, "{unfinished:?}");
    // A killed compile worker leaves its object files to the system's cleaning of temporary files.
    let temporary: u64 = Sandbox::files(&sandbox.temporary())
        .iter()
        .map(|name| fs::metadata(sandbox.temporary().join(name)).map_or(0, |file| file.len()))
        .sum();
    assert!(temporary < 4 << 20, "{temporary} bytes of temporary files");
}
