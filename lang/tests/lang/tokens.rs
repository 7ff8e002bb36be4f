//! Tokenizers: tiny vocabularies made by hand. `tests/tests/tokenizers.rs` has real ones.

use crate::data::check_in;
use crate::support::{World, compiling, run_in, run_with};
use sheaf_lang::eval::Jit;

const VOCABULARY: &str =
    r#"{"l":0,"o":1,"w":2,"e":3,"r":4,"Ġ":5,"lo":6,"low":7,"er":8,"Ġlow":9,"<|endoftext|>":10}"#;
const MERGES: &str = "#version: 0.2\nl o\nlo w\ne r\nĠ low\n";
const PIECES: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nplay\n##ing\n##ed\nthe\n,\ncafe\n";

fn world() -> World {
    let whole = r#"{"version":"1.0","added_tokens":[],"normalizer":{"type":"Lowercase"},"pre_tokenizer":{"type":"Whitespace"},
        "model":{"type":"WordLevel","unk_token":"?","vocab":{"?":0,"a":1,"rose":2,"is":3}}}"#;
    World::with(&[
        ("gpt/vocab.json", VOCABULARY),
        ("gpt/merges.txt", MERGES),
        ("old/encoder.json", VOCABULARY),
        ("old/vocab.bpe", MERGES),
        ("bert/vocab.txt", PIECES),
        ("cased/vocab.txt", PIECES),
        ("cased/tokenizer_config.json", r#"{"do_lower_case": false}"#),
        ("whole/tokenizer.json", whole),
        ("whole/vocab.txt", "unused"),
        ("bad/tokenizer.json", "{\"model\": 3}"),
        ("bad/vocab.txt", "one\ntwo\n"),
        ("bad/vocab.json", VOCABULARY),
        ("bad/merges.txt", "l o w\n"),
        ("lone/vocab.json", VOCABULARY),
        ("nan/tokenizer.json", "NaN"),
    ])
}

#[test]
fn tokenizers_of_every_kind() {
    check_in(
        &world(),
        &[
            ("(tokenizer-load \"gpt\")", "=> <tokenizer of 11 tokens gpt/vocab.json>"),
            ("(encode (tokenizer-load \"gpt\") \"low lower\")", "=> tensor i32[3] = [7 9 8]"),
            ("(encode (tokenizer-load \"gpt/merges.txt\") \"low lower\")", "=> tensor i32[3] = [7 9 8]"),
            ("(encode (tokenizer-load \"old\") \"low lower\")", "=> tensor i32[3] = [7 9 8]"),
            ("(encode (tokenizer-load \"old/encoder.json\") \"low lower\")", "=> tensor i32[3] = [7 9 8]"),
            (
                "(encode (tokenizer-load \"gpt/vocab.json\" \"old/vocab.bpe\") \"low\")",
                "=> tensor i32[1] = [7]",
            ),
            (
                "(encode (tokenizer-load \"old/vocab.bpe\" \"gpt/vocab.json\") \"low\")",
                "=> tensor i32[1] = [7]",
            ),
            ("(encode (tokenizer-load \"gpt\") \"low<|endoftext|>\")", "=> tensor i32[2] = [ 7 10]"),
            ("(encode (tokenizer-load \"gpt\") \"\")", "=> tensor i32[0] = []"),
            ("(decode (tokenizer-load \"gpt\") [7 9 8])", "=> \"low lower\""),
            ("(decode (tokenizer-load \"gpt\") '[7 10])", "=> \"low\""),
            ("(decode (tokenizer-load \"gpt\") '[7 10] :special true)", "=> \"low<|endoftext|>\""),
            ("(tokenizer-special (tokenizer-load \"gpt\"))", "=> {\"<|endoftext|>\" 10}"),
            (
                "(let [t (tokenizer-load \"gpt\")] (list (tokenizer-size t) (tokenizer-id t \"Ġlow\") (tokenizer-token t 9) (tokenizer-id t \"x\") (tokenizer-token t 99)))",
                "=> '[11 9 Ġlow nil nil]",
            ),
            (
                "(encode (tokenizer-load \"bert\") \"Playing the café\")",
                "=> tensor i32[6] = [ 2  5  6  8 10  3]",
            ),
            (
                "(encode (tokenizer-load \"bert\") \"played, x\" :special false)",
                "=> tensor i32[4] = [5 7 9 1]",
            ),
            ("(encode (tokenizer-load \"cased/vocab.txt\") \"Playing\")", "=> tensor i32[3] = [2 1 3]"),
            ("(decode (tokenizer-load \"bert\") [2 5 6 8 3])", "=> \"playing the\""),
            (
                "(tokenizer-special (tokenizer-load \"bert\"))",
                "=> {\"[PAD]\" 0 \"[UNK]\" 1 \"[CLS]\" 2 \"[SEP]\" 3 \"[MASK]\" 4}",
            ),
            ("(encode (tokenizer-load \"whole\") \"A rose is a rose\")", "=> tensor i32[5] = [1 2 3 1 2]"),
            ("(decode (tokenizer-load \"whole/tokenizer.json\") [1 2])", "=> \"a rose\""),
            ("(use text :as t) (t/encode (t/tokenizer-load \"whole\") \"rose\")", "=> tensor i32[1] = [2]"),
        ],
    );
}

#[test]
fn what_is_no_tokenizer() {
    let programs = [
        "(tokenizer-load \"bad/tokenizer.json\")",
        "(tokenizer-load \"nan\")",
        "(tokenizer-load \"bad/vocab.txt\")",
        "(tokenizer-load \"bad/vocab.json\")",
        "(tokenizer-load \"lone\")",
        "(tokenizer-load \"lone/vocab.json\")",
        "(tokenizer-load \"nowhere\")",
        "(tokenizer-load 3)",
        "(tokenizer-load \"a\" \"b\" \"c\")",
        "(encode (tokenizer-load \"gpt\") 3)",
        "(encode \"low\" \"low\")",
        "(decode (tokenizer-load \"gpt\") [11])",
        "(decode (tokenizer-load \"gpt\") [-1])",
        "(decode (tokenizer-load \"gpt\") [0.5])",
        "(decode (tokenizer-load \"gpt\") [[1 2]])",
        "(io \"save\" \"t.safetensors\" {:t (tokenizer-load \"gpt\")})",
        "(encode (char-tokenizer \"abc\") \"abcd\")",
        "(decode (char-tokenizer \"abc\") [3])",
    ];
    // Without the lines of the library, which move.
    let message = |program: &&str| {
        let shown = run_in(&world(), program);
        let lines = shown.lines().filter(|line| line.starts_with("error:") || line.contains("= help:"));
        lines.map(|line| format!("{}\n", line.trim())).collect::<String>()
    };
    insta::assert_snapshot!(programs.iter().map(message).collect::<Vec<_>>().join("\n"));
}

#[test]
fn text_is_encoded_while_tracing() {
    let (mut interp, own, log) = compiling(Jit::Always);
    own.files.borrow_mut().extend(world().files.take());
    let program = "(def t (tokenizer-load \"gpt\")) (defn embed [table text] (sum (get table (encode t text)) :axis 0)) \
                   (embed (reshape (* 1.0 (arange 22)) '[11 2]) \"low lower\")";
    assert_eq!(run_with(&mut interp, &own, program), "=> tensor f32[2] = [48. 51.]");
    assert_eq!(log.borrow().units.len(), 1);
}
