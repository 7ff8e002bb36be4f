//! Phrases of messages.

use semver::Version;

use super::store::{Known, Refusal, Store};

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
pub(super) fn refusals(store: &Store<'_>, known: &Known, refused: &[(&Version, Refusal)]) -> String {
    // The newest are the ones that users look for.
    let named = refused.iter().rev().take(NAMED).map(|(version, refusal)| {
        let entry = known.entries.iter().find(|entry| known.version(entry) == *version);
        let candidate = entry.map(|entry| known.candidate(entry));
        match refusal {
            Refusal::Yanked => match candidate.and_then(|candidate| candidate.yanked.as_deref()) {
                Some(reason) if !reason.trim().is_empty() => {
                    format!("{version} is yanked: {}", plain(reason))
                }
                _ => format!("{version} is yanked"),
            },
            Refusal::Sheaf => {
                let range = candidate.and_then(|candidate| candidate.sheaf.as_ref());
                let range = range.map(ToString::to_string).unwrap_or_default();
                format!("{version} needs Sheaf {range}, and this is Sheaf {}", store.policy.sheaf)
            }
            Refusal::Newer => {
                let limit = store.policy.exclude_newer.map(|limit| limit.to_string()).unwrap_or_default();
                match candidate.and_then(|candidate| candidate.published) {
                    Some(time) => {
                        format!("{version} was published on {time}, after {limit} (`exclude-newer`)")
                    }
                    None => format!("{version} has no time of publication, which `exclude-newer` needs"),
                }
            }
        }
    });
    let named: Vec<String> = named.collect();
    match refused.len() - named.len() {
        0 => named.join("; "),
        more => format!("{}; {more} more are passed over", named.join("; ")),
    }
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
        assert_eq!(plain(" wrong\n\u{1b}[2Jgradients\u{202e} "), "wrong  [2Jgradients");
        assert_eq!(plain(&"x".repeat(300)).len(), QUOTED + 3);
    }
}
