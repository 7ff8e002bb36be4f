//! Specialisations of the programs in `__sheaf__`, from its manifest.

use std::collections::HashMap;

use sheaf_artifacts::Entry;
use sheaf_graph::tensor::{DType, TensorType};
use sheaf_lang::host::{Kept, Leaf};

/// Specialisations of the programs in `__sheaf__`, by function and transformation.
pub type ByFunction = HashMap<(String, String), Vec<Kept>>;

/// Those of a manifest.
pub fn listed(entries: Vec<Entry>) -> ByFunction {
    let mut listed = ByFunction::new();
    for entry in entries {
        let Some(inputs) = entry.inputs.iter().map(leaf).collect() else { continue };
        let statics = entry.statics.into_iter().map(|s| (s.path, s.value)).collect();
        listed.entry((entry.function, entry.transform)).or_default().push(Kept { inputs, statics });
    }
    listed
}

/// A parameter as the language describes it; `None` for a dtype that it does not know.
fn leaf(leaf: &sheaf_artifacts::Leaf) -> Option<Leaf> {
    let dtype = DType::parse(&leaf.dtype)?;
    let shape = leaf.shape.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<Vec<usize>>>()?;
    let ty = TensorType { weak: leaf.weak, ..TensorType::new(dtype, shape) };
    Some(Leaf { path: leaf.path.clone(), ty })
}
