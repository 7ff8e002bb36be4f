//! Rendered messages.

use proptest::prelude::*;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::render::render;
use sheaf_syntax::{SourceId, Sources, Span};

fn sources(texts: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::default();
    for (name, text) in texts {
        sources.add(*name, *text);
    }
    sources
}

/// The span of the first `part` in source `id`.
fn span(sources: &Sources, id: u32, part: &str) -> Span {
    let source = SourceId::new(id);
    let start = sources.text(source).find(part).expect(part);
    Span { source, start: start as u32, end: (start + part.len()) as u32 }
}

#[test]
fn everything_that_a_message_can_have() {
    let sources = sources(&[
        ("lib/nn.shf", "(defn linear [x W b]\n  (+ (@ x W) b))\n"),
        ("train.shf", "; Größe\n(linear\n  (ones [4 3])\n  \"é\" (ones [2 5]))\n"),
    ]);
    let message = Diagnostic::error("`@` cannot multiply f32[4x3] by f32[2x5]: 3 is not 2")
        .at(span(&sources, 0, "(@ x W)"), "f32[4x3] by f32[2x5]")
        .at(span(&sources, 1, "(linear\n  (ones [4 3])\n  \"é\" (ones [2 5]))"), "called here")
        .at(span(&sources, 1, "(ones [2 5])"), "")
        .note("`x` has 3 columns")
        .note("`W` has 2 rows,\nand 5 columns")
        .help("transpose one of them with `tr`");
    insta::assert_snapshot!(render(&sources, &message, false), @r#"
    error: `@` cannot multiply f32[4x3] by f32[2x5]: 3 is not 2
      ┌─ lib/nn.shf:2:6
      │
    2 │   (+ (@ x W) b))
      │      ^^^^^^^ f32[4x3] by f32[2x5]
      │
      ┌─ train.shf:2:1
      │
    2 │ ╭ (linear
    3 │ │   (ones [4 3])
    4 │ │   "é" (ones [2 5]))
      │ │       ------------
      │ ╰───────────────────' called here
      │
      = `x` has 3 columns
      = `W` has 2 rows,
        and 5 columns
      = help: transpose one of them with `tr`
    "#);
}

#[test]
fn warning_without_a_place() {
    let message = Diagnostic::warning("no compiler and no network: the program is interpreted")
        .help("run `sheaf toolchain install`");
    insta::assert_snapshot!(render(&Sources::default(), &message, false), @r"
    warning: no compiler and no network: the program is interpreted
     = help: run `sheaf toolchain install`
    ");
}

#[test]
fn colours() {
    let sources = sources(&[("a.shf", "(f x)")]);
    let message = Diagnostic::error("unknown name `f`").at(span(&sources, 0, "f"), "here").help("define it");
    let text = render(&sources, &message, true);
    insta::assert_snapshot!(text.replace('\u{1b}', "ESC"), @r"
    ESC[0mESC[1mESC[38;5;9merrorESC[0mESC[1m: unknown name `f`ESC[0m
      ESC[0mESC[36m┌─ESC[0m a.shf:1:2
      ESC[0mESC[36m│ESC[0m
    ESC[0mESC[36m1ESC[0m ESC[0mESC[36m│ESC[0m (ESC[0mESC[31mfESC[0m x)
      ESC[0mESC[36m│ESC[0m  ESC[0mESC[31m^ESC[0m ESC[0mESC[31mhereESC[0m
      ESC[0mESC[36m│ESC[0m
      ESC[0mESC[36m=ESC[0m help: define it
    ");
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain += before;
        rest = after.split_once('m').unwrap().1;
    }
    assert_eq!(plain + rest, render(&sources, &message, false), "colours change nothing else");
}

#[test]
fn a_place_at_the_end_of_the_text() {
    let sources = sources(&[("a.shf", "(f\n")]);
    let message = Diagnostic::error("more was expected")
        .at(Span { source: SourceId::new(0), start: 3, end: 3 }, "here");
    insta::assert_snapshot!(render(&sources, &message, false), @r"
    error: more was expected
      ┌─ a.shf:2:1
      │
    2 │
      │ ^ here
    ");
}

#[test]
fn lines_that_are_data_are_not_shown() {
    let sources = sources(&[("data.shf", &format!("(def x\n '[{} oops])", "1 ".repeat(2000)))]);
    let message =
        Diagnostic::error("unknown name `oops`").at(span(&sources, 0, "oops"), "not defined").help("fix");
    insta::assert_snapshot!(render(&sources, &message, false), @r"
    error: unknown name `oops`
      data.shf:2:4005: not defined
      = help: fix
    ");
}

#[test]
fn faulty_places_do_not_hide_the_message() {
    let sources = sources(&[("a.shf", "é(f x)")]);
    let place = |source, start, end| Span { source: SourceId::new(source), start, end };
    let message = Diagnostic::error("wrong")
        .at(place(7, 0, 1), "unknown source")
        .at(place(0, 1, 1), "within a character")
        .at(place(0, 5, 2), "backwards")
        .at(place(0, 900, 1000), "beyond the end");
    insta::assert_snapshot!(render(&sources, &message, false), @r"
    error: wrong
      ┌─ a.shf:1:1
      │
    1 │ é(f x)
      │ ^   - - beyond the end
      │ │   │
      │ │   backwards
      │ within a character
    ");
}

proptest! {
    #[test]
    fn any_place_renders(
        text in "([a-z(é\u{3000}\r\n\t\0]{0,40}\n?){0,4}",
        places in prop::collection::vec((0u32..3, 0u32..120, 0u32..120), 0..4),
        note in any::<String>(),
    ) {
        let sources = sources(&[("a", &text), ("b", "")]);
        let mut message = Diagnostic::error(note.clone()).note(note.clone());
        for (source, start, end) in places {
            message = message.at(Span { source: SourceId::new(source), start, end }, note.clone());
        }
        let once = render(&sources, &message, false);
        prop_assert!(once.starts_with("error"));
        prop_assert_eq!(once, render(&sources, &message, false));
        render(&sources, &message, true);
    }
}
