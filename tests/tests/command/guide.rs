//! The language guide and the page of the wider library: every block of code runs, and gives the result shown.
//!
//! A block that begins with `; file: NAME` is that file. The others of a chapter are one file of examples, checked by
//! `sheaf test`. In a `console` block, each command is followed by its output.

use sheaf_tests::Sandbox;

const GUIDE: &str = include_str!("../../../docs/guide.md");
const LIBRARY: &str = include_str!("../../../docs/library.md");

/// A chapter: its title, and its blocks, each with its language.
struct Chapter<'a> {
    title: &'a str,
    blocks: Vec<(&'a str, String)>,
}

fn chapters(page: &str) -> Vec<Chapter<'_>> {
    let mut chapters = Vec::new();
    let mut inside = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut inside) {
            (Some(language), None) => inside = Some((language, String::new())),
            (Some(_), Some(_)) => {
                let chapter: &mut Chapter = chapters.last_mut().expect("a block stands in a chapter");
                chapter.blocks.extend(inside.take());
            }
            (None, Some((_, text))) => *text += &format!("{line}\n"),
            (None, None) => {
                if let Some(title) = line.strip_prefix("## ") {
                    chapters.push(Chapter { title, blocks: Vec::new() });
                }
            }
        }
    }
    assert!(inside.is_none(), "a block is not closed");
    chapters
}

#[test]
fn every_block_of_the_guide_runs_and_gives_what_it_shows() {
    let (chapters, commands) = check(GUIDE);
    assert!(chapters > 10 && commands >= 4, "{chapters} chapters, {commands} commands");
}

#[test]
fn every_block_of_the_library_runs_and_gives_what_it_shows() {
    let (chapters, _) = check(LIBRARY);
    assert!(chapters >= 5, "{chapters} chapters");
}

/// Runs the blocks of a page; the numbers of chapters and of commands.
fn check(page: &str) -> (usize, usize) {
    let sandbox = Sandbox::with_shared_store().unwrap_or_default();
    let chapters = chapters(page);
    let mut commands = 0;
    for (number, chapter) in chapters.iter().enumerate() {
        let mut examples = String::new();
        for (language, text) in &chapter.blocks {
            match *language {
                "clojure" => match text.strip_prefix("; file: ").and_then(|t| t.split_once('\n')) {
                    // The name's line is not part of the file.
                    Some((name, text)) => sandbox.write(name, text),
                    None => examples += text,
                },
                "console" => commands += console(&sandbox, text),
                other => panic!("{}: a block of {other:?} is not run", chapter.title),
            }
        }
        if !examples.is_empty() {
            let name = format!("chapter-{number}.shf");
            sandbox.write(&name, &examples);
            let output = sandbox.run(&["test", "--no-jit", &name]);
            assert_eq!(output.code, Some(0), "{}\n{output}", chapter.title);
        }
    }
    (chapters.len(), commands)
}

/// Runs the commands of a block; returns their number.
fn console(sandbox: &Sandbox, text: &str) -> usize {
    let mut commands: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("$ sheaf ") {
            Some(command) => commands.push((command, String::new())),
            None => {
                let (_, shown) = commands.last_mut().expect("a command comes first");
                *shown += &format!("{line}\n");
            }
        }
    }
    for (command, shown) in &commands {
        let output = sandbox.run(&command.split_whitespace().collect::<Vec<_>>());
        let said = if output.code == Some(0) { &output.stdout } else { &output.stderr };
        assert_eq!(said.trim_end(), shown.trim_end(), "$ sheaf {command}\n{output}");
    }
    commands.len()
}
