//! The solver's view of the packages: nodes, their versions and their dependencies.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::convert::Infallible;
use std::fmt;

use pubgrub::{Dependencies, DependencyProvider, PackageResolutionStatistics, VersionSet};

use super::ResolveError;
use super::ranks::Ranks;
use super::request::{Index, Policy, Requirement, Root};
use super::store::{Dependent, Place, Proxy, Store};

/// A package of the solver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// The project.
    Root,
    /// A bucket of the store.
    Bucket(u32),
    /// A proxy of the store.
    Proxy(u32),
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The store, filled as the search goes on.
pub(super) struct Provider<'a, I: Index> {
    index: &'a I,
    store: RefCell<Store<'a>>,
    /// The number of decisions.
    steps: Cell<u32>,
    /// The cause of a stop.
    stop: RefCell<Option<ResolveError<I::Error>>>,
}

/// The end of a search; the provider has the cause.
#[derive(Debug, thiserror::Error)]
#[error("the search for versions is stopped")]
pub(super) struct Stopped;

impl<'a, I: Index> Provider<'a, I> {
    pub(super) fn new(root: &'a Root, index: &'a I, policy: &'a Policy) -> Self {
        let store = RefCell::new(Store::new(root, policy));
        Self { index, store, steps: Cell::new(0), stop: RefCell::new(None) }
    }

    /// The store and the cause of a stop.
    pub(super) fn into_parts(self) -> (Store<'a>, Option<ResolveError<I::Error>>) {
        (self.store.into_inner(), self.stop.into_inner())
    }

    fn stop(&self, cause: ResolveError<I::Error>) -> Stopped {
        *self.stop.borrow_mut() = Some(cause);
        Stopped
    }

    fn constraints(&self, dependent: Dependent) -> Result<Vec<(Node, Ranks)>, Stopped> {
        let store = &mut *self.store.borrow_mut();
        let requirements = store.requirements(dependent);
        let unmet = |requirement: &&Requirement| store.find(&requirement.package).is_none();
        let unmet: Vec<_> = requirements.iter().filter(unmet).map(|required| &required.package).collect();
        if !unmet.is_empty() {
            self.index.prefetch(&unmet);
        }
        // The order of the lines in a manifest is of no consequence.
        let mut sorted: Vec<(usize, &Requirement)> = requirements.iter().enumerate().collect();
        sorted.sort_by_key(|(_, requirement)| (&requirement.name, &requirement.package));
        let mut constraints = Vec::with_capacity(sorted.len());
        for (position, requirement) in sorted {
            let package = store.meet(self.index, &requirement.package).map_err(|source| {
                self.stop(ResolveError::Index { package: requirement.package.clone(), source })
            })?;
            let mut choices = store.matching(package, &requirement.range);
            if let ([(bucket, ranks)], Dependent::Version(own)) = (&choices[..], dependent)
                && *bucket == own.bucket
            {
                if ranks.contains(&own.rank) {
                    continue;
                }
                choices.clear();
            }
            if let [(bucket, ranks)] = &choices[..] {
                store.buckets[*bucket as usize].direct |= dependent == Dependent::Root;
                constraints.push((Node::Bucket(*bucket), ranks.clone()));
            } else {
                let positions = Ranks::below(choices.len() as u32);
                let proxy = store.proxies.len() as u32;
                let order = order(store, dependent, &requirement.name, &choices);
                store.proxies.push(Proxy { dependent, requirement: position, choices, order });
                constraints.push((Node::Proxy(proxy), positions));
            }
        }
        Ok(constraints)
    }
}

/// Positions of the choices of a proxy, preferred ones first.
fn order(store: &Store<'_>, dependent: Dependent, name: &str, choices: &[(u32, Ranks)]) -> Vec<u32> {
    let locked = store.locked_edge(dependent, name);
    let key = |position: &u32| {
        let (bucket, ranks) = &choices[*position as usize];
        let kept = locked.is_some_and(|place| place.bucket == *bucket && ranks.contains(&place.rank));
        let best =
            store.preferred(*bucket, ranks).map(|rank| store.preference(Place { bucket: *bucket, rank }));
        (!kept, best)
    };
    let mut order: Vec<u32> = (0..choices.len() as u32).collect();
    order.sort_by(|a, b| key(a).cmp(&key(b)));
    order
}

impl<I: Index> DependencyProvider for Provider<'_, I> {
    type P = Node;
    type V = u32;
    type VS = Ranks;
    /// Packages with conflicts, then the project's own, then those with the fewest versions to choose from.
    type Priority = (u32, bool, Reverse<usize>);
    type M = Infallible;
    type Err = Stopped;

    fn prioritize(
        &self,
        node: &Node,
        range: &Ranks,
        statistics: &PackageResolutionStatistics,
    ) -> Self::Priority {
        let store = self.store.borrow();
        let (direct, count) = match *node {
            Node::Root => (true, 1),
            Node::Bucket(bucket) => (store.buckets[bucket as usize].direct, store.count(bucket, range)),
            Node::Proxy(proxy) => {
                let proxy = &store.proxies[proxy as usize];
                (proxy.dependent == Dependent::Root, proxy.choices.len())
            }
        };
        (statistics.conflict_count(), direct, Reverse(count))
    }

    fn choose_version(&self, node: &Node, range: &Ranks) -> Result<Option<u32>, Stopped> {
        let store = self.store.borrow();
        Ok(match *node {
            Node::Root => Some(0),
            Node::Bucket(bucket) => store.preferred(bucket, range),
            Node::Proxy(proxy) => {
                let order = &store.proxies[proxy as usize].order;
                order.iter().find(|position| range.contains(position)).copied()
            }
        })
    }

    fn get_dependencies(
        &self,
        node: &Node,
        version: &u32,
    ) -> Result<Dependencies<Node, Ranks, Infallible>, Stopped> {
        let constraints = match *node {
            Node::Root => self.constraints(Dependent::Root)?,
            Node::Bucket(bucket) => self.constraints(Dependent::Version(Place { bucket, rank: *version }))?,
            Node::Proxy(proxy) => {
                let store = self.store.borrow();
                let (bucket, ranks) = &store.proxies[proxy as usize].choices[*version as usize];
                vec![(Node::Bucket(*bucket), ranks.clone())]
            }
        };
        Ok(Dependencies::Available(constraints.into_iter().collect()))
    }

    fn should_cancel(&self) -> Result<(), Stopped> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        let store = self.store.borrow();
        if steps > store.policy.max_steps {
            let project = store.root.name.clone();
            return Err(self.stop(ResolveError::TooHard { project, steps: store.policy.max_steps }));
        }
        Ok(())
    }
}
