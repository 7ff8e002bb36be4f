//! Resolution of requirements to versions: cargo's semantics, on the solver of `pubgrub`.
//!
//! # Semantics
//!
//! Versions of a package that are compatible by semver form a *bucket*: `1.x`, `0.3.x`, `0.0.5`. A resolution has at most
//! one version of each bucket; versions of different buckets stand side by side, and each dependent gets its own. A
//! requirement is a [`semver::VersionReq`]: it matches a pre-release only if it names one of the same
//! `major.minor.patch`. A pre-release belongs to the bucket of its release.
//!
//! # Encoding
//!
//! `pubgrub` chooses at most one version of each of its packages (*nodes* here), and a dependency of a node is one set of
//! versions of one other node. Both differ from the above, so there are three kinds of nodes:
//!
//! ```text
//! node                      its versions                       depends on
//! root                      0                                  the project's requirements
//! bucket (package, line)    ranks of the bucket's versions     the version's requirements
//! proxy (dependent, i)      positions of the buckets that      for position k: the k-th bucket, in the versions of
//!                           requirement i can be met by        that bucket that meet the requirement
//! ```
//!
//! A requirement that only one bucket can meet is a dependency on that bucket. A requirement that several buckets can meet
//! is an alternative (`tensors >=0.9, <2` is `0.9.x` or `1.x`), which `pubgrub` cannot say of two nodes; the proxy turns it
//! into a choice of one node's version:
//!
//! ```text
//! Sheaf.toml: a ^1, b ^1, tensors ^0.9       a 1.0.0: tensors >=0.9, <2       b 1.0.0: tensors ^1.4
//!
//!  root ──▶ a 1.x {1.0.0} ──▶ proxy (a 1.0.0, 0) ──┬─ 0 ──▶ tensors 0.9.x {0.9.0, 0.9.3}
//!   │ │                                            └─ 1 ──▶ tensors 1.x {1.0.0, 1.4.0}
//!   │ └───▶ b 1.x {1.0.0} ──▶ tensors 1.x {1.4.0}
//!   └─────▶ tensors 0.9.x {0.9.0, 0.9.3}
//! ```
//!
//! A proxy belongs to one requirement of one version, not to a package: two dependents may choose different buckets for
//! equal requirements, as `Sheaf.lock` may have recorded.
//!
//! **Sets.** The versions of a package that exist and that the policy permits are known when a requirement on it is
//! encoded. A requirement therefore becomes the finite set of those that it matches, by their ranks in the bucket: exact,
//! with pre-releases, and without a translation of ranges to intervals. All sets in negative terms are subsets of such
//! sets, so a set that is not empty always contains a usable version. A requirement without a usable version is a
//! dependency on its proxy in the empty set, which `pubgrub` takes for what it is: that dependent is impossible.
//!
//! **A version that requires its own bucket** would be a dependency of a node on itself. It holds if the version is in the
//! set (the cycle is reported later), else it is a requirement without a usable version.
//!
//! # Decoding
//!
//! `pubgrub` answers with one rank for each bucket that it needed. The decoder walks from the root over requirements; each
//! gets, among the chosen versions that it matches, the one of `Sheaf.lock`, else the preferred one.
//!
//! The result is valid: a requirement of the root or of a chosen version has a chosen version, either of its only bucket,
//! or of the bucket of its proxy's position; hence the walk finds one, and what it finds was chosen, so its own requirements
//! hold as well. A bucket has one rank, hence one version. Versions that the walk does not reach are dropped: nothing
//! requires them. Conversely a valid set of versions is a solution: each proxy takes the position of a bucket that meets it.
//!
//! A resolution resolves to itself if it is given as `Sheaf.lock`: each decision for a locked version or edge agrees with
//! all others, so the solver never has a conflict.
//!
//! # Conflicts
//!
//! The leaves of `pubgrub`'s derivation tree are dependencies between nodes. Each comes from one requirement of the user
//! or of an index, and together these requirements have no solution. They are the message (`explain`): a line each,
//! dependents before those that need them, and the user's own lines at the end.

mod cycle;
mod decode;
mod explain;
mod provider;
mod ranks;
mod request;
mod store;
#[doc(hidden)]
pub mod synthetic;
mod words;

use std::fmt;

pub use cycle::Cycle;
pub use decode::Resolution;
pub use explain::{Conflict, Fact};
pub use request::{Candidate, Index, PackageId, PackageVersion, Policy, Requirement, Root};

/// Cause of a failed resolution.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError<E: std::error::Error + 'static> {
    /// The index cannot say which versions a package has.
    #[error("the versions of {package} cannot be read: {source}")]
    Index {
        /// The package.
        package: PackageId,
        /// The index's error.
        source: E,
    },
    /// No versions satisfy all requirements.
    #[error("{0}")]
    Conflict(Box<Conflict>),
    /// The chosen versions need each other in a cycle.
    #[error("{0}")]
    Cycle(Box<Cycle>),
    /// The search takes too long.
    #[error(
        "the dependencies of {project} are not resolved after {steps} steps; narrow the requirements, \
         so that fewer versions match"
    )]
    TooHard {
        /// The project's name.
        project: String,
        /// The number of decisions of the solver.
        steps: u32,
    },
}

/// Chooses a version for each requirement of `root`, and for those of the chosen versions.
///
/// The result depends on the versions that exist and on the requirements, not on their order. Reads the candidates of the
/// packages that the search meets, and of no others.
pub fn resolve<I: Index>(
    root: &Root,
    index: &I,
    policy: &Policy,
) -> Result<Resolution, ResolveError<I::Error>> {
    let provider = provider::Provider::new(root, index, policy);
    let solved = pubgrub::resolve(&provider, provider::Node::Root, 0_u32);
    let (store, stop) = provider.into_parts();
    match solved {
        Ok(chosen) => {
            let resolution = decode::decode(&store, chosen);
            match cycle::find(&store, &resolution) {
                Some(cycle) => Err(ResolveError::Cycle(Box::new(cycle))),
                None => Ok(resolution),
            }
        }
        Err(pubgrub::PubGrubError::NoSolution(tree)) => {
            Err(ResolveError::Conflict(Box::new(explain::explain(&store, tree))))
        }
        Err(_) => Err(stop.unwrap_or(ResolveError::TooHard { project: root.name.clone(), steps: 0 })),
    }
}

impl fmt::Display for PackageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.source)
    }
}

impl fmt::Display for PackageVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.package.name, self.version)
    }
}

#[cfg(test)]
mod tests;
