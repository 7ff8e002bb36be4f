//! How the items of a list stand below each other, and where a list that is too wide is divided.

use super::tree::Node;

/// How a list is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Below the first item: data, vectors, dictionaries.
    Items,
    /// Below the first argument, or two columns in if that has a line of its own: calls.
    Arguments,
    /// So many distinguished arguments, then a body two columns in: `let`, `if`, `while`.
    Body(usize),
    /// All two columns in; so many items after the head are the header: `defn`, `fn`.
    Definition(usize),
}

/// Which line ends a list that is too wide gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// One before each item that does not fit any more.
    Fill,
    /// One before each item.
    Each,
    /// One before each pair; the pairs start at this item.
    Pairs(usize),
}

/// What a list is within the form around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// To be evaluated.
    Code,
    /// Quoted.
    Data,
    /// The names and values of a `let` or a loop.
    Bindings,
}

/// The name at the head of a call, without the module that qualifies it.
pub(super) fn head<'t>(items: &[Node<'t>]) -> Option<&'t str> {
    let text = items.first()?.text().filter(|text| !text.starts_with('"'))?;
    Some(text.rsplit_once('/').filter(|(_, name)| !name.is_empty()).map_or(text, |(_, name)| name))
}

/// How a list is laid out.
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

/// Where a list that is too wide is divided.
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

/// Whether a list that is too wide may get a line end before item `i`; `header`: one in the header of a definition.
pub(super) fn divides(items: &[Node<'_>], i: usize, style: Style, division: Division, header: bool) -> bool {
    let real = items[..i].iter().filter(|item| !item.dropped()).count();
    if let Division::Pairs(start) = division
        && (real < start || !(real - start).is_multiple_of(2))
    {
        return false;
    }
    match style {
        Style::Items => true,
        // The head keeps its first argument, and a keyword what it introduces.
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
