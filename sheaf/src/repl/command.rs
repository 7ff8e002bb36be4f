//! What can be typed beside code: `:help`, `:type` and the like.

/// A command of the REPL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Lists the commands, or explains a name.
    Help,
    /// The type of a value.
    Type,
    /// The documentation of a name.
    Doc,
    /// How long an evaluation takes.
    Time,
    /// Runs a file in the session.
    Load,
    /// Begins anew.
    Reset,
    /// Ends the session.
    Quit,
}

/// Every command with its word, what follows the word, and what it does.
pub const COMMANDS: [(Command, &str, &str, &str); 7] = [
    (Command::Help, ":help", "[name]", "list the commands, or explain a name"),
    (
        Command::Type,
        ":type",
        "expression",
        "the type of a value: dtype and shape of a tensor, length of a list",
    ),
    (Command::Doc, ":doc", "name", "what a function does, with examples"),
    (Command::Time, ":time", "expression", "evaluate, and say how long it took"),
    (Command::Load, ":load", "file", "run a file here; what it defines stays"),
    (Command::Reset, ":reset", "", "forget all definitions"),
    (Command::Quit, ":quit", "", "end the session, as Ctrl-D does"),
];

/// The command on a line and what follows it.
pub fn parse(line: &str) -> Option<(Command, &str)> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (command, ..) = COMMANDS.iter().find(|(_, name, ..)| *name == word)?;
    Some((*command, rest.trim()))
}

/// Whether a line is a command. Another keyword is a value.
pub fn is_command(line: &str) -> bool {
    parse(line).is_some()
}

/// A table of the commands.
pub fn list() -> String {
    let row = |(_, word, argument, what): &(Command, &str, &str, &str)| {
        format!("  {:<18} {what}\n", format!("{word} {argument}"))
    };
    COMMANDS.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_known_word_at_the_start() {
        assert_eq!(parse(":time (f 1)\n"), Some((Command::Time, "(f 1)")));
        assert_eq!(parse("  :quit"), Some((Command::Quit, "")));
        for other in [":axis", ":helpful", "(:type x)", "", ":"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
