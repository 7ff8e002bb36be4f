//! Messages between the two sides of a compile worker.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

use crate::frame::Frame;

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Belongs to the previous diagnostic.
    Note,
    /// Optional information about the compilation.
    Remark,
    /// The program compiles nevertheless.
    Warning,
    /// The program does not compile.
    Error,
}

impl Severity {
    const ALL: [Self; 4] = [Self::Note, Self::Remark, Self::Warning, Self::Error];

    /// The name, in the compilers' notation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Remark => "remark",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A diagnostic about a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The text, starting with the location in the program.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.severity.name(), self.message)
    }
}

/// Passes after which the compiler verifies its intermediate representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verification {
    /// Those of code generation. The first of them verifies what the passes before have made.
    CodeGeneration,
    /// All, which makes a compilation a quarter longer: for the passes before and after, the intermediate representation is the whole
    /// program.
    AllPasses,
}

/// Message of the parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The compiler's flags.
    pub(crate) flags: Vec<String>,
    /// The program.
    pub(crate) program: String,
    /// The passes that are followed by verification.
    pub(crate) verification: Verification,
}

/// Message of the worker. The first one is `Ready` or `Unusable`; after that, one answer to each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The library is loaded: the version of its interface, and its revision.
    Ready { api: u32, revision: String },
    /// The library cannot be loaded.
    Unusable { cause: String },
    /// The compiled program.
    Compiled(Vec<u8>),
    /// The program has errors.
    Rejected(Vec<Diagnostic>),
    /// The compiler rejects the flags, or failed without a diagnostic.
    Failed { cause: String },
}

const REQUEST: u8 = 0;
const READY: u8 = 1;
const UNUSABLE: u8 = 2;
const COMPILED: u8 = 3;
const REJECTED: u8 = 4;
const FAILED: u8 = 5;
const VERIFIED_REQUEST: u8 = 6;

impl Request {
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let kind = match self.verification {
            Verification::CodeGeneration => REQUEST,
            Verification::AllPasses => VERIFIED_REQUEST,
        };
        let parts = std::iter::once(&self.program).chain(&self.flags);
        Frame { kind, parts: parts.map(|part| part.clone().into_bytes()).collect() }.write(out)
    }

    pub(crate) fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let Some(frame) = Frame::read(input)? else { return Ok(None) };
        let mut texts = frame.parts.into_iter().map(text);
        let verification = match frame.kind {
            REQUEST => Verification::CodeGeneration,
            VERIFIED_REQUEST => Verification::AllPasses,
            other => return Err(unknown(other)),
        };
        let program = texts.next().ok_or_else(|| unknown(frame.kind))??;
        Ok(Some(Self { program, flags: texts.collect::<io::Result<_>>()?, verification }))
    }
}

impl Answer {
    pub(crate) fn write(self, out: &mut impl Write) -> io::Result<()> {
        let (kind, parts) = match self {
            Self::Ready { api, revision } => (READY, vec![api.to_le_bytes().to_vec(), revision.into_bytes()]),
            Self::Unusable { cause } => (UNUSABLE, vec![cause.into_bytes()]),
            Self::Compiled(program) => (COMPILED, vec![program]),
            Self::Rejected(diagnostics) => {
                let parts = diagnostics.into_iter();
                (
                    REJECTED,
                    parts.flat_map(|said| [vec![said.severity as u8], said.message.into_bytes()]).collect(),
                )
            }
            Self::Failed { cause } => (FAILED, vec![cause.into_bytes()]),
        };
        Frame { kind, parts }.write(out)
    }

    pub(crate) fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let Some(Frame { kind, mut parts }) = Frame::read(input)? else { return Ok(None) };
        let answer = match (kind, parts.as_mut_slice()) {
            (READY, [api, revision]) => Self::Ready {
                api: u32::from_le_bytes(api.as_slice().try_into().map_err(|_| unknown(kind))?),
                revision: text(std::mem::take(revision))?,
            },
            (UNUSABLE, [cause]) => Self::Unusable { cause: text(std::mem::take(cause))? },
            (COMPILED, [program]) => Self::Compiled(std::mem::take(program)),
            (REJECTED, parts) if parts.len().is_multiple_of(2) => {
                Self::Rejected(parts.chunks_exact_mut(2).map(diagnostic).collect::<io::Result<_>>()?)
            }
            (FAILED, [cause]) => Self::Failed { cause: text(std::mem::take(cause))? },
            _ => return Err(unknown(kind)),
        };
        Ok(Some(answer))
    }
}

fn diagnostic(parts: &mut [Vec<u8>]) -> io::Result<Diagnostic> {
    let [severity, message] = parts else { return Err(unknown(REJECTED)) };
    let severity = Severity::ALL.into_iter().find(|known| severity.as_slice() == [*known as u8]);
    Ok(Diagnostic {
        severity: severity.ok_or_else(|| unknown(REJECTED))?,
        message: text(std::mem::take(message))?,
    })
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

fn unknown(kind: u8) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("a message of kind {kind} makes no sense here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were() {
        for verification in [Verification::CodeGeneration, Verification::AllPasses] {
            let flags = vec!["--a=1".into(), String::new()];
            let request = Request { flags, program: "module".into(), verification };
            let mut stream = Vec::new();
            request.write(&mut stream).expect("memory");
            assert_eq!(Request::read(&mut stream.as_slice()).expect("whole"), Some(request));
        }

        let said = |severity, message: &str| Diagnostic { severity, message: message.into() };
        for answer in [
            Answer::Ready { api: 65_540, revision: "3.13.0".into() },
            Answer::Unusable { cause: "no such file".into() },
            Answer::Compiled(vec![0, 255, 10]),
            Answer::Rejected(vec![]),
            Answer::Rejected(Severity::ALL.map(|severity| said(severity, severity.name())).to_vec()),
            Answer::Failed { cause: "flag".into() },
        ] {
            let mut stream = Vec::new();
            answer.clone().write(&mut stream).expect("memory");
            assert_eq!(Answer::read(&mut stream.as_slice()).expect("whole"), Some(answer));
        }
    }

    #[test]
    fn messages_of_the_other_side_are_refused() {
        let mut stream = Vec::new();
        Answer::Compiled(vec![1]).write(&mut stream).expect("memory");
        insta::assert_snapshot!(Request::read(&mut stream.as_slice()).expect_err("an answer"), @"a message of kind 3 makes no sense here");
        let mut stream = Vec::new();
        let verification = Verification::AllPasses;
        Request { flags: vec![], program: String::new(), verification }.write(&mut stream).expect("memory");
        insta::assert_snapshot!(Answer::read(&mut stream.as_slice()).expect_err("a request"), @"a message of kind 6 makes no sense here");
    }
}
