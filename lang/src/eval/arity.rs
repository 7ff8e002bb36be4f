//! Number of arguments of functions, for calls and for `sheaf check`.

use crate::builtins::Builtin;
use crate::program::{Code, Param, Pattern};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Sources, Span};

impl Builtin {
    /// Fails unless the function takes that many arguments, options included.
    pub(crate) fn check_arity(&self, given: usize) -> Result<(), Diagnostic> {
        let (least, most) = self.arity;
        if (least..=most).contains(&given) {
            return Ok(());
        }
        let error = mismatch(self.name, least, Some(most).filter(|n| *n != usize::MAX), given);
        let chained = given > most && ["=", "==", "!=", "<", ">", "<=", ">="].contains(&self.name);
        Err(error.help(if chained {
            format!("comparisons are chained with and: (and ({0} a b) ({0} b c))", self.name)
        } else {
            format!("it is called {}", self.signature)
        }))
    }
}

impl Code {
    /// Fails unless the function takes that many arguments; `span` is the call.
    pub(crate) fn check_arity(&self, given: usize, span: Span, sources: &Sources) -> Result<(), Diagnostic> {
        let wanted = self.params.len();
        if given == wanted || (given > wanted && self.rest.is_some()) {
            return Ok(());
        }
        let most = if self.rest.is_some() { None } else { Some(wanted) };
        let Some(name) = self.name else {
            let function = format!("(fn [{}] ...)", self.parameters(sources).join(" "));
            return Err(mismatch(&function, wanted, most, given)
                .at(span, "called here")
                .at(self.head, "this function"));
        };
        let error = mismatch(&name, wanted, most, given).at(span, "called here");
        let signature = format!("it is called {}", self.signature(sources));
        Err(if self.span.source.is_library() {
            error.help(signature)
        } else {
            error.at(self.head, signature)
        })
    }

    /// `(f x y)`: the call syntax.
    pub(super) fn signature(&self, sources: &Sources) -> String {
        let documented = self.doc.as_deref().and_then(|d| d.lines().next()).filter(|l| l.starts_with('('));
        if let Some(line) = documented {
            return line.to_string();
        }
        let mut parts = vec![self.display_name()];
        parts.extend(self.parameters(sources));
        match self.keywords() {
            Some(known) => parts.extend(known.iter().map(|key| format!(":{key} {key}"))),
            None if self.rest.is_some() => parts.push("...".into()),
            None => {}
        }
        format!("({})", parts.join(" "))
    }

    /// The source text of the parameters, without types.
    fn parameters(&self, sources: &Sources) -> Vec<String> {
        let written = |param: &Param| match (&param.pattern, sources.get(param.span.source)) {
            (Pattern::Name(..), _) | (_, None) => param.name.to_string(),
            (_, Some((_, text))) => text[param.span.within(text)].to_string(),
        };
        self.params.iter().map(written).collect()
    }
}

fn mismatch(name: &str, least: usize, most: Option<usize>, given: usize) -> Diagnostic {
    let plural = |n: usize| if n == 1 { "1 argument".to_string() } else { format!("{n} arguments") };
    let wanted = match most {
        None => format!("at least {}", plural(least)),
        Some(0) => "no arguments".into(),
        Some(most) if least == most => plural(least),
        Some(most) if most == least + 1 => format!("{least} or {}", plural(most)),
        Some(most) => format!("{least} to {}", plural(most)),
    };
    Diagnostic::error(format!("{name} takes {wanted}, got {given}"))
}
