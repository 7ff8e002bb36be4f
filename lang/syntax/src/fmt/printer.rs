//! Printing of the syntax tree.
//!
//! The author's line breaks stay; a list gets more only if it exceeds the width. Formatting is idempotent, because the
//! widths that decide are those of a tree with the author's line breaks.

use unicode_width::UnicodeWidthStr as _;

use super::style::{Division, Role, Style, divides, division, role_of, style};
use super::tree::{Gap, Kind, Node, Tree};

/// Prints a tree.
pub(super) struct Printer {
    out: String,
    column: usize,
    width: usize,
}

impl Printer {
    /// The text of a tree, with lines of at most `width` columns if possible.
    pub fn print(tree: &Tree<'_>, width: usize) -> String {
        let mut printer = Printer { out: String::new(), column: 0, width };
        for (i, item) in tree.items.iter().enumerate() {
            let fits = printer.column + 1 + item.width <= width || item.is_keyword();
            printer.gap(&item.gap, 0, i > 0, i > 0 && (item.gap.lines > 0 || !fits));
            printer.node(item, 0, Role::Code);
        }
        if !tree.end.comments.is_empty() {
            printer.comments(&tree.end, 0, !tree.items.is_empty());
        }
        if !printer.out.is_empty() {
            printer.out.push('\n');
        }
        printer.out
    }

    fn write(&mut self, text: &str) {
        self.out.push_str(text);
        match text.rsplit_once('\n') {
            None => self.column += text.width(),
            Some((_, last)) => self.column = last.width(),
        }
    }

    fn line(&mut self, indent: usize, blank: bool) {
        self.out.push_str(if blank { "\n\n" } else { "\n" });
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    /// Prints the comments of a gap. `after`: false at the start, where no blank line can precede them.
    fn comments(&mut self, gap: &Gap<'_>, indent: usize, after: bool) {
        for (i, comment) in gap.comments.iter().enumerate() {
            if comment.lines > 0 && !self.out.is_empty() {
                self.line(indent, comment.lines > 1 && (after || i > 0));
            } else if !self.out.is_empty() {
                let blanks = " ".repeat(comment.blanks.max(1));
                self.out.push_str(&blanks);
            }
            self.out.push_str(comment.text);
        }
    }

    /// Prints the gap before an item: its comments, then a line break, or a blank after another item.
    fn gap(&mut self, gap: &Gap<'_>, indent: usize, after: bool, breaks: bool) {
        self.comments(gap, indent, after);
        if !gap.comments.is_empty() || breaks {
            self.line(indent, gap.lines > 1);
        } else if after {
            self.write(" ");
        }
    }

    /// Prints a form that `closers` closing brackets follow on the same line.
    fn node(&mut self, node: &Node<'_>, closers: usize, role: Role) {
        match &node.kind {
            Kind::Text(text) => self.write(text),
            Kind::Prefix { text, items } => {
                self.write(text);
                let start = self.column;
                let role = match *text {
                    "'" => Role::Data,
                    "#_" => role,
                    _ => Role::Code,
                };
                for (i, item) in items.iter().enumerate() {
                    // `~ @x` is not `~@x`.
                    let apart = i > 0 || (*text == "~" && item.text().is_some_and(|t| t.starts_with('@')));
                    self.gap(&item.gap, start, apart, false);
                    self.node(item, if i + 1 == items.len() { closers } else { 0 }, role);
                }
            }
            Kind::Bracket { open, items, end } => self.bracket(*open, items, end, closers, role),
        }
    }

    fn bracket(&mut self, open: u8, items: &[Node<'_>], end: &Gap<'_>, closers: usize, role: Role) {
        let start = self.column;
        let list = List {
            items,
            style: style(open, items, role),
            division: division(open, items, style(open, items, role), role),
            closers: if end.comments.is_empty() { closers + 1 } else { 0 },
            start,
        };
        let mut breaks: Vec<bool> = items.iter().map(|item| item.gap.breaks()).collect();
        if let (Some(first), Some(item)) = (breaks.first_mut(), items.first()) {
            // The first item stays with its bracket, unless a comment intervenes.
            *first = !item.gap.comments.is_empty();
        }
        for header in [false, true] {
            if list.division != Division::Fill && list.overflows(&breaks, header, self.width) {
                list.divide(&mut breaks, 1, header);
            }
        }
        self.write(match open {
            b'(' => "(",
            b'[' => "[",
            _ => "{",
        });
        for (i, item) in items.iter().enumerate() {
            let fits = self.column + 1 + list.width_of(i) <= self.width;
            if i > 0 && !breaks[i] && !fits && divides(items, i, list.style, list.division, false) {
                breaks[i] = true;
                if list.division != Division::Fill {
                    list.divide(&mut breaks, i, false);
                }
            }
            self.gap(&item.gap, list.indent(i, &breaks), i > 0, i > 0 && breaks[i]);
            self.node(
                item,
                if i + 1 == items.len() { list.closers } else { 0 },
                role_of(open, items, i, role),
            );
        }
        if !end.comments.is_empty() {
            let indent = list.indent(items.len(), &breaks);
            self.comments(end, indent, !items.is_empty());
            self.line(indent, false);
        }
        self.write(match open {
            b'(' => ")",
            b'[' => "]",
            _ => "}",
        });
    }
}

/// A bracketed form during layout.
struct List<'n, 't> {
    items: &'n [Node<'t>],
    style: Style,
    division: Division,
    /// Closing brackets on the line of the last item.
    closers: usize,
    /// The column of the opening bracket.
    start: usize,
}

impl List<'_, '_> {
    /// The width of the first line of item `i`, with the brackets that close after it.
    fn width_of(&self, i: usize) -> usize {
        let last = i + 1 == self.items.len() && !self.items[i].broken;
        self.items[i].width + if last { self.closers } else { 0 }
    }

    /// The column at which item `i` starts on a line of its own.
    fn indent(&self, i: usize, breaks: &[bool]) -> usize {
        let first_beside_head = breaks.get(1) == Some(&false) && !breaks[0];
        let below_first = || self.start + 2 + self.items[0].width;
        match self.style {
            Style::Items => self.start + 1,
            _ if i == 0 => self.start + 1,
            Style::Arguments if first_beside_head => below_first(),
            Style::Arguments | Style::Definition(_) => self.start + 2,
            Style::Body(special) if i > special => self.start + 2,
            Style::Body(_) if first_beside_head => below_first(),
            Style::Body(_) => self.start + 4,
        }
    }

    /// True if an item exceeds the width and a line break before it, or before another on its line, could help. Items
    /// after a multi-line item are ignored: their column is known only once that is printed.
    fn overflows(&self, breaks: &[bool], header: bool, width: usize) -> bool {
        let mut column = self.start + 1;
        let mut could_help = false;
        for (i, item) in self.items.iter().enumerate() {
            if breaks[i] {
                column = self.indent(i, breaks);
                could_help = false;
            } else if i > 0 {
                column += 1;
                could_help |= divides(self.items, i, self.style, self.division, header);
            }
            if could_help && column + self.width_of(i) > width {
                return true;
            }
            if item.broken {
                return false;
            }
            column += item.width;
        }
        false
    }

    /// Adds line breaks, from item `from` on.
    fn divide(&self, breaks: &mut [bool], from: usize, header: bool) {
        for (i, end) in breaks.iter_mut().enumerate().take(self.items.len()).skip(from.max(1)) {
            *end |= divides(self.items, i, self.style, self.division, header);
        }
    }
}
