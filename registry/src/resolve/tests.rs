use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use semver::{Version, VersionReq};
use sheaf_project::Source;

use super::synthetic::Memory;
use super::*;

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

fn id(name: &str) -> PackageId {
    let (name, host) = name.split_once('@').unwrap_or((name, "registry.example"));
    PackageId { name: name.into(), source: Source::Registry { index: format!("https://{host}/index") } }
}

fn at(text: &str) -> PackageVersion {
    let (name, number) = text.split_once(' ').unwrap();
    PackageVersion { package: id(name), version: version(number) }
}

/// A requirement from `NAME RANGE`, or `LOCAL = NAME RANGE`.
fn requirement(text: &str) -> Requirement {
    let (local, text) = text.split_once(" = ").map_or((None, text), |(local, text)| (Some(local), text));
    let (name, range) = text.split_once(' ').unwrap();
    let package = id(name);
    let name = local.map_or_else(|| package.name.clone(), str::to_owned);
    Requirement { name, package, range: range.parse().unwrap(), location: None }
}

/// A registry of `NAME VERSION FLAGS: REQUIREMENT; REQUIREMENT` lines. A flag is `yanked=REASON`, `at=TIME`, `absent=yes` or
/// `sheaf=RANGE`; `_` stands for a blank.
fn registry(text: &str) -> Memory {
    let mut packages: BTreeMap<PackageId, Vec<Candidate>> = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, requirements) = line.split_once(": ").unwrap_or((line, ""));
        let mut head = head.split(' ');
        let name = id(head.next().unwrap());
        let mut candidate = Candidate::new(version(head.next().unwrap()));
        for flag in head {
            let (key, value) = flag.split_once('=').unwrap();
            match (key, value.replace('_', " ")) {
                ("yanked", reason) => candidate.yanked = Some(reason),
                ("at", time) => candidate.published = Some(time.parse().unwrap()),
                ("absent", _) => candidate.absent = true,
                ("sheaf", range) => candidate.sheaf = Some(range.parse().unwrap()),
                _ => panic!("{flag}"),
            }
        }
        let requirements = requirements.split("; ").filter(|text| !text.is_empty());
        candidate.dependencies = requirements.map(requirement).collect();
        packages.entry(name).or_default().push(candidate);
    }
    Memory { packages: packages.into_iter().map(|(id, candidates)| (id, candidates.into())).collect() }
}

/// A project with one requirement on each line from 7.
fn project(requirements: &[&str]) -> Root {
    let located = |(line, text): (usize, &&str)| Requirement {
        location: Some(format!("Sheaf.toml:{}", line + 7)),
        ..requirement(text)
    };
    Root { name: "demo".into(), requirements: requirements.iter().enumerate().map(located).collect() }
}

fn policy() -> Policy {
    Policy::new(version("0.4.0"))
}

fn try_with(index: &str, requirements: &[&str], policy: &Policy) -> Result<Resolution, String> {
    resolve(&project(requirements), &registry(index), policy).map_err(|error| error.to_string())
}

/// The chosen versions, sorted.
fn chosen_with(index: &str, requirements: &[&str], policy: &Policy) -> String {
    let resolution = try_with(index, requirements, policy).unwrap();
    resolution.packages.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn chosen(index: &str, requirements: &[&str]) -> String {
    chosen_with(index, requirements, &policy())
}

fn message(index: &str, requirements: &[&str]) -> String {
    try_with(index, requirements, &policy()).unwrap_err()
}

fn locked(versions: &[&str]) -> Policy {
    let packages = versions.iter().map(|text| (at(text), BTreeMap::new())).collect();
    Policy { locked: Resolution { packages, roots: BTreeMap::new() }, ..policy() }
}

const TENSORS: &str = "
    tensors 0.9.0
    tensors 0.9.3
    tensors 1.0.0
    tensors 1.2.0
    tensors 1.3.0-rc.1
    tensors 2.0.0
";

#[test]
fn the_highest_matching_version_is_chosen() {
    for (range, expected) in [
        ("^1", "tensors 1.2.0"),
        ("0.9", "tensors 0.9.3"),
        ("=1.0.0", "tensors 1.0.0"),
        (">=0.9", "tensors 2.0.0"),
        ("<2", "tensors 1.2.0"),
        ("*", "tensors 2.0.0"),
        ("1.3.0-rc.1", "tensors 1.3.0-rc.1"),
        (">=1.0.0, <1.3.0-rc.2", "tensors 1.2.0"),
        (">=1.2.1, <1.3.0-rc.2", "tensors 1.3.0-rc.1"),
    ] {
        assert_eq!(chosen(TENSORS, &[&format!("tensors {range}")]), expected, "{range}");
    }
}

#[test]
fn the_lowest_matching_version_is_chosen_if_asked_for() {
    let policy = Policy { minimal: true, ..policy() };
    for (range, expected) in [("^1", "tensors 1.0.0"), (">=0.9.1", "tensors 0.9.3"), ("*", "tensors 0.9.0")] {
        assert_eq!(chosen_with(TENSORS, &[&format!("tensors {range}")], &policy), expected, "{range}");
    }
}

#[test]
fn incompatible_versions_stand_side_by_side() {
    let index = format!(
        "{TENSORS}\n a 1.0.0: tensors ^1\n b 1.0.0: tensors ^2\n c 0.1.0: old = tensors ^0.9; tensors ^1"
    );
    let resolution = try_with(&index, &["a ^1", "b ^1", "c ^0.1"], &policy()).unwrap();
    let edges = |text| &resolution.packages[&at(text)];
    assert_eq!(edges("a 1.0.0")["tensors"], at("tensors 1.2.0"));
    assert_eq!(edges("b 1.0.0")["tensors"], at("tensors 2.0.0"));
    assert_eq!(edges("c 0.1.0")["old"], at("tensors 0.9.3"));
    assert_eq!(edges("c 0.1.0")["tensors"], at("tensors 1.2.0"));
    assert_eq!(resolution.packages.len(), 6);
    assert_eq!(resolution.roots["c"], at("c 0.1.0"));
}

#[test]
fn older_versions_are_taken_where_the_highest_conflict() {
    let index = "
        a 1.0.0: c ^1.0
        a 1.1.0: c ^1.1
        b 1.0.0: c =1.0.0
        c 1.0.0
        c 1.1.0
    ";
    assert_eq!(chosen(index, &["a ^1", "b ^1"]), "a 1.0.0, b 1.0.0, c 1.0.0");
    // A requirement of several buckets yields to the bucket that works.
    let index = "
        a 1.0.0: c >=1, <3
        c 1.0.0
        c 2.0.0: d ^9
        d 1.0.0
    ";
    assert_eq!(chosen(index, &["a ^1"]), "a 1.0.0, c 1.0.0");
}

#[test]
fn names_of_two_registries_are_two_packages() {
    let index = "tensors 1.0.0\n tensors@other.example 1.5.0";
    let resolution = try_with(index, &["a = tensors ^1", "b = tensors@other.example ^1"], &policy()).unwrap();
    assert_eq!(resolution.roots["a"], at("tensors 1.0.0"));
    assert_eq!(resolution.roots["b"], at("tensors@other.example 1.5.0"));
}

#[test]
fn locked_versions_are_kept_while_they_match() {
    for (lock, range, expected) in [
        ("tensors 1.0.0", "^1", "tensors 1.0.0"),
        ("tensors 1.0.0", ">=0.9", "tensors 1.0.0"),
        ("tensors 1.0.0", "^1.1", "tensors 1.2.0"),
        ("tensors 1.3.0-rc.1", "^1", "tensors 1.2.0"),
        ("tensors 1.7.0", "^1", "tensors 1.2.0"),
    ] {
        assert_eq!(chosen_with(TENSORS, &[&format!("tensors {range}")], &locked(&[lock])), expected);
    }
}

#[test]
fn locked_edges_are_kept() {
    let index = format!("{TENSORS}\n a 1.0.0: tensors *\n b 1.0.0: tensors ^2");
    let old = Resolution {
        packages: BTreeMap::from([
            (at("a 1.0.0"), BTreeMap::from([("tensors".to_owned(), at("tensors 0.9.0"))])),
            (at("tensors 0.9.0"), BTreeMap::new()),
            (at("tensors 2.0.0"), BTreeMap::new()),
        ]),
        roots: BTreeMap::new(),
    };
    let mut policy = Policy { locked: old, ..policy() };
    let expected = "a 1.0.0, b 1.0.0, tensors 0.9.0, tensors 2.0.0";
    assert_eq!(chosen_with(&index, &["a ^1", "b ^1"], &policy), expected);
    // An edge to a version that is to be updated does not bind.
    policy.locked.packages.remove(&at("tensors 0.9.0"));
    assert_eq!(chosen_with(&index, &["a ^1", "b ^1"], &policy), "a 1.0.0, b 1.0.0, tensors 2.0.0");
}

const RELEASES: &str = "
    a 1.0.0 at=2026-01-01T00:00:00Z
    a 1.1.0 at=2026-03-01T00:00:00Z yanked=wrong_gradients
    a 1.2.0 at=2026-05-01T00:00:00Z sheaf=>=0.5
    a 1.3.0
";

#[test]
fn versions_are_passed_over_by_policy() {
    let dated = |time: &str| Policy { exclude_newer: Some(time.parse().unwrap()), ..policy() };
    assert_eq!(chosen(RELEASES, &["a ^1"]), "a 1.3.0");
    assert_eq!(chosen(RELEASES, &["a >=1, <1.3"]), "a 1.0.0");
    assert_eq!(chosen_with(RELEASES, &["a ^1"], &dated("2026-01-01T00:00:00Z")), "a 1.0.0");
    let newer = Policy { sheaf: version("0.5.0-dev"), ..dated("2026-06-01T00:00:00Z") };
    assert_eq!(chosen_with(RELEASES, &["a ^1"], &newer), "a 1.2.0");
    // A lock exempts from withdrawal and age, not from the version of Sheaf.
    assert_eq!(chosen_with(RELEASES, &["a ^1"], &locked(&["a 1.1.0"])), "a 1.1.0");
    let kept =
        Policy { exclude_newer: Some("2026-01-01T00:00:00Z".parse().unwrap()), ..locked(&["a 1.3.0"]) };
    assert_eq!(chosen_with(RELEASES, &["a ^1"], &kept), "a 1.3.0");
    assert_eq!(chosen_with(RELEASES, &["a ^1"], &locked(&["a 1.2.0"])), "a 1.3.0");
    // The same for versions that would have to be fetched: another one in the lock would be a surprise.
    let absent = "a 1.0.0\n a 1.1.0 absent=yes";
    assert_eq!(chosen(absent, &["a ^1"]), "a 1.0.0");
    assert_eq!(chosen_with(absent, &["a ^1"], &locked(&["a 1.1.0"])), "a 1.1.0");
}

#[test]
fn only_packages_that_the_search_meets_are_read() {
    struct Counted(Memory, RefCell<Vec<String>>);
    impl Index for Counted {
        type Error = std::convert::Infallible;
        fn candidates(&self, package: &PackageId) -> Result<Arc<[Candidate]>, Self::Error> {
            self.1.borrow_mut().push(package.name.clone());
            self.0.candidates(package)
        }
        fn prefetch(&self, packages: &[&PackageId]) {
            let names: Vec<&str> = packages.iter().map(|package| &*package.name).collect();
            self.1.borrow_mut().push(format!("({})", names.join(" ")));
        }
    }
    let index = registry("a 1.0.0: x ^1\n a 1.1.0: b ^1; c ^1\n b 1.0.0: c ^1\n c 1.0.0\n x 1.0.0\n y 1.0.0");
    let index = Counted(index, RefCell::default());
    resolve(&project(&["a ^1"]), &index, &policy()).unwrap();
    assert_eq!(index.1.into_inner().join(" "), "(a) a (b c) b c");
}

#[test]
fn an_index_that_fails_stops_the_search() {
    struct Broken(Memory);
    impl Index for Broken {
        type Error = std::io::Error;
        fn candidates(&self, package: &PackageId) -> Result<Arc<[Candidate]>, Self::Error> {
            if package.name == "b" {
                return Err(std::io::Error::other("line 3 is not JSON"));
            }
            self.0.candidates(package).map_err(|never| match never {})
        }
    }
    let error = resolve(&project(&["a ^1"]), &Broken(registry("a 1.0.0: b ^1")), &policy()).unwrap_err();
    insta::assert_snapshot!(error, @"the versions of b (registry+https://registry.example/index) cannot be read: line 3 is not JSON");
}

#[test]
fn the_search_has_an_end() {
    let policy = Policy { max_steps: 3, ..policy() };
    let index = "a 1.0.0: b ^1\n b 1.0.0: c ^1\n c 1.0.0: d ^1\n d 1.0.0";
    insta::assert_snapshot!(try_with(index, &["a ^1"], &policy).unwrap_err(), @"the dependencies of demo are not resolved after 3 steps; narrow the requirements, so that fewer versions match");
}

#[test]
fn a_long_message_ends() {
    // Each version of `p` is refused by a chain of its own.
    let mut index = String::new();
    for number in 0..300 {
        index += &format!("p 1.{number}.0: q =1.{number}.0\n q 1.{number}.0: r =1.{number}.0\n");
    }
    index += "r 2.0.0";
    let text = message(&index, &["p ^1"]);
    assert!(text.lines().count() < 30, "{text}");
    assert!(text.contains("more requirements of packages") && text.contains("Sheaf.toml:7 asks for p ^1"));
}

#[test]
fn a_missing_version_is_explained() {
    let index = "a 1.0.0\n a 1.1.0\n a 2.0.0";
    insta::assert_snapshot!(message(index, &["a ^3"]), @"Sheaf.toml:7 asks for a ^3, but there are only 1.0.0, 1.1.0 and 2.0.0; ask for a ^2.0.0");
    insta::assert_snapshot!(message("a 1.0.0", &["a ^0.9"]), @"Sheaf.toml:7 asks for a ^0.9, but there is only 1.0.0; ask for a ^1.0.0");
    let many: String = (0..12).map(|minor| format!("a 1.{minor}.0\n")).collect();
    insta::assert_snapshot!(message(&many, &["a =1.7.3"]), @"Sheaf.toml:7 asks for a =1.7.3, but the nearest of 12 versions are 1.6.0, 1.7.0, 1.8.0 and 1.9.0; ask for a ^1.7.0");
    insta::assert_snapshot!(message("a 1.0.0-rc.1\n a 1.0.0-rc.2", &["a ^1"]), @"Sheaf.toml:7 asks for a ^1, but there are only pre-releases: 1.0.0-rc.1 and 1.0.0-rc.2; ask for a ^1.0.0-rc.2");
}

#[test]
fn a_missing_package_is_explained() {
    insta::assert_snapshot!(message("a 1.0.0", &["atention-lib ^1"]), @"Sheaf.toml:7 asks for atention-lib ^1, but registry+https://registry.example/index has no such package; correct the name or the registry");
    insta::assert_snapshot!(message("a 1.0.0: gone ^1\n a 1.1.0: gone ^1", &["a ^1"]), @"
    the dependencies of `demo` have no common solution:
      a 1.0.0 and 1.1.0 need gone ^1, but registry+https://registry.example/index has no such package
      Sheaf.toml:7 asks for a ^1 (1.0.0 and 1.1.0)
    correct the name or the registry, or change Sheaf.toml:7
    ");
    let error = resolve(&project(&["a ^1"]), &registry("a 1.0.0: gone ^1"), &policy()).unwrap_err();
    let ResolveError::Conflict(conflict) = error else { panic!("{error}") };
    assert_eq!(conflict.unknown, [id("gone")]);
}

#[test]
fn versions_that_are_passed_over_are_explained() {
    insta::assert_snapshot!(message(RELEASES, &["a =1.1.0"]), @"Sheaf.toml:7 asks for a =1.1.0, but 1.1.0 is yanked: wrong gradients; ask for a ^1.0.0");
    insta::assert_snapshot!(message("a 1.0.0 yanked=", &["a ^1"]), @"Sheaf.toml:7 asks for a ^1, but 1.0.0 is yanked; change Sheaf.toml:7");
    insta::assert_snapshot!(message(RELEASES, &["a =1.2.0"]), @"Sheaf.toml:7 asks for a =1.2.0, but 1.2.0 needs Sheaf >=0.5, and this is Sheaf 0.4.0; ask for a ^1.0.0, or update Sheaf");
    let dated = Policy { exclude_newer: Some("2026-02-01T00:00:00Z".parse().unwrap()), ..policy() };
    insta::assert_snapshot!(try_with(RELEASES, &["a =1.3.0"], &dated).unwrap_err(), @"Sheaf.toml:7 asks for a =1.3.0, but 1.3.0 has no time of publication, which `exclude-newer` needs; ask for a ^1.0.0, or remove `exclude-newer`");
    let index = "a 1.0.0 at=2026-03-01T00:00:00Z\n a 1.1.0 at=2026-04-01T00:00:00Z";
    insta::assert_snapshot!(try_with(index, &["a ^1"], &dated).unwrap_err(), @"Sheaf.toml:7 asks for a ^1, but 1.0.0 and 1.1.0 were published after 2026-02-01T00:00:00Z (`exclude-newer`), 1.0.0 on 2026-03-01T00:00:00Z; choose a later `exclude-newer`");
    let index = "a 1.0.0\n a 1.1.0 absent=yes\n a 1.2.0 absent=yes";
    insta::assert_snapshot!(message(index, &["a ^1.2"]), @"Sheaf.toml:7 asks for a ^1.2, but 1.2.0 is not on this machine, and --offline or SHEAF_OFFLINE forbids to fetch it; ask for a ^1.0.0, or run the command once with a network");
    insta::assert_snapshot!(message(index, &["a ^1.1"]), @"Sheaf.toml:7 asks for a ^1.1, but 1.1.0 and 1.2.0 are not on this machine, and --offline or SHEAF_OFFLINE forbids to fetch them; ask for a ^1.0.0, or run the command once with a network");
    insta::assert_snapshot!(message("a 1.0.0 absent=yes", &["a ^1"]), @"Sheaf.toml:7 asks for a ^1, but 1.0.0 is not on this machine, and --offline or SHEAF_OFFLINE forbids to fetch it; run the command once with a network");
}

#[test]
fn disjoint_requirements_are_explained() {
    let index = "
        attention-lib 1.2.0: tensors ^1.4
        optim-extra 0.3.0: tensors ~1.3
        optim-extra 0.3.1: tensors ~1.3
        tensors 1.3.0
        tensors 1.3.2
        tensors 1.4.0
    ";
    insta::assert_snapshot!(message(index, &["attention-lib ^1.2", "optim-extra ^0.3"]), @"
    the dependencies of `demo` have no common solution:
      attention-lib 1.2.0 needs tensors ^1.4 (1.4.0)
      optim-extra 0.3.0 and 0.3.1 need tensors ~1.3 (1.3.0 and 1.3.2)
      Sheaf.toml:7 asks for attention-lib ^1.2 (1.2.0)
      Sheaf.toml:8 asks for optim-extra ^0.3 (0.3.0 and 0.3.1)
    only one version of tensors 1.x can be used; change Sheaf.toml:7 or Sheaf.toml:8
    ");
    insta::assert_snapshot!(message(index, &["attention-lib ^1", "tensors <1.4"]), @"
    the dependencies of `demo` have no common solution:
      attention-lib 1.2.0 needs tensors ^1.4 (1.4.0)
      Sheaf.toml:7 asks for attention-lib ^1 (1.2.0)
      Sheaf.toml:8 asks for tensors <1.4 (1.3.0 and 1.3.2)
    only one version of tensors 1.x can be used; change Sheaf.toml:7 or Sheaf.toml:8
    ");
    insta::assert_snapshot!(message(index, &["a = tensors =1.3.0", "b = tensors =1.4.0"]), @"
    the dependencies of `demo` have no common solution:
      Sheaf.toml:7 asks for tensors =1.3.0 (1.3.0)
      Sheaf.toml:8 asks for tensors =1.4.0 (1.4.0)
    only one version of tensors 1.x can be used; change Sheaf.toml:7 or Sheaf.toml:8
    ");
}

#[test]
fn a_conflict_that_a_withdrawn_version_would_solve_is_explained() {
    let index = "
        a 1.0.0: c =1.0.0
        a 1.1.0 yanked=wrong_gradients: c ^1.1
        b 1.0.0: c ^1.1
        c 1.0.0
        c 1.1.0
    ";
    insta::assert_snapshot!(message(index, &["a ^1", "b ^1"]), @"
    the dependencies of `demo` have no common solution:
      a 1.0.0 needs c =1.0.0 (1.0.0)
      b 1.0.0 needs c ^1.1 (1.1.0)
      Sheaf.toml:7 asks for a ^1 (1.0.0; 1.1.0 is yanked: wrong gradients)
      Sheaf.toml:8 asks for b ^1 (1.0.0)
    only one version of c 1.x can be used; change Sheaf.toml:7 or Sheaf.toml:8
    ");
}

#[test]
fn a_chain_is_explained_from_its_end() {
    let index = "
        a 1.0.0: b ^1
        a 1.1.0: b ^1
        b 1.0.0: c ^1
        c 1.0.0: d ^2
        d 1.0.0
        d 3.0.0
    ";
    insta::assert_snapshot!(message(index, &["a ^1"]), @"
    the dependencies of `demo` have no common solution:
      c 1.0.0 needs d ^2, but there are only 1.0.0 and 3.0.0
      b 1.0.0 needs c ^1 (1.0.0)
      a 1.0.0 and 1.1.0 need b ^1 (1.0.0)
      Sheaf.toml:7 asks for a ^1 (1.0.0 and 1.1.0)
    change Sheaf.toml:7
    ");
}

#[test]
fn a_conflict_over_several_buckets_is_explained() {
    let index = "
        a 1.0.0: c >=1, <3
        c 1.0.0
        c 1.1.0
        c 2.0.0: d ^2
        d 1.0.0
    ";
    insta::assert_snapshot!(message(index, &["a ^1", "c =1.0.0", "other = c =1.1.0"]), @"
    the dependencies of `demo` have no common solution:
      Sheaf.toml:8 asks for c =1.0.0 (1.0.0)
      Sheaf.toml:9 asks for c =1.1.0 (1.1.0)
    only one version of c 1.x can be used; change Sheaf.toml:8 or Sheaf.toml:9
    ");
    let index = "
        a 1.0.0: c >=1, <3
        c 1.0.0: d ^3
        c 2.0.0: d ^2
        d 1.0.0
    ";
    insta::assert_snapshot!(message(index, &["a ^1"]), @"
    the dependencies of `demo` have no common solution:
      c 1.0.0 needs d ^3, but there is only 1.0.0
      c 2.0.0 needs d ^2, but there is only 1.0.0
      a 1.0.0 needs c >=1, <3 (1.0.0 and 2.0.0)
      Sheaf.toml:7 asks for a ^1 (1.0.0)
    change Sheaf.toml:7
    ");
}

#[test]
fn a_package_that_needs_another_version_of_itself_is_explained() {
    insta::assert_snapshot!(message("a 1.0.0: a ^1.1\n a 1.1.0: gone *", &["a =1.0.0"]), @"
    the dependencies of `demo` have no common solution:
      a 1.0.0 needs a ^1.1 (1.1.0)
      Sheaf.toml:7 asks for a =1.0.0 (1.0.0)
    only one version of a 1.x can be used; change Sheaf.toml:7
    ");
    // Another bucket is another package.
    assert_eq!(chosen("a 2.0.0: a ^1\n a 1.0.0", &["a ^2"]), "a 1.0.0, a 2.0.0");
}

#[test]
fn equal_names_are_told_apart() {
    let index = "a 1.0.0: t ^1.1\n a 1.1.0: t@other.example ^2\n t 1.0.0\n t@other.example 1.0.0";
    insta::assert_snapshot!(message(index, &["a ^1"]), @"
    the dependencies of `demo` have no common solution:
      a 1.0.0 needs t (registry+https://registry.example/index) ^1.1, but there is only 1.0.0
      a 1.1.0 needs t (registry+https://other.example/index) ^2, but there is only 1.0.0
      Sheaf.toml:7 asks for a ^1 (1.0.0 and 1.1.0)
    change Sheaf.toml:7
    ");
}

#[test]
fn a_member_of_a_workspace_is_a_line_of_the_user() {
    let mut index = registry("t 1.0.0\n t 2.0.0");
    let mut needed = requirement("t ^3");
    needed.location = Some("members/a/Sheaf.toml:9".into());
    let member = Candidate { dependencies: vec![needed], ..Candidate::new(version("0.1.0")) };
    index.packages.insert(id("a"), [member].into());
    let root = Root { name: "demo".into(), requirements: vec![requirement("a *")] };
    insta::assert_snapshot!(resolve(&root, &index, &policy()).unwrap_err(), @"
    the dependencies of `demo` have no common solution:
      members/a/Sheaf.toml:9 asks for t ^3, but there are only 1.0.0 and 2.0.0
      `demo` asks for a * (0.1.0)
    ask for t ^2.0.0, or change members/a/Sheaf.toml:9
    ");
}

#[test]
fn a_cycle_is_an_error_that_prints_it() {
    let index = "
        a 1.0.0
        a 1.1.0: b ^1
        b 1.0.0: c ^1
        c 1.0.0: a ^1
        d 1.0.0: b ^1
    ";
    insta::assert_snapshot!(message(index, &["d ^1"]), @"
    packages need each other in a cycle, which `use` cannot follow:
      b 1.0.0 needs c ^1
      c 1.0.0 needs a ^1
      a 1.1.0 needs b ^1
      Sheaf.toml:7 asks for d ^1
    ask for versions without this cycle, or for a package that has the common part
    ");
    insta::assert_snapshot!(message("a 1.0.0: a ^1", &["a ^1"]), @"
    packages need each other in a cycle, which `use` cannot follow:
      a 1.0.0 needs a ^1
      Sheaf.toml:7 asks for a ^1
    ask for versions without this cycle, or for a package that has the common part
    ");
    let error = resolve(&project(&["d ^1"]), &registry(index), &policy()).unwrap_err();
    let ResolveError::Cycle(cycle) = error else { panic!("{error}") };
    assert_eq!(cycle.versions, [at("b 1.0.0"), at("c 1.0.0"), at("a 1.1.0")]);
    // The same names in another version are no cycle.
    assert_eq!(chosen("a 2.0.0: b ^1\n b 1.0.0: a ^1\n a 1.0.0", &["a ^2"]), "a 1.0.0, a 2.0.0, b 1.0.0");
}

#[test]
fn equal_versions_count_once() {
    let index = "a 1.0.0: b ^1\n a 1.0.0: gone ^1\n b 1.0.0";
    assert_eq!(chosen(index, &["a ^1"]), "a 1.0.0, b 1.0.0");
}

#[test]
fn a_synthetic_project_has_the_size_that_is_asked_for() {
    let size = synthetic::Size { packages: 1000, versions: 10, graph: 200 };
    let (index, root) = synthetic::registry(size, 1);
    assert_eq!(index.packages.len(), 1000);
    let resolution = resolve(&root, &index, &policy()).unwrap();
    assert_eq!(resolution.packages.len(), 200);
    let star = VersionReq::STAR;
    let ranges = index.packages.values().flat_map(|all| all.iter()).flat_map(|one| &one.dependencies);
    assert!(ranges.into_iter().all(|requirement| requirement.range != star), "all ranges are well-formed");
    let lowest = resolve(&root, &index, &Policy { minimal: true, ..policy() }).unwrap();
    assert_eq!(lowest.packages.len(), 200);
}
