//! Authentication and authorisation, common to http and gRPC, which use the same header.

use std::sync::{PoisonError, RwLock};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::tokens::{Role, Shown, Tokens};

/// Permissions of a request's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pass {
    /// The permitted role.
    pub role: Role,
    /// True for requests without a token, if the server has tokens.
    pub anonymous: bool,
}

/// Cause of a denied request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denial {
    #[error("a token is needed: send it as `Authorization: Bearer TOKEN`, or as the password of Basic")]
    NoToken,
    #[error("the token is unknown here")]
    UnknownToken,
    #[error("the token {name:?} has expired: ask for a new one")]
    ExpiredToken { name: String },
    #[error("this token allows reading only")]
    ReadOnly,
    #[error("writing needs a token")]
    ReadOnlyWithoutToken,
}

/// Authorises requests.
pub(crate) struct Gate {
    tokens: RwLock<Option<Tokens>>,
    anonymous_read: bool,
}

impl Gate {
    /// A gate for these tokens; `None` allows everything.
    pub fn new(tokens: Option<Tokens>, anonymous_read: bool) -> Self {
        Self { tokens: RwLock::new(tokens), anonymous_read }
    }

    /// Replaces the tokens.
    #[cfg(unix)]
    pub fn replace(&self, tokens: Tokens) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
    }

    /// The permissions of a request with these headers, if they include `role`.
    pub fn check(&self, headers: &HeaderMap, role: Role) -> Result<Pass, Denial> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let Some(tokens) = &*tokens else { return Ok(Pass { role: Role::Write, anonymous: false }) };
        let Some(header) = headers.get(AUTHORIZATION) else {
            return match role {
                _ if !self.anonymous_read => Err(Denial::NoToken),
                Role::Read => Ok(Pass { role, anonymous: true }),
                Role::Write => Err(Denial::ReadOnlyWithoutToken),
            };
        };
        // An invalid token is rejected even if none is required: its owner assumes that it is valid.
        match token(header.as_bytes()).map(|token| tokens.show(&token)) {
            Some(Shown::Known { role: allowed }) if allowed >= role => {
                Ok(Pass { role: allowed, anonymous: false })
            }
            Some(Shown::Known { .. }) => Err(Denial::ReadOnly),
            Some(Shown::Expired { name }) => Err(Denial::ExpiredToken { name: name.to_owned() }),
            Some(Shown::Unknown) | None => Err(Denial::UnknownToken),
        }
    }
}

/// The token in an `Authorization` header: that of `Bearer`, or the password of `Basic`.
fn token(header: &[u8]) -> Option<Vec<u8>> {
    let space = header.iter().position(|byte| *byte == b' ')?;
    let (scheme, value) = (&header[..space], header[space..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(value.to_vec());
    }
    if scheme.eq_ignore_ascii_case(b"basic") {
        let pair = STANDARD.decode(value).ok()?;
        let colon = pair.iter().position(|byte| *byte == b':')?;
        return Some(pair[colon + 1..].to_vec());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_in_two_schemes() {
        let token = |header: &str| token(header.as_bytes()).map(|token| String::from_utf8(token).unwrap());
        assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(token("bearer  abc ").as_deref(), Some("abc"));
        // u:a:b
        assert_eq!(token("Basic dTphOmI=").as_deref(), Some("a:b"));
        for wrong in ["abc", "Basic abc!", "Basic YWJj", "Digest abc", ""] {
            assert_eq!(token(wrong), None, "{wrong}");
        }
    }
}
