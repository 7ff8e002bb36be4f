//! Commands that are typed beside code: `:help`, `:type` and the like.

/// A command of the REPL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Lists the commands, or explains a name.
    Help,
    /// The type of a value.
    Type,
    /// The documentation of a name.
    Doc,
    /// The time of an evaluation.
    Time,
    /// The time of an evaluation, by function.
    Blame,
    /// The calls of functions, or of an evaluation.
    Trace,
    /// The functions and macros that are defined.
    List,
    /// The code of a definition.
    Show,
    /// The values that are defined, with their types.
    Env,
    /// Runs a file in the session.
    Load,
    /// Begins anew.
    Reset,
    /// Ends the session.
    Quit,
}

/// Every command with its word, its arguments, and its help.
pub const COMMANDS: [(Command, &str, &str, &str); 12] = [
    (Command::Help, ":help", "[name]", "list the commands, or explain a name"),
    (
        Command::Type,
        ":type",
        "expression",
        "the type of a value: dtype and shape of a tensor, length of a list",
    ),
    (Command::Doc, ":doc", "name", "what a function does, with examples"),
    (Command::Time, ":time", "expression", "evaluate, and say how long it took"),
    (Command::Blame, ":blame", "expression", "evaluate, and say where the time went, as --blame does"),
    (
        Command::Trace,
        ":trace",
        "[f g]",
        "show calls of functions from now on, or of an expression once; alone: no longer",
    ),
    (Command::List, ":list", "", "the functions and macros defined here"),
    (Command::Show, ":show", "name", "the code of a definition"),
    (Command::Env, ":env", "", "the values defined here, with their types"),
    (Command::Load, ":load", "file", "run a file here; what it defines stays"),
    (Command::Reset, ":reset", "", "forget all definitions"),
    (Command::Quit, ":quit", "", "end the session, as Ctrl-D does"),
];

/// The request of a line that begins with a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'l> {
    /// A command, and its argument.
    Known(Command, &'l str),
    /// A word that is none.
    Unknown(&'l str),
}

/// The command on a line. A line that begins with a keyword is one, or a mistake.
pub fn parse(line: &str) -> Option<Request<'_>> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if !word.starts_with(':') {
        return None;
    }
    let known = COMMANDS.iter().find(|(_, name, ..)| *name == word);
    Some(known.map_or(Request::Unknown(word), |(command, ..)| Request::Known(*command, rest.trim())))
}

/// True if a line is a command, known or not.
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
    fn a_command_is_a_keyword_at_the_start() {
        assert_eq!(parse(":time (f 1)\n"), Some(Request::Known(Command::Time, "(f 1)")));
        assert_eq!(parse("  :quit"), Some(Request::Known(Command::Quit, "")));
        assert_eq!(parse(":helpful x"), Some(Request::Unknown(":helpful")));
        for other in ["(:type x)", "", "x :type"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
