//! Audits: comparison of a program from a cache with a fresh compilation.

use sheaf_cache::Claim;
use sheaf_foundation::Digest;
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_lang::host::Leaf;
use sheaf_runtime::{Error, Runtime, Target, Vmfb};
use sheaf_target::Cpu;

use super::trial::{same, sample};
use sheaf_loader::upload;

/// Inputs on which both programs must agree.
const TRIALS: u64 = 2;

/// The result of an audit of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The compiler gives the same bytes.
    SameBytes,
    /// It gives other bytes, which compute the same.
    SameResults,
    /// They compute something else, or one of them does not run.
    Different(String),
    /// It gives other bytes, and neither can be run here.
    Unknown(String),
}

/// Compares the program of a cache with a fresh compilation of the same text.
pub fn compare(claim: &Claim, program: &str, cached: &[u8], fresh: &[u8]) -> Verdict {
    if cached == fresh {
        return Verdict::SameBytes;
    }
    let runs_here = claim.cpu.as_ref().is_some_and(|cpu| {
        let host = Cpu::host();
        let has = |feature: &String| host.features().any(|known| known == feature);
        cpu.arch == host.arch() && cpu.features.iter().all(has)
    });
    if !runs_here {
        return Verdict::Unknown(format!("this machine cannot run programs for this {}", claim.device));
    }
    let Some((inputs, outputs)) = signature(program) else {
        return Verdict::Unknown("its arguments cannot be told from its text".into());
    };
    for trial in 0..TRIALS {
        let arguments: Vec<HostTensor> = inputs
            .iter()
            .enumerate()
            .map(|(i, ty)| sample(&Leaf { path: String::new(), ty: ty.clone() }, trial << 32 | i as u64))
            .collect();
        let run = |bytes: &[u8]| results(claim, bytes.to_vec(), &arguments, &outputs);
        match (run(cached), run(fresh)) {
            (Ok(a), Ok(b)) if a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| same(a, b)) => {}
            (Ok(_), Ok(_)) => return Verdict::Different("it computes something else".into()),
            (Err(error), Ok(_)) => return Verdict::Different(format!("it does not run: {error}")),
            (_, Err(error)) => {
                return Verdict::Unknown(format!("what was compiled now does not run: {error}"));
            }
        }
    }
    Verdict::SameResults
}

fn results(
    claim: &Claim,
    bytes: Vec<u8>,
    arguments: &[HostTensor],
    outputs: &[TensorType],
) -> Result<Vec<HostTensor>, String> {
    let failed = |error: Error| error.to_string();
    let device = Runtime::new().and_then(|runtime| runtime.device(Target::LocalSync)).map_err(failed)?;
    let digest = Digest::of(&bytes);
    let vmfb = Vmfb::verify(bytes, &digest.0).map_err(|error| error.to_string())?;
    let mut frame = device.load(&vmfb).and_then(|program| program.call_frame()).map_err(failed)?;
    for (i, argument) in arguments.iter().enumerate() {
        let buffer = upload(&device, argument).map_err(failed)?;
        if claim.donation.iter().any(|donation| donation.argument as usize == i) {
            frame.donate(i, buffer).map_err(failed)?;
        } else {
            frame.set(i, &buffer).map_err(failed)?;
        }
    }
    frame.invoke().map_err(failed)?;
    let mut all = Vec::new();
    for (i, ty) in outputs.iter().enumerate() {
        let bytes = frame.result(i).and_then(|result| result.read()).map_err(failed)?;
        all.extend(HostTensor::from_bytes(ty, &bytes));
    }
    Ok(all)
}

/// The types of the arguments and results of `@main`, constants included, as the text says.
fn signature(program: &str) -> Option<(Vec<TensorType>, Vec<TensorType>)> {
    let (_, rest) = program.split_once("@main(")?;
    let head = rest.split(" {\n").next()?;
    let (arguments, results) = head.split_once("->").unwrap_or((head, ""));
    Some((types(arguments)?, types(results)?))
}

fn types(text: &str) -> Option<Vec<TensorType>> {
    let parts = text.split("tensor<").skip(1);
    parts.map(|part| tensor_type(part.split('>').next()?)).collect()
}

/// Reads `4x2xf32`, or `f32`.
fn tensor_type(text: &str) -> Option<TensorType> {
    let mut parts: Vec<&str> = text.split('x').collect();
    let name = parts.pop()?;
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.mlir() == name)?;
    let shape = parts.into_iter().map(|part| part.parse().ok()).collect::<Option<Vec<usize>>>()?;
    Some(TensorType::new(dtype, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_from_the_text() {
        let text = "module @sheaf {\n  func.func @main(%0: tensor<4x2xf32> {tf.aliasing_output = 0 : i32}, %1: tensor<i64>) -> \
                    (tensor<4x2xf32>, tensor<i1>) {\n    return\n  }\n}";
        let (arguments, results) = signature(text).expect("a signature");
        let shown =
            |types: Vec<TensorType>| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(shown(arguments), "f32[4x2] i64[]");
        assert_eq!(shown(results), "f32[4x2] bool[]");
        assert_eq!(signature("module @sheaf {}"), None);
    }
}
