//! Layout styles of lists: indentation, and line breaks of lists that are too wide.

use super::tree::Node;

/// Layout of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Aligned with the first item: data, vectors, dictionaries.
    Items,
    /// Aligned with the first argument, or two columns in if that has a line of its own: calls.
    Arguments,
    /// That many distinguished arguments, then a body two columns in: `let`, `if`, `while`.
    Body(usize),
    /// All two columns in; that many items after the head are the header: `defn`, `fn`.
    Definition(usize),
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

/// The layout of a list.
pub(super) fn style(open: u8, items: &[Node<'_>], role: Role) -> Style {
    let Some(head) = head(items).filter(|_| open == b'(' && role == Role::Code) else { return Style::Items };
    match head {
        "let" | "loop" | "if" | "when" | "unless" | "case" => Style::Body(1),
        "repeat" | "while" | "as->" => Style::Body(2),
        "comment" => Style::Body(0),
        "fn" | "lambda" | "def" | "defparams" => Style::Definition(1),
        "defbatch" => Style::Definition(3),
        "defgrad" => Style::Definition(4),
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
    match head(items) {
        Some("cond") => Division::Pairs(1),
        Some("case") => Division::Pairs(2),
        _ => Division::Each,
    }
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
    let bindings = match head(items).filter(|_| open == b'(') {
        Some("let" | "loop") => i == 1,
        Some("repeat") => i == 1 || i == 2,
        Some("while") => i == 2,
        _ => false,
    };
    if bindings && items[i].opens_with(b'[') { Role::Bindings } else { Role::Code }
}
