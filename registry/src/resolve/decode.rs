//! The result of a resolution, from the solver's answer.

use std::collections::{BTreeMap, HashMap};

use pubgrub::{SelectedDependencies, VersionSet};

use super::provider::Node;
use super::request::PackageVersion;
use super::store::{Dependent, Place, Store};

/// The chosen versions and the edges between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Each chosen version, with the version chosen for each of its requirements, by the requirement's name.
    pub packages: BTreeMap<PackageVersion, BTreeMap<String, PackageVersion>>,
    /// The version chosen for each requirement of the project, by the requirement's name.
    pub roots: BTreeMap<String, PackageVersion>,
}

pub(super) fn decode(store: &Store<'_>, chosen: SelectedDependencies<Node, u32>) -> Resolution {
    let chosen: HashMap<u32, u32> = chosen
        .into_iter()
        .filter_map(|(node, rank)| match node {
            Node::Bucket(bucket) => Some((bucket, rank)),
            Node::Root | Node::Proxy(_) => None,
        })
        .collect();
    let mut resolution = Resolution::default();
    let mut pending = Vec::new();
    resolution.roots = edges(store, &chosen, Dependent::Root, &mut pending);
    while let Some(place) = pending.pop() {
        let at = store.package_version(place);
        resolution
            .packages
            .entry(at)
            .or_insert_with(|| edges(store, &chosen, Dependent::Version(place), &mut pending));
    }
    resolution
}

/// The edges of a dependent; their targets are added to `targets`.
fn edges(
    store: &Store<'_>,
    chosen: &HashMap<u32, u32>,
    dependent: Dependent,
    targets: &mut Vec<Place>,
) -> BTreeMap<String, PackageVersion> {
    let mut edges = BTreeMap::new();
    for requirement in &*store.requirements(dependent) {
        let matching =
            store.find(&requirement.package).map(|known| store.matching(known, &requirement.range));
        let matching: Vec<Place> = matching
            .into_iter()
            .flatten()
            .filter_map(|(bucket, ranks)| {
                let rank = *chosen.get(&bucket)?;
                ranks.contains(&rank).then_some(Place { bucket, rank })
            })
            .collect();
        let locked = store.locked_edge(dependent, &requirement.name);
        let kept = locked.filter(|place| matching.contains(place));
        let preferred =
            || matching.into_iter().min_by(|a, b| store.preference(*a).cmp(&store.preference(*b)));
        let Some(target) = kept.or_else(preferred) else {
            unreachable!("the solver's answer meets each requirement of the versions in it");
        };
        targets.push(target);
        edges.insert(requirement.name.clone(), store.package_version(target));
    }
    edges
}
