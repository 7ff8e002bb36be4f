//! Einstein summation: `(einsum "b t d, d h k -> b h t k" x w)`.
//!
//! Each operand is reduced first (diagonals, axes that no other operand has); then pairs are contracted by
//! `dot_general`, the pair with the smallest result first, until one tensor is left, whose axes are permuted. The
//! pattern is NumPy's: one letter is one axis, `...` any number of axes that broadcast.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::eval::{Eval, Interp, fail};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType};
use sheaf_syntax::diagnostic::Diagnostic;

/// The label of an axis: a letter of the pattern, or a position counted from the end of `...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Index {
    Unnamed(usize),
    Letter(char),
}

type Term = SmallVec<[Index; 6]>;

/// A tensor and the labels of its axes.
struct Operand {
    tensor: Tensor,
    indices: Term,
}

/// A parsed pattern: per term, the letters before and after its `...`, if any.
struct Pattern {
    inputs: Vec<Written>,
    output: Option<Written>,
}

struct Written {
    text: String,
    before: Vec<char>,
    /// The letters after `...`; `None` without `...`.
    after: Option<Vec<char>>,
}

/// The builtin `einsum`.
pub(super) fn einsum(interp: &mut Interp, args: &[Value]) -> Eval<Tensor> {
    let Value::Str(text) = &args[0] else {
        return Err(Diagnostic::error(format!("einsum wants a pattern first, got {}", args[0].describe()))
            .help("for example (einsum \"i j, j k -> i k\" a b)")
            .into());
    };
    let pattern = Pattern::parse(text)?;
    let tensors = args[1..].iter().map(|v| interp.tensor(v)).collect::<Eval<Vec<Tensor>>>()?;
    if tensors.len() != pattern.inputs.len() {
        return Err(Diagnostic::error(format!(
            "the pattern \"{text}\" wants a tensor for each of its terms before ->: {}, got {}",
            pattern.inputs.len(),
            tensors.len()
        ))
        .help("terms are separated by commas, one for each tensor")
        .into());
    }
    let mut operands = Vec::with_capacity(tensors.len());
    for (term, tensor) in pattern.inputs.iter().zip(common(interp, &tensors)?) {
        operands.push(Operand { indices: term.indices(tensor.ty())?, tensor });
    }
    let sizes = sizes(&operands)?;
    let output = pattern.output(&sizes)?;
    for operand in &mut operands {
        squeeze(interp, operand, &sizes)?;
        while diagonal(interp, operand)? {}
    }
    for i in 0..operands.len() {
        let elsewhere: Vec<Index> = operands
            .iter()
            .enumerate()
            .filter(|(k, _)| *k != i)
            .flat_map(|(_, o)| o.indices.clone())
            .collect();
        sum_out(interp, &mut operands[i], |index| output.contains(&index) || elsewhere.contains(&index))?;
    }
    while operands.len() > 1 {
        let (i, k) = cheapest_pair(&operands, &output, &sizes);
        let right = operands.remove(k);
        let left = operands.remove(i);
        let wanted =
            |index: &Index| output.contains(index) || operands.iter().any(|o| o.indices.contains(index));
        let product = contract(interp, &left, &right, &wanted, &sizes)?;
        operands.push(product);
    }
    arrange(interp, &operands[0], &output, &sizes)
}

impl Pattern {
    fn parse(text: &str) -> Eval<Pattern> {
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(output)),
            None => (text, None),
        };
        let inputs = inputs.split(',').map(Written::parse).collect::<Eval<Vec<_>>>()?;
        Ok(Pattern { inputs, output: output.map(Written::parse).transpose()? })
    }

    /// The axes of the result. Without `->`: those of `...`, then the letters that occur once, as in NumPy.
    fn output(&self, sizes: &HashMap<Index, usize>) -> Eval<Term> {
        let mut unnamed: Term = sizes.keys().copied().filter(|i| matches!(i, Index::Unnamed(_))).collect();
        unnamed.sort_unstable_by(|a, b| b.cmp(a));
        let Some(written) = &self.output else {
            let letters: Vec<char> = self.inputs.iter().flat_map(Written::letters).collect();
            let mut once: Vec<char> =
                letters.iter().copied().filter(|c| letters.iter().filter(|d| *d == c).count() == 1).collect();
            once.sort_unstable();
            unnamed.extend(once.into_iter().map(Index::Letter));
            return Ok(unnamed);
        };
        if written.after.is_none() && !unnamed.is_empty() {
            return Err(Diagnostic::error("the pattern has ... before ->, but not after it")
                .help("write ... after -> too, or give the axes it stands for letters to sum over them")
                .into());
        }
        let letters: Vec<char> = written.letters().collect();
        for (i, letter) in letters.iter().enumerate() {
            if !sizes.contains_key(&Index::Letter(*letter)) {
                return fail(format!("the index {letter} after -> is in no term before it"));
            }
            if letters[..i].contains(letter) {
                return fail(format!(
                    "the index {letter} stands twice after ->; each axis of the result is named once"
                ));
            }
        }
        let after = written.after.iter().flatten();
        Ok(written
            .before
            .iter()
            .map(|c| Index::Letter(*c))
            .chain(unnamed)
            .chain(after.map(|c| Index::Letter(*c)))
            .collect())
    }
}

impl Written {
    fn parse(text: &str) -> Eval<Written> {
        let text = text.trim();
        let mut parts = text.split("...");
        let letters = |part: &str| -> Eval<Vec<char>> {
            let mut letters = Vec::new();
            for c in part.chars().filter(|c| !c.is_whitespace()) {
                if !c.is_ascii_alphabetic() {
                    return Err(Diagnostic::error(format!(
                        "an index in an einsum pattern is a letter, not {c}"
                    ))
                    .help("a pattern is written \"i j, j k -> i k\", with ... for any number of axes")
                    .into());
                }
                letters.push(c);
            }
            Ok(letters)
        };
        let before = letters(parts.next().unwrap_or_default())?;
        let after = parts.next().map(letters).transpose()?;
        if parts.next().is_some() {
            return fail(format!("the term \"{text}\" has ... twice"));
        }
        Ok(Written { text: text.into(), before, after })
    }

    fn letters(&self) -> impl Iterator<Item = char> + '_ {
        self.before.iter().chain(self.after.iter().flatten()).copied()
    }

    /// The labels of a tensor's axes.
    fn indices(&self, ty: &TensorType) -> Eval<Term> {
        let named = self.letters().count();
        let fits = if self.after.is_some() { ty.rank() >= named } else { ty.rank() == named };
        if !fits {
            let least = if self.after.is_some() { "at least " } else { "" };
            return Err(Diagnostic::error(format!(
                "the term \"{}\" names {least}{named} axes, but its tensor {ty} has {}",
                self.text,
                ty.rank()
            ))
            .help("each letter is one axis, blanks mean nothing; ... stands for axes without a name")
            .into());
        }
        let unnamed = ty.rank() - named;
        Ok(self
            .before
            .iter()
            .map(|c| Index::Letter(*c))
            .chain((0..unnamed).rev().map(Index::Unnamed))
            .chain(self.after.iter().flatten().map(|c| Index::Letter(*c)))
            .collect())
    }
}

/// All operands in their common dtype; booleans count.
fn common(interp: &mut Interp, tensors: &[Tensor]) -> Eval<Vec<Tensor>> {
    let mut common = tensors[0].clone();
    for t in &tensors[1..] {
        (common, _) = interp.promote(&common, t)?;
    }
    let dtype = match common.ty().strong_dtype() {
        DType::Bool => DType::I32,
        dtype => dtype,
    };
    tensors.iter().map(|t| interp.convert(t, dtype)).collect()
}

/// The extent of every label; 1 broadcasts.
fn sizes(operands: &[Operand]) -> Eval<HashMap<Index, usize>> {
    let mut sizes: HashMap<Index, (usize, &TensorType)> = HashMap::new();
    for operand in operands {
        let ty = operand.tensor.ty();
        for (index, extent) in operand.indices.iter().zip(&ty.shape) {
            match sizes.get(index) {
                Some((known, _)) if known == extent || *extent == 1 => {}
                Some((known, other)) if *known != 1 => {
                    let name = match index {
                        Index::Letter(c) => format!("the index {c}"),
                        Index::Unnamed(i) => format!("axis {i} from the end of ..."),
                    };
                    let found = if std::ptr::eq(*other, ty) {
                        format!("{known} and {extent} in {ty}")
                    } else {
                        format!("{known} in {other}, but {extent} in {ty}")
                    };
                    return Err(Diagnostic::error(format!("einsum: {name} has extent {found}"))
                        .help("axes of one name must have one extent, or 1")
                        .into());
                }
                _ => {
                    sizes.insert(*index, (*extent, ty));
                }
            }
        }
    }
    Ok(sizes.into_iter().map(|(index, (extent, _))| (index, extent)).collect())
}

/// Drops axes of extent 1 that are broadcast to another operand's extent: a product repeats them anyway.
fn squeeze(interp: &mut Interp, operand: &mut Operand, sizes: &HashMap<Index, usize>) -> Eval<()> {
    let kept: Vec<usize> = (0..operand.indices.len())
        .filter(|axis| operand.tensor.shape()[*axis] != 1 || sizes[&operand.indices[*axis]] == 1)
        .collect();
    let shape: Shape = kept.iter().map(|axis| operand.tensor.shape()[*axis]).collect();
    operand.indices = kept.iter().map(|axis| operand.indices[*axis]).collect();
    operand.tensor = interp.reshape(&operand.tensor, &shape)?;
    Ok(())
}

/// Takes the diagonal of the first two axes of one label; false if there are none.
fn diagonal(interp: &mut Interp, operand: &mut Operand) -> Eval<bool> {
    let names = &operand.indices;
    let pair =
        (0..names.len()).find_map(|i| (i + 1..names.len()).find(|k| names[*k] == names[i]).map(|k| (i, k)));
    let Some((i, k)) = pair else { return Ok(false) };
    let rest = |axis: &usize| *axis != i && *axis != k;
    let others: Vec<usize> = (0..names.len()).filter(rest).collect();
    let permutation: Shape = [i, k].into_iter().chain(others.iter().copied()).collect();
    let turned = interp.permute(&operand.tensor, permutation)?;
    let n = turned.shape()[0];
    let flat: Shape = std::iter::once(n * n).chain(turned.shape()[2..].iter().copied()).collect();
    let flat = interp.reshape(&turned, &flat)?;
    let rows: Vec<i32> = (0..n).map(|i| (i * (n + 1)) as i32).collect();
    let rows = Tensor::host(HostTensor::new([n].as_slice(), rows));
    operand.tensor = interp.op(p::GatherRows, &[&flat, &rows])?;
    operand.indices = std::iter::once(names[i]).chain(others.iter().map(|axis| names[*axis])).collect();
    Ok(true)
}

/// Sums over the axes that are not wanted.
fn sum_out(interp: &mut Interp, operand: &mut Operand, wanted: impl Fn(Index) -> bool) -> Eval<()> {
    let axes: Shape = (0..operand.indices.len()).filter(|axis| !wanted(operand.indices[*axis])).collect();
    if !axes.is_empty() {
        operand.tensor = interp.op(p::ReduceSum { axes }, &[&operand.tensor])?;
        operand.indices.retain(|index| wanted(*index));
    }
    Ok(())
}

/// The pair whose product is smallest relative to its operands: Smith and Gray's greedy rule, as in `opt_einsum`.
fn cheapest_pair(operands: &[Operand], output: &Term, sizes: &HashMap<Index, usize>) -> (usize, usize) {
    let volume =
        |indices: &mut dyn Iterator<Item = Index>| -> f64 { indices.map(|i| sizes[&i] as f64).product() };
    let mut best = (f64::INFINITY, (0, 1));
    for i in 0..operands.len() {
        for k in i + 1..operands.len() {
            let (a, b) = (&operands[i].indices, &operands[k].indices);
            let others = |index: &Index| {
                output.contains(index)
                    || operands.iter().enumerate().any(|(n, o)| n != i && n != k && o.indices.contains(index))
            };
            let mut product = a
                .iter()
                .chain(b.iter().filter(|index| !a.contains(index)))
                .copied()
                .filter(|index| others(index));
            let growth =
                volume(&mut product) - volume(&mut a.iter().copied()) - volume(&mut b.iter().copied());
            if growth < best.0 {
                best = (growth, (i, k));
            }
        }
    }
    best.1
}

/// The product of two operands, summed over the shared axes that are not wanted.
fn contract(
    interp: &mut Interp,
    left: &Operand,
    right: &Operand,
    wanted: &dyn Fn(&Index) -> bool,
    sizes: &HashMap<Index, usize>,
) -> Eval<Operand> {
    let (a, b) = (&left.indices, &right.indices);
    let shared: Term = a.iter().copied().filter(|index| b.contains(index)).collect();
    let (batch, summed): (Term, Term) = shared.iter().copied().partition(wanted);
    let free = |own: &Term| -> Term { own.iter().copied().filter(|index| !shared.contains(index)).collect() };
    let indices: Term = batch.iter().copied().chain(free(a)).chain(free(b)).collect();
    let tensor = if summed.is_empty() {
        // An elementwise product: the compiler treats it better than matrix products of extent 1.
        let shape: Shape = indices.iter().map(|index| sizes[index]).collect();
        let a = spread(interp, left, &indices, &shape)?;
        let b = spread(interp, right, &indices, &shape)?;
        interp.op(p::Binary(p::Mul), &[&a, &b])?
    } else {
        let places = |own: &Term, of: &Term| -> Shape {
            of.iter().filter_map(|index| own.iter().position(|i| i == index)).collect()
        };
        let op = p::DotGeneral {
            contract: [places(a, &summed), places(b, &summed)],
            batch: [places(a, &batch), places(b, &batch)],
        };
        interp.op(op, &[&left.tensor, &right.tensor])?
    };
    Ok(Operand { tensor, indices })
}

/// An operand broadcast along the axes of `indices` that it lacks.
fn spread(interp: &mut Interp, operand: &Operand, indices: &Term, shape: &Shape) -> Eval<Tensor> {
    if operand.indices == *indices {
        return Ok(operand.tensor.clone());
    }
    let mut placed: SmallVec<[(usize, usize); 6]> = operand
        .indices
        .iter()
        .enumerate()
        .filter_map(|(axis, index)| indices.iter().position(|i| i == index).map(|place| (place, axis)))
        .collect();
    placed.sort_unstable();
    let turned = interp.permute(&operand.tensor, placed.iter().map(|(_, axis)| *axis).collect())?;
    let dims = placed.iter().map(|(place, _)| *place).collect();
    interp.op(p::BroadcastInDim { shape: shape.clone(), dims }, &[&turned])
}

/// The last tensor, transposed to the order of the output.
fn arrange(
    interp: &mut Interp,
    last: &Operand,
    output: &Term,
    sizes: &HashMap<Index, usize>,
) -> Eval<Tensor> {
    let permutation: Shape =
        output.iter().filter_map(|index| last.indices.iter().position(|i| i == index)).collect();
    debug_assert_eq!(permutation.len(), last.indices.len(), "every other axis was summed");
    let shape: Shape = output.iter().map(|index| sizes[index]).collect();
    let turned = interp.permute(&last.tensor, permutation)?;
    interp.reshape(&turned, &shape)
}
