//! Any program runs, is stopped after so many steps, or fails with messages; its value can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sheaf_lang::builtins::{repr, structurally_equal};

fuzz_target!(|text: &str| {
    sheaf_fuzz::with_evaluator(|interp| {
        let value = interp.run_program("input", text)?;
        repr(&value);
        let _ = structurally_equal(&value, &value);
        Ok(())
    });
});
