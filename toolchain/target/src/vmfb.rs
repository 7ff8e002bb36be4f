//! Bytecode version of a compiled program, read without the runtime.
//!
//! A VMFB is a `FlatBuffer` after its length, optionally after the header of a zip archive; the identifier is `IREE`.
//! Its root table has the version of the bytecode, which determines if a runtime loads it. Nothing else is read, every
//! access is bounds-checked, and no byte is trusted.

/// The field of the root table (`BytecodeModuleDef`) with the version of the bytecode, the same in all releases of the
/// table.
const BYTECODE_VERSION: usize = 13;

/// Start of a zip archive, and the length of its header without names.
const ZIP: [u8; 4] = *b"PK\x03\x04";
const ZIP_HEADER: usize = 30;

/// Major and minor version of the bytecode in a VMFB; `None` if the bytes are not a VMFB. A missing field is 0.
///
/// [`is_loadable`](crate::is_loadable) tells if the linked runtime loads it.
pub fn bytecode_version(vmfb: &[u8]) -> Option<(u16, u16)> {
    let table = flatbuffer(vmfb)?;
    if table.get(4..8)? != b"IREE" {
        return None;
    }
    let root = u32_at(table, 0)? as usize;
    let back = i64::from(u32_at(table, root)?.cast_signed());
    let fields = usize::try_from(i64::try_from(root).ok()? - back).ok()?;
    let length = usize::from(u16_at(table, fields)?);
    let field = 4 + 2 * BYTECODE_VERSION;
    if field + 2 > length {
        return Some((0, 0));
    }
    let version = match u16_at(table, fields.checked_add(field)?)? {
        0 => 0,
        offset => u32_at(table, root.checked_add(usize::from(offset))?)?,
    };
    Some(((version >> 16) as u16, version as u16))
}

/// The `FlatBuffer`, without the bytes before and after it.
fn flatbuffer(vmfb: &[u8]) -> Option<&[u8]> {
    let rest = if vmfb.starts_with(&ZIP) {
        let names = usize::from(u16_at(vmfb, 26)?) + usize::from(u16_at(vmfb, 28)?);
        vmfb.get(ZIP_HEADER + names..)?
    } else {
        vmfb
    };
    let length = u32_at(rest, 0)? as usize;
    rest.get(4..)?.get(..length)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A VMFB with only the version.
    fn vmfb(version: u32) -> Vec<u8> {
        let fields = 4 + 2 * (BYTECODE_VERSION + 1);
        let mut table = vec![];
        table.extend((8 + fields as u32).to_le_bytes());
        table.extend(b"IREE");
        table.extend((fields as u16).to_le_bytes());
        table.extend(8u16.to_le_bytes());
        table.resize(8 + fields - 2, 0);
        table.extend(4u16.to_le_bytes());
        table.extend((fields as u32).to_le_bytes());
        table.extend(version.to_le_bytes());
        [&(table.len() as u32).to_le_bytes()[..], &table].concat()
    }

    #[test]
    fn the_version_is_read_with_and_without_an_archive_around_it() {
        let plain = vmfb((17 << 16) | 3);
        assert_eq!(bytecode_version(&plain), Some((17, 3)));
        let mut archive = b"PK\x03\x04".to_vec();
        archive.resize(26, 0);
        archive.extend([2, 0, 3, 0]);
        archive.extend(b"abcde");
        archive.extend(&plain);
        archive.extend(b"more");
        assert_eq!(bytecode_version(&archive), Some((17, 3)));
    }

    #[test]
    fn no_bytes_make_the_reader_panic() {
        let whole = vmfb(17 << 16);
        for length in 0..whole.len() {
            // A VMFB truncated anywhere is invalid.
            assert_eq!(bytecode_version(&whole[..length]), None, "cut at {length}");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut spoilt = whole.clone();
                spoilt[at] = value;
                let _ = bytecode_version(&spoilt);
                spoilt[at..].fill(value);
                let _ = bytecode_version(&spoilt);
            }
        }
        for other in [&b""[..], b"PK\x03\x04", b"not a program", &[0xff; 64]] {
            assert_eq!(bytecode_version(other), None);
        }
    }
}
