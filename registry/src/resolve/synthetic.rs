//! Generated registries, for benches and tests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use semver::{Version, VersionReq};
use sheaf_project::Source;

use super::request::{Candidate, Index, PackageId, Requirement, Root};

/// Candidates in memory.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// The versions of each package.
    pub packages: BTreeMap<PackageId, Arc<[Candidate]>>,
}

impl Index for Memory {
    type Error = Infallible;

    fn candidates(&self, package: &PackageId) -> Result<Arc<[Candidate]>, Infallible> {
        Ok(self.packages.get(package).cloned().unwrap_or_default())
    }
}

/// Size of a generated registry.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Number of packages.
    pub packages: usize,
    /// Number of versions of each package: `1.0.0`, `1.1.0` and so on.
    pub versions: u64,
    /// Number of packages that a project needs.
    pub graph: usize,
}

/// The packages of one project and of others, and the project.
///
/// Packages come in groups of the size of a project's graph. Each but the first few of a group is needed by one before it,
/// and may need up to three others behind it. One requirement in ten has an upper bound, so that the highest versions do
/// not always fit; the lowest always do. All is in `1.x`, so that tools without versions side by side resolve it as well.
pub fn registry(size: Size, seed: u64) -> (Memory, Root) {
    let mut draws = Draws(seed);
    let roots = (size.graph / 20).max(1);
    let mut memory = Memory::default();
    for number in 0..size.packages {
        let group = number / size.graph * size.graph;
        let end = (group + size.graph).min(size.packages);
        let place = number - group;
        // Needed children make the group one graph: those of `place` are `roots + 2 * place` and the next.
        let children =
            (group + roots + 2 * place..group + roots + 2 * place + 2).filter(|child| *child < end);
        let mut needed: Vec<usize> = children.collect();
        for _ in 0..draws.below(4) {
            let behind = end - number - 1;
            if behind > 0 {
                needed.push(number + 1 + draws.below(behind as u64) as usize);
            }
        }
        needed.sort_unstable();
        needed.dedup();
        let candidates: Vec<Candidate> = (0..size.versions)
            .map(|minor| {
                let requirement = |target: &usize| {
                    let low = draws.below(minor + 1);
                    let range = match draws.below(10) {
                        0 => format!(">=1.{low}, <1.{}", low + 1 + draws.below(size.versions)),
                        _ => format!("^1.{low}"),
                    };
                    requirement(*target, &range, None)
                };
                let dependencies = needed.iter().map(requirement).collect();
                Candidate { dependencies, ..Candidate::new(Version::new(1, minor, 0)) }
            })
            .collect();
        memory.packages.insert(id(number), candidates.into());
    }
    let requirements = (0..roots)
        .map(|number| requirement(number, "^1", Some(format!("Sheaf.toml:{}", number + 7))))
        .collect();
    (memory, Root { name: "synthetic".into(), requirements })
}

fn id(number: usize) -> PackageId {
    let source = Source::Registry { index: "https://registry.example/index".into() };
    PackageId { name: format!("package-{number:05}"), source }
}

fn requirement(target: usize, range: &str, location: Option<String>) -> Requirement {
    let package = id(target);
    let range = VersionReq::parse(range).unwrap_or(VersionReq::STAR);
    Requirement { name: package.name.clone(), package, range, location }
}

/// Random numbers: splitmix64.
#[derive(Debug, Clone)]
pub struct Draws(pub u64);

impl Draws {
    /// The next number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }
}
