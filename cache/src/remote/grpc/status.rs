//! Conversion of a server's errors.

use std::error::Error;
use std::fmt::{Display, Write as _};

use bazel_remote_apis::google::rpc::Status as InnerStatus;
use tonic::{Code, Status};

use super::super::RemoteError;
use super::Grpc;

/// Maximum length of a server's message in an error.
const SHOWN: usize = 300;

impl Grpc {
    /// The error of a failed call.
    pub(crate) fn error(&self, status: &Status) -> RemoteError {
        let address = self.shown().to_owned();
        if status.code() == Code::Unavailable || is_transport(status) {
            // The message is only "transport error"; the cause is in the chain.
            let cause = Error::source(status)
                .map_or_else(|| self.text(status.message()), |source| self.text(&chain(source)));
            return RemoteError::Unreachable { address, cause };
        }
        self.refused_or_failed(status.code(), status.message())
    }

    /// The error of a status within an answer, such as that of one blob of several.
    pub(crate) fn inner_error(&self, status: Option<&InnerStatus>) -> RemoteError {
        let (code, message) =
            status.map_or((Code::Unknown, ""), |status| (Code::from_i32(status.code), &status.message));
        self.refused_or_failed(code, message)
    }

    /// The error of a malformed answer.
    pub(crate) fn unreadable(&self, cause: impl Display) -> RemoteError {
        RemoteError::Unreadable { address: self.shown().into(), cause: self.text(&cause.to_string()) }
    }

    fn refused_or_failed(&self, code: Code, message: &str) -> RemoteError {
        let address = self.shown().to_owned();
        let message = self.text(message);
        let cause = if message.is_empty() { format!("{code:?}") } else { format!("{code:?}: {message}") };
        match code {
            Code::Unauthenticated | Code::PermissionDenied => RemoteError::Refused { address, cause },
            _ => RemoteError::Failed { address, cause },
        }
    }

    /// A server's text in printable form: without tokens, on one line, of bounded length.
    fn text(&self, message: &str) -> String {
        let message = self.target.without_secrets(message);
        let line = message
            .split(|c: char| c.is_control())
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        if line.chars().count() <= SHOWN { line } else { line.chars().take(SHOWN).chain(['…']).collect() }
    }
}

/// True if a call failed on the way to the server.
pub(super) fn is_transport(status: &Status) -> bool {
    Error::source(status).is_some_and(<dyn Error>::is::<tonic::transport::Error>)
}

/// An error with its causes, without repetitions.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.ends_with(&cause) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {cause}");
        }
        source = error.source();
    }
    text
}
