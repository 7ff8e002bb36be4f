//! `sheaf expand`.

use std::process::ExitCode;

use sheaf_lang::eval::{Interp, Jit, Loaded, Options};
use sheaf_syntax::{Sources, fmt};

use crate::cli::ExpandOptions;
use crate::evaluator::{Failed, interpreter, on_large_stack, project_of};
use crate::messages;
use crate::output::print;
use crate::sources::read_source;

/// Shows a program with every macro use replaced.
pub fn expand(options: &ExpandOptions) -> ExitCode {
    on_large_stack(|| {
        let text = read_source(&options.file)?;
        let shown = options.file.display().to_string();
        let how = Options { jit: Jit::Never, ..Options::default() };
        let mut interp = interpreter(how, &project_of(&options.file)?, &options.dependencies)?;
        let expanded = expanded(&mut interp, &shown, &text).map_err(|errors| {
            errors.iter().for_each(|e| messages::show(&interp.sources, e));
            Failed
        })?;
        print(&expanded)
    })
}

/// The expanded program, laid out as `sheaf fmt` does.
fn expanded(interp: &mut Interp, name: &str, text: &str) -> Loaded<String> {
    let forms = interp.expand_program(name, text)?;
    let forms: Vec<String> = forms.iter().map(ToString::to_string).collect();
    let flat = forms.join("\n\n");
    let mut sources = Sources::default();
    let id = sources.add(name, flat.as_str());
    // A name that a macro made up may not read; the forms are worth seeing all the same.
    Ok(fmt::format(&sources, id, fmt::DEFAULT_WIDTH).unwrap_or(flat + "\n"))
}
