use super::{SourceId, Form}; use crate::diagnostic::Diagnostic;
/// x
pub fn read(_s: SourceId, _t: &str) -> Result<Vec<Form>, Diagnostic> { unimplemented!() }
