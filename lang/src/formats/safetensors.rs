//! `.safetensors`: tensors by name, with a header in JSON. They stay in the file until they are used.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::checkpoint::{self, Saved};
use super::names::{nested, shortened};
use super::{Source, broken, json, write, write_elements};
use crate::eval::{Eval, Interp};
use crate::program::{Tensor, Value};
use sheaf_graph::tensor::{DType, FilePart, HostTensor, TensorType};
use sheaf_syntax::Span;

/// The entry of the metadata that describes a value saved by Sheaf.
const ENTRY: &str = "sheaf";

/// The tensors of a file in the order of their places, and what its metadata says of the value.
struct File {
    tensors: Vec<(String, Value)>,
    described: Option<String>,
}

/// The value in one file, or the tensors of several.
pub(super) fn load(interp: &mut Interp, paths: &[String], packed: bool) -> Eval<Value> {
    let mut all = Vec::new();
    for path in paths {
        let file = read(&Source::open(interp, path, packed)?, interp.span)?;
        match (file.described, paths) {
            (Some(described), [_]) => return checkpoint::restored(path, &described, file.tensors),
            _ => all.extend(file.tensors),
        }
    }
    nested(&paths.join(" "), all)
}

/// The tensors that an index names, in the files where it has them.
pub(super) fn load_index(interp: &mut Interp, index: &Source<'_>) -> Eval<Value> {
    let help = "an index of shards has \"weight_map\": {\"name of a tensor\": \"file beside the index\"}";
    let map = json::weight_map(index.path, &index.text()?, help)?;
    let folder = index.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut files: HashMap<&str, HashMap<String, Value>> = HashMap::new();
    let mut all = Vec::with_capacity(map.len());
    for (name, file) in &map {
        if !files.contains_key(file.as_str()) {
            if !is_beside(file) {
                let what = format!("{:?} is no file beside the index", shortened(file));
                return Err(broken(
                    index.path,
                    what,
                    "files of an index are named relative to it, and lie below it",
                ));
            }
            let path = if folder.is_empty() && !index.path.starts_with('/') {
                file.clone()
            } else {
                format!("{folder}/{file}")
            };
            files.insert(
                file,
                read(&Source::open(interp, &path, false)?, interp.span)?.tensors.into_iter().collect(),
            );
        }
        let found = files.get_mut(file.as_str()).and_then(|tensors| tensors.remove(name));
        let Some(tensor) = found else {
            let what =
                format!("{} has no tensor {}, which the index says it has", shortened(file), shortened(name));
            return Err(broken(
                index.path,
                what,
                "index and shards belong to different versions: get them again",
            ));
        };
        all.push((name.clone(), tensor));
    }
    nested(index.path, all)
}

/// True for a relative path that does not leave its folder.
fn is_beside(file: &str) -> bool {
    !file.contains(['\\', '\0', ':']) && file.split('/').all(|step| !matches!(step, "" | "." | ".."))
}

fn read(source: &Source<'_>, made_at: Option<Span>) -> Eval<File> {
    let path = source.path;
    source.bytes.check()?;
    let bytes = source.bytes.bytes();
    // The header is copied: another process may write to the file while the text is read.
    let length =
        bytes.first_chunk().map_or(0, |n| usize::try_from(u64::from_le_bytes(*n)).unwrap_or(usize::MAX));
    let header = bytes.get(8..length.saturating_add(8)).unwrap_or_default().to_vec();
    let metadata = header_of(bytes, &header).map_err(|what| broken(path, what, DAMAGED))?;
    let start = 8 + header.len();
    let mut tensors = Vec::new();
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        let ty = TensorType::new(dtype(path, &name, info.dtype)?, info.shape.as_slice());
        let range = start + info.data_offsets.0..start + info.data_offsets.1;
        let part = FilePart { file: Arc::clone(&source.bytes), range };
        let Some(tensor) = HostTensor::in_files(&ty, vec![part]) else {
            let what = format!("the tensor {} has a bool that is neither 0 nor 1", shortened(&name));
            return Err(broken(path, what, DAMAGED));
        };
        tensors.push((name, Value::Tensor(Tensor::made(tensor, made_at))));
    }
    let described = metadata.metadata().as_ref().and_then(|m| m.get(ENTRY)).cloned();
    source.bytes.check()?;
    Ok(File { tensors, described })
}

const DAMAGED: &str = "the file is damaged, or no .safetensors: get it again";

/// The header of a file, in the format's own words.
#[derive(serde::Deserialize)]
#[serde(expecting = "an object of tensors by name")]
struct Header {
    #[serde(rename = "__metadata__")]
    metadata: Option<HashMap<String, String>>,
    #[serde(flatten)]
    tensors: HashMap<String, TensorInfo>,
}

/// The header, or what is wrong with it: the bytes of the tensors lie without gaps and overlaps, up to the end of the file.
fn header_of(bytes: &[u8], header: &[u8]) -> Result<Metadata, String> {
    /// Maximum bytes of a header, that of the format's own library.
    const MAX_HEADER: u64 = 100_000_000;
    let count = bytes.len();
    let Some(length) = bytes.first_chunk().map(|n| u64::from_le_bytes(*n)) else {
        return Err(format!("{count} bytes are no .safetensors: the length of its header takes 8"));
    };
    if length > MAX_HEADER || length != header.len() as u64 {
        return Err(format!("the header should have {length} bytes, and the file has {count}"));
    }
    let text = std::str::from_utf8(header)
        .map_err(|e| format!("the header is not UTF-8 text from byte {} on", 8 + e.valid_up_to()))?;
    let Header { metadata, tensors } =
        serde_json::from_str(text).map_err(|e| format!("the header is not that of a .safetensors: {e}"))?;
    let mut tensors: Vec<(String, TensorInfo)> = tensors.into_iter().collect();
    tensors.sort_by(|(a, x), (b, y)| (x.data_offsets, a).cmp(&(y.data_offsets, b)));
    let mut end = 0;
    for (name, info) in &tensors {
        end = end_of(name, info, end)?;
    }
    let end = end.saturating_add(8 + header.len());
    if end != count {
        let what = if count < end { "truncated" } else { "longer than its header says" };
        return Err(format!(
            "its tensors take {end} bytes with the header, and the file has {count}: it is {what}"
        ));
    }
    Metadata::new(metadata, tensors).map_err(|e| e.to_string())
}

/// The end of a tensor's bytes, which begin where those before it end.
fn end_of(name: &str, info: &TensorInfo, before: usize) -> Result<usize, String> {
    let (start, end) = info.data_offsets;
    let name = shortened(name);
    if start != before || end < start {
        return Err(format!(
            "the bytes of the tensor {name} are {start} to {end}, and those before it end at {before}"
        ));
    }
    let bits = info.shape.iter().try_fold(info.dtype.bitsize(), |n, extent| n.checked_mul(*extent));
    let shape = shortened(&format!("{:?}", info.shape));
    match bits {
        None => Err(format!("the tensor {name} of shape {shape} is beyond all memory")),
        Some(bits) if bits.div_ceil(8) != end - start => Err(format!(
            "the tensor {name} of dtype {} and shape {shape} takes {} bytes, and the header gives it {}",
            info.dtype,
            bits.div_ceil(8),
            end - start
        )),
        Some(_) => Ok(end),
    }
}

fn dtype(path: &str, name: &str, dtype: Dtype) -> Eval<DType> {
    Ok(match dtype {
        Dtype::BOOL => DType::Bool,
        Dtype::I8 => DType::I8,
        Dtype::I16 => DType::I16,
        Dtype::I32 => DType::I32,
        Dtype::I64 => DType::I64,
        Dtype::U8 => DType::U8,
        Dtype::U16 => DType::U16,
        Dtype::U32 => DType::U32,
        Dtype::BF16 => DType::BF16,
        Dtype::F16 => DType::F16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        other => {
            let known: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            let what =
                format!("the tensor {} has the dtype {other}, which Sheaf does not have", shortened(name));
            return Err(broken(path, what, format!("convert it to one of {}", known.join(" "))));
        }
    })
}

fn stored_dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::BF16 => Dtype::BF16,
        DType::F16 => Dtype::F16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

/// The header as JSON, its entries in one order, so that equal values give equal files.
fn header_text(described: String, infos: &[(String, TensorInfo)]) -> serde_json::Result<Vec<u8>> {
    // "pt" is what other tools want to find there for row-major tensors under the names of a model.
    let metadata = BTreeMap::from([("format", "pt".to_owned()), (ENTRY, described)]);
    let mut text = format!("{{\"__metadata__\":{}", serde_json::to_string(&metadata)?);
    for (name, info) in infos {
        text += &format!(",{}:{}", serde_json::to_string(name)?, serde_json::to_string(info)?);
    }
    Ok((text + "}").into_bytes())
}

/// Writes a tree: its tensors by dotted names, and in the metadata what else is in it.
pub(super) fn save(interp: &mut Interp, path: &str, value: &Value) -> Eval<()> {
    let Saved { mut tensors, described } = checkpoint::saved(interp, path, value)?;
    // As the format's own library writes them: wide dtypes first, so that all are aligned.
    tensors.sort_by(|(a, x), (b, y)| {
        stored_dtype(y.ty().dtype).cmp(&stored_dtype(x.ty().dtype)).then_with(|| a.cmp(b))
    });
    let mut offset = 0;
    let mut infos = Vec::with_capacity(tensors.len());
    for (name, tensor) in &tensors {
        let ty = tensor.ty();
        let end = offset + ty.count() * ty.dtype.byte_width();
        let info = TensorInfo {
            dtype: stored_dtype(ty.dtype),
            shape: ty.shape.to_vec(),
            data_offsets: (offset, end),
        };
        infos.push((name.clone(), info));
        offset = end;
    }
    let mut header =
        header_text(described, &infos).map_err(|e| broken(path, e, "the header must be JSON"))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    write(interp, path, |to| {
        to.write_all(&(header.len() as u64).to_le_bytes())?;
        to.write_all(&header)?;
        for (_, tensor) in &tensors {
            write_elements(&*tensor.read_once("what io is given")?, to)?;
        }
        Ok(())
    })
}
