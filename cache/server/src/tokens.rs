//! The token file: read and write permissions.
//!
//! ```text
//! # role  SHA-256 of the token      name      expiry
//! write   <64 hexadecimal digits>  trunk    expires=2026-12-31
//! read    <64 hexadecimal digits>  everyone
//! ```
//!
//! Only digests are stored: the file reveals no token. The name is for administrators, and reported to the holder of an
//! expired token. A token is valid until the end of its day in UTC.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use subtle::{Choice, ConstantTimeEq as _};

use super::error::ServeError;
use sheaf_foundation::Digest;

/// Permission of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Read,
    Write,
}

/// The tokens of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    role: Role,
    digest: Digest,
    name: String,
    /// The first day, counted from 1970, on which it is invalid.
    ends: Option<u64>,
}

/// Status of a presented token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    /// Valid.
    Known { role: Role },
    /// Expired.
    Expired { name: &'a str },
    /// Unknown.
    Unknown,
}

impl Tokens {
    /// Reads a token file.
    pub fn read(path: &Path) -> Result<Self, ServeError> {
        let text =
            fs::read_to_string(path).map_err(|source| ServeError::File { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|(line, cause)| ServeError::Token { path: path.to_owned(), line, cause })
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let lines = text.lines().enumerate();
        let lines = lines.map(|(index, line)| (index + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let tokens = lines.map(|(number, line)| Token::parse(line).map_err(|cause| (number, cause)));
        Ok(Self { tokens: tokens.collect::<Result<_, _>>()? })
    }

    /// Number of tokens.
    #[cfg(unix)]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The status of `token` today. Takes constant time, so that timing reveals nothing.
    pub fn show(&self, token: &[u8]) -> Shown<'_> {
        let today = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86_400);
        self.show_on(today, token)
    }

    fn show_on(&self, today: u64, token: &[u8]) -> Shown<'_> {
        let shown = Digest::of(token);
        let mut found = None;
        for token in &self.tokens {
            let same: Choice = token.digest.0.ct_eq(&shown.0);
            if bool::from(same) {
                found = Some(token);
            }
        }
        match found {
            None => Shown::Unknown,
            Some(token) if token.ends.is_some_and(|ends| today >= ends) => {
                Shown::Expired { name: &token.name }
            }
            Some(token) => Shown::Known { role: token.role },
        }
    }
}

impl Token {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let role = match words.next() {
            Some("read") => Role::Read,
            Some("write") => Role::Write,
            other => {
                return Err(format!("`{}` is no role; there are `read` and `write`", other.unwrap_or("")));
            }
        };
        // The word may be the token itself, so it is not quoted.
        let digest = words.next().and_then(|word| word.parse().ok());
        let digest = digest.ok_or("after the role comes the SHA-256 of the token, 64 hexadecimal digits")?;
        let mut token = Self { role, digest, name: String::new(), ends: None };
        for word in words {
            if let Some(date) = word.strip_prefix("expires=") {
                let day = day(date).ok_or_else(|| format!("`{date}` is no date such as 2026-12-31"))?;
                token.ends = Some(day + 1);
            } else if token.name.is_empty() {
                word.clone_into(&mut token.name);
            } else {
                return Err(format!("`{word}` is one word too many; a name is a single one"));
            }
        }
        Ok(token)
    }
}

/// The number of a day in the Gregorian calendar, counted from 1970-01-01.
fn day(date: &str) -> Option<u64> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = date.split('-');
    let mut part = |length: usize| {
        let part = parts.next().filter(|part| part.len() == length && digits(part))?;
        part.parse::<u64>().ok()
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    if parts.next().is_some() || year < 1970 || !(1..=12).contains(&month) {
        return None;
    }
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = |month: u64| match month {
        2 => 28 + u64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day == 0 || day > length(month) {
        return None;
    }
    let years: u64 = (1970..year).map(|year| 365 + u64::from(leap(year))).sum();
    let months: u64 = (1..month).map(length).sum();
    Some(years + months + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(token: &str) -> String {
        Digest::of(token.as_bytes()).to_string()
    }

    #[test]
    fn days_are_counted() {
        assert_eq!(day("1970-01-01"), Some(0));
        assert_eq!(day("2000-02-29"), Some(11016));
        assert_eq!(day("2026-12-31"), Some(20818));
        for wrong in [
            "2026-02-29",
            "2100-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-04-31",
            "2026-1-1",
            "+026-01-01",
            "1969-12-31",
            "2026-01-01-01",
            "",
            "tomorrow",
        ] {
            assert_eq!(day(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tokens_have_roles_names_and_ends() {
        let text = format!(
            "# who may what\n\nwrite {} trunk expires=2026-12-31\n  read {}\n",
            hash("w"),
            hash("r").to_uppercase()
        );
        let tokens = Tokens::parse(&text).unwrap();
        assert_eq!(tokens.show_on(0, b"w"), Shown::Known { role: Role::Write });
        assert_eq!(tokens.show_on(20818, b"w"), Shown::Known { role: Role::Write });
        assert_eq!(tokens.show_on(20819, b"w"), Shown::Expired { name: "trunk" });
        assert_eq!(tokens.show_on(99999, b"r"), Shown::Known { role: Role::Read });
        assert_eq!(tokens.show(b"x"), Shown::Unknown);
    }

    #[test]
    fn a_wrong_line_is_named_and_not_repeated() {
        let message = |line: &str| {
            let (line, cause) = Tokens::parse(&format!("# tokens\n{line}\n")).unwrap_err();
            assert!(!cause.contains("secret"));
            format!("{line}: {cause}")
        };
        insta::assert_snapshot!(message("admin abc"), @"2: `admin` is no role; there are `read` and `write`");
        insta::assert_snapshot!(message("read secret"), @"2: after the role comes the SHA-256 of the token, 64 hexadecimal digits");
        insta::assert_snapshot!(message("read"), @"2: after the role comes the SHA-256 of the token, 64 hexadecimal digits");
        insta::assert_snapshot!(message(&format!("read {} a b", hash("t"))), @"2: `b` is one word too many; a name is a single one");
        insta::assert_snapshot!(message(&format!("read {} expires=soon", hash("t"))), @"2: `soon` is no date such as 2026-12-31");
    }
}
