//! Optional parts of the runtime, which are linked only for programs that use them.

/// An optional part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Tokenizers of published models.
    Text,
    /// Pictures.
    Plot,
}

/// Start of the line by which the file of a runtime says its parts.
const START: &str = "parts of sheaf-rt:";

/// The line of a runtime with these parts; it is in the file of the runtime because `sheaf-rt --version` prints it.
pub const fn parts_line(text: bool, plot: bool) -> &'static str {
    match (text, plot) {
        (false, false) => "parts of sheaf-rt: none\n",
        (true, false) => "parts of sheaf-rt: text\n",
        (false, true) => "parts of sheaf-rt: plot\n",
        (true, true) => "parts of sheaf-rt: text plot\n",
    }
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 2] = [Part::Text, Part::Plot];

    /// The name, as of the feature that links it.
    pub fn name(self) -> &'static str {
        match self {
            Part::Text => "text",
            Part::Plot => "plot",
        }
    }

    /// The builtin that needs it.
    pub fn builtin(self) -> &'static str {
        match self {
            Part::Text => "tokenizer-load",
            Part::Plot => "plot",
        }
    }

    /// The parts of a runtime, by its file; none in a file that does not say.
    pub fn linked(runtime: &[u8]) -> Vec<Part> {
        let found = memchr::memmem::find(runtime, START.as_bytes());
        let line = found.and_then(|at| runtime[at + START.len()..].split(|byte| *byte == b'\n').next());
        let words: Vec<&[u8]> = line.unwrap_or_default().split(|byte| *byte == b' ').collect();
        Part::ALL.into_iter().filter(|part| words.contains(&part.name().as_bytes())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_from_the_line_of_a_runtime() {
        for (text, plot, parts) in [
            (false, false, vec![]),
            (true, false, vec![Part::Text]),
            (false, true, vec![Part::Plot]),
            (true, true, vec![Part::Text, Part::Plot]),
        ] {
            let file = [b"\x7fELF\0text ", parts_line(text, plot).as_bytes(), b"plot"].concat();
            assert_eq!(Part::linked(&file), parts);
        }
        assert_eq!(Part::linked(b"text plot"), []);
        assert_eq!(Part::linked(START.as_bytes()), []);
    }
}
