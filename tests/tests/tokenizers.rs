//! Tokenizers of published models, which `scripts/fetch-gpt2-tokens` and `scripts/fetch-minilm` fetch.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use sheaf_engine::{Module, Session};
use sheaf_lang::eval::Jit;
use sheaf_tests::{Sandbox, skip};

/// Results of the package gpt-3-encoder, in JavaScript.
const GPT2: [(&str, &[i32]); 6] = [
    ("Hello, world!", &[15496, 11, 995, 0]),
    ("  two  spaces\n\n\tand a tab ", &[220, 734, 220, 9029, 628, 197, 392, 257, 7400, 220]),
    ("don't we'll I'M", &[9099, 470, 356, 1183, 314, 6, 44]),
    (
        "naïve café — “quoted” 東京 🙂",
        &[2616, 38776, 40304, 851, 564, 250, 421, 5191, 447, 251, 10545, 251, 109, 12859, 105, 32485],
    ),
    ("1234567 3.14159 x_y==z", &[10163, 2231, 3134, 513, 13, 1415, 19707, 2124, 62, 88, 855, 89]),
    ("supercalifragilisticexpialidocious", &[16668, 9948, 361, 22562, 346, 396, 501, 42372, 498, 312, 32346]),
];

const SENTENCES: [&str; 5] = [
    "Hello, world!",
    "The quick brown foxes' jumping -- over 13 lazy dogs?",
    "Embeddings of sentences: unaffable tokenization (word-pieces)",
    "supercalifragilisticexpialidocious x1y2z3",
    "",
];

/// A folder of `.data/`, unless the files of `fetch` are not there.
fn folder(name: &str, fetch: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    skip(&format!("there is no {name}: run scripts/{fetch}"));
    None
}

fn load(sandbox: &Sandbox, program: &str) -> Module {
    let home = sandbox.home().display().to_string();
    let session = Session::builder()
        .environment(move |name| (name == "SHEAF_HOME").then(|| home.clone()))
        .project(sandbox.path(""))
        .jit(Jit::Never)
        .build();
    session.and_then(|session| session.load_text("tokens.shf", program)).expect("a program")
}

fn ids(module: &Module, function: &str, text: &str) -> Vec<i32> {
    let function = module.function(function).expect("a function");
    let ids = function.call(&[text.into()]).expect("tokens");
    ids.elements::<i32>().expect("integers").to_vec()
}

#[test]
fn gpt2() {
    let Some(folder) = folder(".data/gpt2", "fetch-gpt2-tokens") else { return };
    let sandbox = Sandbox::new();
    let program = format!(
        "(def t (tokenizer-load \"{}\")) (defn tokens [text] (encode t text)) (defn back [text] (decode t (encode t text)))
         (def facts (str (list (tokenizer-size t) (tokenizer-id t \"<|endoftext|>\") (tokenizer-token t 995))))",
        folder.display()
    );
    let module = load(&sandbox, &program);
    for (text, wanted) in GPT2 {
        assert_eq!(ids(&module, "tokens", text), wanted, "{text:?}");
        let back = module.function("back").expect("a function").call(&[text.into()]).expect("text");
        assert_eq!(back.as_str(), Some(text));
    }
    assert_eq!(module.value("facts").expect("a value").as_str(), Some("[50257 50256 Ġworld]"));
}

/// The word pieces of BERT for lower-case ASCII: the longest piece that fits, again and again.
fn word_pieces(vocabulary: &HashMap<String, i32>, text: &str) -> Vec<i32> {
    let mut words = vec![String::new()];
    for c in text.to_lowercase().chars() {
        match c {
            c if c.is_ascii_punctuation() => words.extend([c.to_string(), String::new()]),
            c if c.is_whitespace() => words.push(String::new()),
            c => words.last_mut().expect("one").push(c),
        }
    }
    let mut ids = vec![vocabulary["[CLS]"]];
    for word in words.iter().filter(|word| !word.is_empty()) {
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < word.len() {
            let prefix = if start > 0 { "##" } else { "" };
            let piece = |end: &usize| vocabulary.get(&format!("{prefix}{}", &word[start..*end])).copied();
            let Some(end) = (start + 1..=word.len()).rev().find(|end| piece(end).is_some()) else { break };
            pieces.extend(piece(&end));
            start = end;
        }
        ids.extend(if start == word.len() { pieces } else { vec![vocabulary["[UNK]"]] });
    }
    ids.push(vocabulary["[SEP]"]);
    ids
}

#[test]
fn minilm() {
    let Some(folder) = folder(".data/minilm", "fetch-minilm") else { return };
    let sandbox = Sandbox::new();
    let program = format!(
        "(def whole (tokenizer-load \"{0}\")) (defn tokens [text] (encode whole text))
         (def pieces (tokenizer-load \"{0}/vocab.txt\")) (defn older [text] (encode pieces text))",
        folder.display()
    );
    let module = load(&sandbox, &program);
    let lines = fs::read_to_string(folder.join("vocab.txt")).expect("a vocabulary");
    let vocabulary: HashMap<String, i32> = lines.lines().map(str::to_owned).zip(0..).collect();
    assert_eq!(ids(&module, "tokens", "Hello, world!"), [101, 7592, 1010, 2088, 999, 102]);
    for text in SENTENCES {
        let wanted = word_pieces(&vocabulary, text);
        assert_eq!(ids(&module, "older", text), wanted, "{text:?}");
        assert_eq!(ids(&module, "tokens", text), wanted, "{text:?}");
    }
}

#[test]
fn the_weights_of_minilm_are_mapped() {
    let Some(folder) = folder(".data/minilm", "fetch-minilm") else { return };
    let sandbox = Sandbox::new();
    let program = format!(
        "(def p (io \"load\" \"{0}/model.safetensors\"))
         (def table (get-in p [:embeddings :word_embeddings :weight]))
         (def facts (str (list (keys p) (len (flatten p)) (tree-count p) (shape table) (dtype table)
                          (keys (get-in p [:encoder :layer :0])))))
         (defn norm-of [i] (norm (table i)))",
        folder.display()
    );
    let module = load(&sandbox, &program);
    insta::assert_snapshot!(module.value("facts").expect("a value").as_str().expect("text"));
    let norm = module.function("norm-of").expect("a function").call(&[7592.into()]).expect("a norm");
    // That of the row in NumPy.
    let norm = norm.to_f64().expect("a number");
    assert!((norm - NORM).abs() < 1e-5, "{norm}");
}

/// The norm of row 7592 of the table of words, by NumPy.
const NORM: f64 = 1.198_236_712_015_587_7;
