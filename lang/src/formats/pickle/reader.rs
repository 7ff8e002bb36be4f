//! The arguments of instructions.

use super::Fault;

/// Maximum bytes of a line of protocol 0.
const MAX_LINE: usize = 1 << 24;

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    pub fn byte(&mut self) -> Result<u8, Fault> {
        self.array().map(|[byte]| byte)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()).ok_or_else(ends)?;
        self.at += N;
        Ok(*found)
    }

    /// The position of the next `length` bytes, which are passed over.
    pub fn skip(&mut self, length: u64) -> Result<(usize, usize), Fault> {
        let left = self.bytes.len() - self.at;
        let length = usize::try_from(length).ok().filter(|length| *length <= left).ok_or_else(ends)?;
        let start = self.at;
        self.at += length;
        Ok((start, length))
    }

    /// A copy of the next `length` bytes.
    pub fn copy(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        let (start, length) = self.skip(length)?;
        Ok(self.bytes[start..start + length].to_vec())
    }

    /// The next `length` bytes as text.
    pub fn text(&mut self, length: u64) -> Result<String, Fault> {
        // Python writes lone surrogates, which no text here holds.
        String::from_utf8(self.copy(length)?).map_err(|_| Fault::Broken("a string in it is not UTF-8".into()))
    }

    /// The bytes up to the end of the line, of Latin-1, as text.
    pub fn line(&mut self) -> Result<String, Fault> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().take(MAX_LINE).position(|byte| *byte == b'\n').ok_or_else(ends)?;
        self.at += end + 1;
        Ok(rest[..end].iter().map(|byte| char::from(*byte)).collect())
    }

    /// A number in a line.
    pub fn parsed<T: std::str::FromStr>(&mut self) -> Result<T, Fault> {
        let line = self.line()?;
        let digits = line.trim().trim_end_matches('L');
        digits.parse().map_err(|_| Fault::Broken(format!("{:?} is no number that fits here", shown(digits))))
    }
}

/// The start of a text of any length.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

fn ends() -> Fault {
    Fault::Broken("it ends too early".into())
}

/// An integer of two's complement, its lowest byte first.
pub(super) fn integer(bytes: &[u8]) -> Result<i64, Fault> {
    let negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
    let filler = if negative { 0xff } else { 0 };
    let (low, high) = bytes.split_at(bytes.len().min(8));
    let mut all = [filler; 8];
    all[..low.len()].copy_from_slice(low);
    let number = i64::from_le_bytes(all);
    if high.iter().any(|byte| *byte != filler) || (number < 0) != negative {
        return Err(Fault::Broken("it has a whole number of more than 64 bits".into()));
    }
    Ok(number)
}

/// The text of a string literal of Python 2: `'a\x00b'`.
pub(super) fn unquoted(line: &str) -> Result<Vec<u8>, Fault> {
    let wrong = || Fault::Broken(format!("{:?} is no string literal", shown(line)));
    let line = line.trim();
    let quote = line.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or_else(wrong)?;
    let inner = line[1..].strip_suffix(quote).ok_or_else(wrong)?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next().ok_or_else(wrong)? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'x' => {
                let digits = [rest.next().ok_or_else(wrong)?, rest.next().ok_or_else(wrong)?];
                let digits = std::str::from_utf8(&digits).map_err(|_| wrong())?;
                u8::from_str_radix(digits, 16).map_err(|_| wrong())?
            }
            other => other,
        });
    }
    Ok(bytes)
}

/// The text of a line in which backslashes escape characters beyond Latin-1: `\u20ac`.
pub(super) fn unescaped(line: &str) -> Result<String, Fault> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let length = match after.as_bytes().first() {
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => {
                text.push('\\');
                rest = after;
                continue;
            }
        };
        let character = after.get(1..=length).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let character = character.and_then(char::from_u32);
        text.push(character.ok_or_else(|| Fault::Broken(format!("{:?} is no text", shown(line))))?);
        rest = &after[1 + length..];
    }
    text.push_str(rest);
    Ok(text)
}
