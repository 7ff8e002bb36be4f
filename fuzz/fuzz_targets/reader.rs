//! Any text is read or refused with messages, and what was read is printed as text that reads as the same forms.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sheaf_syntax::render::render;
use sheaf_syntax::{Sources, read};

fuzz_target!(|text: &str| {
    let mut sources = Sources::default();
    let id = sources.add("input", text);
    match read(&sources, id) {
        Ok(forms) => {
            let print = |forms: &[sheaf_syntax::Form]| {
                forms.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            };
            let printed = print(&forms);
            let again = sources.add("printed", printed.clone());
            let forms = read(&sources, again).expect("what was printed can be read");
            assert_eq!(print(&forms), printed);
        }
        Err(errors) => {
            assert!(!errors.is_empty(), "a failure without a message");
            errors.iter().for_each(|d| drop(render(&sources, d, false)));
        }
    }
});
