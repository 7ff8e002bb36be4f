//! `sheaf build --emit`: the forms of one function.

use std::path::Path;

use sheaf_lang::eval::{Interp, Refused};
use sheaf_lang::host::Unit;
use sheaf_lang::program::{GradOptions, Transform};
use sheaf_syntax::{Bracket, Form, Sources, SpecialForm, fmt};

use super::show::{Built, built, short};
use super::{Order, default_output};
use crate::cli::{BuildOptions, Emit};
use crate::evaluator::Failed;
use crate::messages;
use crate::output::print;
use sheaf_engine::{BuildTarget, Plan};

/// Prints the definition of a function with every macro use in it replaced.
pub fn forms(mut interp: Interp, file: &Path, text: &str, function: &str) -> Result<(), Failed> {
    let forms = interp.expand_program(&file.display().to_string(), text).map_err(|errors| {
        errors.iter().for_each(|e| messages::show(&interp.sources, e));
        Failed
    })?;
    let mut all = Vec::new();
    forms.into_iter().for_each(|form| flatten(form, &mut all));
    let Some(form) = all.iter().find(|form| defines(form, function)) else {
        let known: Vec<String> = all.iter().filter_map(defined).collect();
        let help = if known.is_empty() {
            "it defines no function".into()
        } else {
            format!("it defines {}", known.join(", "))
        };
        messages::error(format!("{} does not define {function}", file.display()), Some(&help));
        return Err(Failed);
    };
    let flat = form.to_string();
    let mut sources = Sources::default();
    let id = sources.add(file.display().to_string(), flat.as_str());
    // A name that a macro made up may not read; the form is worth seeing all the same.
    print(&fmt::format(&sources, id, fmt::DEFAULT_WIDTH).unwrap_or(flat + "\n"))
}

/// The forms of the top level, also those that a macro gave together.
fn flatten(form: Form, all: &mut Vec<Form>) {
    match form.items(Bracket::Round) {
        Some([head, inner @ ..]) if head.is_symbol("do") => {
            inner.iter().for_each(|form| flatten(form.clone(), all));
        }
        _ => all.push(form),
    }
}

/// The name that a form defines.
fn defined(form: &Form) -> Option<String> {
    let [head, name, ..] = form.items(Bracket::Round)? else { return None };
    let Some(SpecialForm::Def | SpecialForm::Defn | SpecialForm::Defmacro | SpecialForm::Defgrad) =
        head.special()
    else {
        return None;
    };
    let name = match name.items(Bracket::Round) {
        Some(items) => items.first()?.symbol()?,
        None => name.symbol()?,
    };
    Some(name.to_string())
}

fn defines(form: &Form, function: &str) -> bool {
    defined(form).as_deref() == Some(function)
}

/// Prints the graph of a function, that of its value and gradient, or the compiler's text.
pub fn text(interp: &mut Interp, orders: &[Order], form: Emit, goal: &BuildTarget) -> Result<(), Failed> {
    let Some(order) = orders.first() else { return Err(Failed) };
    let unit = specialise(interp, order, form).map_err(|refused| {
        messages::show(&interp.sources, &refused.diagnostic);
        Failed
    })?;
    match form {
        Emit::Stablehlo => print(&Plan::new(unit, goal).action(0).program),
        _ => print(&format!("{}{}", leaves(&unit), unit.graph)),
    }
}

fn specialise(interp: &mut Interp, order: &Order, form: Emit) -> Result<Unit, Box<Refused>> {
    let mut name = order.name.clone();
    if form == Emit::Grad {
        let options = GradOptions { wrt: vec![0], wrt_list: false, aux: false, value: true };
        name.transforms.push(Transform::Grad(options));
    }
    let mut first = None;
    for arguments in &order.variants {
        match interp.specialise_ahead(&name, arguments) {
            Ok(unit) => return Ok(unit),
            Err(refused) => first = first.or(Some(refused)),
        }
    }
    Err(first.unwrap_or_else(|| unreachable!("every order has arguments")))
}

/// The types of the parameters and the results of a graph.
fn leaves(unit: &Unit) -> String {
    let mut text = String::new();
    for (what, vars, leaves) in
        [("argument", &unit.graph.inputs, &unit.inputs), ("result", &unit.graph.outputs, &unit.outputs)]
    {
        for (var, leaf) in vars.iter().zip(leaves) {
            let path = if leaf.path.is_empty() { String::new() } else { format!(" {}", leaf.path) };
            text += &format!("; {what} {var}{path}: {}\n", leaf.ty);
        }
    }
    text
}

/// Writes the program of a function to a file.
pub fn vmfb(all: &[Built], goal: &BuildTarget, options: &BuildOptions) -> Result<(), Failed> {
    let [program] = all else {
        if all.len() > 1 {
            let help = "give its parameters types, or keep one call in the shapes file";
            messages::error("the function was recorded for several types: which is meant?", Some(help));
        }
        return Err(Failed);
    };
    let device = goal.destination.device();
    let path =
        options.output.clone().unwrap_or_else(|| default_output(&program.plan.unit().function, device));
    sheaf_foundation::atomic::replace(&path, &program.made.bytes).map_err(|e| {
        messages::error(&e, Some(e.remedy()));
        Failed
    })?;
    let constants = program.plan.constants(program.made.candidate);
    if constants > 0 {
        let message = match constants {
            1 => "a large constant of the function is an argument of the program".to_owned(),
            _ => format!("{constants} large constants of the function are arguments of the program"),
        };
        messages::warning(
            message,
            Some("pass them after the others, or make them arguments of the function"),
        );
    }
    if options.json {
        let mut described = built(program);
        described["file"] = path.display().to_string().into();
        return print(&format!("{described:#}\n"));
    }
    let (inputs, outputs) = program.plan.leaves();
    let mut text = format!("{} ({} bytes)\n", short(&path), program.made.bytes.len());
    for (what, leaves) in [("argument", inputs), ("result", outputs)] {
        for (i, leaf) in leaves.iter().enumerate() {
            let shape: String = leaf.shape.iter().map(|n| format!("{n}x")).collect();
            text += format!("  {what} {i}: {shape}{} {}", leaf.dtype, leaf.path).trim_end();
            text.push('\n');
        }
    }
    print(&text)
}
