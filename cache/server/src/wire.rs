//! Messages of the Remote Execution API, scanned without decoding: a decoded one may take fifty times its bytes, and
//! its sender is untrusted.

use prost::encoding::{WireType, decode_key, decode_varint};

use sheaf_foundation::Digest;

/// A digest with its size; `None` if malformed.
pub(super) type Named = Option<(Digest, u64)>;

/// A blob that an `ActionResult` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// A file, or output of the action.
    Blob(Named),
    /// The description of an output folder.
    Tree(Named),
}

/// The bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Minimum size of a part with a digest: 64 digits and their envelope.
const SMALLEST_PART: usize = 68;

/// True if `accept` returns true for all blobs of an `ActionResult`. Stops at the first false.
pub(super) fn outputs(result: &[u8], mut accept: impl FnMut(Output) -> bool) -> Result<bool, Malformed> {
    for field in Fields(result) {
        let fine = match field? {
            // output_files, each with its digest.
            (2, Value::Bytes(file)) => {
                all(file, |number, digest| number != 2 || accept(Output::Blob(named(digest))))?
            }
            // output_directories, with tree_digest and root_directory_digest.
            (3, Value::Bytes(folder)) => all(folder, |number, digest| match number {
                3 => accept(Output::Tree(named(digest))),
                5 => accept(Output::Blob(named(digest))),
                _ => true,
            })?,
            // stdout_digest, stderr_digest.
            (6 | 8, Value::Bytes(digest)) => accept(Output::Blob(named(digest))),
            _ => true,
        };
        if !fine {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if `accept` returns true for the files of all folders of a `Tree`. Stops at the first false.
pub(super) fn tree_files(tree: &[u8], mut accept: impl FnMut(Named) -> bool) -> Result<bool, Malformed> {
    for field in Fields(tree) {
        // root and children are folders; the first field of a folder is its files.
        let (1 | 2, Value::Bytes(folder)) = field? else { continue };
        for field in Fields(folder) {
            let (1, Value::Bytes(file)) = field? else { continue };
            let mut digest = None;
            all(file, |number, bytes| {
                if number == 2 {
                    digest = named(bytes);
                }
                true
            })?;
            if !accept(digest) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// True if a message has no more parts than fit in its bytes if each names a blob. More parts are malicious, meant to
/// take much memory.
pub(super) fn is_sound(message: &[u8]) -> bool {
    // A few texts may be short: the path of a link, the field of a newer version.
    Fields(message).flatten().count() <= 64 + message.len() / (SMALLEST_PART / 4)
}

/// True if `accept` returns true for all texts and parts of a message, given their field numbers.
fn all(message: &[u8], mut accept: impl FnMut(u32, &[u8]) -> bool) -> Result<bool, Malformed> {
    for field in Fields(message) {
        if let (number, Value::Bytes(bytes)) = field?
            && !accept(number, bytes)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Hash and size of a `Digest`.
fn named(message: &[u8]) -> Named {
    let (mut digest, mut size) = (None, Some(0));
    for field in Fields(message) {
        match field.ok()? {
            (1, Value::Bytes(hash)) => digest = std::str::from_utf8(hash).ok()?.parse().ok(),
            // A negative size is a large number without a sign.
            (2, Value::Number(bytes)) => size = i64::try_from(bytes).ok().map(i64::cast_unsigned),
            _ => {}
        }
    }
    Some((digest?, size?))
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// The fields of a message in order; ends after an error.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn step(&mut self) -> Option<(u32, Value<'a>)> {
        let (number, kind) = decode_key(&mut self.0).ok()?;
        let value = match kind {
            WireType::Varint => Value::Number(decode_varint(&mut self.0).ok()?),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut self.0).ok()?;
                Value::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            WireType::SixtyFourBit => self.take(8).map(|_| Value::Fixed)?,
            WireType::ThirtyTwoBit => self.take(4).map(|_| Value::Fixed)?,
            // Groups predate this API.
            _ => return None,
        };
        Some((number, value))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let step = self.step();
        if step.is_none() {
            self.0 = &[];
        }
        Some(step.ok_or(Malformed))
    }
}

#[cfg(test)]
mod tests {
    use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
    use prost::Message as _;

    use super::*;

    fn digest(bytes: &[u8]) -> reapi::Digest {
        reapi::Digest { hash: Digest::of(bytes).to_string(), size_bytes: bytes.len() as i64 }
    }

    fn known(bytes: &[u8]) -> (Digest, u64) {
        (Digest::of(bytes), bytes.len() as u64)
    }

    #[test]
    fn all_that_a_result_names_is_found() {
        let file = reapi::OutputFile { path: "a".into(), digest: Some(digest(b"a")), ..Default::default() };
        let folder = reapi::OutputDirectory {
            path: "out".into(),
            tree_digest: Some(digest(b"tree")),
            root_directory_digest: Some(digest(b"root")),
            ..Default::default()
        };
        let result = reapi::ActionResult {
            output_files: vec![file.clone(), reapi::OutputFile { path: "b".into(), ..file }],
            output_directories: vec![folder],
            exit_code: -1,
            stdout_raw: b"text".to_vec(),
            stdout_digest: Some(digest(b"o")),
            stderr_digest: Some(reapi::Digest { size_bytes: -1, ..digest(b"e") }),
            execution_metadata: Some(reapi::ExecutedActionMetadata::default()),
            ..Default::default()
        };
        let mut found = Vec::new();
        let take = |output| {
            found.push(output);
            true
        };
        assert_eq!(outputs(&result.encode_to_vec(), take), Ok(true));
        let blob = |bytes| Output::Blob(Some(known(bytes)));
        let expected = [
            blob(b"a"),
            blob(b"a"),
            Output::Tree(Some(known(b"tree"))),
            blob(b"root"),
            blob(b"o"),
            Output::Blob(None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_files_of_a_tree_are_found() {
        let file = |bytes: &[u8]| reapi::FileNode {
            name: "f".into(),
            digest: Some(digest(bytes)),
            ..Default::default()
        };
        let folder = |files| reapi::Directory { files, ..Default::default() };
        let none = reapi::FileNode { name: "f".into(), ..Default::default() };
        let tree = reapi::Tree {
            root: Some(folder(vec![file(b"1"), file(b"2")])),
            children: vec![folder(vec![]), folder(vec![file(b"")]), folder(vec![none])],
        };
        let mut found = Vec::new();
        let take = |named| {
            found.push(named);
            true
        };
        assert_eq!(tree_files(&tree.encode_to_vec(), take), Ok(true));
        assert_eq!(found, [Some(known(b"1")), Some(known(b"2")), Some(known(b"")), None]);
        assert_eq!(tree_files(&tree.encode_to_vec(), |_| false), Ok(false));
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        let bytes = reapi::Tree { root: Some(reapi::Directory::default()), children: vec![] }.encode_to_vec();
        assert_eq!(tree_files(&bytes[..1], |_| true), Err(Malformed));
        assert_eq!(
            tree_files(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], |_| true),
            Err(Malformed)
        );
        assert_eq!(outputs(&[0x0b], |_| true), Err(Malformed));
    }

    #[test]
    fn many_parts_of_nothing_are_not_sound() {
        assert!(!is_sound(&[0x0a, 0].repeat(1000)));
        let file = reapi::FileNode { name: "f".into(), digest: Some(digest(b"1")), ..Default::default() };
        let folder = reapi::Directory { files: vec![file; 1000], ..Default::default() };
        assert!(is_sound(&folder.encode_to_vec()));
    }
}
