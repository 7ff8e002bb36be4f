//! `.npz`: a zip archive of `.npy` files. Arrays that are stored uncompressed stay in the file until they are used; nothing
//! of them is read, their checksums neither.

use std::io::{Cursor, Read};
use std::sync::Arc;

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::gz::limit;
use super::names::{nested, shortened};
use super::{Source, broken, checkpoint, npy, write, write_elements};
use crate::eval::{Eval, Interp};
use crate::program::Value;
use sheaf_graph::tensor::FilePart;

const DAMAGED: &str = "the file is damaged, or no .npz: write it again with numpy.savez";

/// The arrays by their names, whose dots divide nested dictionaries.
pub(super) fn read(interp: &mut Interp, source: &Source<'_>) -> Eval<Value> {
    source.bytes.check()?;
    let bytes = source.bytes.bytes();
    let damaged = |e: ZipError| match e {
        ZipError::UnsupportedArchive(what) => broken(source.path, what, DAMAGED),
        _ => broken(source.path, "it is no zip archive, or only a part of one", DAMAGED),
    };
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    let mut arrays = Vec::with_capacity(archive.len());
    // Bytes of memory that are left for unpacked arrays.
    let mut room = limit(bytes.len());
    for i in 0..archive.len() {
        let entry = archive.by_index(i).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        let Some(array) = name.strip_suffix(".npy") else {
            let what = format!("{} in it is no .npy", shortened(&name));
            return Err(broken(source.path, what, DAMAGED));
        };
        let within = format!("{}:{}", source.path, shortened(array));
        let start = entry.data_start().and_then(|start| usize::try_from(start).ok());
        let stored = usize::try_from(entry.compressed_size()).ok();
        let part = match (entry.compression(), start, stored) {
            (CompressionMethod::Stored, Some(start), Some(length)) => {
                let end = start.checked_add(length).filter(|end| *end <= bytes.len());
                let Some(end) = end else {
                    return Err(broken(&within, "it ends before its array does", DAMAGED));
                };
                FilePart { file: Arc::clone(&source.bytes), range: start..end }
            }
            _ => {
                let unpacked = unpacked(entry, &mut room).map_err(|what| broken(&within, what, DAMAGED))?;
                FilePart { range: 0..unpacked.len(), file: Arc::new(unpacked) }
            }
        };
        let inner = Source { path: &within, bytes: Arc::clone(&part.file) };
        let value = npy::read(interp, &inner, &part)?;
        arrays.push((array.to_owned(), value));
    }
    source.bytes.check()?;
    nested(source.path, arrays)
}

/// The bytes of a compressed entry, within `room`, which they diminish.
fn unpacked(entry: impl Read, room: &mut usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    entry.take(*room as u64 + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() > *room {
        return Err(
            "its arrays unpack to much more than any real data does: unpack it with other tools".into()
        );
    }
    *room -= bytes.len();
    Ok(bytes)
}

/// Writes a tree of tensors, uncompressed, by dotted names.
pub(super) fn save(interp: &mut Interp, path: &str, value: &Value) -> Eval<()> {
    let tensors = checkpoint::tensors(interp, path, value)?;
    let mut arrays = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        arrays.push((name, npy::header_of(path, tensor.ty())?, tensor));
    }
    write(interp, path, |to| {
        let failed = |e: ZipError| broken(path, e, "the archive could not be written");
        let mut archive = ZipWriter::new_stream(to);
        for (name, header, tensor) in &arrays {
            let bytes = tensor.ty().count() * tensor.ty().dtype.byte_width();
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .large_file(bytes as u64 >= u64::from(u32::MAX) - (1 << 20))
                // The elements follow a header of a multiple of 64 bytes.
                .with_alignment(64);
            archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
            std::io::Write::write_all(&mut archive, header)?;
            write_elements(&*tensor.read_once("what io is given")?, &mut archive)?;
        }
        archive.finish().map_err(failed)?;
        Ok(())
    })
}
