//! `#(* % 2)`, shorthand for a function: `(fn [%1] (* %1 2))`.

use ustr::Ustr;

use super::prefix::Prefix;
use super::{Bracket, Form, FormKind, Span};

/// The highest `%n`.
pub(super) const MAX_ARGUMENTS: usize = 20;

/// The arguments used in a shorthand.
#[derive(Default)]
struct Mentioned {
    /// The highest number.
    most: usize,
    /// `%&`
    rest: bool,
    /// A number beyond [`MAX_ARGUMENTS`].
    beyond: Option<Span>,
}

/// The function with body `call`, the list after the `#` at `mark`. The error is the span of an argument with too high
/// a number.
pub(super) fn function(mut call: FormKind, mark: Span, span: Span) -> Result<FormKind, Span> {
    let mut mentioned = Mentioned::default();
    mentioned.of_kind(&mut call);
    if let Some(beyond) = mentioned.beyond {
        return Err(beyond);
    }
    let symbol = |name: &str| Form { kind: FormKind::Symbol(Ustr::from(name)), span: mark };
    let mut params: Vec<Form> = (1..=mentioned.most).map(|n| symbol(&format!("%{n}"))).collect();
    if mentioned.rest {
        params.extend([symbol("&"), symbol("%&")]);
    }
    let params = Form { kind: FormKind::List(Bracket::Square, params), span: mark };
    let body = Form { kind: call, span: Span { start: mark.end, ..span } };
    Ok(FormKind::List(Bracket::Round, vec![symbol(Prefix::Function.name()), params, body]))
}

impl Mentioned {
    fn of_kind(&mut self, kind: &mut FormKind) {
        match kind {
            FormKind::List(bracket, items) => {
                // At the head of a call `%` is the function `mod`.
                let head = usize::from(
                    *bracket == Bracket::Round && items.first().is_some_and(|f| f.is_symbol("%")),
                );
                items.iter_mut().skip(head).for_each(|item| self.of(item));
            }
            FormKind::Dict(entries) => entries.iter_mut().for_each(|(_, value)| self.of(value)),
            _ => {}
        }
    }

    fn of(&mut self, form: &mut Form) {
        let Some(name) = form.symbol() else { return self.of_kind(&mut form.kind) };
        let Some(number) = name.strip_prefix('%') else { return };
        match number {
            "" => {
                form.kind = FormKind::Symbol(Ustr::from("%1"));
                self.most = self.most.max(1);
            }
            "&" => self.rest = true,
            number if number.starts_with('0') || !number.bytes().all(|b| b.is_ascii_digit()) => {}
            number => match number.parse::<usize>() {
                Ok(n) if n <= MAX_ARGUMENTS => self.most = self.most.max(n),
                _ => self.beyond = Some(form.span),
            },
        }
    }
}
