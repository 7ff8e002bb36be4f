//! `--mem-profile`: the most memory that buffers took, by function and device, and what held it at the peak.

use std::collections::BTreeMap;

use sheaf_lang::observe::{Held, MemoryUse, bytes};

/// Maximum origins of buffers that are shown.
const SHOWN: usize = 12;

/// The memory of calls so far.
#[derive(Default)]
pub struct Memory {
    /// By function and device: the most bytes, and the number of calls.
    functions: BTreeMap<(String, String), (u64, u64)>,
    peak: Option<Peak>,
}

struct Peak {
    bytes: u64,
    function: String,
    device: String,
    held: Vec<Held>,
}

impl Memory {
    pub(crate) fn add(&mut self, used: &MemoryUse<'_>) {
        let key = (used.function.to_owned(), used.device.to_owned());
        let (most, calls) = self.functions.entry(key).or_default();
        *most = (*most).max(used.peak);
        *calls += 1;
        if self.peak.as_ref().is_none_or(|peak| used.peak > peak.bytes) {
            self.peak = Some(Peak {
                bytes: used.peak,
                function: used.function.into(),
                device: used.device.into(),
                held: used.held.to_vec(),
            });
        }
    }

    /// The report at the end of a run.
    pub fn report(&self) -> String {
        let Some(peak) = &self.peak else {
            return "Memory: no compiled function was called, so no buffer was needed\n".into();
        };
        let mut text =
            format!("Memory: {} at most, in {} on {}\n", bytes(peak.bytes), peak.function, peak.device);
        text +=
            &format!("\n{:<28}{:<8}{:>8}{:>12}\n{}\n", "Function", "Device", "Calls", "Peak", "-".repeat(56));
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_by_key(|(_, (most, _))| std::cmp::Reverse(*most));
        for ((function, device), (most, calls)) in functions {
            text += &format!("{function:<28}{device:<8}{calls:>8}{:>12}\n", bytes(*most));
        }
        text += "\nHeld at the peak:\n";
        let mut held = peak.held.clone();
        held.sort_by_key(|held| std::cmp::Reverse(held.bytes));
        let known: u64 = held.iter().map(|held| held.bytes).sum();
        let inside = peak.bytes.saturating_sub(known);
        let mut lines = vec![(inside, format!("results and intermediate values of {}", peak.function))];
        for held in held.iter().take(SHOWN) {
            let plural = if held.count == 1 { "" } else { "s" };
            lines.push((held.bytes, format!("{} ({} tensor{plural})", held.origin, held.count)));
        }
        let others: u64 = held.iter().skip(SHOWN).map(|held| held.bytes).sum();
        if held.len() > SHOWN {
            lines.push((others, format!("{} other origins", held.len() - SHOWN)));
        }
        lines.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (size, what) in lines {
            text += &format!("{:>12}  {what}\n", bytes(size));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report() {
        let mut memory = Memory::default();
        insta::assert_snapshot!(memory.report());
        let held = |origin: &str, count, bytes| Held { origin: origin.into(), count, bytes };
        let used = |function, peak, held| MemoryUse { function, device: "cpu", peak, held };
        memory.add(&used("init", 4096, &[]));
        let state = [held("results of init", 12, 9 << 20), held("tensors sent by the program", 1, 3072)];
        memory.add(&used("step", 90 << 20, &state));
        memory.add(&used("step", 80 << 20, &[]));
        insta::assert_snapshot!(memory.report());
    }
}
