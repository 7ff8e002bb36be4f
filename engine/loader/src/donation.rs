//! Programs whose calls consume arguments: a result takes the place of each.
//!
//! IREE has computed wrong numbers in such programs (Q38). By the rules of [`sheaf_graph::graph::donations`] it should not;
//! to be sure, a program is used only after it has been [tried](super::trial).

use std::rc::Rc;
use std::time::{Duration, Instant};

use sheaf_graph::graph::{Donation, donations};
use sheaf_lang::host::{Buffer, Donating, Unit};

use super::buffer::DeviceBuffer;

/// Policy for consumption of arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Donate {
    /// Consumes if that saves enough memory to be worth a second compilation.
    #[default]
    Auto,
    /// Consumes all that can be.
    Always,
    /// Consumes nothing.
    Never,
}

/// Minimum size of a donated tensor, in bytes: smaller ones are not worth it.
const LEAST_TENSOR: usize = 4 << 10;

/// Minimum bytes that a program could save for a second compilation.
const LEAST_PROGRAM: usize = 1 << 20;

/// Minimum bytes that the calls so far could have saved in all before a program is compiled a second time. A result
/// written in place saves about 30 ms for a gigabyte (0.11 to 0.18 ms for 4 MB in training steps), a compilation takes
/// seconds.
const PAID_BYTES: usize = 64 << 30;

/// Minimum calls before a program is compiled a second time, for any savings.
const LEAST_CALLS: u64 = 8;

/// The arguments that a call of the unit may consume.
pub fn donating(policy: Donate, unit: &Unit) -> Option<Donating> {
    if policy == Donate::Never {
        return None;
    }
    let (tensor, program) = match policy {
        Donate::Always => (1, 1),
        _ => (LEAST_TENSOR, LEAST_PROGRAM),
    };
    let donations = donations(&unit.graph, tensor);
    let bytes = |d: &Donation| {
        let ty = &unit.inputs[d.argument].ty;
        ty.count() * ty.dtype.byte_width()
    };
    let saved: usize = donations.iter().map(bytes).sum();
    if donations.is_empty() || saved < program {
        return None;
    }
    let after = match policy {
        Donate::Always => 0,
        _ => calls_to_pay(saved),
    };
    Some(Donating { donations, after })
}

/// Number of calls, each of which could save so many bytes, after which a second compilation pays.
fn calls_to_pay(saved: usize) -> u64 {
    LEAST_CALLS.max((PAID_BYTES / saved.max(1)) as u64)
}

/// Bytes consumed by a call for which it waits a second at most: about the time that it saves. In the steps of GPT-2's size,
/// 1.5 GB save 0.35 s.
const BYTES_A_SECOND: u64 = 6 << 30;

/// Minimum time that a call waits.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// True if there are no other references to the arguments that a call consumes, once the call before has ended in
/// all threads.
pub fn all_owned(arguments: &[Buffer], donations: &[Donation]) -> bool {
    let consumed = donations.iter().map(|d| &arguments[d.argument]);
    if !consumed.clone().all(|argument| Rc::strong_count(argument) == 1) {
        return false;
    }
    let consumed = consumed.map(DeviceBuffer::of).collect::<Result<Vec<_>, _>>();
    let Ok(consumed) = consumed else { return false };
    let bytes: usize = consumed.iter().map(|buffer| buffer.byte_len()).sum();
    let wait = Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000) / BYTES_A_SECOND);
    let deadline = Instant::now() + wait.max(LEAST_WAIT);
    consumed.iter().all(|buffer| buffer.is_unshared_by(deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_saves_little_in_each_call_waits_for_more_calls() {
        // A perceptron of 200,000 parameters with Adam; a model of a billion.
        assert_eq!(calls_to_pay(2_400_000), 28_633);
        assert_eq!(calls_to_pay(12_000_000_000), LEAST_CALLS);
    }
}
