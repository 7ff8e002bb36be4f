//! Calls of a specialisation: the choice between its program and interpretation, and the program's arguments and results.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::arguments::LeafValue;
use super::fallback::Why;
use super::frozen;
use super::{Compiled, Due, Entry, InPlace, Outcome};
use crate::eval::call::Args;
use crate::eval::checks::handed_on;
use crate::eval::interp::{Interp, Jit};
use crate::eval::signal::Eval;
use crate::host::{Buffer, DonatingProgram, Program};
use crate::program::{Code, Flag, Flags, Function, Value};
use sheaf_graph::simplify::simplify;
use sheaf_graph::tensor::{DType, HostTensor, TensorType};

impl Interp {
    pub(super) fn run_entry(
        &mut self,
        function: &Rc<Function>,
        entry: &Entry,
        leaves: &mut Vec<LeafValue>,
        args: &mut Args,
    ) -> Eval<Option<Value>> {
        let Some(code) = function.code() else { return Ok(None) };
        if self.specialiser.waiting == 0 {
            entry.entered.set(true);
        }
        let due = self.due(entry)?;
        if self.observing.is_some()
            && let Some(twin) = self.twin(function, entry, &due, args)?
        {
            return self.run_twin(function, entry, &twin, leaves);
        }
        let Some(compiled) = self.program_of(code, entry, due)? else {
            entry.interpreted_calls.set(entry.interpreted_calls.get() + 1);
            entry.pay();
            self.specialiser.waits = entry.is_program();
            return Ok(None);
        };
        if self.observing.is_some() {
            self.note_compiled();
        }
        entry.calls.set(entry.calls.get() + 1);
        entry.pay();
        let mut buffers = std::mem::take(&mut self.specialiser.buffers);
        let mut results = std::mem::take(&mut self.specialiser.results);
        let mut flags = handed_on(leaves.iter().filter_map(LeafValue::tensor))?;
        let done = self.upload_leaves(&compiled.numbers, leaves, &mut buffers).and_then(|()| {
            leaves.clear();
            args.clear();
            // A guard that is broken wants the arguments.
            let donates = !self.is_guarded();
            let program = if donates { self.donating(&compiled, entry.calls.get())? } else { None };
            Ok(program.as_ref().unwrap_or(&compiled.program).call(&mut buffers, &mut results)?)
        });
        buffers.clear();
        let done = done.and_then(|()| {
            if !compiled.sites.is_empty()
                && let Some(buffer) = results.pop()
            {
                let flag = Flag::new(buffer, &compiled.flag, &compiled.sites, code.name, self.span);
                flag.look_if_ready()?;
                flags.push(flag);
            }
            Ok(())
        });
        flags.retain(|flag| !flag.has_passed());
        let flags = (!flags.is_empty()).then(|| Flags::from_iter(flags));
        let value = done.map(|()| Some(compiled.result.build(&results, flags.as_ref(), self.span)));
        results.clear();
        self.specialiser.buffers = buffers;
        self.specialiser.results = results;
        value
    }

    /// True if a call of a specialisation is to run as a program. Counts the call.
    pub(super) fn due(&mut self, entry: &Entry) -> Eval<Due> {
        let mut outcome = entry.outcome.borrow_mut();
        let Outcome::Waiting { cost, compilation, spent, kept, unit, .. } = &mut *outcome else {
            return Ok(if matches!(*outcome, Outcome::Compiled(_)) { Due::Compiled } else { Due::Not });
        };
        if entry.twin.borrow().is_ready() {
            return Ok(Due::Compile);
        }
        *spent = spent.saturating_add(*cost);
        let may_compile = self.options.jit != Jit::Auto
            || entry.debt.get().is_none_or(|debt| debt.may_compile(*compilation, self.weight, *spent));
        if may_compile {
            return Ok(Due::Compile);
        }
        let Some(backend) = self.backend.as_mut().filter(|_| *kept) else { return Ok(Due::Not) };
        *kept = false;
        if !self.options.unsimplified {
            unit.graph = simplify(&unit.graph);
        }
        match backend.find_kept(unit)? {
            Some(program) => Ok(Due::Kept(program)),
            None if self.options.frozen_shapes => Err(frozen::changed(unit).into()),
            None => Ok(Due::Not),
        }
    }

    /// The program of a specialisation, compiled now if that is due.
    fn program_of(&mut self, code: &Code, entry: &Entry, due: Due) -> Eval<Option<Rc<Compiled>>> {
        let mut outcome = entry.outcome.borrow_mut();
        if let Outcome::Compiled(compiled) = &*outcome {
            return Ok(Some(Rc::clone(compiled)));
        }
        let Outcome::Waiting { compilation, unit, .. } = &mut *outcome else {
            return Ok(None);
        };
        let work = *compilation;
        let Some(backend) = &mut self.backend else { return Ok(None) };
        let may_compile = matches!(due, Due::Compile);
        let prepared = match due {
            Due::Not | Due::Compiled => return Ok(None),
            Due::Kept(program) => Ok(Some(program)),
            Due::Compile => {
                if !self.options.unsimplified {
                    unit.graph = simplify(&unit.graph);
                }
                backend.prepare(unit)
            }
        };
        let Ok(Some(program)) = prepared else {
            let why = Why::compiler(backend.refusal());
            *outcome = Outcome::Interpreted(why.clone());
            prepared?;
            self.fall_back(code, &why)?;
            return Ok(None);
        };
        let numbers = RefCell::new(vec![None; unit.inputs.len()]);
        let before = std::mem::replace(&mut *outcome, Outcome::Interpreted(Why::design("", None)));
        let Outcome::Waiting { result, unit, .. } = before else { unreachable!("seen above") };
        let sites = unit.checks.iter().map(|check| Arc::clone(&check.site)).collect();
        let flag = unit.outputs.last().map_or(TensorType::scalar(DType::I32), |leaf| leaf.ty.clone());
        let in_place = match backend.donation(&unit) {
            Some(donating) => InPlace::Later { unit, donating, sought: false, ready: None },
            None => InPlace::Never,
        };
        let compiled =
            Rc::new(Compiled { program, result, sites, flag, numbers, in_place: RefCell::new(in_place) });
        *outcome = Outcome::Compiled(Rc::clone(&compiled));
        if may_compile && let Some(debt) = entry.debt.get() {
            debt.compiled(work);
        }
        Ok(Some(compiled))
    }

    /// The donating program, if there is one: as an earlier run or a build compiled it, or compiled once it is due.
    fn donating(&mut self, compiled: &Compiled, calls: u64) -> Eval<Option<Rc<dyn Program>>> {
        let mut in_place = compiled.in_place.borrow_mut();
        if let InPlace::Later { unit, donating, sought, ready } = &mut *in_place
            && let Some(backend) = &mut self.backend
        {
            let (donations, plain) = (&donating.donations, &compiled.program);
            let is_due = calls > donating.after;
            // A function that is called once has no use for it.
            let seek = (is_due || calls > 1) && !std::mem::replace(sought, true);
            let found = if seek { backend.find_donating(unit, donations, plain)? } else { None };
            if let Some(found) = found {
                *in_place = InPlace::Now(found);
            } else if is_due && ready.as_ref().is_none_or(|ready| ready.load(Ordering::Acquire)) {
                match backend.prepare_donating(unit, donations, plain)? {
                    DonatingProgram::Ready(program) => *in_place = InPlace::Now(program),
                    DonatingProgram::Pending(flag) => *ready = Some(flag),
                    DonatingProgram::None => *in_place = InPlace::Never,
                }
            }
        }
        Ok(if let InPlace::Now(program) = &*in_place { Some(Rc::clone(program)) } else { None })
    }

    /// The parameters of a program on the device.
    pub(super) fn upload_leaves(
        &mut self,
        numbers: &RefCell<Vec<Option<(u64, Buffer)>>>,
        leaves: &[LeafValue],
        buffers: &mut Vec<Buffer>,
    ) -> Eval<()> {
        let Some(backend) = &mut self.backend else { return crate::eval::fail("the device is gone") };
        for (i, leaf) in leaves.iter().enumerate() {
            let (bits, number) = match leaf {
                LeafValue::Tensor(tensor) => {
                    buffers.push(Rc::clone(tensor.device(backend.as_mut())?));
                    continue;
                }
                LeafValue::Int(n) => (*n as u64, HostTensor::scalar(*n)),
                LeafValue::Double(x) => (x.to_bits(), HostTensor::scalar(*x)),
                LeafValue::Float(x) => ((*x as f32).to_bits() as u64, HostTensor::scalar(*x as f32)),
            };
            let mut numbers = numbers.borrow_mut();
            let known = numbers[i].as_ref().filter(|(b, _)| *b == bits).map(|(_, buffer)| Rc::clone(buffer));
            let buffer = if let Some(buffer) = known {
                buffer
            } else {
                let buffer = backend.upload(&number)?;
                numbers[i] = Some((bits, Rc::clone(&buffer)));
                buffer
            };
            buffers.push(buffer);
        }
        Ok(())
    }
}
