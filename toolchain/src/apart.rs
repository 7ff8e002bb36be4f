//! A remedy for a fault of IREE 3.13: in the inline model it makes one buffer of two of the same size.
//!
//! The call that allocates a buffer is marked as free of side effects, so the last phase takes two such calls with the same
//! operands for the same value. The results of a program and its intermediate values then overwrite each other, as where
//! `((value-and-grad (fn [m] (max (last m)))) [[1 -2 3] [2 -5 6]])` gave 1 for 6. Sizes that differ keep them apart.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;

/// How `iree-compile` compiles what needs the remedy: in two runs, with the remedy between them. A machine that runs it once
/// makes programs that may compute something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoRuns {
    /// The flag that the first run has besides. It writes text.
    pub first: &'static str,
    /// The flag that the second run has besides. It reads what [`TwoRuns::between`] gives.
    pub second: &'static str,
}

impl TwoRuns {
    /// Whether a program with these flags needs two runs.
    pub fn needed(flags: &[String]) -> Option<Self> {
        let needed = flags.iter().any(|flag| flag == INLINE_MODEL);
        needed.then_some(Self { first: "--compile-to=hal", second: "--compile-from=hal" })
    }

    /// The text for the second run, from that of the first.
    pub fn between(self, lowered: &str) -> String {
        allocate_apart(lowered)
    }
}

/// The flag of programs that need the remedy.
pub(crate) const INLINE_MODEL: &str = "--iree-execution-model=inline-dynamic";

/// The phase after which buffers are allocated, and the calls are not yet joined.
pub(crate) const LOWERED: &CStr = c"hal";

const ALLOCATE: &str = " = hal_inline.buffer.allocate ";

/// A lowered program in which no two allocations have the same size: some are a few bytes larger.
pub(crate) fn allocate_apart(program: &str) -> String {
    let mut out = String::with_capacity(program.len() + 1024);
    // The names are those of one function, and a later one defines its own before it uses them.
    let mut constants: HashMap<&str, u64> = HashMap::new();
    let mut sizes = HashSet::new();
    for line in program.split_inclusive('\n') {
        if let Some((name, value)) = constant(line) {
            constants.insert(name, value);
        }
        let operand = line.contains(ALLOCATE).then(|| line.rfind('{').zip(line.rfind('}'))).flatten();
        let size = operand.and_then(|(open, close)| constants.get(&line[open + 1..close]));
        let (Some((open, close)), Some(size)) = (operand, size) else {
            out.push_str(line);
            continue;
        };
        let mut apart = *size;
        while !sizes.insert(apart) {
            apart += 1;
        }
        let name = format!("%apart_{}", sizes.len());
        out.push_str(&format!(
            "{name} = arith.constant {apart} : index\n{}{name}{}",
            &line[..=open],
            &line[close..]
        ));
    }
    out
}

/// The name and the value of an index constant.
fn constant(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.trim().strip_suffix(" : index")?.split_once(" = arith.constant ")?;
    Some((name, value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allocation_has_another_size() {
        let program = "\
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %b, %s = hal_inline.buffer.allocate alignment(%c64) : !hal.buffer{%c128} in !util.buffer
    %x = arith.addi %c64, %c128 : index
    %b_1, %s_1 = hal_inline.buffer.allocate alignment(%c64) : !hal.buffer{%c128} in !util.buffer
    %b_2, %s_2 = hal_inline.buffer.allocate alignment(%c64) : !hal.buffer{%c64} in !util.buffer
";
        let expected = "\
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
%apart_1 = arith.constant 128 : index
    %b, %s = hal_inline.buffer.allocate alignment(%c64) : !hal.buffer{%apart_1} in !util.buffer
    %x = arith.addi %c64, %c128 : index
%apart_2 = arith.constant 129 : index
    %b_1, %s_1 = hal_inline.buffer.allocate alignment(%c64) : !hal.buffer{%apart_2} in !util.buffer
%apart_3 = arith.constant 64 : index
    %b_2, %s_2 = hal_inline.buffer.allocate alignment(%c64) : !hal.buffer{%apart_3} in !util.buffer
";
        assert_eq!(allocate_apart(program), expected);
    }

    #[test]
    fn a_program_without_allocations_stays() {
        let program = "module {\n  util.func public @main() {\n    util.return\n  }\n}\n";
        assert_eq!(allocate_apart(program), program);
    }
}
