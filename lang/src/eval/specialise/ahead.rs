//! Specialisation ahead of time: for declared parameter types, or for those recorded by a run. The program is read,
//! expanded and resolved; nothing at its top level runs, and only pure definitions that a function needs are evaluated.

use std::collections::HashMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use ustr::Ustr;

use super::arguments::{Asked, fn_key};
use super::fallback::Why;
use super::{Outcome, Traced, report::Location};
use crate::builtins;
use crate::eval::interp::{Interp, Mode};
use crate::eval::load::{Loaded, as_diagnostic};
use crate::eval::names::Modules;
use crate::eval::purity;
use crate::eval::signal::{Eval, Reason};
use crate::eval::uses::join;
use crate::host::{DeviceTensor, HostError, Unit};
use crate::program::{
    Code, Concrete, Dict, Function, Global, Meaning, Module, Origin, ParamType, Tensor, Transform, Value,
};
use sheaf_graph::tensor::{DType, HostTensor, Kind, TensorType};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

/// Maximum calls and iterations to evaluate a definition that a function needs.
const MAX_STEPS: u64 = 10_000_000;

/// Help for an argument whose value only a call gives.
const RECORD: &str =
    "record a run with `sheaf run FILE --record shapes.json`, and build with `--shapes shapes.json`";

/// The module of the builtins written in Sheaf.
const CORE: &str = "<core>";

/// The module of the builtins written in Rust.
const BUILTINS: &str = "<builtins>";

/// An abstract argument: the part of it that a specialisation fixes.
#[derive(Clone, Debug)]
pub enum AbstractValue {
    /// Any tensor or number of this type.
    Any(TensorType),
    /// This number or shape, whose value the body needs.
    Number(Value),
    /// This value, other than a number.
    Constant(Value),
    /// A list of exactly these items.
    List(Vec<AbstractValue>),
    /// A dictionary of exactly these entries, in order.
    Dict(Vec<(Ustr, AbstractValue)>),
    /// This function.
    Function(FunctionName),
}

/// The name of a function, unique in its program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionName {
    /// The file of its module, relative to the folder of the program; `<name>` for a standard module. `None` for the
    /// program itself.
    pub module: Option<String>,
    /// Its name there.
    pub name: String,
    /// Its transformations, innermost first.
    pub transforms: Vec<Transform>,
}

/// A function whose parameters are all typed.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The function.
    pub name: FunctionName,
    /// The arguments to specialise for, best first. If a parameter is a single number there are two: with tensors of
    /// the declared dtypes, and with plain numbers.
    pub variants: Vec<Vec<AbstractValue>>,
}

/// A function that was not specialised.
#[derive(Clone, Debug)]
pub struct Refused {
    /// True if it is interpreted by design: it has an effect, returns a function, or does not depend on a tensor.
    pub by_design: bool,
    /// The error.
    pub diagnostic: Diagnostic,
}

/// Buffer of an argument without a value.
struct Placeholder;

impl DeviceTensor for Placeholder {
    fn read(&self, _: &TensorType) -> Result<HostTensor, HostError> {
        Err(HostError { message: "the elements of an argument are known to a call only".into(), help: None })
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole =
            self.transforms.iter().fold(self.name.clone(), |inner, t| format!("({} {inner})", t.name()));
        f.write_str(&whole)
    }
}

impl AbstractValue {
    /// An argument of a declared type. Single numbers are tensors or, if `float` is given, plain numbers, with floats
    /// traced in that dtype.
    fn declared(ty: &ParamType, float: Option<DType>) -> AbstractValue {
        match ty {
            ParamType::Tensor(shape, dtype) => {
                let dtype = dtype.unwrap_or(DType::F32);
                AbstractValue::Any(match (dtype.kind(), float.filter(|_| shape.is_empty())) {
                    (Kind::Float, Some(float)) => TensorType::weak(float),
                    (Kind::Integer, Some(_)) => TensorType::weak(DType::I64),
                    _ => TensorType::new(dtype, shape.clone()),
                })
            }
            ParamType::List(items) => {
                AbstractValue::List(items.iter().map(|ty| AbstractValue::declared(ty, float)).collect())
            }
            ParamType::Dict(entries) => {
                let entries = entries.iter().map(|(key, ty)| (*key, AbstractValue::declared(ty, float)));
                AbstractValue::Dict(entries.collect())
            }
        }
    }

    /// True if one of its types satisfies `is_such`.
    fn any(&self, is_such: &impl Fn(&TensorType) -> bool) -> bool {
        match self {
            AbstractValue::Any(ty) => is_such(ty),
            AbstractValue::List(items) => items.iter().any(|item| item.any(is_such)),
            AbstractValue::Dict(entries) => entries.iter().any(|(_, v)| v.any(is_such)),
            AbstractValue::Number(_) | AbstractValue::Constant(_) | AbstractValue::Function(_) => false,
        }
    }
}

impl Modules {
    fn module_of(&self, name: &FunctionName) -> Result<Rc<Module>, Diagnostic> {
        let module = match name.module.as_deref() {
            None => self.program.clone(),
            Some(CORE) => self.core.clone(),
            Some(key) if key.starts_with('<') => self.standard.get(key.trim_matches(['<', '>'])).cloned(),
            Some(key) => {
                let folder = self.program.as_ref().map_or("", |program| program.folder.as_str());
                self.files.get(&join(folder, key)).cloned()
            }
        };
        module.ok_or_else(|| {
            let key = name.module.as_deref().unwrap_or_default();
            Diagnostic::error(format!("the program does not use {key}, where {} would be", name.name))
        })
    }

    /// The name of a function of a module; `None` if the module is not part of the program.
    pub(super) fn name_in(&self, module: &Rc<Module>, name: &str) -> Option<FunctionName> {
        let is = |other: &Option<Rc<Module>>| other.as_ref().is_some_and(|other| Rc::ptr_eq(other, module));
        let module = if is(&self.program) {
            None
        } else if is(&self.core) {
            Some(CORE.into())
        } else {
            let standard = self.standard.iter().find(|(_, m)| Rc::ptr_eq(m, module));
            let own = || self.files.iter().find(|(_, m)| Rc::ptr_eq(m, module));
            Some(match standard {
                Some((name, _)) => format!("<{name}>"),
                None => self.path_from_program(own()?.0),
            })
        };
        Some(FunctionName { module, name: name.into(), transforms: Vec::new() })
    }

    /// A file's path relative to the folder of the program, so that it does not depend on the current directory.
    pub(super) fn path_from_program(&self, key: &str) -> String {
        if key.starts_with('<') {
            return key.to_owned();
        }
        let folder = self.program.as_ref().map_or("", |program| program.folder.as_str());
        relative(folder, key)
    }
}

impl Interp {
    /// Reads, expands and resolves the program in the file `path` and the modules that it uses. Only macros run. From
    /// then on the evaluator only specialises.
    pub fn prepare_program(&mut self, path: &str, text: &str) -> Loaded<()> {
        self.mode = Mode::Prepare;
        self.run_program(path, text).map(|_| ())
    }

    /// The value of a definition that a function needs; `None` if it is not pure, so may vary between runs.
    pub(in crate::eval) fn value_ahead(&mut self, global: &Global) -> Eval<Option<Value>> {
        let Some(pending) = global.pending.borrow().clone() else { return Ok(None) };
        if purity::effect_in(&pending.expr).is_some() {
            return Ok(None);
        }
        // It is not part of the current trace.
        let recording = std::mem::take(&mut self.tracing.staging);
        self.limit_steps(MAX_STEPS);
        let result = self.define_value(global);
        self.limit_steps(u64::MAX);
        self.tracing.staging = recording;
        if result.is_err() {
            *global.pending.borrow_mut() = Some(pending);
        }
        result?;
        Ok(global.value.borrow().clone())
    }

    /// The functions of the program and of its own modules whose parameters are all typed, in source order.
    pub fn declared_functions(&self) -> Vec<Declared> {
        let mut modules: Vec<(Option<String>, &Rc<Module>)> = Vec::new();
        modules.extend(self.modules.program.iter().map(|program| (None, program)));
        let mut used: Vec<_> = self.modules.files.iter().filter(|(_, m)| !m.standard).collect();
        used.sort_by_key(|(key, _)| key.as_str());
        modules.extend(
            used.into_iter().map(|(key, module)| (Some(self.modules.path_from_program(key)), module)),
        );
        let mut found = Vec::new();
        for (key, module) in modules {
            for (name, global) in module.definitions.borrow().iter() {
                let function = global.function().filter(|_| !global.is_macro.get());
                let code = function.as_ref().and_then(|f| f.code());
                if let Some(variants) = code.and_then(|code| variants(code)) {
                    let name =
                        FunctionName { module: key.clone(), name: name.to_string(), transforms: Vec::new() };
                    found.push(Declared { name, variants });
                }
            }
        }
        found
    }

    /// Resolves a name in the program; an error unless it is a function of the program.
    pub fn function_name(&self, name: &str) -> Result<FunctionName, Diagnostic> {
        let Some(program) = &self.modules.program else {
            return Err(Diagnostic::error("there is no program"));
        };
        match self.modules.meaning(program, Ustr::from(name)) {
            Some(Meaning::Global(global)) => {
                if let Some(home) = global.home.upgrade()
                    && let Some(name) = self.modules.name_in(&home, &global.name)
                    && (global.function().is_some() || global.pending.borrow().is_some())
                {
                    return Ok(name);
                }
                Err(Diagnostic::error(format!("{name} is no function")).at(global.span.get(), "defined here"))
            }
            Some(Meaning::Builtin(_)) => {
                Err(Diagnostic::error(format!("{name} is a builtin: what calls it is compiled"))
                    .help("name a function of the program"))
            }
            Some(Meaning::Ambiguous(places)) => {
                let error = Diagnostic::error(format!("{name} may mean different functions"));
                let error = places.iter().fold(error, |e, (module, at)| e.at(*at, format!("in {module}")));
                Err(error.help("say which, as in module/name, with (use module :as module)"))
            }
            None => Err(Self::unknown_function(name, program)),
        }
    }

    fn unknown_function(name: &str, module: &Module) -> Diagnostic {
        let error = Diagnostic::error(format!("{} does not define {name}", module.name));
        let known = module.definitions.borrow();
        let functions: Vec<&str> =
            known.iter().filter(|(_, g)| g.function().is_some()).map(|(n, _)| n.as_str()).collect();
        match builtins::nearest(name, functions.iter().copied()) {
            Some(near) => error.help(format!("did you mean {near}?")),
            None if functions.is_empty() => error.help("it defines no function"),
            None => error.help(format!("it defines {}", functions.join(", "))),
        }
    }

    /// The declared parameter types of a function, as [`Declared::variants`].
    pub fn declared_types(&mut self, name: &FunctionName) -> Result<Vec<Vec<AbstractValue>>, Diagnostic> {
        let function = self.find_function(name)?;
        let Some(code) = function.code() else { return Err(no_code(name)) };
        variants(code).ok_or_else(|| {
            let untyped = code.params.iter().find(|p| p.ty.is_none());
            let why =
                if code.params.is_empty() { "it has no parameters" } else { "its parameters have no types" };
            Diagnostic::error(format!("{name} cannot be compiled ahead: {why}"))
                .at(untyped.map_or(code.head, |p| p.span), "")
                .help(format!("give each a type, as in (x f32 [4 2]), or {RECORD}"))
        })
    }

    /// The span and location of a function's definition.
    pub fn function_place(&mut self, name: &FunctionName) -> Option<(Span, Location)> {
        let span = self.find_function(name).ok()?.code()?.head;
        Some((span, Location::of(&self.sources, span)?))
    }

    /// The function with that name and its transformations.
    pub fn find_function(&mut self, name: &FunctionName) -> Result<Rc<Function>, Diagnostic> {
        let function = if name.module.as_deref() == Some(BUILTINS) {
            let found = builtins::find(&name.name).map(|b| Rc::new(Function::Builtin(b)));
            found.ok_or_else(|| Diagnostic::error(format!("there is no builtin {}", name.name)))?
        } else {
            if let Some(library) = name.module.as_deref().and_then(|m| m.strip_prefix('<')?.strip_suffix('>'))
            {
                // The program may not mention it: `norm` calls a function of the library.
                self.load_definition(library, &name.name).map_err(|mut errors| errors.swap_remove(0))?;
            }
            let module = self.modules.module_of(name)?;
            let global = module.definitions.borrow().get(&Ustr::from(&name.name)).cloned();
            let Some(global) = global else { return Err(Self::unknown_function(&name.name, &module)) };
            let known = global.value.borrow().clone();
            let value = match known {
                Some(value) => Some(value),
                None => self.value_ahead(&global).map_err(|signal| as_diagnostic(*signal))?,
            };
            match value {
                Some(Value::Function(function)) => function,
                Some(other) => {
                    let error =
                        Diagnostic::error(format!("{} is {}, no function", name.name, other.describe()));
                    return Err(error.at(global.span.get(), "defined here"));
                }
                None => {
                    let error =
                        Diagnostic::error(format!("{} has no value before the program runs", name.name));
                    return Err(error.at(global.span.get(), "defined here").help("define it with defn"));
                }
            }
        };
        let transforms = name.transforms.iter();
        Ok(transforms.fold(function, |inner, t| Rc::new(Function::Transformed(t.clone(), inner))))
    }

    /// The texts of the program and of its own modules, by their paths relative to the folder of the program, sorted.
    pub fn program_texts(&self) -> Vec<(String, String)> {
        let mut texts: Vec<(String, String)> = Vec::new();
        for (name, text) in self.sources.iter() {
            let program = self.modules.program.as_ref().is_some_and(|p| p.name == name);
            if program || self.modules.files.get(name).is_some_and(|m| !m.standard) {
                texts.push((self.modules.path_from_program(name), text.to_owned()));
            }
        }
        texts.sort();
        texts
    }

    /// Specialises the function for these arguments, as a call with them would.
    pub fn specialise_ahead(
        &mut self,
        name: &FunctionName,
        arguments: &[AbstractValue],
    ) -> Result<Unit, Box<Refused>> {
        let fault = |diagnostic| Box::new(Refused { by_design: false, diagnostic });
        let function = self.find_function(name).map_err(fault)?;
        let Some((_, code)) = fn_key(&function) else { return Err(fault(no_code(name))) };
        let code = Rc::clone(code);
        if let Some((effect, place)) = Self::effect_of(&code) {
            let error = Diagnostic::error(format!("{name} is interpreted: {effect} has an effect"));
            return Err(Box::new(Refused { by_design: true, diagnostic: error.at(place, "here") }));
        }
        let mut statics = HashMap::new();
        let mut values = Vec::new();
        for (i, argument) in arguments.iter().enumerate() {
            let path = code.params.get(i).map_or_else(|| format!("arg{i}"), |p| p.name.to_string());
            let declared = code.params.get(i).filter(|p| p.ty.is_some()).map(|p| p.span);
            values.push(self.placeholder(argument, &path, declared, &mut statics).map_err(fault)?);
        }
        let traced = self.trace_call(&function, &values, &statics, None);
        let (entry, stop) = match traced {
            Ok(Ok(Traced { entry, stop, .. })) => (entry, stop),
            Ok(Err((path, asked))) => return Err(fault(wanted(name, &code, &path, &asked))),
            Err(signal) => return Err(fault(as_diagnostic(*signal))),
        };
        match entry.outcome.into_inner() {
            Outcome::Waiting { unit, .. } => Ok(*unit),
            Outcome::Interpreted(why) => {
                let unrun = stop.as_ref().is_some_and(|stop| matches!(stop.reason, Reason::Unevaluated(_)));
                Err(Box::new(refused(name, &code, &why, unrun)))
            }
            Outcome::Compiled(_) => Err(fault(Diagnostic::error(format!("{name} was compiled")))),
        }
    }

    /// A placeholder for an argument; adds the paths of numbers whose values are needed.
    fn placeholder(
        &mut self,
        argument: &AbstractValue,
        path: &str,
        declared: Option<Span>,
        statics: &mut HashMap<String, Asked>,
    ) -> Result<Value, Diagnostic> {
        Ok(match argument {
            AbstractValue::Any(ty) => {
                let tensor = Concrete::from_device(ty.clone(), Rc::new(Placeholder), None);
                tensor.comes_from(declared.map(Origin::Declared));
                Value::Tensor(Tensor::Concrete(tensor))
            }
            AbstractValue::Number(value) => {
                let asked = Asked { wanted: "its value".into(), place: None };
                statics.insert(path.to_owned(), asked);
                value.clone()
            }
            AbstractValue::Constant(value) => value.clone(),
            AbstractValue::List(items) => {
                let items = items.iter().enumerate();
                let items =
                    items.map(|(i, item)| self.placeholder(item, &format!("{path}.{i}"), declared, statics));
                Value::list(items.collect::<Result<_, _>>()?)
            }
            AbstractValue::Dict(entries) => {
                let mut dict = Dict::with_capacity(entries.len());
                for (key, entry) in entries {
                    dict.insert(*key, self.placeholder(entry, &format!("{path}.{key}"), declared, statics)?);
                }
                Value::Dict(Rc::new(dict))
            }
            AbstractValue::Function(name) => Value::Function(self.find_function(name)?),
        })
    }
}

/// The arguments to specialise a function for; `None` unless all parameters are typed.
fn variants(code: &Code) -> Option<Vec<Vec<AbstractValue>>> {
    if code.params.is_empty() || code.rest.is_some() {
        return None;
    }
    let arguments = |float: Option<DType>| -> Option<Vec<AbstractValue>> {
        code.params.iter().map(|p| p.ty.as_ref().map(|ty| AbstractValue::declared(ty, float))).collect()
    };
    let tensors = arguments(None)?;
    let mut numbers = arguments(Some(DType::F32))?;
    // Combined with doubles, numbers keep all their digits (`has_doubles`).
    if numbers.iter().any(|a| a.any(&|ty| ty.dtype == DType::F64 && !ty.weak)) {
        numbers = arguments(Some(DType::F64))?;
    }
    let differ = numbers.iter().any(|a| a.any(&|ty| ty.weak));
    Some(if differ { vec![tensors, numbers] } else { vec![tensors] })
}

/// The error for a function whose body needs the value of a number.
fn wanted(name: &FunctionName, code: &Code, path: &str, asked: &Asked) -> Diagnostic {
    let purpose = match asked.wanted.as_str() {
        "" => String::new(),
        wanted => format!(" as {wanted}"),
    };
    let message =
        format!("{name} cannot be compiled ahead: it needs the value of {path}{purpose}, which a call gives");
    let error = Diagnostic::error(message).at(asked.place.unwrap_or(code.head), "asked for here");
    let parameter = code.params.iter().find(|p| path.split('.').next() == Some(p.name.as_str()));
    let error = match parameter {
        Some(parameter) if asked.place.is_some() => error.at(parameter.span, "declared here"),
        _ => error,
    };
    error.help(RECORD)
}

/// The error for a function that is interpreted.
fn refused(name: &FunctionName, code: &Code, why: &Why, unrun: bool) -> Refused {
    let by_design = why.cause.is_by_design() && !unrun;
    let diagnostic = if by_design {
        let error = Diagnostic::error(format!("{name} is interpreted: {}", why.reason));
        error.at(why.place.unwrap_or(code.head), "here")
    } else {
        let error = why.error(&name.to_string()).or_at(code.head);
        match &why.remedy {
            Some(remedy) => error.help(remedy),
            None if unrun => {
                error.help("what a run reads or computes with an effect is to be an argument of the function")
            }
            None => error,
        }
    };
    Refused { by_design, diagnostic }
}

fn no_code(name: &FunctionName) -> Diagnostic {
    Diagnostic::error(format!("{name} is a builtin: what calls it is compiled"))
}

/// The name of a builtin.
pub(super) fn builtin_name(name: &str) -> FunctionName {
    FunctionName { module: Some(BUILTINS.into()), name: name.into(), transforms: Vec::new() }
}

/// `path` relative to `folder`; both have the same base.
fn relative(folder: &str, path: &str) -> String {
    let parts = |text: &str| -> Vec<String> {
        let normal = Path::new(text).components().filter(|c| *c != Component::CurDir);
        normal.map(|c| c.as_os_str().to_string_lossy().into_owned()).collect()
    };
    let (folder, path) = (parts(folder), parts(path));
    let common = folder.iter().zip(&path).take_while(|(a, b)| a == b).count();
    let up = folder[common..].iter().map(|_| "..");
    let whole: PathBuf = up.chain(path[common..].iter().map(String::as_str)).collect();
    whole.to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::relative;

    #[test]
    fn paths_from_the_folder_of_the_program() {
        assert_eq!(relative("", "part.shf"), "part.shf");
        assert_eq!(relative("a/b", "a/b/part.shf"), "part.shf");
        assert_eq!(relative("a/b", "a/lib/part.shf"), "../lib/part.shf");
        assert_eq!(relative("/x/a", "/x/part.shf"), "../part.shf");
        assert_eq!(relative("a", "./a/part.shf"), "part.shf");
    }
}
