//! Layout styles of lists: indentation, and line breaks of lists that are too wide.

use super::tree::Node;
use crate::SpecialForm;

/// Layout of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Aligned with the first item: data, vectors, dictionaries.
    Items,
    /// Aligned with the first argument, or two columns in if that has a line of its own: calls.
    Arguments,
    /// That many distinguished arguments, then a body two columns in: `let`, `if`, `while`.
    Body(usize),
    /// All two columns in; that many items after the head are the header: `defn`, `fn`.
    Definition(usize),
}

/// Layout of the lists of a special form.
#[derive(Debug)]
pub(crate) struct Layout {
    /// `None`: as for any other name.
    style: Option<Style>,
    /// The item at which pairs start: a list that is too wide gets a line break before each.
    pairs: Option<usize>,
    /// The items that bind names, if they are in square brackets.
    bindings: &'static [usize],
}

impl Layout {
    pub(crate) const CALL: Layout = Layout { style: None, pairs: None, bindings: &[] };

    pub(crate) const fn body(arguments: usize) -> Layout {
        Layout { style: Some(Style::Body(arguments)), ..Layout::CALL }
    }

    pub(crate) const fn definition(header: usize) -> Layout {
        Layout { style: Some(Style::Definition(header)), ..Layout::CALL }
    }

    pub(crate) const fn pairs(self, start: usize) -> Layout {
        Layout { pairs: Some(start), ..self }
    }

    pub(crate) const fn bindings(self, bindings: &'static [usize]) -> Layout {
        Layout { bindings, ..self }
    }
}

/// Line breaks added to a list that is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// One before each item that exceeds the width.
    Fill,
    /// One before each item.
    Each,
    /// One before each pair; the pairs start at this item.
    Pairs(usize),
}

/// Role of a list within the form around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Code to evaluate.
    Code,
    /// Quoted data.
    Data,
    /// The names and values of a `let` or a loop.
    Bindings,
}

/// The name at the head of a call, without its module qualifier.
pub(super) fn head<'t>(items: &[Node<'t>]) -> Option<&'t str> {
    let text = items.first()?.text().filter(|text| !text.starts_with('"'))?;
    Some(text.rsplit_once('/').filter(|(_, name)| !name.is_empty()).map_or(text, |(_, name)| name))
}

/// The layout of the special form at the head of a call.
fn layout(items: &[Node<'_>]) -> Option<&'static Layout> {
    Some(&SpecialForm::named(head(items)?)?.description().layout)
}

/// The style of a list.
pub(super) fn style(open: u8, items: &[Node<'_>], role: Role) -> Style {
    let Some(head) = head(items).filter(|_| open == b'(' && role == Role::Code) else { return Style::Items };
    if let Some(style) = layout(items).and_then(|layout| layout.style) {
        return style;
    }
    match head {
        "when" | "unless" => Style::Body(1),
        "comment" => Style::Body(0),
        "defbatch" => Style::Definition(3),
        _ if head.starts_with("with-") => Style::Body(1),
        _ if head.starts_with("def") && !head.starts_with("default") => {
            Style::Definition(items.iter().skip(1).position(|i| i.text().is_none()).map_or(1, |i| i + 1))
        }
        _ => Style::Arguments,
    }
}

/// The line breaks of a list that is too wide.
pub(super) fn division(open: u8, items: &[Node<'_>], style: Style, role: Role) -> Division {
    if open == b'{' || role == Role::Bindings {
        return Division::Pairs(0);
    }
    if style == Style::Items {
        let plain = items.iter().all(|item| item.text().is_some());
        return if plain { Division::Fill } else { Division::Each };
    }
    layout(items).and_then(|layout| layout.pairs).map_or(Division::Each, Division::Pairs)
}

/// True if a list that is too wide may get a line break before item `i`; `header`: one in the header of a definition.
pub(super) fn divides(items: &[Node<'_>], i: usize, style: Style, division: Division, header: bool) -> bool {
    let real = items[..i].iter().filter(|item| !item.dropped()).count();
    if let Division::Pairs(start) = division
        && (real < start || !(real - start).is_multiple_of(2))
    {
        return false;
    }
    match style {
        Style::Items => true,
        // The head stays with its first argument, a keyword with its value.
        Style::Arguments => i > 1 && (division != Division::Each || !items[i - 1].is_keyword()),
        Style::Body(special) => i > special,
        Style::Definition(last) => i > last || (header && i > 1),
    }
}

/// The role of item `i` within a list.
pub(super) fn role_of(open: u8, items: &[Node<'_>], i: usize, role: Role) -> Role {
    if role == Role::Data {
        return Role::Data;
    }
    let bindings = layout(items).is_some_and(|layout| layout.bindings.contains(&i));
    if bindings && open == b'(' && items[i].opens_with(b'[') { Role::Bindings } else { Role::Code }
}
