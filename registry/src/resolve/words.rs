//! Phrases of messages.

use semver::Version;

use super::request::Candidate;
use super::store::{Refusal, Store};

/// Versions named one by one.
const NAMED: usize = 4;

/// Maximum length of a text from an index, in characters.
const QUOTED: usize = 200;

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., end] => format!("{} {last} {end}", init.join(", ")),
    }
}

/// The versions, ascending: by name if they are few.
pub(super) fn versions(versions: &[&Version]) -> String {
    match versions {
        [first, .., end] if versions.len() > NAMED => {
            format!("{} versions from {first} to {end}", versions.len())
        }
        _ => list(&versions.iter().map(ToString::to_string).collect::<Vec<_>>(), "and"),
    }
}

/// The versions nearest to `pivot`, of ascending `versions`.
pub(super) fn nearest<'v>(versions: &[&'v Version], pivot: &Version) -> Vec<&'v Version> {
    let above = versions.partition_point(|version| *version < pivot);
    let from = above.saturating_sub(NAMED / 2).min(versions.len().saturating_sub(NAMED));
    versions.iter().skip(from).take(NAMED).copied().collect()
}

/// The versions that were passed over, each with the reason.
pub(super) fn refusals(store: &Store<'_>, refused: &[(&Candidate, Refusal)]) -> String {
    // The newest are the ones that users look for.
    let each =
        refused.iter().rev().filter(|(_, refusal)| !matches!(refusal, Refusal::Newer | Refusal::Absent));
    let named = each.clone().take(NAMED).map(|(candidate, refusal)| {
        let version = &candidate.version;
        match (refusal, &candidate.yanked, &candidate.sheaf) {
            (Refusal::Sheaf, _, Some(range)) => {
                format!("{version} needs Sheaf {range}, and this is Sheaf {}", store.policy.sheaf)
            }
            (_, Some(reason), _) if !reason.trim().is_empty() => {
                format!("{version} is yanked: {}", plain(reason))
            }
            _ => format!("{version} is yanked"),
        }
    });
    let mut phrases: Vec<String> = named.collect();
    let more = each.count() - phrases.len();
    if more > 0 {
        phrases.push(format!("{more} more are yanked or need another Sheaf"));
    }
    phrases.extend(too_new(store, refused));
    phrases.extend(absent(refused));
    phrases.join("; ")
}

/// The versions that `exclude_newer` passes over.
fn too_new(store: &Store<'_>, refused: &[(&Candidate, Refusal)]) -> Vec<String> {
    let limit = store.policy.exclude_newer.map(|limit| limit.to_string()).unwrap_or_default();
    let newer =
        refused.iter().filter(|(_, refusal)| *refusal == Refusal::Newer).map(|(candidate, _)| candidate);
    let (dated, undated): (Vec<&Candidate>, Vec<&Candidate>) =
        newer.partition(|candidate| candidate.published.is_some());
    let names = |candidates: &[&Candidate]| {
        versions(&candidates.iter().map(|candidate| &candidate.version).collect::<Vec<_>>())
    };
    let first = dated.iter().min_by_key(|candidate| candidate.published);
    let mut phrases = Vec::new();
    if let Some((first, time)) = first.and_then(|first| Some((&first.version, first.published?))) {
        phrases.push(match &dated[..] {
            [_] => format!("{first} was published on {time}, after {limit} (`exclude-newer`)"),
            _ => {
                format!("{} were published after {limit} (`exclude-newer`), {first} on {time}", names(&dated))
            }
        });
    }
    if !undated.is_empty() {
        let have = if undated.len() == 1 { "has" } else { "have" };
        phrases
            .push(format!("{} {have} no time of publication, which `exclude-newer` needs", names(&undated)));
    }
    phrases
}

/// The versions that would have to be fetched.
fn absent(refused: &[(&Candidate, Refusal)]) -> Option<String> {
    let absent = refused.iter().filter(|(_, refusal)| *refusal == Refusal::Absent);
    let absent: Vec<&Version> = absent.map(|(candidate, _)| &candidate.version).collect();
    let (are, them) = match absent.len() {
        0 => return None,
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    Some(format!(
        "{} {are} not on this machine, and --offline or SHEAF_OFFLINE forbids to fetch {them}",
        versions(&absent)
    ))
}

/// A text of an index on one line, without control characters.
fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() || is_invisible(c) { ' ' } else { c };
    let mut plain: String = text.trim().chars().take(QUOTED).map(shown).collect();
    if text.trim().chars().count() > QUOTED {
        plain.push_str("...");
    }
    plain
}

/// True for characters that change the direction or the place of others.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_named_or_counted() {
        let all: Vec<Version> = (0..6).map(|minor| Version::new(1, minor, 0)).collect();
        let all: Vec<&Version> = all.iter().collect();
        assert_eq!(versions(&all[..1]), "1.0.0");
        assert_eq!(versions(&all[..2]), "1.0.0 and 1.1.0");
        assert_eq!(versions(&all[..4]), "1.0.0, 1.1.0, 1.2.0 and 1.3.0");
        assert_eq!(versions(&all), "6 versions from 1.0.0 to 1.5.0");
        let near = |major, minor| versions(&nearest(&all, &Version::new(major, minor, 1)));
        assert_eq!(near(0, 1), "1.0.0, 1.1.0, 1.2.0 and 1.3.0");
        assert_eq!(near(1, 2), "1.1.0, 1.2.0, 1.3.0 and 1.4.0");
        assert_eq!(near(2, 0), "1.2.0, 1.3.0, 1.4.0 and 1.5.0");
    }

    #[test]
    fn texts_of_an_index_are_harmless() {
        assert_eq!(plain(" wrong\n\u{1b}[2Jgradients\u{202e}! "), "wrong  [2Jgradients !");
        assert_eq!(plain(&"x".repeat(300)).len(), QUOTED + 3);
    }
}
