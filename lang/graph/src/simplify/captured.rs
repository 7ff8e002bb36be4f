//! Captures of loops: known numbers are moved into the body, duplicates removed.

use super::{Simplifier, simplify};
use crate::graph::{Builder, Graph, Var, Vars};
use crate::primitives::{Constant, Full};
use crate::tensor::HostTensor;

/// Simplification of one constant of a loop.
pub(super) enum Captured {
    /// It stays an operand.
    Operand,
    /// It is uniformly this number.
    Number(HostTensor),
    /// It equals the constant at this position.
    Again(usize),
}

/// Simplifications of the constants of a loop, unless all stay operands.
pub(super) fn captured(s: &Simplifier, constants: &[Var]) -> Option<Vec<Captured>> {
    let one = |(i, var): (usize, &Var)| {
        if let Some(number) = s.uniform(*var) {
            return Captured::Number(number.clone());
        }
        constants[..i].iter().position(|v| v == var).map_or(Captured::Operand, Captured::Again)
    };
    let all: Vec<Captured> = constants.iter().enumerate().map(one).collect();
    all.iter().any(|c| !matches!(c, Captured::Operand)).then_some(all)
}

/// The remaining operands, and the number of constants among them.
pub(super) fn remaining(captured: &[Captured], operands: &[Var]) -> (Vars, usize) {
    let stays = |i: usize| captured.get(i).is_none_or(|c| matches!(c, Captured::Operand));
    let left: Vars = (0..operands.len()).filter(|i| stays(*i)).map(|i| operands[i]).collect();
    let constants = left.len() - (operands.len() - captured.len());
    (left, constants)
}

/// The body of a loop without the parameters that are captured otherwise.
pub(super) fn without(body: &Graph, captured: &[Captured]) -> Graph {
    let mut b = Builder::new();
    let mut inputs: Vec<Var> = Vec::new();
    for (i, var) in body.inputs.iter().enumerate() {
        let ty = body.ty(*var).clone();
        inputs.push(match captured.get(i) {
            None | Some(Captured::Operand) => b.input(ty),
            Some(Captured::Again(first)) => inputs[*first],
            Some(Captured::Number(value)) if ty.shape.is_empty() => {
                b.apply(Constant { value: value.clone(), weak: false }, &[])
            }
            Some(Captured::Number(value)) => b.apply(Full { value: value.clone(), shape: ty.shape }, &[]),
        });
    }
    let outputs = b.inline(body, &inputs);
    simplify(&b.finish(outputs))
}
