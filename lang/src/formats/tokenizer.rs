//! Files of tokenizers: `tokenizer.json`, the vocabulary and merges of GPT-2, the vocabulary of BERT. The older ones are
//! brought into the form of the first, which the library reads.

use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json, json};
use tokenizers::Tokenizer as Library;

use super::{Source, broken};
use crate::eval::{Eval, Interp};
use crate::program::{Tokenizer, Tokens};
use sheaf_syntax::diagnostic::Diagnostic;

/// Names of vocabularies of byte-level BPE, and of the merges beside them.
const PAIRS: [(&str, &str); 2] = [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")];
const HELP: &str = "the file is damaged, or no tokenizer: get it again";

/// The files that a tokenizer is made of.
enum Files {
    /// `tokenizer.json`
    Whole(String),
    /// A vocabulary in JSON, and merges.
    Pair(String, String),
    /// A vocabulary of word pieces, one a line.
    Lines(String),
}

/// The tokenizer in a file, a folder or a pair of files.
pub(crate) fn load(interp: &mut Interp, paths: &[String]) -> Eval<Tokenizer> {
    let files = files(interp, paths)?;
    let (name, config) = match &files {
        Files::Whole(path) => (path, Source::open(interp, path, false)?.text()?),
        Files::Pair(vocabulary, merges) => (vocabulary, byte_level(interp, vocabulary, merges)?),
        Files::Lines(path) => (path, word_pieces(interp, path)?),
    };
    // Text that is no JSON, and some parts that are not what their name says, are a panic of the library.
    serde_json::from_str::<IgnoredAny>(&config).map_err(|e| broken(name, e, HELP))?;
    let read = std::panic::catch_unwind(|| Library::from_bytes(config.as_bytes()));
    let read = read.map_err(|_| broken(name, "a part of it is not what its name says", HELP))?;
    let mut library = read.map_err(|e| broken(name, e, HELP))?;
    // Some files ask for a length of all texts, which is the business of batches.
    library.with_padding(None);
    library.with_truncation(None).map_err(|e| broken(name, e, HELP))?;
    Ok(Tokenizer { name: name.clone(), tokens: Box::new(Tokenized(library)) })
}

fn extension(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(_, extension)| extension)
}

fn files(interp: &mut Interp, paths: &[String]) -> Eval<Files> {
    let ends = |path: &str, name: &str| path == name || path.ends_with(&format!("/{name}"));
    let path = match paths {
        [path] => path,
        [vocabulary, merges] => {
            return Ok(if ends(vocabulary, "vocab.bpe") || extension(vocabulary) == Some("txt") {
                Files::Pair(merges.clone(), vocabulary.clone())
            } else {
                Files::Pair(vocabulary.clone(), merges.clone())
            });
        }
        _ => {
            return Err(Diagnostic::error(
                "a tokenizer is one file, a folder, or a vocabulary and its merges",
            )
            .help("(tokenizer-load \"vocab.json\" \"merges.txt\")")
            .into());
        }
    };
    for (vocabulary, merges) in PAIRS {
        for (given, other) in [(vocabulary, merges), (merges, vocabulary)] {
            if let Some(folder) = path.strip_suffix(given).filter(|_| ends(path, given)) {
                let pair = Files::Pair(format!("{folder}{vocabulary}"), format!("{folder}{merges}"));
                let beside = format!("{folder}{other}");
                if interp.host.exists(&beside)? {
                    return Ok(pair);
                }
                return Err(Diagnostic::error(format!("{path} wants {other} beside it, which does not exist"))
                    .help("a byte-level BPE is a vocabulary and its merges; give both: (tokenizer-load vocabulary merges)")
                    .into());
            }
        }
    }
    if extension(path) == Some("txt") {
        return Ok(Files::Lines(path.clone()));
    }
    if extension(path) == Some("json") {
        return Ok(Files::Whole(path.clone()));
    }
    let within = |name: &str| format!("{}/{name}", path.trim_end_matches('/'));
    if interp.host.exists(&within("tokenizer.json"))? {
        return Ok(Files::Whole(within("tokenizer.json")));
    }
    for (vocabulary, merges) in PAIRS {
        if interp.host.exists(&within(vocabulary))? {
            return Ok(Files::Pair(within(vocabulary), within(merges)));
        }
    }
    if interp.host.exists(&within("vocab.txt"))? {
        return Ok(Files::Lines(within("vocab.txt")));
    }
    Err(Diagnostic::error(format!("{path} has no tokenizer"))
        .help("it may be a tokenizer.json, a vocab.txt, or a folder with one of these, or with vocab.json and merges.txt, or encoder.json and vocab.bpe")
        .into())
}

/// The byte-level BPE of GPT-2, in the form of a `tokenizer.json`.
fn byte_level(interp: &mut Interp, vocabulary: &str, merges: &str) -> Eval<String> {
    const END_OF_TEXT: &str = "<|endoftext|>";
    let text = Source::open(interp, vocabulary, false)?.text()?;
    let tokens: Map<String, Json> = serde_json::from_str(&text).map_err(|e| broken(vocabulary, e, HELP))?;
    let text = Source::open(interp, merges, false)?.text()?;
    let mut pairs = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() || (i == 0 && line.starts_with("#version")) {
            continue;
        }
        let Some((left, right)) = line.split_once(' ').filter(|(_, right)| !right.contains(' ')) else {
            let what = format!("line {} is not two tokens that merge", i + 1);
            return Err(broken(merges, what, HELP));
        };
        pairs.push(json!([left, right]));
    }
    let added: Vec<Json> = tokens.get(END_OF_TEXT).map(|id| special(id, END_OF_TEXT)).into_iter().collect();
    let bytes = |prefix: bool| json!({"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": true});
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": bytes(false), "post_processor": bytes(false), "decoder": bytes(false),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": tokens, "merges": pairs,
        },
    })
    .to_string())
}

fn special(id: &Json, content: &str) -> Json {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
}

/// The word pieces of BERT, in the form of a `tokenizer.json`. Letters are made lower case, unless a
/// `tokenizer_config.json` beside the vocabulary says otherwise.
fn word_pieces(interp: &mut Interp, path: &str) -> Eval<String> {
    const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    let text = Source::open(interp, path, false)?.text()?;
    let mut tokens = Map::new();
    for (i, token) in text.lines().map(str::trim_end).enumerate() {
        tokens.insert(token.to_owned(), json!(i));
    }
    let [_, unknown, start, end, _] = SPECIAL;
    for wanted in [unknown, start, end] {
        if !tokens.contains_key(wanted) {
            return Err(broken(
                path,
                format!("there is no token {wanted} in it"),
                "a vocabulary of BERT has [UNK], [CLS] and [SEP]",
            ));
        }
    }
    let folder = path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let config = format!("{folder}tokenizer_config.json");
    let lower = if interp.host.exists(&config)? {
        let text = Source::open(interp, &config, false)?.text()?;
        let config: Json = serde_json::from_str(&text).map_err(|e| broken(&config, e, HELP))?;
        config["do_lower_case"].as_bool().unwrap_or(true)
    } else {
        true
    };
    let added: Vec<Json> =
        SPECIAL.iter().filter_map(|token| Some(special(tokens.get(*token)?, token))).collect();
    let (start, end) = (json!([start, tokens[start]]), json!([end, tokens[end]]));
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": lower},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": end, "cls": start},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": tokens,
        },
    })
    .to_string())
}

struct Tokenized(Library);

impl Tokens for Tokenized {
    fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, String> {
        let encoding = self.0.encode_fast(text, special).map_err(|e| e.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }

    fn decode(&self, ids: &[u32], special: bool) -> Result<String, String> {
        self.0.decode(ids, !special).map_err(|e| e.to_string())
    }

    fn size(&self) -> usize {
        let greatest = self.0.get_vocab(true).into_values().max();
        greatest.map_or(0, |id| id as usize + 1)
    }

    fn id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }

    fn token(&self, id: u32) -> Option<String> {
        self.0.id_to_token(id)
    }

    fn special(&self) -> Vec<(String, u32)> {
        let added = self.0.get_added_tokens_decoder();
        let special = added.into_iter().filter(|(_, token)| token.special);
        let mut special: Vec<(String, u32)> = special.map(|(id, token)| (token.content, id)).collect();
        special.sort_unstable_by_key(|(_, id)| *id);
        special
    }
}
