//! A session: its definitions, and the effects of entries on it.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use sheaf_lang::builtins::{foreign_name_help, nearest, repr, type_text};
use sheaf_lang::docs;
use sheaf_lang::eval::{Interp, Interrupt};
use sheaf_lang::program::{Definition, Module, Value};
use sheaf_observe::Metrics;
use sheaf_project::Project;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::visible::visible;

use super::command::{self, COMMANDS, Command, Request};
use crate::cli::EngineOptions;
use crate::evaluator::{Failed, evaluator, path_here};
use crate::messages;
use crate::observe::ObserveOptions;
use crate::output::print_line;
use crate::sources::read_source;

/// The course of a session after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// All was well.
    Continue,
    /// Something failed, and a message has said why.
    Failed,
    /// The user ends the session.
    Quit,
}

/// The definitions so far.
pub struct Session {
    options: EngineOptions,
    project: Project,
    interp: Interp,
    module: Rc<Module>,
    entries: usize,
    /// The functions whose calls are shown.
    traced: Vec<String>,
    /// Builtins, special forms, macros and the standard library, for completion.
    builtins: Vec<String>,
}

impl Session {
    /// A session without definitions. In a package, `use` looks where its main program would.
    pub fn new(options: &EngineOptions, project: Project) -> Result<Session, Failed> {
        let builtins = docs::entries().into_iter().map(|e| e.name);
        Ok(Session {
            interp: start(options, &project)?,
            module: module(&project),
            options: options.clone(),
            project,
            entries: 0,
            traced: Vec::new(),
            builtins: builtins.collect(),
        })
    }

    /// Stops the evaluation.
    pub fn interrupt_handle(&self) -> Interrupt {
        self.interp.interrupt_handle()
    }

    /// Every name that can be used now.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.builtins.clone();
        names.extend(self.module.names().iter().map(ToString::to_string));
        names.sort();
        names.dedup();
        names
    }

    /// Evaluates an entry: a command, or forms whose values are printed.
    pub fn enter(&mut self, entry: &str) -> Flow {
        let done = match command::parse(entry) {
            Some(Request::Known(Command::Quit, _)) => return Flow::Quit,
            Some(Request::Known(command, rest)) => self.obey(command, rest),
            Some(Request::Unknown(word)) => Err(unknown(word)),
            None => self.evaluate(entry, print_value),
        };
        if done.is_ok() { Flow::Continue } else { Flow::Failed }
    }

    fn obey(&mut self, command: Command, rest: &str) -> Result<(), Failed> {
        match command {
            Command::Help if rest.is_empty() => {
                let text = format!(
                    "Type an expression to see its value; an entry goes on until its brackets are closed.\n\n{}\n\
                     Tab completes names, Ctrl-C stops an evaluation or clears the line, Ctrl-D ends.",
                    command::list()
                );
                print_line(&text)
            }
            Command::Help if command::is_command(rest) => {
                let rows = command::list();
                let row = rows.lines().find(|row| row.trim_start().starts_with(rest));
                print_line(row.unwrap_or_default().trim())
            }
            Command::Help | Command::Doc => self.explain(rest),
            Command::Type => {
                Self::wants(rest, ":type (zeros '[2 3])")?;
                self.evaluate(rest, |value| print_line(&type_text(value)))
            }
            Command::Time => {
                Self::wants(rest, ":time (sum (arange 1000))")?;
                let start = Instant::now();
                self.evaluate(rest, |value| {
                    let elapsed = start.elapsed();
                    print_line(&format!("{}\n{elapsed:.3?}", shown(value)))
                })
            }
            Command::Blame => self.blame(rest),
            Command::Trace => self.trace(rest),
            Command::List => self.list(),
            Command::Show => self.show_code(rest),
            Command::Env => self.values(),
            Command::Load => {
                Self::wants(rest, ":load train.shf")?;
                let text = read_source(Path::new(rest))?;
                let result = self.interp.run_text(&self.module, rest, &text);
                result.map(drop).map_err(|errors| self.show(&errors))
            }
            Command::Reset => {
                self.interp = start(&self.options, &self.project)?;
                self.module = module(&self.project);
                self.traced.clear();
                Ok(())
            }
            Command::Quit => Ok(()),
        }
    }

    /// Evaluates the forms of an entry one by one; those after a failure still run.
    fn evaluate(
        &mut self,
        text: &str,
        mut each: impl FnMut(&Value) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.entries += 1;
        self.interp.begin();
        let name = format!("repl[{}]", self.entries);
        let (_, forms) = self.interp.read_forms(&name, text).map_err(|errors| self.show(&errors))?;
        if let Some(error) = Interp::foreign_statement(&forms) {
            return Err(self.show(&[error]));
        }
        Interp::declare(&self.module, &forms);
        let mut result = Ok(());
        for form in forms {
            let done = match self.interp.run_forms(&self.module, vec![form]) {
                Ok(value) => each(&value),
                Err(errors) => Err(self.show(&errors)),
            };
            result = result.and(done);
            if self.interp.stopped() {
                return result;
            }
        }
        result
    }

    /// Evaluates, and shows where the time went.
    fn blame(&mut self, text: &str) -> Result<(), Failed> {
        Self::wants(text, ":blame (sum (arange 1000))")?;
        let wanted = ObserveOptions { blame: true, ..self.traces() };
        let observation = wanted.start(&mut self.interp)?;
        let result = self.evaluate(text, print_value);
        self.observe()?;
        let reports = observation.map(|observation| observation.reports()).unwrap_or_default();
        result?;
        reports.iter().try_for_each(|report| print_line(visible(report).trim_end()))
    }

    /// Shows the calls of the named functions from now on, or all those of an expression once.
    fn trace(&mut self, text: &str) -> Result<(), Failed> {
        if text.contains(['(', '[', '{']) {
            let wanted = ObserveOptions { trace: Some(String::new()), ..ObserveOptions::default() };
            wanted.start(&mut self.interp)?;
            let result = self.evaluate(text, print_value);
            return result.and(self.observe());
        }
        let names = self.names();
        let wanted: Vec<&str> = text.split([',', ' ', '\t']).filter(|name| !name.is_empty()).collect();
        // A traced name is the plain one, as the tree shows it.
        let plain = |name: &str| name.rsplit_once('/').map_or(name, |(_, plain)| plain).to_owned();
        if let Some(unknown) =
            wanted.iter().find(|name| !names.iter().any(|n| n == *name || *n == plain(name)))
        {
            return Err(self.nothing_called(unknown));
        }
        if wanted.is_empty() {
            self.traced.clear();
        }
        for name in wanted.into_iter().map(plain) {
            if !self.traced.contains(&name) {
                self.traced.push(name);
            }
        }
        self.observe()?;
        print_line(&match self.traced.as_slice() {
            [] => "no function is traced".to_owned(),
            names => format!("traced: {}", names.join(", ")),
        })
    }

    /// The options of the functions that are traced.
    fn traces(&self) -> ObserveOptions {
        let trace = Some(self.traced.join(",")).filter(|names| !names.is_empty());
        ObserveOptions { trace, ..ObserveOptions::default() }
    }

    /// Shows the calls of the traced functions, and observes nothing else.
    fn observe(&mut self) -> Result<(), Failed> {
        if self.traces().start(&mut self.interp)?.is_none() {
            self.interp.unobserve();
        }
        Ok(())
    }

    /// Shows the documentation of a name: a definition of the session before a name of the language.
    fn explain(&mut self, name: &str) -> Result<(), Failed> {
        Self::wants(name, ":doc softmax")?;
        let defined = self.module.names().iter().any(|n| n == name);
        let sources = self.interp.sources.iter().filter(|_| defined).collect::<Vec<_>>().into_iter().rev();
        let own = sources.flat_map(|(_, text)| docs::definitions(text)).find(|entry| entry.name == name);
        if let Some(entry) = docs::find(name).filter(|_| own.is_none()).or(own) {
            return print_line(entry.to_string().trim_end());
        }
        if defined {
            return print_line(&format!("{name} has no documentation; :type {name} says what it is"));
        }
        Err(self.nothing_called(name))
    }

    /// Shows the error for an unknown name, with near ones.
    fn nothing_called(&self, name: &str) -> Failed {
        let names = self.names();
        let near =
            || nearest(name, names.iter().map(String::as_str)).map(|near| format!("did you mean {near}?"));
        let help = foreign_name_help(name, &|n| names.iter().any(|known| known == n)).or_else(near);
        messages::error(format!("nothing is called {name}"), help.as_deref());
        Failed
    }

    /// Shows the functions and macros that are defined, as they are called.
    fn list(&self) -> Result<(), Failed> {
        let signatures: HashMap<String, String> = (self.interp.sources.iter())
            .flat_map(|(_, text)| docs::definitions(text))
            .map(|entry| (entry.name, entry.signature))
            .collect();
        let callable = |d: &Definition| d.is_macro || matches!(d.value, Value::Function(_));
        let row = |d: Definition| {
            let signature = signatures.get(d.name.as_str()).cloned().unwrap_or_else(|| d.name.to_string());
            if d.is_macro { format!("{signature}  macro") } else { signature }
        };
        let rows: Vec<String> = self.module.definitions().into_iter().filter(callable).map(row).collect();
        print_rows(&rows, "no function is defined yet")
    }

    /// Shows the values that are defined and are no functions.
    fn values(&self) -> Result<(), Failed> {
        let is_value = |d: &Definition| !matches!(d.value, Value::Function(_));
        let row = |d: Definition| format!("{}  {}", d.name, type_text(&d.value));
        let rows: Vec<String> = self.module.definitions().into_iter().filter(is_value).map(row).collect();
        print_rows(&rows, "no value is defined yet")
    }

    /// Shows the code of a definition.
    fn show_code(&self, name: &str) -> Result<(), Failed> {
        Self::wants(name, ":show forward")?;
        let plain = name.rsplit_once('/').map_or(name, |(_, plain)| plain);
        if let Some(code) = docs::definition_text(&self.interp.sources, plain) {
            return print_line(&code);
        }
        if docs::find(name).is_some() {
            return print_line(&format!("{name} is built in; :doc {name} says what it does"));
        }
        Err(self.nothing_called(name))
    }

    /// Checks that something follows a command.
    fn wants(rest: &str, example: &str) -> Result<(), Failed> {
        if !rest.is_empty() {
            return Ok(());
        }
        messages::error("something has to follow this command", Some(&format!("write {example}")));
        Err(Failed)
    }

    fn show(&self, errors: &[Diagnostic]) -> Failed {
        errors.iter().for_each(|e| messages::show(&self.interp.sources, e));
        Failed
    }
}

/// Says that a word is no command.
fn unknown(word: &str) -> Failed {
    let help = match nearest(word, COMMANDS.iter().map(|(_, name, ..)| *name)) {
        Some(near) => format!("did you mean {near}? :help lists the commands"),
        None => format!(":help lists the commands; as a value, a keyword is written (do {word})"),
    };
    messages::error(format!("there is no command {word}"), Some(&help));
    Failed
}

/// Shows rows, or that there are none.
fn print_rows(rows: &[String], none: &str) -> Result<(), Failed> {
    if rows.is_empty() { print_line(none) } else { print_line(&rows.join("\n")) }
}

/// Shows the value of an entry.
fn print_value(value: &Value) -> Result<(), Failed> {
    match value {
        Value::Nil => Ok(()),
        value => print_line(&shown(value)),
    }
}

/// A value as the session shows it: a tensor of several lines begins on a line of its own, so that its rows align.
fn shown(value: &Value) -> String {
    let text = repr(value);
    match (value, text.contains('\n')) {
        (Value::Tensor(_), true) => text.replacen(" = ", " =\n", 1),
        _ => text,
    }
}

/// An evaluator. Programs compiled in a session are no part of a package: they are kept with the caches.
fn start(options: &EngineOptions, project: &Project) -> Result<Interp, Failed> {
    evaluator(options, project, Vec::new(), Metrics::default(), sheaf_project::Home::repl_artifacts)
}

/// The module of a session.
fn module(project: &Project) -> Rc<Module> {
    Interp::program(&path_here(project, "repl").display().to_string())
}
