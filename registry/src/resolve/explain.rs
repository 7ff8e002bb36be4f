//! Conflicts in sentences: the requirements that have no solution together, down to the user's own lines.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use pubgrub::{DerivationTree, External, VersionSet};
use semver::{Prerelease, Version};

use super::provider::Node;
use super::ranks::Ranks;
use super::request::{Candidate, PackageId, Requirement};
use super::store::{Dependent, Line, Place, Refusal, Store};
use super::words;

type Tree = DerivationTree<Node, Ranks, Infallible>;

/// Maximum number of requirements in a message.
const LINES: usize = 24;

/// Requirements that no versions satisfy together.
#[derive(Debug, Clone)]
pub struct Conflict {
    /// The requirements: those of packages, then those of the project. They alone have no solution.
    pub facts: Vec<Fact>,
    /// Required packages without any version, for suggestions of near names.
    pub unknown: Vec<PackageId>,
    text: String,
}

/// A requirement that takes part in a conflict.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The package that states it; `None` for the project.
    pub dependent: Option<PackageId>,
    /// The versions of that package that state it, ascending.
    pub versions: BTreeSet<Version>,
    /// The requirement.
    pub requirement: Requirement,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(super) fn explain(store: &Store<'_>, tree: Tree) -> Conflict {
    let facts = sorted(facts(store, tree));
    let unknown = |fact: &&Fact| versions(store, fact).is_some_and(|versions| versions.all.is_empty());
    let unknown: BTreeSet<PackageId> =
        facts.iter().filter(unknown).map(|fact| fact.requirement.package.clone()).collect();
    let text = Text { store, facts: &facts, ambiguous: ambiguous(&facts) }.whole();
    Conflict { unknown: unknown.into_iter().collect(), text, facts }
}

/// The leaves of the tree. No recursion, in the drop of the tree either: its depth is that of the search.
fn leaves(tree: Tree) -> Vec<External<Node, Ranks, Infallible>> {
    let mut leaves = Vec::new();
    let mut seen = HashSet::new();
    // Parents before children, so that each is dropped while this list still holds its children.
    let mut held = vec![Arc::new(tree)];
    let mut next = 0;
    while let Some(node) = held.get(next).cloned() {
        next += 1;
        match &*node {
            DerivationTree::External(leaf) => leaves.push(leaf.clone()),
            DerivationTree::Derived(derived) => {
                for cause in [&derived.cause1, &derived.cause2] {
                    if seen.insert(Arc::as_ptr(cause)) {
                        held.push(Arc::clone(cause));
                    }
                }
            }
        }
    }
    leaves
}

/// The requirements behind the leaves, each once with all versions that state it.
fn facts(store: &Store<'_>, tree: Tree) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    let mut positions = HashMap::new();
    let mut add = |dependent: Dependent, requirement: &Requirement| {
        let stated = match dependent {
            Dependent::Root => None,
            Dependent::Version(place) => Some(store.package_version(place)),
        };
        let key = (
            stated.as_ref().map(|stated| stated.package.clone()),
            requirement.package.clone(),
            requirement.range.to_string(),
            requirement.location.clone(),
        );
        let position = *positions.entry(key).or_insert_with(|| {
            let dependent = stated.as_ref().map(|stated| stated.package.clone());
            facts.push(Fact { dependent, versions: BTreeSet::new(), requirement: requirement.clone() });
            facts.len() - 1
        });
        facts[position].versions.extend(stated.map(|stated| stated.version));
    };
    for leaf in leaves(tree) {
        // The others state that the project itself is chosen.
        let External::FromDependencyOf(from, versions, to, needed) = leaf else { continue };
        let mut add_proxy = |proxy: u32| {
            let proxy = &store.proxies[proxy as usize];
            add(proxy.dependent, &store.requirements(proxy.dependent)[proxy.requirement]);
        };
        let dependents = match (from, to) {
            (Node::Proxy(proxy), _) | (_, Node::Proxy(proxy)) => {
                add_proxy(proxy);
                continue;
            }
            (Node::Root, _) => vec![Dependent::Root],
            (Node::Bucket(bucket), _) => (0..store.size(bucket))
                .filter(|rank| versions.contains(rank))
                .map(|rank| Dependent::Version(Place { bucket, rank }))
                .collect(),
        };
        let Node::Bucket(target) = to else { continue };
        for dependent in dependents {
            for requirement in &*store.requirements(dependent) {
                let Some(package) = store.find(&requirement.package) else { continue };
                // Of several requirements on this bucket, those with this set.
                if package == store.buckets[target as usize].package
                    && matches!(&store.matching(package, &requirement.range)[..],
                        [(bucket, ranks)] if *bucket == target && *ranks == needed)
                {
                    add(dependent, requirement);
                }
            }
        }
    }
    facts
}

/// Dependents before those that need them, and the project's own requirements at the end.
fn sorted(mut facts: Vec<Fact>) -> Vec<Fact> {
    let mut targets: HashMap<Option<&PackageId>, Vec<&PackageId>> = HashMap::new();
    for fact in &facts {
        targets.entry(fact.dependent.as_ref()).or_default().push(&fact.requirement.package);
    }
    let mut depths: HashMap<Option<PackageId>, usize> = HashMap::from([(None, 0)]);
    let mut pending = VecDeque::from([(None, 0)]);
    while let Some((at, depth)) = pending.pop_front() {
        for target in targets.get(&at).into_iter().flatten() {
            if let Entry::Vacant(unseen) = depths.entry(Some((*target).clone())) {
                unseen.insert(depth + 1);
                pending.push_back((Some(*target), depth + 1));
            }
        }
    }
    facts.sort_by_cached_key(|fact| {
        let depth = depths.get(&fact.dependent).copied().unwrap_or(usize::MAX);
        let place = line_number(fact.requirement.location.as_deref());
        let required = &fact.requirement;
        let name = (required.package.clone(), required.range.to_string());
        (std::cmp::Reverse(depth), place, fact.dependent.clone(), fact.versions.clone(), name)
    });
    facts
}

/// Sort key of a place: `Sheaf.toml:10` is after `Sheaf.toml:9`.
fn line_number(location: Option<&str>) -> (String, u64) {
    let location = location.unwrap_or_default();
    let (file, line) = location.rsplit_once(':').unwrap_or((location, ""));
    (file.to_owned(), line.parse().unwrap_or(0))
}

/// Names that belong to several packages of the message.
fn ambiguous(facts: &[Fact]) -> HashSet<String> {
    let mut packages: BTreeMap<&str, BTreeSet<&PackageId>> = BTreeMap::new();
    for id in facts.iter().flat_map(|fact| fact.dependent.iter().chain([&fact.requirement.package])) {
        packages.entry(&id.name).or_default().insert(id);
    }
    packages.into_iter().filter(|(_, ids)| ids.len() > 1).map(|(name, _)| name.to_owned()).collect()
}

/// The versions of a required package, from the requirement's point of view; all ascending.
struct Versions<'s> {
    all: Vec<&'s Version>,
    /// Usable and matched, with their lines.
    matching: Vec<(&'s Version, Line)>,
    /// Matched, but passed over.
    refused: Vec<(&'s Candidate, Refusal)>,
    /// Usable, whether matched or not.
    usable: Vec<&'s Version>,
    /// Usable pre-releases, matched if they were releases.
    previews: Vec<&'s Version>,
}

fn versions<'s>(store: &'s Store<'_>, fact: &Fact) -> Option<Versions<'s>> {
    let known = &store.packages[store.find(&fact.requirement.package)?];
    let range = &fact.requirement.range;
    let mut versions = Versions {
        all: Vec::new(),
        matching: Vec::new(),
        refused: Vec::new(),
        usable: Vec::new(),
        previews: Vec::new(),
    };
    for entry in &known.entries {
        let version = known.version(entry);
        let matches = range.matches(version);
        versions.all.push(version);
        match entry.refusal {
            Some(refusal) if matches => versions.refused.push((known.candidate(entry), refusal)),
            Some(_) => {}
            None => {
                versions.usable.push(version);
                if matches {
                    versions.matching.push((version, store.buckets[entry.bucket as usize].line));
                } else if range.matches(&Version { pre: Prerelease::EMPTY, ..version.clone() }) {
                    versions.previews.push(version);
                }
            }
        }
    }
    Some(versions)
}

/// A message in the making.
struct Text<'t> {
    store: &'t Store<'t>,
    facts: &'t [Fact],
    ambiguous: HashSet<String>,
}

impl Text<'_> {
    fn whole(&self) -> String {
        let remedy = self.remedy();
        if let [fact] = self.facts {
            return format!("{}; {remedy}", self.line(fact));
        }
        let mut text = format!("the dependencies of `{}` have no common solution:", self.store.root.name);
        // The user's own lines are the last.
        let hidden = self.facts.len().saturating_sub(LINES);
        if hidden > 0 {
            text += &format!("\n  {hidden} more requirements of packages");
        }
        for fact in &self.facts[hidden..] {
            text += &format!("\n  {}", self.line(fact));
        }
        text + "\n" + &remedy
    }

    fn name(&self, id: &PackageId) -> String {
        if self.ambiguous.contains(&id.name) {
            format!("{} ({})", id.name, id.source)
        } else {
            id.name.clone()
        }
    }

    /// A requirement, with the versions that meet it.
    fn line(&self, fact: &Fact) -> String {
        let required = &fact.requirement;
        let target = format!("{} {}", self.name(&required.package), required.range);
        let stated = match (&required.location, &fact.dependent) {
            (Some(location), _) => format!("{location} asks for {target}"),
            (None, None) => format!("`{}` asks for {target}", self.store.root.name),
            (None, Some(dependent)) => {
                let needs = if fact.versions.len() == 1 { "needs" } else { "need" };
                let versions = words::versions(&fact.versions.iter().collect::<Vec<_>>());
                format!("{} {versions} {needs} {target}", self.name(dependent))
            }
        };
        let Some(versions) = versions(self.store, fact) else { return stated };
        let refusals = words::refusals(self.store, &versions.refused);
        if versions.all.is_empty() {
            format!("{stated}, but {} has no such package", required.package.source)
        } else if !versions.matching.is_empty() {
            let matching: Vec<&Version> = versions.matching.iter().map(|(version, _)| *version).collect();
            let matching = words::versions(&matching);
            if refusals.is_empty() {
                format!("{stated} ({matching})")
            } else {
                format!("{stated} ({matching}; {refusals})")
            }
        } else if !refusals.is_empty() {
            format!("{stated}, but {refusals}")
        } else if !versions.previews.is_empty() {
            let previews = words::versions(&versions.previews);
            format!("{stated}, but there are only pre-releases: {previews}")
        } else {
            let existing = if versions.usable.is_empty() { &versions.all } else { &versions.usable };
            let near = words::nearest(existing, &pivot(fact));
            let (count, shown) = (near.len(), words::versions(&near));
            match existing.len() {
                1 => format!("{stated}, but there is only {shown}"),
                all if all == count => format!("{stated}, but there are only {shown}"),
                all => format!("{stated}, but the nearest of {all} versions are {shown}"),
            }
        }
    }

    /// The last line: the versions that all share, and what to change.
    fn remedy(&self) -> String {
        let mut remedies = Vec::new();
        let mut own = Vec::new();
        for fact in self.facts {
            let required = &fact.requirement;
            let name = self.name(&required.package);
            let stated = required.location.clone().map(|location| (true, location));
            let is_root = fact.dependent.is_none();
            let stated = stated.or_else(|| is_root.then(|| (false, format!("the requirement of {name}"))));
            let is_own = stated.is_some();
            own.extend(stated);
            let Some(versions) = versions(self.store, fact) else { continue };
            if versions.all.is_empty() {
                remedies.push("correct the name or the registry".to_owned());
            } else if versions.matching.is_empty() && is_own {
                let near = words::nearest(&versions.usable, &pivot(fact));
                let below = near.iter().rev().find(|version| ***version <= pivot(fact));
                let nearest = versions.previews.last().or(below).or(near.first());
                remedies.extend(nearest.map(|version| format!("ask for {name} ^{version}")));
            }
            for (candidate, refusal) in &versions.refused {
                remedies.extend(match (refusal, candidate.published) {
                    (Refusal::Yanked, _) => None,
                    (Refusal::Sheaf, _) => Some("update Sheaf".to_owned()),
                    (Refusal::Newer, Some(_)) => Some("choose a later `exclude-newer`".to_owned()),
                    (Refusal::Newer, None) => Some("remove `exclude-newer`".to_owned()),
                    (Refusal::Absent, _) => Some("run the command once with a network".to_owned()),
                });
            }
        }
        if self.facts.len() > 1 || remedies.is_empty() {
            // A line of the user is a better place than a name, if there is one.
            let located = own.iter().any(|(located, _)| *located);
            own.retain(|(has_line, _)| *has_line == located);
            let mut places: Vec<String> = own.into_iter().map(|(_, place)| place).collect();
            places.dedup();
            remedies.push(format!("change {}", words::list(&places, "or")));
        }
        let mut seen = HashSet::new();
        remedies.retain(|remedy| seen.insert(remedy.clone()));
        let remedies = remedies.join(", or ");
        match &self.contested()[..] {
            [] => remedies,
            contested => {
                format!("only one version of {} can be used; {remedies}", words::list(contested, "and of"))
            }
        }
    }

    /// Buckets of which no version meets all requirements of the message.
    fn contested(&self) -> Vec<String> {
        let mut sets: BTreeMap<(&PackageId, String), Vec<BTreeSet<&Version>>> = BTreeMap::new();
        let all: Vec<_> = self.facts.iter().map(|fact| (fact, versions(self.store, fact))).collect();
        for (fact, versions) in &all {
            let mut lines: BTreeMap<String, BTreeSet<&Version>> = BTreeMap::new();
            for (version, line) in versions.iter().flat_map(|versions| &versions.matching) {
                lines.entry(line.to_string()).or_default().insert(version);
            }
            for (line, set) in lines {
                sets.entry((&fact.requirement.package, line)).or_default().push(set);
            }
        }
        let mut contested = Vec::new();
        for ((package, line), sets) in sets {
            let common = sets.iter().skip(1).fold(sets[0].clone(), |common, set| &common & set);
            if common.is_empty() {
                contested.push(format!("{} {line}", self.name(package)));
            }
        }
        contested
    }
}

/// A version at or near the versions that a range matches.
fn pivot(fact: &Fact) -> Version {
    let comparator = fact.requirement.range.comparators.first();
    let at = |part: Option<u64>| part.unwrap_or(0);
    comparator.map_or(Version::new(0, 0, 0), |first| Version {
        pre: first.pre.clone(),
        ..Version::new(first.major, at(first.minor), at(first.patch))
    })
}

#[cfg(test)]
mod tests {
    use pubgrub::Derived;

    use super::*;

    #[test]
    fn a_deep_derivation_is_no_overflow() {
        let leaf = || {
            Tree::External(External::FromDependencyOf(
                Node::Root,
                Ranks::below(1),
                Node::Bucket(0),
                Ranks::below(2),
            ))
        };
        let mut tree = leaf();
        let depth = 200_000;
        for _ in 0..depth {
            let terms = pubgrub::Map::default();
            tree = Tree::Derived(Derived {
                terms,
                shared_id: None,
                cause1: Arc::new(tree),
                cause2: Arc::new(leaf()),
            });
        }
        assert_eq!(leaves(tree).len(), depth + 1);
    }
}
