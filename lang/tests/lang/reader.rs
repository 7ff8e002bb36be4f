//! The reader: every kind of form, every error, and degenerate texts.

use proptest::prelude::*;
use sheaf_syntax::render::render;
use sheaf_syntax::{Bracket, Form, FormKind, NESTING_LIMIT, SourceId, Sources, Span, read};

fn forms(text: &str) -> Vec<Form> {
    let mut sources = Sources::default();
    let id = sources.add("test.shf", text);
    read(&sources, id).unwrap_or_else(|errors| panic!("{text:?}: {errors:#?}"))
}

/// The forms read, printed again.
fn shown(text: &str) -> String {
    forms(text).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn kind(text: &str) -> FormKind {
    let mut forms = forms(text);
    assert_eq!(forms.len(), 1, "{text:?}");
    forms.remove(0).kind
}

/// All errors, rendered.
fn errors(text: &str) -> String {
    let mut sources = Sources::default();
    let id = sources.add("test.shf", text);
    match read(&sources, id) {
        Ok(forms) => panic!("{text:?} reads as {forms:?}"),
        Err(errors) => errors.iter().map(|e| render(&sources, e, false)).collect(),
    }
}

/// The messages alone, one per line.
fn messages(text: &str) -> Vec<String> {
    let mut sources = Sources::default();
    let id = sources.add("test.shf", text);
    read(&sources, id).expect_err(text).into_iter().map(|e| e.message).collect()
}

fn same(a: &Form, b: &Form) -> bool {
    match (&a.kind, &b.kind) {
        (FormKind::Nil, FormKind::Nil) => true,
        (FormKind::Bool(a), FormKind::Bool(b)) => a == b,
        (FormKind::Int(a), FormKind::Int(b)) => a == b,
        (FormKind::Float(a), FormKind::Float(b)) => a.to_bits() == b.to_bits(),
        (FormKind::Str(a), FormKind::Str(b)) => a == b,
        (FormKind::Keyword(a), FormKind::Keyword(b)) | (FormKind::Symbol(a), FormKind::Symbol(b)) => a == b,
        (FormKind::Range(a, b), FormKind::Range(c, d)) => (a, b) == (c, d),
        (FormKind::List(a, x), FormKind::List(b, y)) => {
            a == b && x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        (FormKind::Dict(x), FormKind::Dict(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(&x.0, &y.0) && same(&x.1, &y.1))
        }
        _ => false,
    }
}

#[test]
fn integers() {
    for (text, value) in [
        ("42", 42),
        ("-7", -7),
        ("+3", 3),
        ("-0", 0),
        ("007", 7),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
    ] {
        assert!(matches!(kind(text), FormKind::Int(n) if n == value), "{text}");
    }
}

#[test]
fn floats() {
    for (text, value) in [
        ("3.5", 3.5),
        ("1e-8", 1e-8),
        ("1E3", 1000.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("+0.25", 0.25),
        ("1e308", 1e308),
        ("1e-999", 0.0),
    ] {
        assert!(matches!(kind(text), FormKind::Float(x) if x.to_bits() == f64::to_bits(value)), "{text}");
    }
    assert!(matches!(kind("-0.0"), FormKind::Float(x) if x.to_bits() == (-0.0f64).to_bits()));
}

#[test]
fn ranges() {
    assert!(matches!(kind("100:200"), FormKind::Range(100, 200)));
    assert!(matches!(kind("-5:-1"), FormKind::Range(-5, -1)));
    assert_eq!(shown("(data 0:10)"), "(data 0:10)");
    assert!(matches!(kind("a:b"), FormKind::Symbol(s) if s == "a:b"));
}

#[test]
fn constants_and_names() {
    assert!(matches!(kind("true"), FormKind::Bool(true)));
    assert!(matches!(kind("false"), FormKind::Bool(false)));
    assert!(matches!(kind("nil"), FormKind::Nil));
    for name in [
        "a-b", "+", "-", "**", "//", "top_k", "empty?", "lib/fn", "->", "->>", "->x", ".", "...", "&", "x'",
        "%", "@", "=", "!=", "<=", "#x", "nan", "inf", "-inf", "-.x", "true?", "été", "λ", "γ₁",
    ] {
        assert!(matches!(kind(name), FormKind::Symbol(s) if s == name), "{name}");
    }
    for name in [":W", ":layer-1", ":a/b", ":2d", ":é", ":keys", ":1:2"] {
        assert!(matches!(kind(name), FormKind::Keyword(s) if s == name[1..]), "{name}");
    }
}

#[test]
fn strings() {
    for (text, value) in [
        (r#""""#, ""),
        (r#""a\n\t\"\\""#, "a\n\t\"\\"),
        (r#""\d+\é\r""#, r"\d+\é\r"),
        ("\"two\nlines\"", "two\nlines"),
        (r#""; no (comment""#, "; no (comment"),
        ("\"été ∂\"", "été ∂"),
    ] {
        assert!(matches!(kind(text), FormKind::Str(s) if &*s == value), "{text}");
    }
    assert_eq!(shown(r#""a\n\t\"\\\d""#), r#""a\n\t\"\\\\d""#);
}

#[test]
fn lists_vectors_dicts() {
    assert_eq!(shown("(f a b) [a b] () [] {}"), "(f a b) [a b] () [] {}");
    assert_eq!(shown("{:a 1, \"b\" [2 3] c {:d 4}}"), "{:a 1 \"b\" [2 3] c {:d 4}}");
    assert_eq!(shown("{:k 1 k 2}"), "{:k 1 k 2}", "a keyword and a symbol are different keys");
    assert_eq!(shown("`{~k ~v}"), "`{~k ~v}");
    assert_eq!(shown("f(a)[b]\"c\"d"), "f (a) [b] \"c\" d");
}

#[test]
fn white_space() {
    assert_eq!(shown("[1,2, 3]\r\n\t(a\u{a0}b)\u{3000}c\u{c}d"), "[1 2 3] (a b) c d");
    assert_eq!(shown("\u{feff}(a) ; end"), "(a)");
    assert_eq!(shown("a;b (\nc"), "a c");
    assert!(forms("").is_empty());
    assert!(forms(" \n; nothing").is_empty());
}

#[test]
fn prefixes() {
    assert_eq!(shown("'x `(a ~b ~@c) ~ @d"), "'x `(a ~b ~@c) (unquote @d)");
    let FormKind::List(Bracket::Round, items) = kind("' x") else { panic!() };
    assert!(items[0].is_symbol("quote") && items[1].is_symbol("x"));
    assert_eq!(shown("(quote x) (quasiquote x) (unquote x) (unquote-splicing x)"), "'x `x ~x ~@x");
    assert_eq!(shown("(quote) (quote a b) [quote a] ''a"), "(quote) (quote a b) [quote a] ''a");
}

#[test]
fn dropped_forms() {
    assert_eq!(shown("(a #_ b c) #_(d (e)) f"), "(a c) f");
    assert_eq!(shown("#_ #_ a b c"), "c");
    assert_eq!(shown("'#_a b"), "'b");
    assert_eq!(shown("[1 #_'x]"), "[1]");
    assert_eq!(shown("{:a #_ 1 2 #_ :b}"), "{:a 2}");
}

#[test]
fn every_form_knows_its_place() {
    let text = "; é\n(f 'x\n  {:a \"é\\n\"} 1:2)";
    let forms = forms(text);
    let place = |form: &Form| &text[form.span.start as usize..form.span.end as usize];
    assert_eq!(place(&forms[0]), "(f 'x\n  {:a \"é\\n\"} 1:2)");
    let items = forms[0].items(Bracket::Round).unwrap();
    assert_eq!(items.iter().map(place).collect::<Vec<_>>(), ["f", "'x", "{:a \"é\\n\"}", "1:2"]);
    let quoted = items[1].items(Bracket::Round).unwrap();
    assert_eq!(quoted.iter().map(place).collect::<Vec<_>>(), ["'", "x"]);
    let FormKind::Dict(entries) = &items[2].kind else { panic!() };
    assert_eq!((place(&entries[0].0), place(&entries[0].1)), (":a", "\"é\\n\""));
    let mut sources = Sources::default();
    let id = sources.add("t", text);
    assert_eq!(sources.position(entries[0].1.span), (3, 7));
    assert_eq!(sources.position(Span { source: id, start: 3, end: 3 }), (1, 3), "within a character");
    assert_eq!(sources.position(Span { source: id, start: 9999, end: 9999 }), (3, 18), "beyond the end");
}

#[test]
fn several_independent_errors_are_told_together() {
    assert_eq!(
        messages("(a 1x)\n(b {:k})\n(c ])\n(d : 1e999)"),
        [
            "`1x` is no number",
            "a dictionary needs a value for each key",
            "expected `)` to close `(`, found `]`",
            "`:` has no name after it",
            "1e999 does not fit a float",
        ]
    );
}

#[test]
fn what_follows_from_an_error_is_not_told() {
    assert_eq!(messages("(a [b) c]) d)").len(), 1);
    assert_eq!(messages("(let [x (f 1] {:a)\n  x)\n(g])").len(), 2);
    assert_eq!(messages(")))").len(), 1);
    assert_eq!(messages("((( \"never closed )))").len(), 1);
}

#[test]
fn errors_stop_somewhere() {
    assert_eq!(messages(&"1x ".repeat(1000)).len(), 20);
    assert_eq!(messages(&format!("{{{}}}", "1 2 ".repeat(1000))).len(), 20);
}

#[test]
fn functions_in_short() {
    assert_eq!(shown("#(f % 1)"), "(fn [%1] (f %1 1))");
    assert_eq!(shown("#(f %2 {:a %&})"), "(fn [%1 %2 & %&] (f %2 {:a %&}))");
    assert_eq!(shown("#(% % [% 3]) '#(g)"), "(fn [%1] (% %1 [%1 3])) '(fn [] (g))");
    assert_eq!(shown("#(f %0 %x a%) # (f)"), "(fn [] (f %0 %x a%)) # (f)");
    assert_eq!(messages("#(f #(g %))"), ["`#(...)` stands inside another `#(...)`"]);
    assert_eq!(messages("#(f %20 %21)"), ["`#(...)` has arguments %1 to %20"]);
}

#[test]
fn large_dictionaries_find_duplicates() {
    let entries: Vec<String> = (0..10_000).map(|i| format!(":k{i} {i}")).collect();
    let dict = entries.join(" ");
    assert_eq!(forms(&format!("{{{dict}}}")).len(), 1);
    assert_eq!(
        messages(&format!("{{{dict} \"k77\" 0}}")),
        ["the key `\"k77\"` occurs twice in one dictionary"]
    );
}

#[test]
fn depth_has_a_limit() {
    let nested = |open: &str, close: &str, n: usize| open.repeat(n) + "x" + &close.repeat(n);
    for (open, close) in [("(", ")"), ("[", "]"), ("{:a ", "}"), ("'", ""), ("~@", "")] {
        let forms = forms(&nested(open, close, NESTING_LIMIT));
        assert_eq!(forms[0].clone().to_string(), nested(open, close, NESTING_LIMIT));
        for n in [NESTING_LIMIT + 1, 1_000_000] {
            assert_eq!(messages(&nested(open, close, n)), ["forms are nested more than 1000 deep"]);
        }
    }
    assert_eq!(messages(&nested("#_ ", "", 1_000_000)), ["forms are nested more than 1000 deep"]);
}

#[test]
fn error_bracket_left_open() {
    insta::assert_snapshot!(errors("(defn f [x]\n  (let [y (+ x 1)]\n    (* y y))\n"), @r"
    error: `(` is never closed
      ┌─ test.shf:1:1
      │
    1 │ (defn f [x]
      │ ^ `(` is opened here
      │
      = help: add `)` where the form ends
    ");
    insta::assert_snapshot!(errors("(defn f [x]\n  (+ x 1)\n\n(defn g [x]\n  (f x))\n"), @r"
    error: `(` is never closed
      ┌─ test.shf:1:1
      │
    1 │ (defn f [x]
      │ ^ `(` is opened here
      ·
    4 │ (defn g [x]
      │ - this form starts a line, as if nothing were open
      │
      = help: if a new form is meant to begin there, add `)` before it
    ");
    insta::assert_snapshot!(errors("(a [b {:c (d"), @r"
    error: 4 brackets are never closed
      ┌─ test.shf:1:11
      │
    1 │ (a [b {:c (d
      │ -  -  -   ^ `(` is opened here
      │ │  │  │
      │ │  │  `{` is opened here
      │ │  `[` is opened here
      │ `(` is opened here
      │
      = help: add `)}])` where the form ends
    ");
    insta::assert_snapshot!(errors(&"(".repeat(30)), @r"
    error: 30 brackets are never closed
      ┌─ test.shf:1:30
      │
    1 │ ((((((((((((((((((((((((((((((
      │                           ---^ `(` is opened here
      │                           │││
      │                           ││`(` is opened here
      │                           │`(` is opened here
      │                           `(` is opened here
      │
      = 26 more are open around these
      = help: close each where its form ends
    ");
}

#[test]
fn error_brackets_that_do_not_match() {
    insta::assert_snapshot!(errors("(let [x (f 1]\n  x)"), @r"
    error: expected `)` to close `(`, found `]`
      ┌─ test.shf:1:13
      │
    1 │ (let [x (f 1]
      │      -  -   ^ expected `)` before this
      │      │  │
      │      │  `(` is open since here
      │      `]` would close this
      │
      = help: put `)` where the form that `(` opens ends
    ");
    insta::assert_snapshot!(errors("(f [1 2 3)\n"), @r"
    error: expected `]` to close `[`, found `)`
      ┌─ test.shf:1:10
      │
    1 │ (f [1 2 3)
      │ -  -     ^ expected `]` before this
      │ │  │
      │ │  `[` is open since here
      │ `)` would close this
      │
      = help: put `]` where the form that `[` opens ends
    ");
    insta::assert_snapshot!(errors("(f 1 2]"), @r"
    error: expected `)` to close `(`, found `]`
      ┌─ test.shf:1:7
      │
    1 │ (f 1 2]
      │ -     ^ expected `)` before this
      │ │
      │ `(` is open since here
      │
      = help: replace `]` by `)`
    ");
    insta::assert_snapshot!(errors("(f 1 2))\n"), @r"
    error: `)` closes nothing
      ┌─ test.shf:1:8
      │
    1 │ (f 1 2))
      │        ^ no bracket is open here
      │
      = help: remove it, or look for a `)` too many before it
    ");
}

#[test]
fn error_strings() {
    insta::assert_snapshot!(errors("(print \"loss)\n(print 1)\n"), @r#"
    error: a string is never closed
      ┌─ test.shf:1:8
      │
    1 │ (print "loss)
      │        ^ it begins here
      │
      = help: end it with `"`; a quote inside a string is written `\"`
    "#);
    insta::assert_snapshot!(errors("\"a\\"), @r#"
    error: a string is never closed
      ┌─ test.shf:1:1
      │
    1 │ "a\
      │ ^ it begins here
      │
      = help: end it with `"`; a quote inside a string is written `\"`
    "#);
}

#[test]
fn error_numbers() {
    insta::assert_snapshot!(errors("(f 99999999999999999999 1.2.3 0x10 0:n -1:99999999999999999999 -1e999 :)"), @r"
    error: 99999999999999999999 does not fit a 64-bit integer
      ┌─ test.shf:1:4
      │
    1 │ (f 99999999999999999999 1.2.3 0x10 0:n -1:99999999999999999999 -1e999 :)
      │    ^^^^^^^^^^^^^^^^^^^^ the limits are -9223372036854775808 and 9223372036854775807
      │
      = help: write a larger number as a float, with a point or an exponent: `1e19`

    error: `1.2.3` is no number
      ┌─ test.shf:1:25
      │
    1 │ (f 99999999999999999999 1.2.3 0x10 0:n -1:99999999999999999999 -1e999 :)
      │                         ^^^^^ names do not start like a number
      │
      = help: numbers are written `42`, `-7`, `3.5` or `1e-8`

    error: `0x10` is no number
      ┌─ test.shf:1:31
      │
    1 │ (f 99999999999999999999 1.2.3 0x10 0:n -1:99999999999999999999 -1e999 :)
      │                               ^^^^ names do not start like a number
      │
      = help: numbers are written `42`, `-7`, `3.5` or `1e-8`

    error: `0:n` is no range
      ┌─ test.shf:1:36
      │
    1 │ (f 99999999999999999999 1.2.3 0x10 0:n -1:99999999999999999999 -1e999 :)
      │                                    ^^^ both ends must be whole numbers, as in `100:200`
      │
      = help: for other bounds use `(slice data start end)`

    error: -1:99999999999999999999 does not fit a 64-bit integer
      ┌─ test.shf:1:40
      │
    1 │ (f 99999999999999999999 1.2.3 0x10 0:n -1:99999999999999999999 -1e999 :)
      │                                        ^^^^^^^^^^^^^^^^^^^^^^^ the limits are -9223372036854775808 and 9223372036854775807
      │
      = help: write a larger number as a float, with a point or an exponent: `1e19`

    error: -1e999 does not fit a float
      ┌─ test.shf:1:64
      │
    1 │ (f 99999999999999999999 1.2.3 0x10 0:n -1:99999999999999999999 -1e999 :)
      │                                                                ^^^^^^ the limit is about 1.8e308
      │
      = help: for infinity write `(/ 1.0 0.0)`

    error: `:` has no name after it
      ┌─ test.shf:1:71
      │
    1 │ (f 99999999999999999999 1.2.3 0x10 0:n -1:99999999999999999999 -1e999 :)
      │                                                                       ^ a keyword is written `:name`
      │
      = help: write the name right after the colon; the body of a form stands inside of its brackets, after no colon
    ");
}

#[test]
fn error_dictionaries() {
    insta::assert_snapshot!(errors("{:a 1 :b}"), @r"
    error: a dictionary needs a value for each key
      ┌─ test.shf:1:7
      │
    1 │ {:a 1 :b}
      │ ------^^-
      │ │     │
      │ │     this key has no value
      │ in this dictionary
      │
      = help: write `{key value ...}`
    ");
    insta::assert_snapshot!(errors("{:a 1\n \"a\" 2}"), @r#"
    error: the key `"a"` occurs twice in one dictionary
      ┌─ test.shf:2:2
      │
    1 │ {:a 1
      │  -- first here
    2 │  "a" 2}
      │  ^^^ here again
      │
      = help: remove one of them; `:k` and `"k"` are the same key
    "#);
    insta::assert_snapshot!(errors("{1 2 (f x) 3}"), @r"
    error: a dictionary key is a keyword, a string or a symbol
      ┌─ test.shf:1:2
      │
    1 │ {1 2 (f x) 3}
      │  ^ found this
      │
      = help: write a keyword such as `:name`; `(dict ...)` and `assoc` take keys that are computed

    error: a dictionary key is a keyword, a string or a symbol
      ┌─ test.shf:1:6
      │
    1 │ {1 2 (f x) 3}
      │      ^^^^^ found this
      │
      = help: write a keyword such as `:name`; `(dict ...)` and `assoc` take keys that are computed
    ");
}

#[test]
fn error_prefixes() {
    insta::assert_snapshot!(errors("(f ') #_"), @r"
    error: `'` has nothing after it to quote
      ┌─ test.shf:1:4
      │
    1 │ (f ') #_
      │    ^ a form must follow
      │
      = help: write the form, or remove `'`

    error: `#_` has nothing after it to drop
      ┌─ test.shf:1:7
      │
    1 │ (f ') #_
      │       ^^ a form must follow
      │
      = help: write the form, or remove `#_`
    ");
    insta::assert_snapshot!(errors("{:a '} ~@"), @r"
    error: `'` has nothing after it to quote
      ┌─ test.shf:1:5
      │
    1 │ {:a '} ~@
      │     ^ a form must follow
      │
      = help: write the form, or remove `'`

    error: `~@` has nothing after it to splice
      ┌─ test.shf:1:8
      │
    1 │ {:a '} ~@
      │        ^^ a form must follow
      │
      = help: write the form, or remove `~@`
    ");
}

/// Texts that resemble programs.
fn program_like() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "\\",
        "'",
        "`",
        "~",
        "~@",
        "#_",
        "#",
        ";",
        "\n",
        " ",
        ",",
        ":",
        ":a",
        "a",
        "-",
        "+",
        ".",
        "1",
        "99",
        "1e",
        "e9",
        "99999999999",
        "é",
        "\u{a0}",
        "\u{feff}",
        "\0",
        "nil",
        "\r\n",
        "(quote",
        "unquote ",
        "@",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Reads, and if that succeeds, prints and reads again.
fn check_any(text: &str) {
    let mut sources = Sources::default();
    let id = sources.add("any", text);
    match read(&sources, id) {
        Ok(forms) => {
            let printed = forms.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            let again = self::forms(&printed);
            assert_eq!(forms.len(), again.len(), "{printed}");
            for (a, b) in forms.iter().zip(&again) {
                assert!(same(a, b), "{a} {b}");
                check_span(text, a);
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in &errors {
                assert!(!error.labels.is_empty() && error.help.is_some(), "{error:?}");
                for label in &error.labels {
                    let (start, end) = (label.span.start as usize, label.span.end as usize);
                    assert!(start < end && text.get(start..end).is_some(), "{text:?} {error:?}");
                }
                render(&sources, error, true);
            }
        }
    }
}

/// Spans lie on character boundaries, and within the span of their parent.
fn check_span(text: &str, form: &Form) {
    let (start, end) = (form.span.start, form.span.end);
    assert!(text.get(start as usize..end as usize).is_some_and(|t| !t.is_empty()));
    let check = |inner: &Form| {
        assert!(start <= inner.span.start && inner.span.end <= end);
        check_span(text, inner);
    };
    match &form.kind {
        FormKind::List(_, items) => items.iter().for_each(check),
        FormKind::Dict(entries) => entries.iter().flat_map(|(k, v)| [k, v]).for_each(check),
        _ => {}
    }
}

fn any_form() -> impl Strategy<Value = Form> {
    let name =
        prop_oneof!["[a-z@][a-z0-9/?*'`~#:-]{0,6}", "quote|unquote|unquote-splicing|quasiquote|@a|\\+|->"]
            .prop_filter("constants", |n| !matches!(n.as_str(), "nil" | "true" | "false"));
    let leaf = prop_oneof![
        Just(FormKind::Nil),
        any::<bool>().prop_map(FormKind::Bool),
        any::<i64>().prop_map(FormKind::Int),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(FormKind::Float),
        any::<String>().prop_map(|s| FormKind::Str(s.into())),
        "[^\\s,;\"(){}\\[\\]\u{feff}\u{200b}]{1,5}".prop_map(|s| FormKind::Keyword(s.as_str().into())),
        name.prop_map(|s| FormKind::Symbol(s.as_str().into())),
        any::<(i64, i64)>().prop_map(|(a, b)| FormKind::Range(a, b)),
    ]
    .prop_map(form);
    leaf.prop_recursive(5, 60, 6, |inner| {
        let bracket = prop_oneof![Just(Bracket::Round), Just(Bracket::Square)];
        prop_oneof![
            (bracket, prop::collection::vec(inner.clone(), 0..6))
                .prop_map(|(bracket, items)| form(FormKind::List(bracket, items))),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4).prop_map(|entries| {
                let key = |k: String| form(FormKind::Keyword(k.as_str().into()));
                form(FormKind::Dict(entries.into_iter().map(|(k, v)| (key(k), v)).collect()))
            }),
        ]
    })
}

fn form(kind: FormKind) -> Form {
    Form { kind, span: Span { source: SourceId::new(0), start: 0, end: 0 } }
}

proptest! {
    #[test]
    fn any_text_reads_or_is_refused(text in any::<String>()) {
        check_any(&text);
    }

    #[test]
    fn any_program_like_text_reads_or_is_refused(text in program_like()) {
        check_any(&text);
    }

    #[test]
    fn printed_forms_read_as_themselves(form in any_form()) {
        let again = forms(&form.to_string());
        prop_assert_eq!(again.len(), 1);
        prop_assert!(same(&form, &again[0]), "{} {}", form, again[0]);
    }
}
