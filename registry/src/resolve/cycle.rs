//! Cycles among chosen versions.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use super::Resolution;
use super::request::PackageVersion;
use super::store::{Dependent, Store};

/// Maximum number of lines of a cycle in a message.
const LINES: usize = 20;

/// A cycle of dependencies, which `use` cannot follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The versions; each needs the next, and the last the first.
    pub versions: Vec<PackageVersion>,
    text: String,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The first cycle, in the order of names; `None` if there is none.
pub(super) fn find(store: &Store<'_>, resolution: &Resolution) -> Option<Cycle> {
    let mut finished = HashSet::new();
    for (name, root) in &resolution.roots {
        if let Some(path) = search(resolution, root, &mut finished) {
            return Some(Cycle { text: text(store, name, &path), versions: path });
        }
    }
    None
}

/// Depth-first search on an explicit stack: the depth is that of an untrusted index.
fn search<'r>(
    resolution: &'r Resolution,
    root: &'r PackageVersion,
    finished: &mut HashSet<&'r PackageVersion>,
) -> Option<Vec<PackageVersion>> {
    let targets = |at| resolution.packages.get(at).into_iter().flat_map(BTreeMap::values);
    if finished.contains(root) {
        return None;
    }
    let mut path = vec![(root, targets(root))];
    let mut on_path = HashSet::from([root]);
    while let Some((at, rest)) = path.last_mut() {
        match rest.next() {
            Some(next) if on_path.contains(next) => {
                let versions = path.iter().map(|(at, _)| *at);
                return Some(versions.skip_while(|at| *at != next).cloned().collect());
            }
            Some(next) if !finished.contains(next) => {
                path.push((next, targets(next)));
                on_path.insert(next);
            }
            Some(_) => {}
            None => {
                on_path.remove(*at);
                finished.insert(*at);
                path.pop();
            }
        }
    }
    None
}

fn text(store: &Store<'_>, root: &str, cycle: &[PackageVersion]) -> String {
    let mut text = "packages need each other in a cycle, which `use` cannot follow:".to_owned();
    for (at, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)).take(LINES) {
        let place = store.place(at);
        let requirements = place.map(|place| store.requirements(Dependent::Version(place)));
        let range = requirements.and_then(|requirements| {
            let mut ranges = requirements
                .iter()
                .filter(|required| required.package == next.package && required.range.matches(&next.version));
            ranges.next().map(|required| required.range.to_string())
        });
        text += &format!("\n  {at} needs {} {}", next.package.name, range.unwrap_or_default());
    }
    if cycle.len() > LINES {
        text += &format!("\n  and {} more", cycle.len() - LINES);
    }
    let mut requirements = store.root.requirements.iter();
    if let Some(required) = requirements.find(|required| required.name == root) {
        let location = required.location.as_deref().unwrap_or(&store.root.name);
        text += &format!("\n  {location} asks for {} {}", required.package.name, required.range);
    }
    text + "\nask for versions without this cycle, or for a package that has the common part"
}
