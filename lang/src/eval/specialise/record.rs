//! Recording of a run's specialisations, to repeat them without a run.

use std::collections::HashMap;
use std::rc::Rc;

use super::ahead::{AbstractValue, FunctionName, builtin_name};
use super::arguments::{FnKey, Pattern};
use super::fallback::Cause;
use super::report::Location;
use super::{Entry, Family, Outcome};
use crate::eval::interp::Interp;
use crate::eval::names::Modules;
use crate::program::{Code, Function, Module, Transform, Value};

/// The specialisations of a run.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Those that can be repeated, in the order of the functions' first calls.
    pub calls: Vec<Call>,
    /// Functions with specialisations that cannot.
    pub left_out: Vec<LeftOut>,
}

/// One specialisation.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function that was called.
    pub function: FunctionName,
    /// Its arguments, as far as the specialisation fixes them.
    pub arguments: Vec<AbstractValue>,
}

/// A function with a specialisation that needs the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The name in messages.
    pub function: String,
    /// The location of its definition.
    pub place: Option<Location>,
    /// The reason, a clause.
    pub reason: String,
}

/// The named functions, by the address of their code.
type Names = HashMap<usize, FunctionName>;

impl Interp {
    /// The specialisations so far that would be compiled: those worth it, and those that interpreted code calls.
    /// Functions interpreted only as a part of those are left out.
    pub fn recording(&self) -> Recording {
        let names = self.modules.names();
        let mut recording = Recording::default();
        for (position, family) in self.specialiser.families.iter().enumerate() {
            let key = self.specialiser.transformed.iter().find(|(_, p)| **p == position).map(|(key, _)| key);
            let transforms = key.map_or(Vec::new(), |key| key.transforms.clone());
            for entry in family.entries.iter().filter(|e| e.is_wanted()) {
                match family.call(entry, &transforms, &names) {
                    Ok(call) => recording.calls.push(call),
                    Err(reason) => {
                        let left_out = LeftOut {
                            function: transforms
                                .iter()
                                .fold(family.code.display_name(), |f, t| format!("({} {f})", t.name())),
                            place: Location::of(&self.sources, family.code.head),
                            reason,
                        };
                        if !recording.left_out.contains(&left_out) {
                            recording.left_out.push(left_out);
                        }
                    }
                }
            }
        }
        recording
    }
}

impl Modules {
    /// The names of their functions without captured values, by the address of the code.
    fn names(&self) -> Names {
        let mut names = Names::new();
        let mut add = |module: &Rc<Module>| {
            for (name, global) in module.definitions.borrow().iter() {
                if let Some(function) = global.function()
                    && let Function::Closure(closure) = &*function
                    && closure.captured.is_empty()
                {
                    let address = Rc::as_ptr(&closure.code) as usize;
                    let Some(named) = self.name_in(module, name) else { return };
                    // Its own name is better than an alias.
                    if closure.code.name == Some(*name) {
                        names.insert(address, named);
                    } else {
                        names.entry(address).or_insert(named);
                    }
                }
            }
        };
        self.core.iter().chain(self.program.iter()).for_each(&mut add);
        self.files.values().chain(self.standard.values()).for_each(add);
        names
    }
}

impl Entry {
    /// True if a run needs it: it was worth compiling, or interpreted code calls it.
    fn is_wanted(&self) -> bool {
        self.is_program()
            && (self.entered.get() || !matches!(*self.outcome.borrow(), Outcome::Waiting { .. }))
    }

    /// True if it is a program, or would be one if there were a compiler.
    pub(super) fn is_program(&self) -> bool {
        match &*self.outcome.borrow() {
            Outcome::Waiting { .. } | Outcome::Compiled(_) => true,
            Outcome::Interpreted(why) => why.cause == Cause::Compiler,
        }
    }
}

impl Family {
    /// The call that repeats a specialisation of this function; the error says why that is impossible.
    fn call(&self, entry: &Entry, transforms: &[Transform], names: &Names) -> Result<Call, String> {
        if !entry.captured.is_empty() {
            return Err("it holds values of the place where it was made".into());
        }
        let function = named(&self.code, transforms, names)?;
        let arguments = entry.arguments.iter().map(|p| argument(p, names)).collect::<Result<_, _>>()?;
        Ok(Call { function, arguments })
    }
}

fn named(code: &Rc<Code>, transforms: &[Transform], names: &Names) -> Result<FunctionName, String> {
    let known = names.get(&(Rc::as_ptr(code) as usize)).ok_or("it has no name at the top level")?;
    Ok(FunctionName { transforms: transforms.to_vec(), ..known.clone() })
}

/// The abstract value of a pattern.
fn argument(pattern: &Pattern, names: &Names) -> Result<AbstractValue, String> {
    Ok(match pattern {
        Pattern::Tensor(ty) => AbstractValue::Any(ty.clone()),
        Pattern::Static(value @ (Value::Int(_) | Value::Float(_) | Value::Tensor(_))) => {
            AbstractValue::Number(value.clone())
        }
        Pattern::Static(Value::Function(f)) => match builtin(f) {
            Some(name) => AbstractValue::Function(name),
            None => return Err("it is given a function without a name".into()),
        },
        Pattern::Static(value) => AbstractValue::Constant(value.clone()),
        Pattern::List(items) => {
            AbstractValue::List(items.iter().map(|p| argument(p, names)).collect::<Result<_, _>>()?)
        }
        Pattern::Dict(sorted) => {
            let mut entries: Vec<_> = sorted.iter().collect();
            entries.sort_by_key(|(position, ..)| *position);
            let entries = entries.into_iter().map(|(_, key, p)| Ok((key.name, argument(p, names)?)));
            AbstractValue::Dict(entries.collect::<Result<_, String>>()?)
        }
        Pattern::Function(FnKey { code, transforms }, captured) => match names.get(code) {
            Some(known) if captured.is_empty() => {
                AbstractValue::Function(FunctionName { transforms: transforms.clone(), ..known.clone() })
            }
            Some(_) => return Err("it is given a function that holds values".into()),
            None => return Err("it is given a function that has no name at the top level".into()),
        },
    })
}

/// The name of a builtin, transformed or not.
fn builtin(function: &Function) -> Option<FunctionName> {
    match function {
        Function::Builtin(builtin) => Some(builtin_name(builtin.name)),
        Function::Transformed(transform, inner) => {
            let mut name = builtin(inner)?;
            name.transforms.push(transform.clone());
            Some(name)
        }
        Function::Closure(_) => None,
    }
}
