//! Any file of data is loaded as a value that can be shown, or fails with a message. The first byte chooses the format.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sheaf_lang::builtins::repr;

const NAMES: [&str; 14] = [
    "x.safetensors", "x.npy", "x.npz", "x.json", "x.jsonl", "x.csv", "x.txt", "x.pkl", "x.json.gz", "x.npy.gz", "x.bin",
    "x.safetensors.index.json", "tokenizer.json", "vocab.txt",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((format, file)) = bytes.split_first() else { return };
    let name = NAMES[usize::from(*format) % NAMES.len()];
    let program = match name {
        "x.bin" => "(str (tensor (io \"load\" \"x.bin\" :u16)))".to_owned(),
        "x.jsonl" => "(map str (take 20 (io \"load\" \"x.jsonl\")))".to_owned(),
        "tokenizer.json" | "vocab.txt" => format!("(let [t (tokenizer-load {name:?})] (decode t (encode t \"a text, to be sure\")))"),
        name => format!("(str (io \"load\" {name:?}))"),
    };
    sheaf_fuzz::with_file(file, |interp| {
        let value = interp.run_program("input", &program)?;
        repr(&value);
        Ok(())
    });
});
