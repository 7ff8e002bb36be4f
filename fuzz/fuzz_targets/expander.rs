//! Any program is expanded or refused with messages.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    sheaf_fuzz::with_evaluator(|interp| interp.expand_program("input", text));
});
