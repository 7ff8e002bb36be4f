//! Tuning: the flags of the compiler with which a program is fastest, measured, recorded, and found again.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sheaf_artifacts::{Tuning, TuningFlag};
use sheaf_lang::host::{Buffer, HostError, Program, Unit};
use sheaf_loader::{Candidate, DeviceBuffer, Job, Loaded, runtime_error, upload};
use sheaf_runtime::Target;

use super::{CompileRun, Engine, Plan, trial};
use crate::compile::Compiled;
use crate::engine::fresh;

/// The share of the time that flags must save, lest noise be kept.
const SAVED: f64 = 0.03;

/// Largest distance of a result from that of the usual program, relative to its largest number.
const TOLERANCE: f64 = 1e-5;

/// Rounds of a comparison, in each of which both programs are called by turns.
const ROUNDS: usize = 15;

/// Minimum duration of a round of one program.
const ROUND: Duration = Duration::from_millis(20);

/// Maximum calls of one program in a round.
const MAX_CALLS: u32 = 1000;

/// Time limit for the compiler, which some flags let run without end.
const COMPILE_LIMIT: Duration = Duration::from_secs(120);

/// Outcome of tuning a program.
pub enum Tuned {
    /// The flags make no difference: its calls are too short, or it is written as kernels.
    TooLittle,
    /// This machine cannot measure it, since it is for another one.
    OtherMachine,
    /// There is no compiler; a warning has said so. Or the compiler fails on it.
    NotCompiled,
    /// A record has been there.
    Known(Tuning),
    /// Measured now.
    Measured(Tuning, Vec<Trial>),
}

/// One set of flags that was tried.
pub struct Trial {
    /// The flags.
    pub flags: BTreeSet<TuningFlag>,
    /// The result.
    pub outcome: TrialOutcome,
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrialOutcome {
    /// The compiler fails with these flags, or the program does not load.
    NotCompiled,
    /// The compiler gives the same program as without the last of them.
    Same,
    /// Results are others than those of the usual program.
    OtherResults,
    /// Median milliseconds of a call, and of one of the fastest program before.
    Timed(f64, f64),
}

/// A program with the flags that it was compiled with.
#[derive(Clone)]
struct Contender {
    flags: BTreeSet<TuningFlag>,
    program: Rc<Loaded>,
    bytes: Vec<u8>,
    run: CompileRun,
}

impl Engine {
    /// Gives a job the flags of its tuning record, if a cache has one.
    pub(crate) fn apply_record(&self, job: &mut Job) {
        if job.tunable {
            job.action.tuned = self.caches.tuning(job).map(|tuning| tuning.flags);
        }
    }

    /// True if a run asks for no tuning record: `__sheaf__` has a program for the job, with or without one.
    pub(crate) fn is_settled(&self, job: &Job) -> bool {
        !self.recompile && self.loader.folder.lists(&job.action.key())
    }

    /// Gives a donating program the flags of the plain one: the record is about that.
    pub(crate) fn tune_donating(&self, unit: &Unit, job: &mut Job, plain: &Loaded) {
        if job.tunable && !self.is_settled(job) {
            let plain = self.loader.donating_candidate(unit, &[], plain);
            job.action.tuned = self.caches.tuning(&plain.job).map(|tuning| tuning.flags);
        }
    }

    /// Measures a plan's program with sets of flags, records the fastest, and gives the plan its flags. A record that a cache has
    /// is taken, unless it is to be measured `again`.
    ///
    /// From the usual flags on, each of the table is added or taken away in turn, and the change kept if the program is faster and its
    /// results are the same: some eight compilations.
    ///
    /// # Errors
    ///
    /// The device fails, or the user interrupts.
    pub fn tune(
        &mut self,
        plan: &mut Plan,
        again: bool,
        mut progress: impl FnMut(&Trial),
    ) -> Result<Tuned, HostError> {
        match self.loader.gpu() {
            Some(open) if open.destination == plan.goal.destination => {
                let target = Target::Gpu(open.gpu);
                plan.candidates.iter_mut().for_each(|candidate| candidate.target = target);
            }
            _ if plan.loads => {}
            _ => return Ok(Tuned::OtherMachine),
        }
        for at in 0..plan.candidates.len() {
            if !plan.candidates[at].job.tunable {
                return Ok(Tuned::TooLittle);
            }
            plan.candidates[at].job.action.tuned = None;
            if !again && let Some(tuning) = self.caches.tuning(&plan.candidates[at].job) {
                plan.candidates[at].job.action.tuned = Some(tuning.flags.clone());
                return Ok(Tuned::Known(tuning));
            }
            let start = Instant::now();
            let Some(usual) = self.usual(&plan.unit, &plan.candidates[at])? else { continue };
            let (best, default_ms, tuned_ms, trials) =
                self.fastest(&plan.unit, &plan.candidates[at], usual, &mut progress)?;
            let tuning = Tuning::new(best.flags, default_ms, tuned_ms);
            let job = &mut plan.candidates[at].job;
            self.caches.keep_tuning(job, &tuning, start.elapsed().as_secs_f64());
            job.action.tuned = Some(tuning.flags.clone());
            // The record's flags are the first of the alternatives, wherever they were among the usual ones.
            self.caches.keep(job, &best.bytes, CompileRun { alternative: 0, ..best.run });
            return Ok(Tuned::Measured(tuning, trials));
        }
        Ok(Tuned::NotCompiled)
    }

    /// The program without a record. `None` if the compiler fails on it.
    fn usual(&mut self, unit: &Unit, candidate: &Candidate) -> Result<Option<Contender>, HostError> {
        let job = &candidate.job;
        let Compiled::Yes { bytes, run } = self.compile_service.compile(job)? else { return Ok(None) };
        let flags =
            job.action.alternatives.get(run.alternative).map_or(Some(BTreeSet::new()), |a| TuningFlag::of(a));
        let Some(flags) = flags else { return Ok(None) };
        let Some(program) = self.loaded(unit, candidate, &bytes, run) else { return Ok(None) };
        Ok(Some(Contender { flags, program, bytes, run }))
    }

    /// A program loaded and, if need be, checked.
    fn loaded(
        &self,
        unit: &Unit,
        candidate: &Candidate,
        bytes: &[u8],
        run: CompileRun,
    ) -> Option<Rc<Loaded>> {
        let loaded = self.loader.load(unit, candidate, fresh(&candidate.job, bytes, run)).ok()?;
        self.check_blocks(unit, candidate, &loaded).ok()?;
        Some(Rc::new(loaded))
    }

    /// The fastest contender, with the median milliseconds of the usual program and of its own.
    fn fastest(
        &mut self,
        unit: &Unit,
        candidate: &Candidate,
        usual: Contender,
        progress: &mut impl FnMut(&Trial),
    ) -> Result<(Contender, f64, f64, Vec<Trial>), HostError> {
        let device = self.loader.device(candidate.target).map_err(runtime_error)?;
        let arguments = unit.inputs.iter().enumerate().map(|(i, leaf)| {
            let sent = upload(&device, &trial::sample(leaf, i as u64)).map_err(runtime_error)?;
            Ok(DeviceBuffer::share(sent, || "arguments of a measurement".into()))
        });
        let arguments = arguments.collect::<Result<Vec<Buffer>, HostError>>()?;
        let mut best = usual.clone();
        let mut trials = Vec::new();
        let on_processor = candidate.target.is_host();
        for flag in TuningFlag::ALL.into_iter().filter(|flag| on_processor || !flag.is_for_processors()) {
            let mut flags = best.flags.clone();
            if !flags.remove(&flag) {
                flags.insert(flag);
            }
            let outcome = match self.contender(unit, candidate, flags.clone())? {
                None => TrialOutcome::NotCompiled,
                Some(new) if new.bytes == best.bytes => TrialOutcome::Same,
                Some(new) => {
                    let near = trial::agrees_within(&device, unit, [&usual.program, &new.program], TOLERANCE);
                    if near.map_err(runtime_error)? {
                        let race = race([&best.program, &new.program], &arguments)?;
                        if race.saves() {
                            best = new;
                        }
                        TrialOutcome::Timed(race.ms[1], race.ms[0])
                    } else {
                        TrialOutcome::OtherResults
                    }
                }
            };
            trials.push(Trial { flags, outcome });
            trials.last().into_iter().for_each(&mut *progress);
        }
        let race = race([&usual.program, &best.program], &arguments)?;
        let [default_ms, tuned_ms] = race.ms;
        if race.saves() {
            return Ok((best, default_ms, tuned_ms, trials));
        }
        Ok((usual, default_ms, default_ms, trials))
    }

    /// The program with these flags and no others. `None` if the compiler fails, or the program does not load.
    fn contender(
        &mut self,
        unit: &Unit,
        candidate: &Candidate,
        flags: BTreeSet<TuningFlag>,
    ) -> Result<Option<Contender>, HostError> {
        let mut job = candidate.job.clone();
        job.action.alternatives = vec![flags.iter().map(|flag| flag.flag().to_owned()).collect()];
        job.limit = Some(job.limit.map_or(COMPILE_LIMIT, |limit| limit.min(COMPILE_LIMIT)));
        let Compiled::Yes { bytes, run } = self.compile_service.compile(&job)? else { return Ok(None) };
        let Some(program) = self.loaded(unit, candidate, &bytes, run) else { return Ok(None) };
        Ok(Some(Contender { flags, program, bytes, run }))
    }
}

/// Two programs measured by turns.
struct Race {
    /// Median milliseconds of a call of each.
    ms: [f64; 2],
    /// The time of the second relative to that of the first in each round, in ascending order: what else the machine does changes both.
    ratios: Vec<f64>,
}

impl Race {
    /// True if the second program is faster by more than noise: at least by [`SAVED`] in the median, and in three of four rounds.
    fn saves(&self) -> bool {
        median(&self.ratios) < 1.0 - SAVED && self.ratios[ROUNDS * 3 / 4] < 1.0
    }
}

/// Calls two programs by turns.
fn race(programs: [&Rc<Loaded>; 2], arguments: &[Buffer]) -> Result<Race, HostError> {
    let time = |program: &Rc<Loaded>, calls: u32| -> Result<Duration, HostError> {
        let start = Instant::now();
        let mut results = Vec::new();
        for _ in 0..calls {
            results.clear();
            program.call(&mut arguments.to_vec(), &mut results)?;
        }
        // A GPU's queue still has the calls, in order.
        if let Some(last) = results.first() {
            let last = DeviceBuffer::of(last)?;
            last.read_part(0, &mut [0][..last.byte_len().min(1)]).map_err(runtime_error)?;
        }
        Ok(start.elapsed())
    };
    let mut calls = [1; 2];
    for (program, calls) in programs.iter().zip(&mut calls) {
        // The first call of a program allocates.
        time(program, 1)?;
        let once = time(program, 1)?.as_secs_f64().max(1e-6);
        *calls = ((ROUND.as_secs_f64() / once).ceil() as u32).clamp(1, MAX_CALLS);
    }
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for ((program, calls), times) in programs.iter().zip(calls).zip(&mut times) {
            times.push(time(program, calls)?.as_secs_f64() * 1e3 / f64::from(calls));
        }
    }
    let ratios = ascending(times[0].iter().zip(&times[1]).map(|(a, b)| b / a).collect());
    Ok(Race { ratios, ms: times.map(|times| median(&ascending(times))) })
}

fn ascending(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers
}

fn median(ascending: &[f64]) -> f64 {
    ascending[ascending.len() / 2]
}
