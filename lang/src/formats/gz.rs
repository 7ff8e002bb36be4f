//! Files compressed by gzip, unpacked into memory once.

use std::io::Read;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use super::{Source, broken};
use crate::eval::Eval;
use sheaf_graph::tensor::FileBytes;

/// Bytes of memory that a file of `packed` bytes may unpack to. Deflate makes a thousandth of zeros, and a tenth of most
/// real data; what unpacks to more is meant to fill the memory, or is better unpacked once on the disk.
pub(super) fn limit(packed: usize) -> usize {
    const ALWAYS: usize = 64 << 20;
    const RATIO: usize = 128;
    packed.saturating_mul(RATIO).saturating_add(ALWAYS)
}

/// The bytes of a compressed file.
pub(super) fn unpacked(source: &Source<'_>) -> Eval<Arc<dyn FileBytes>> {
    source.bytes.check()?;
    let packed = source.bytes.bytes();
    let limit = limit(packed.len());
    let mut bytes = Vec::new();
    let read = MultiGzDecoder::new(packed).take(limit as u64 + 1).read_to_end(&mut bytes);
    source.bytes.check()?;
    if let Err(e) = read {
        return Err(broken(
            source.path,
            format!("it cannot be unpacked: {e}"),
            "the file is truncated, damaged, or no .gz",
        ));
    }
    if bytes.len() > limit {
        let what = format!(
            "its {} bytes unpack to more than {limit}, which is more than real data do",
            packed.len()
        );
        return Err(broken(source.path, what, "unpack it with gzip -d first, if it is to be trusted"));
    }
    Ok(Arc::new(bytes))
}
