//! Keys of dictionaries.

use std::fmt::{self, Display, Formatter};
use std::ops::Deref;

use ustr::Ustr;

use crate::program::Value;
use sheaf_syntax::FormKind;

/// A key, with the syntax in which it entered its dictionary. That is only for reading the keys: look-ups go by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name.
    pub name: Ustr,
    /// True if it was written as a string.
    pub quoted: bool,
}

impl Key {
    /// A key in string syntax.
    pub fn quoted(name: &str) -> Key {
        Key { name: Ustr::from(name), quoted: true }
    }

    /// The key as code: `:name`, or a quoted string.
    pub fn form(self) -> FormKind {
        if self.quoted { FormKind::Str(self.name.as_str().into()) } else { FormKind::Keyword(self.name) }
    }

    /// The key as a value: a keyword or a string.
    pub fn value(self) -> Value {
        if self.quoted { Value::text(self.name) } else { Value::Keyword(self.name) }
    }
}

/// The bare name, as in paths.
impl Display for Key {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl From<Ustr> for Key {
    fn from(name: Ustr) -> Key {
        Key { name, quoted: false }
    }
}

impl Deref for Key {
    type Target = Ustr;

    fn deref(&self) -> &Ustr {
        &self.name
    }
}
