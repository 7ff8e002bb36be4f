//! The error of a call with shapes that were not recorded.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::host::{HostError, Kept, Leaf, Unit};

/// Most recorded specialisations that the message shows.
const SHOWN: usize = 3;

const HELP: &str = "shapes are frozen: call it with recorded shapes, or record this run where there is a compiler \
                    (`sheaf run FILE --record SHAPES.json`) and build again";

/// Tells how a unit differs from the recorded specialisations of its function, the nearest first.
pub(super) fn not_recorded<'a>(unit: &Unit, recorded: impl Iterator<Item = &'a Kept>) -> HostError {
    let mut differences: Vec<Vec<String>> = recorded.map(|kept| differences(unit, kept)).collect();
    differences.sort_by_key(Vec::len);
    differences.dedup();
    let name = name_of(unit);
    let mut message = format!("{name} is called with arguments that were not recorded:");
    for of_one in differences.iter().take(SHOWN) {
        let _ = write!(message, "\n  {}", of_one.join(", "));
    }
    if differences.len() > SHOWN {
        let _ = write!(message, "\n  and {} other recorded calls", differences.len() - SHOWN);
    }
    HostError { message, help: Some(HELP.into()) }
}

/// The error of a unit whose function was recorded for the same arguments, with another program: its source has changed.
pub(super) fn changed(unit: &Unit) -> HostError {
    let message = format!("{} was compiled for these arguments, but not as it is written now", name_of(unit));
    HostError { message, help: Some(HELP.into()) }
}

fn name_of(unit: &Unit) -> String {
    if unit.transform.is_empty() {
        unit.function.clone()
    } else {
        format!("({} {})", unit.transform, unit.function)
    }
}

/// Each argument that differs: its path, the type or value of the call, and that which was recorded.
fn differences(unit: &Unit, kept: &Kept) -> Vec<String> {
    let of_unit = described(&unit.inputs, &unit.statics);
    let of_kept = described(&kept.inputs, &kept.statics);
    let paths: BTreeSet<&String> = of_unit.iter().chain(&of_kept).map(|(path, _)| path).collect();
    let find = |all: &[(String, String)], path: &str| {
        all.iter().find(|(p, _)| p == path).map_or("absent".to_owned(), |(_, text)| text.clone())
    };
    let differing = paths.into_iter().filter_map(|path| {
        let (found, recorded) = (find(&of_unit, path), find(&of_kept, path));
        (found != recorded).then(|| format!("{path} is {found}, recorded was {recorded}"))
    });
    differing.collect()
}

fn described(inputs: &[Leaf], statics: &[(String, String)]) -> Vec<(String, String)> {
    let types = inputs.iter().map(|leaf| (leaf.path.clone(), leaf.ty.to_string()));
    types.chain(statics.iter().cloned()).collect()
}
