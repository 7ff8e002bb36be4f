//! Versions of the packages that the search met, in buckets.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use pubgrub::VersionSet;
use semver::{Version, VersionReq};
use sheaf_project::works_with;

use super::ranks::Ranks;
use super::request::{Candidate, Index, PackageId, PackageVersion, Policy, Requirement, Root};

/// The packages met so far, and the proxies of their requirements.
pub(super) struct Store<'a> {
    pub(super) root: &'a Root,
    pub(super) policy: &'a Policy,
    pub(super) packages: Vec<Known>,
    pub(super) buckets: Vec<Bucket>,
    pub(super) proxies: Vec<Proxy>,
    ids: HashMap<PackageId, usize>,
    locked: HashMap<&'a PackageId, HashSet<&'a Version>>,
}

/// A package and its versions.
pub(super) struct Known {
    pub(super) id: PackageId,
    candidates: Arc<[Candidate]>,
    /// The versions, ascending; those of a bucket are neighbours.
    pub(super) entries: Vec<Entry>,
}

/// A version of a package.
pub(super) struct Entry {
    /// Position among the candidates.
    candidate: usize,
    pub(super) bucket: u32,
    /// Position in the bucket.
    pub(super) rank: u32,
    locked: bool,
    /// The reason to pass over it; `None` if it is usable.
    pub(super) refusal: Option<Refusal>,
}

/// Reason to pass over a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Yanked,
    /// It needs another version of Sheaf.
    Sheaf,
    /// It is newer than `exclude_newer`, or of unknown age.
    Newer,
    /// It is not on this machine, and may not be fetched.
    Absent,
}

/// The compatible versions of a package.
pub(super) struct Bucket {
    /// Position of the package.
    pub(super) package: usize,
    pub(super) line: Line,
    /// Position of the first entry.
    first: usize,
    /// Ranks, preferred ones first.
    order: Vec<u32>,
    /// True if the project itself requires it.
    pub(super) direct: bool,
}

/// A requirement that several buckets can meet, or none.
pub(super) struct Proxy {
    pub(super) dependent: Dependent,
    /// Position among the dependent's requirements.
    pub(super) requirement: usize,
    /// The buckets, with the versions that meet the requirement.
    pub(super) choices: Vec<(u32, Ranks)>,
    /// Positions in `choices`, preferred ones first.
    pub(super) order: Vec<u32>,
}

/// A bearer of requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Dependent {
    Root,
    Version(Place),
}

/// A version, by its bucket and its rank in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) bucket: u32,
    pub(super) rank: u32,
}

/// The common part of compatible versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Major(u64),
    Minor(u64),
    Patch(u64),
}

impl Line {
    pub(super) fn of(version: &Version) -> Self {
        match (version.major, version.minor) {
            (0, 0) => Self::Patch(version.patch),
            (0, minor) => Self::Minor(minor),
            (major, _) => Self::Major(major),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Major(major) => write!(f, "{major}.x"),
            Self::Minor(minor) => write!(f, "0.{minor}.x"),
            Self::Patch(patch) => write!(f, "0.0.{patch}"),
        }
    }
}

impl Known {
    pub(super) fn candidate(&self, entry: &Entry) -> &Candidate {
        &self.candidates[entry.candidate]
    }

    pub(super) fn version(&self, entry: &Entry) -> &Version {
        &self.candidate(entry).version
    }
}

impl<'a> Store<'a> {
    pub(super) fn new(root: &'a Root, policy: &'a Policy) -> Self {
        let mut locked: HashMap<&PackageId, HashSet<&Version>> = HashMap::new();
        for at in policy.locked.packages.keys() {
            locked.entry(&at.package).or_default().insert(&at.version);
        }
        Self {
            root,
            policy,
            packages: Vec::new(),
            buckets: Vec::new(),
            proxies: Vec::new(),
            ids: HashMap::new(),
            locked,
        }
    }

    /// The position of a package that was met before.
    pub(super) fn find(&self, id: &PackageId) -> Option<usize> {
        self.ids.get(id).copied()
    }

    /// The position of a package, whose candidates are read if it is met for the first time.
    pub(super) fn meet<I: Index>(&mut self, index: &I, id: &PackageId) -> Result<usize, I::Error> {
        if let Some(known) = self.find(id) {
            return Ok(known);
        }
        let candidates = index.candidates(id)?;
        let position = self.packages.len();
        self.ids.insert(id.clone(), position);
        let known = self.sorted(position, id.clone(), candidates);
        self.packages.push(known);
        Ok(position)
    }

    fn sorted(&mut self, package: usize, id: PackageId, candidates: Arc<[Candidate]>) -> Known {
        let mut ascending: Vec<usize> = (0..candidates.len()).collect();
        // Stable: of equal versions the first stays first.
        ascending.sort_by(|a, b| candidates[*a].version.cmp(&candidates[*b].version));
        ascending.dedup_by(|a, b| candidates[*a].version == candidates[*b].version);
        let locked = self.locked.get(&id);
        let mut entries: Vec<Entry> = Vec::with_capacity(ascending.len());
        let mut line = None;
        let met = self.buckets.len();
        for candidate in ascending {
            let version = &candidates[candidate].version;
            if line.replace(Line::of(version)) != Some(Line::of(version)) {
                let first = entries.len();
                let line = Line::of(version);
                self.buckets.push(Bucket { package, line, first, order: Vec::new(), direct: false });
            }
            let bucket = self.buckets.len() - 1;
            let rank = entries.len() - self.buckets[bucket].first;
            let locked = locked.is_some_and(|locked| locked.contains(version));
            let refusal = refusal(&candidates[candidate], locked, self.policy);
            entries.push(Entry { candidate, bucket: bucket as u32, rank: rank as u32, locked, refusal });
        }
        let known = Known { id, candidates, entries };
        for entry in &known.entries {
            self.buckets[entry.bucket as usize].order.push(entry.rank);
        }
        for bucket in &mut self.buckets[met..] {
            let entries = &known.entries[bucket.first..];
            bucket.order.sort_by(|a, b| {
                let [a, b] = [a, b].map(|rank| preference(&known, &entries[*rank as usize], self.policy));
                a.cmp(&b)
            });
        }
        known
    }

    /// The usable versions of a package that `range` matches, by bucket.
    pub(super) fn matching(&self, package: usize, range: &VersionReq) -> Vec<(u32, Ranks)> {
        let known = &self.packages[package];
        let mut buckets: Vec<(u32, Vec<u32>)> = Vec::new();
        let usable = known.entries.iter().filter(|entry| entry.refusal.is_none());
        for entry in usable.filter(|entry| range.matches(known.version(entry))) {
            match buckets.last_mut() {
                Some((bucket, ranks)) if *bucket == entry.bucket => ranks.push(entry.rank),
                _ => buckets.push((entry.bucket, vec![entry.rank])),
            }
        }
        buckets.into_iter().map(|(bucket, ranks)| (bucket, ranks.into_iter().collect())).collect()
    }

    /// The preferred version of a set of its bucket's versions.
    pub(super) fn preferred(&self, bucket: u32, ranks: &Ranks) -> Option<u32> {
        self.buckets[bucket as usize].order.iter().find(|rank| ranks.contains(rank)).copied()
    }

    /// The number of versions of a bucket.
    pub(super) fn size(&self, bucket: u32) -> u32 {
        self.buckets[bucket as usize].order.len() as u32
    }

    /// The number of versions of a bucket in a set.
    pub(super) fn count(&self, bucket: u32, ranks: &Ranks) -> usize {
        self.buckets[bucket as usize].order.iter().filter(|rank| ranks.contains(rank)).count()
    }

    /// Sort key of a version: smaller is preferred.
    pub(super) fn preference(&self, place: Place) -> impl Ord {
        let (known, entry) = self.entry(place);
        preference(known, entry, self.policy)
    }

    pub(super) fn entry(&self, place: Place) -> (&Known, &Entry) {
        let bucket = &self.buckets[place.bucket as usize];
        let known = &self.packages[bucket.package];
        (known, &known.entries[bucket.first + place.rank as usize])
    }

    pub(super) fn package_version(&self, place: Place) -> PackageVersion {
        let (known, entry) = self.entry(place);
        PackageVersion { package: known.id.clone(), version: known.version(entry).clone() }
    }

    /// The place of a version that was met before.
    pub(super) fn place(&self, at: &PackageVersion) -> Option<Place> {
        let known = &self.packages[self.find(&at.package)?];
        let position = known.entries.binary_search_by(|entry| known.version(entry).cmp(&at.version)).ok()?;
        let entry = &known.entries[position];
        Some(Place { bucket: entry.bucket, rank: entry.rank })
    }

    pub(super) fn requirements(&self, dependent: Dependent) -> Requirements<'a> {
        match dependent {
            Dependent::Root => Requirements::Root(&self.root.requirements),
            Dependent::Version(place) => {
                let (known, entry) = self.entry(place);
                Requirements::Candidate(Arc::clone(&known.candidates), entry.candidate)
            }
        }
    }

    /// The target of the edge in `Sheaf.lock`, if `Sheaf.lock` still has the target itself.
    pub(super) fn locked_edge(&self, dependent: Dependent, name: &str) -> Option<Place> {
        let locked = &self.policy.locked;
        let edges = match dependent {
            Dependent::Root => &locked.roots,
            // Without a lock, spares the construction of a key.
            Dependent::Version(_) if locked.packages.is_empty() => return None,
            Dependent::Version(place) => locked.packages.get(&self.package_version(place))?,
        };
        let target = edges.get(name).filter(|target| locked.packages.contains_key(target))?;
        self.place(target)
    }
}

/// The requirements of the project or of a candidate.
pub(super) enum Requirements<'a> {
    Root(&'a [Requirement]),
    Candidate(Arc<[Candidate]>, usize),
}

impl std::ops::Deref for Requirements<'_> {
    type Target = [Requirement];

    fn deref(&self) -> &[Requirement] {
        match self {
            Self::Root(requirements) => requirements,
            Self::Candidate(candidates, position) => &candidates[*position].dependencies,
        }
    }
}

fn refusal(candidate: &Candidate, locked: bool, policy: &Policy) -> Option<Refusal> {
    if candidate.yanked.is_some() && !locked {
        Some(Refusal::Yanked)
    } else if candidate.sheaf.as_ref().is_some_and(|sheaf| !works_with(sheaf, &policy.sheaf)) {
        Some(Refusal::Sheaf)
    } else if let (Some(limit), false) = (policy.exclude_newer, locked)
        && candidate.published.is_none_or(|time| time > limit)
    {
        Some(Refusal::Newer)
    } else if candidate.absent && !locked {
        Some(Refusal::Absent)
    } else {
        None
    }
}

fn preference<'k>(
    known: &'k Known,
    entry: &Entry,
    policy: &Policy,
) -> (bool, bool, Result<&'k Version, Reverse<&'k Version>>) {
    let version = known.version(entry);
    let by_version = if policy.minimal { Ok(version) } else { Err(Reverse(version)) };
    (!entry.locked, !version.pre.is_empty(), by_version)
}
