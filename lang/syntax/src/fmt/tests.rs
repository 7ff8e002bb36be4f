//! Layouts, and invariants of formatting: tokens and comments are preserved, formatting is idempotent.

use proptest::prelude::*;

use super::tree::{Kind, Node, Tree};
use super::{DEFAULT_WIDTH, format};
use crate::{Form, Lexer, Sources, SpecialForm, read};

fn formatted(text: &str, width: usize) -> String {
    let mut sources = Sources::default();
    let id = sources.add("test.shf", text);
    format(&sources, id, width).expect("a text that reads")
}

/// The forms of a text, without spans.
fn forms(text: &str) -> Vec<String> {
    let mut sources = Sources::default();
    let id = sources.add("test.shf", text);
    read(&sources, id).expect("a text that reads").iter().map(Form::to_string).collect()
}

fn tokens(text: &str) -> Vec<&str> {
    Lexer::new(text).map(|lexeme| &text[lexeme.start..lexeme.end]).collect()
}

fn comments(text: &str) -> Vec<String> {
    fn of_gap(gap: &super::tree::Gap<'_>, out: &mut Vec<String>) {
        out.extend(gap.comments.iter().map(|comment| comment.text.to_string()));
    }
    fn of_node(node: &Node<'_>, out: &mut Vec<String>) {
        of_gap(&node.gap, out);
        match &node.kind {
            Kind::Text(_) => {}
            Kind::Prefix { items, .. } => items.iter().for_each(|item| of_node(item, out)),
            Kind::Bracket { items, end, .. } => {
                items.iter().for_each(|item| of_node(item, out));
                of_gap(end, out);
            }
        }
    }
    let tree = Tree::parse(text);
    let mut out = Vec::new();
    tree.items.iter().for_each(|item| of_node(item, &mut out));
    of_gap(&tree.end, &mut out);
    out
}

/// Checks the invariants of any text that parses; returns the formatted text.
fn check(text: &str, width: usize) -> String {
    let once = formatted(text, width);
    assert_eq!(tokens(&once), tokens(text), "the tokens of\n{text}\nformatted\n{once}");
    assert_eq!(comments(&once), comments(text), "the comments of\n{text}\nformatted\n{once}");
    assert_eq!(forms(&once), forms(text), "the forms of\n{text}\nformatted\n{once}");
    assert_eq!(formatted(&once, width), once, "formatted twice:\n{text}");
    assert!(
        once.lines().all(|line| once.contains('"') || line == line.trim_end()),
        "blanks at an end\n{once}"
    );
    once
}

fn same(layouts: &[&str]) {
    for text in layouts {
        assert_eq!(check(text, DEFAULT_WIDTH), *text);
    }
}

#[test]
fn good_layouts_stay() {
    same(&[
        "",
        "; only a comment\n",
        "(defn f\n  \"doc\"\n  [x]\n  (let [a 1\n        b 2]\n    (+ a b)))\n",
        "(if (> a b)\n  a\n  b)\n",
        "(repeat [i 3] [acc 0]\n  (+ acc i))\n",
        "(while (< x 3) [x 0]\n  (+ x 1))\n",
        "(with-params [p :l1]\n  (@ x W))\n",
        "(defmacro twice [x]\n  `(do ~x\n       ~x))\n",
        "(map (fn [x]\n       (* x x))\n     xs)\n",
        "(-> x\n    (f 1)\n    (g 2))\n",
        "(cond\n  (> a 1) b\n  :else c)\n",
        "((fn [x]\n   x)\n 5)\n",
        "{:a 1\n :b [1 2\n     3]}\n",
        "'(defn f\n  [x])\n",
        "(map #(* % 2)\n     xs)\n",
        "(f a) ; about f\n;=> 3\n\n(g) ;=> 4\n",
        "(f a ; about a\n   ; about b\n   b\n   ; the end\n   )\n",
        "[ ; about the numbers\n 1 2]\n",
        "[1 2] :bf16\n(g) (h)\n",
        "(use nn :only [linear])\n(use optim)\n",
        "#_(f x) (g #_y z) '#_a b\n",
        "(~ @x ~@x `x 'x)\n",
        "(defn f [x] (* x x))\n",
        "(lib/with-clock [c]\n  (tick c))\n",
        "(print \"two\nlines\" x)\n",
    ]);
}

#[test]
fn white_space_is_settled() {
    let cases = [
        ("(  f   a,b )", "(f a b)\n"),
        ("(f\n  a\n)\n", "(f\n  a)\n"),
        ("(\n f a\nb)", "(f a\n   b)\n"),
        ("\n\n(f)\n\n\n\n(g)\n\n", "(f)\n\n(g)\n"),
        ("(let [a 1]\n\n\n(f a)\n\n)", "(let [a 1]\n\n  (f a))\n"),
        ("' x `  y ~ z ~@ w #_ v u", "'x `y ~z ~@w #_v u\n"),
        ("(f a)(g b)", "(f a) (g b)\n"),
        ("(f a)   ; c  \n", "(f a)   ; c\n"),
        ("(f a);c", "(f a) ;c\n"),
        ("\t(f a)\r\n\t(g)\r\n", "(f a)\n(g)\n"),
        ("(defn f [x]\n      (g x)\n   (h x))", "(defn f [x]\n  (g x)\n  (h x))\n"),
        ("    ;; about f\n    (f)", ";; about f\n(f)\n"),
        ("\u{feff}(f \u{a0} a)", "(f a)\n"),
        ("(let\n[a 1] a)", "(let\n    [a 1] a)\n"),
        ("' ; why\nx", "' ; why\n x\n"),
        ("(f \"a\\n\\d\" 1e-8 +5 .5 :K)", "(f \"a\\n\\d\" 1e-8 +5 .5 :K)\n"),
    ];
    for (text, wanted) in cases {
        assert_eq!(check(text, DEFAULT_WIDTH), wanted, "{text}");
    }
}

#[test]
fn lists_are_divided_where_they_leave_the_line() {
    let cases = [
        ("(defn f [x] (print x))", "(defn f [x]\n  (print x))\n"),
        ("(defn f \"a doc string\" [x] x)", "(defn f\n  \"a doc string\"\n  [x]\n  x)\n"),
        ("(let [a 1 b 2 c 3] (f a))", "(let [a 1 b 2 c 3]\n  (f a))\n"),
        ("(let [alpha 1 beta 2 gamma 3] a)", "(let [alpha 1\n      beta 2\n      gamma 3]\n  a)\n"),
        ("(sum (first x) :axis 1 :keepdims)", "(sum (first x)\n     :axis 1\n     :keepdims)\n"),
        ("{:alpha 1 :beta [1 2] :gamma 3}", "{:alpha 1\n :beta [1 2]\n :gamma 3}\n"),
        ("[1 2 3 4 5 6 7 8 9 10 11 12 13]", "[1 2 3 4 5 6 7 8 9\n 10 11 12 13]\n"),
        ("[[1 2 3 4] [1 2 3 4] [1 2]]", "[[1 2 3 4]\n [1 2 3 4]\n [1 2]]\n"),
        ("(cond (> a b) :more :else :less)", "(cond (> a b) :more\n      :else :less)\n"),
        ("(case x :a 1 :b 2 :c 3 :d 4)", "(case x\n  :a 1\n  :b 2\n  :c 3\n  :d 4)\n"),
        ("(f (g aaaa bbbb) (h cccc))", "(f (g aaaa bbbb)\n   (h cccc))\n"),
        ("(aaaaaaaaa) (bbbbbbbbb)", "(aaaaaaaaa)\n(bbbbbbbbb)\n"),
        ("(f \"a string longer than a line\" x)", "(f \"a string longer than a line\"\n   x)\n"),
    ];
    for (text, wanted) in cases {
        assert_eq!(check(text, 20), wanted, "{text}");
    }
}

#[test]
fn what_does_not_read_is_refused() {
    let mut sources = Sources::default();
    let id = sources.add("test.shf", "(f [1 2)");
    assert_eq!(format(&sources, id, DEFAULT_WIDTH).expect_err("no text that reads").len(), 1);
}

#[test]
fn nesting_to_the_limit_is_no_trouble() {
    let nest = || {
        let depth = crate::NESTING_LIMIT;
        check(&format!("{}x{}", "(f ".repeat(depth), ")".repeat(depth)), DEFAULT_WIDTH);
        check(&format!("{}\n{}", "(f\n".repeat(depth), " x)".repeat(depth)), DEFAULT_WIDTH);
    };
    // The stack size of the commands.
    let thread = std::thread::Builder::new().stack_size(512 << 20).spawn(nest);
    thread.expect("a thread").join().expect("no panic");
}

/// Forms as users may type them, with comments and line breaks anywhere.
fn texts() -> impl Strategy<Value = String> {
    const WORDS: [&str; 12] = [
        "x",
        "alpha",
        "m/def",
        "1",
        "-2.5e3",
        ":k",
        ":axis",
        "\"s\"",
        "\"two\\n\nlines\"",
        "@x",
        "a-very-long-name-of-something",
        "é文字",
    ];
    let gap = || {
        prop_oneof![
            6 => Just(" "), 2 => Just("\n"), 1 => Just("\n\n\n  "), 1 => Just(" , "), 1 => Just("  ; why  \n"),
            1 => Just("\n ;=> 3\n\n"), 1 => Just(";\n;; b\n"),
        ]
    };
    let special = SpecialForm::ALL.iter().map(|form| form.name()).collect::<Vec<_>>();
    let atom = prop::sample::select([WORDS.as_slice(), &special].concat()).prop_map(String::from);
    let form = atom.prop_recursive(5, 60, 6, move |inner| {
        let items = prop::collection::vec((gap(), inner.clone()), 0..6)
            .prop_map(|items| items.into_iter().map(|(gap, item)| format!("{gap}{item}")).collect::<String>());
        prop_oneof![
            6 => (items.clone(), gap()).prop_map(|(items, gap)| format!("({items}{gap})")),
            3 => (items, gap()).prop_map(|(items, gap)| format!("[{items}{gap}]")),
            1 => (gap(), inner.clone(), gap()).prop_map(|(a, form, b)| format!("{{:a{a}{form}{b}}}")),
            1 => (gap(), inner.clone(), inner.clone()).prop_map(|(gap, a, b)| format!("{{:a {a}{gap}:b {b}}}")),
            1 => (prop::sample::select(vec!["'", "`", "~ ", "~@", "~#_y "]), gap(), inner.clone())
                .prop_map(|(prefix, gap, form)| format!("{prefix}{gap}{form}")),
            1 => (gap(), inner.clone(), inner).prop_map(|(gap, a, b)| format!("#_{gap}{a} {b}")),
        ]
    });
    let forms = prop::collection::vec((gap(), form), 0..4);
    (forms, gap()).prop_map(|(forms, end)| {
        forms.into_iter().map(|(gap, form)| format!("{gap}{form}")).collect::<String>() + end
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_keeps_its_forms_and_settles_at_once(text in texts(), width in prop::sample::select(vec![10_usize, 25, 40, 100])) {
        let mut sources = Sources::default();
        let id = sources.add("test.shf", text.clone());
        prop_assume!(read(&sources, id).is_ok());
        check(&text, width);
    }
}
