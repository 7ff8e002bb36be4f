//! The resolver on random registries, beside a SAT solver.
//!
//! `SHEAF_RANDOM_REGISTRIES` is the number of registries (2,000 by default), `SHEAF_RANDOM_SEED` the number of the first.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use batsat::{BasicSolver, Lit, SolverInterface, lbool};
use jiff::Timestamp;
use semver::{Version, VersionReq};
use sheaf_project::Source;
use sheaf_registry::resolve::synthetic::{Draws, Memory};
use sheaf_registry::resolve::{
    Candidate, Conflict, Cycle, PackageId, PackageVersion, Policy, Requirement, Resolution, ResolveError,
    Root, resolve,
};

const VERSIONS: [&str; 16] = [
    "0.0.1",
    "0.0.2",
    "0.1.0-beta",
    "0.1.0",
    "0.1.1",
    "0.2.0",
    "1.0.0-alpha",
    "1.0.0-rc.1",
    "1.0.0",
    "1.1.0",
    "1.1.1-rc.1",
    "1.2.0",
    "1.2.1",
    "2.0.0-pre",
    "2.0.0",
    "2.1.0",
];

/// Versions of one bucket, for registries with many conflicts.
const COMPATIBLE: [&str; 8] = ["1.0.0", "1.1.0", "1.2.0", "1.2.1", "1.3.0-rc.1", "1.3.0", "1.4.0", "1.5.0"];

struct Case {
    index: Memory,
    root: Root,
    policy: Policy,
}

fn pick<'t, T>(draws: &mut Draws, items: &'t [T]) -> &'t T {
    &items[draws.below(items.len() as u64) as usize]
}

fn one_in(draws: &mut Draws, number: u64) -> bool {
    draws.below(number) == 0
}

fn version(draws: &mut Draws, pool: &[&str]) -> Version {
    pick(draws, pool).parse().unwrap()
}

fn range(draws: &mut Draws, pool: &[&str], existing: &[Version]) -> VersionReq {
    // Seldom a version that need not exist.
    let from_pool = existing.is_empty() || one_in(draws, 25);
    let at = if from_pool { version(draws, pool) } else { pick(draws, existing).clone() };
    let (major, minor) = (at.major, at.minor);
    let text = match draws.below(12) {
        0..=3 => format!("^{at}"),
        4 => format!("^{major}.{minor}"),
        5 => format!("~{at}"),
        6 => format!("={at}"),
        7 => format!(">={at}"),
        8 => format!("<={at}"),
        9 => format!(">={at}, <{}", version(draws, pool)),
        10 => format!("{major}.*"),
        _ => "*".to_owned(),
    };
    text.parse().unwrap()
}

fn case(seed: u64) -> Case {
    let draws = &mut Draws(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    // Cycles in one registry of five.
    let cyclic = one_in(draws, 5);
    let pool: &[&str] = if one_in(draws, 2) { &COMPATIBLE } else { &VERSIONS };
    let count = 2 + draws.below(7) as usize;
    let ids: Vec<PackageId> = (0..count)
        .map(|number| {
            // Names of two registries are two packages.
            let host = if one_in(draws, 6) { "other.example" } else { "registry.example" };
            let source = Source::Registry { index: format!("https://{host}/index") };
            PackageId {
                name: format!("p{}", number / 2 * 2 + usize::from(host == "registry.example")),
                source,
            }
        })
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let existing: Vec<Vec<Version>> = ids
        .iter()
        .map(|_| {
            let number = if one_in(draws, 60) { 0 } else { 1 + draws.below(6) };
            (0..number).map(|_| version(draws, pool)).collect::<BTreeSet<_>>().into_iter().collect()
        })
        .collect();
    let requirements = |draws: &mut Draws, targets: &[usize], most: u64, located: bool| -> Vec<Requirement> {
        if targets.is_empty() {
            return Vec::new();
        }
        let number = if located { 1 + draws.below(most) } else { draws.below(most + 1) };
        let one = |number| {
            let target = *pick(draws, targets);
            let location = located.then(|| format!("Sheaf.toml:{}", number + 7));
            let range = range(draws, pool, &existing[target]);
            Requirement { name: format!("local-{number}"), package: ids[target].clone(), range, location }
        };
        (0..number).map(one).collect()
    };
    let time = |day: u64| -> Timestamp { format!("2026-01-{:02}T00:00:00Z", day + 1).parse().unwrap() };
    let mut packages = BTreeMap::new();
    let all: Vec<usize> = (0..ids.len()).collect();
    for (number, id) in ids.iter().enumerate() {
        let targets = if cyclic { &all[..] } else { &all[number + 1..] };
        let candidates: Vec<Candidate> = existing[number]
            .iter()
            .map(|version| Candidate {
                version: version.clone(),
                dependencies: requirements(draws, targets, 3, false),
                yanked: one_in(draws, 15).then(|| "a reason".to_owned()),
                published: (!one_in(draws, 15)).then(|| time(draws.below(10))),
                sheaf: one_in(draws, 15).then(|| ">=0.5".parse().unwrap()),
                absent: one_in(draws, 15),
            })
            .collect();
        packages.insert(id.clone(), candidates.into());
    }
    let mut policy = Policy::new(Version::new(0, 4, 0));
    policy.minimal = one_in(draws, 5);
    policy.exclude_newer = one_in(draws, 5).then(|| time(6));
    if one_in(draws, 3) {
        for (id, versions) in ids.iter().zip(&existing) {
            for version in versions.iter().filter(|_| one_in(draws, 3)) {
                let locked = PackageVersion { package: id.clone(), version: version.clone() };
                policy.locked.packages.insert(locked, BTreeMap::new());
            }
        }
    }
    let requirements = requirements(draws, &all, 4, true);
    Case { index: Memory { packages }, root: Root { name: "random".into(), requirements }, policy }
}

/// The part of a version that all compatible versions share.
fn bucket(version: &Version) -> (u64, u64, u64) {
    match (version.major, version.minor, version.patch) {
        (0, 0, patch) => (0, 0, patch),
        (0, minor, _) => (0, minor, 0),
        (major, _, _) => (major, 0, 0),
    }
}

impl Case {
    fn usable(&self, package: &PackageId, candidate: &Candidate) -> bool {
        let at = PackageVersion { package: package.clone(), version: candidate.version.clone() };
        let locked = self.policy.locked.packages.contains_key(&at);
        let old = match (self.policy.exclude_newer, candidate.published) {
            (None, _) => true,
            (Some(limit), Some(time)) => time <= limit,
            (Some(_), None) => false,
        };
        candidate.sheaf.is_none() && (locked || (candidate.yanked.is_none() && old && !candidate.absent))
    }

    fn matches(&self, requirement: &Requirement, at: &PackageVersion) -> bool {
        let candidate = self.candidate(at);
        requirement.package == at.package
            && requirement.range.matches(&at.version)
            && self.usable(&at.package, candidate)
    }

    fn candidate(&self, at: &PackageVersion) -> &Candidate {
        let candidates = &self.index.packages[&at.package];
        candidates.iter().find(|candidate| candidate.version == at.version).unwrap()
    }

    fn versions(&self) -> Vec<PackageVersion> {
        let all = self.index.packages.iter();
        all.flat_map(|(package, candidates)| {
            let at =
                |one: &Candidate| PackageVersion { package: package.clone(), version: one.version.clone() };
            candidates.iter().map(at).collect::<Vec<_>>()
        })
        .collect()
    }

    /// True if the requirements that `counts` selects have a solution. Its first argument is `None` for the project.
    fn satisfiable(&self, counts: impl Fn(Option<&PackageVersion>, &Requirement) -> bool) -> bool {
        let mut solver = BasicSolver::default();
        let versions = self.versions();
        let chosen: Vec<Lit> = versions.iter().map(|_| Lit::new(solver.new_var_default(), true)).collect();
        let mut add = |dependent: Option<usize>, requirement: &Requirement| {
            if counts(dependent.map(|at| &versions[at]), requirement) {
                let matching = (0..versions.len()).filter(|at| self.matches(requirement, &versions[*at]));
                let mut clause: Vec<Lit> = matching.map(|at| chosen[at]).collect();
                clause.extend(dependent.map(|at| !chosen[at]));
                solver.add_clause_reuse(&mut clause);
            }
        };
        for requirement in &self.root.requirements {
            add(None, requirement);
        }
        for (position, at) in versions.iter().enumerate() {
            for requirement in &self.candidate(at).dependencies {
                add(Some(position), requirement);
            }
        }
        for (a, left) in versions.iter().enumerate() {
            for (b, right) in versions.iter().enumerate().skip(a + 1) {
                if left.package == right.package && bucket(&left.version) == bucket(&right.version) {
                    solver.add_clause_reuse(&mut vec![!chosen[a], !chosen[b]]);
                }
            }
        }
        match solver.solve_limited(&[]) {
            answer if answer == lbool::TRUE => true,
            answer if answer == lbool::FALSE => false,
            _ => panic!("the SAT solver has no answer"),
        }
    }

    fn check(&self, resolution: &Resolution) {
        let mut needed = BTreeSet::new();
        let mut pending = Vec::new();
        let mut follow = |requirements: &[Requirement], edges: &BTreeMap<String, PackageVersion>| {
            assert_eq!(requirements.len(), edges.len());
            for requirement in requirements {
                let target = &edges[&requirement.name];
                assert!(self.matches(requirement, target), "{requirement:?} is not met by {target}");
                if needed.insert(target.clone()) {
                    pending.push(target.clone());
                }
            }
            pending.pop()
        };
        let mut next = follow(&self.root.requirements, &resolution.roots);
        while let Some(at) = next {
            next = follow(&self.candidate(&at).dependencies, &resolution.packages[&at]);
        }
        let recorded: BTreeSet<PackageVersion> = resolution.packages.keys().cloned().collect();
        assert_eq!(recorded, needed);
        let mut buckets = BTreeSet::new();
        for at in &recorded {
            assert!(buckets.insert((&at.package, bucket(&at.version))), "two compatible versions of {at}");
        }
    }

    fn check_conflict(&self, conflict: &Conflict) {
        let text = conflict.to_string();
        assert!(text.contains("Sheaf.toml:"), "{text}");
        assert!(text.lines().count() < 30 && !text.contains("Proxy") && !text.contains("Bucket"), "{text}");
        // The requirements of the message alone have no solution.
        let named = |dependent: Option<&PackageVersion>, requirement: &Requirement| {
            conflict.facts.iter().any(|fact| {
                let stated = match (&fact.dependent, dependent) {
                    (None, None) => fact.requirement.location == requirement.location,
                    (Some(package), Some(at)) => {
                        *package == at.package && fact.versions.contains(&at.version)
                    }
                    _ => false,
                };
                stated
                    && fact.requirement.package == requirement.package
                    && fact.requirement.range == requirement.range
            })
        };
        assert!(!self.satisfiable(named), "the message leaves something out:\n{text}");
    }

    fn check_cycle(&self, cycle: &Cycle) {
        let next = cycle.versions.iter().cycle().skip(1);
        assert!(!cycle.versions.is_empty());
        for (at, next) in cycle.versions.iter().zip(next) {
            let requirements = &self.candidate(at).dependencies;
            assert!(requirements.iter().any(|required| self.matches(required, next)), "{at} needs no {next}");
        }
    }

    /// The preferred version for each requirement by itself; `None` if two of one bucket are preferred, or none matches.
    fn preferred(&self) -> Option<BTreeSet<PackageVersion>> {
        let mut chosen = BTreeSet::new();
        let mut pending: Vec<&Requirement> = self.root.requirements.iter().collect();
        while let Some(requirement) = pending.pop() {
            let versions = self.versions();
            let matching = versions.into_iter().filter(|at| self.matches(requirement, at));
            let preference = |at: &PackageVersion| {
                let locked = self.policy.locked.packages.contains_key(at);
                (locked, at.version.pre.is_empty())
            };
            let best = matching.max_by(|a, b| {
                let by_version = a.version.cmp(&b.version);
                let by_version = if self.policy.minimal { by_version.reverse() } else { by_version };
                preference(a).cmp(&preference(b)).then(by_version)
            })?;
            if chosen.insert(best.clone()) {
                pending.extend(&self.candidate(&best).dependencies);
            }
        }
        let buckets: BTreeSet<_> = chosen.iter().map(|at| (&at.package, bucket(&at.version))).collect();
        (buckets.len() == chosen.len()).then(|| chosen.clone())
    }

    fn resolve(&self) -> Result<Resolution, ResolveError<std::convert::Infallible>> {
        resolve(&self.root, &self.index, &self.policy)
    }

    /// The same registry and project, in another order.
    fn reversed(&self) -> Self {
        let reverse = |candidates: &Arc<[Candidate]>| -> Arc<[Candidate]> {
            candidates
                .iter()
                .rev()
                .map(|candidate| {
                    let dependencies = candidate.dependencies.iter().rev().cloned().collect();
                    Candidate { dependencies, ..candidate.clone() }
                })
                .collect()
        };
        let packages = self.index.packages.iter().map(|(id, all)| (id.clone(), reverse(all))).collect();
        let requirements = self.root.requirements.iter().rev().cloned().collect();
        Self {
            index: Memory { packages },
            root: Root { requirements, ..self.root.clone() },
            policy: self.policy.clone(),
        }
    }
}

/// Occurrences of what the registries are to contain.
#[derive(Debug, Default)]
struct Tally {
    all: usize,
    satisfiable: usize,
    cycles: usize,
    side_by_side: usize,
    not_preferred: usize,
    explained: usize,
}

fn try_one(seed: u64, tally: &mut Tally) {
    let case = case(seed);
    let satisfiable = case.satisfiable(|_, _| true);
    tally.all += 1;
    tally.satisfiable += usize::from(satisfiable);
    match case.resolve() {
        Ok(resolution) => {
            assert!(satisfiable, "the SAT solver finds no solution");
            case.check(&resolution);
            assert_eq!(case.reversed().resolve().unwrap(), resolution, "the order counts");
            match case.preferred() {
                Some(preferred) => {
                    assert_eq!(resolution.packages.keys().cloned().collect::<BTreeSet<_>>(), preferred);
                }
                None => tally.not_preferred += 1,
            }
            let packages: BTreeSet<_> = resolution.packages.keys().map(|at| &at.package).collect();
            tally.side_by_side += usize::from(packages.len() < resolution.packages.len());
            let policy = Policy { locked: resolution.clone(), ..case.policy.clone() };
            let again = resolve(&case.root, &case.index, &policy).unwrap();
            assert_eq!(again, resolution, "a lock does not resolve to itself");
        }
        Err(ResolveError::Conflict(conflict)) => {
            assert!(!satisfiable, "the SAT solver finds a solution:\n{conflict}");
            case.check_conflict(&conflict);
            tally.explained += usize::from(conflict.facts.len() > 3);
        }
        Err(ResolveError::Cycle(cycle)) => {
            assert!(satisfiable, "the SAT solver finds no solution");
            case.check_cycle(&cycle);
            tally.cycles += 1;
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn random_registries_resolve_as_a_sat_solver_says() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let count = number("SHEAF_RANDOM_REGISTRIES").unwrap_or(2000);
    let first = number("SHEAF_RANDOM_SEED").unwrap_or(0);
    let mut tally = Tally::default();
    for seed in first..first + count {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| try_one(seed, &mut tally)));
        assert!(result.is_ok(), "SHEAF_RANDOM_SEED={seed} SHEAF_RANDOM_REGISTRIES=1 repeats this");
    }
    println!("{tally:?}");
    // Fewer are a repetition of single ones.
    if count >= 300 {
        let share = |part: usize| part * 100 / tally.all;
        assert!((30..=75).contains(&share(tally.satisfiable)), "{tally:?}");
        assert!(share(tally.cycles) >= 1, "{tally:?}");
        assert!(share(tally.side_by_side) >= 3, "{tally:?}");
        assert!(share(tally.not_preferred) >= 3, "{tally:?}");
        assert!(share(tally.explained) >= 2, "{tally:?}");
    }
}
