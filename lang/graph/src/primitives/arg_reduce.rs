//! `arg_reduce`: the position along an axis of the largest or smallest element, as `i32`; the axis is removed. Of equal
//! elements the first; NaN counts as more extreme than any number.

use smallvec::{SmallVec, smallvec};

use super::{
    Cotangents, Direction, Groups, Primitive, TypeFault, Types, batch_all_to_front, expect_arity,
    reduced_shape, zeros_for,
};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, dims_list, highest, lowest, quirks, reduction};
use crate::tensor::{DType, Data, HostTensor, TensorType};

/// An extreme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extreme {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Extreme {
    /// The comparison in which an element replaces the extreme so far.
    fn direction(self) -> Direction {
        match self {
            Extreme::Max => Direction::Gt,
            Extreme::Min => Direction::Lt,
        }
    }
}

/// `argmax` or `argmin` along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgReduce {
    /// The axis, which is removed.
    pub axis: usize,
    /// The extreme.
    pub extreme: Extreme,
}

impl ArgReduce {
    fn position<T: PartialOrd + Copy>(self, base: usize, inner: &[usize], elements: &[T]) -> i32 {
        let better = |a: T, b: T| match self.extreme {
            Extreme::Max => a > b,
            Extreme::Min => a < b,
        };
        let is_nan = |a: T| a.partial_cmp(&a).is_none();
        let mut best = 0;
        for (i, offset) in inner.iter().enumerate().skip(1) {
            let (a, b) = (elements[base + offset], elements[base + inner[best]]);
            if better(a, b) || (is_nan(a) && !is_nan(b)) {
                best = i;
            }
        }
        best as i32
    }
}

impl ArgReduce {
    /// Writes the first position of the extreme, and that of the first NaN if there is one: IREE shares only reductions by one of the usual
    /// operations among the threads of a GPU. The operand is in memory: computed twice, an element might differ from itself.
    fn by_extreme(self, to: &mut Lowering<'_>) {
        let ty = to.operand_type(0).clone();
        // Positions are unsigned (Q54).
        let result = to.result_type(0).with_dtype(DType::U32);
        let position = ty.with_dtype(DType::U32);
        let (worst, best, extreme) = match self.extreme {
            Extreme::Max => (lowest(ty.dtype), highest(ty.dtype), "stablehlo.maximum"),
            Extreme::Min => (highest(ty.dtype), lowest(ty.dtype), "stablehlo.minimum"),
        };
        let predicates = ty.with_dtype(DType::Bool).mlir();
        let x = to.value("stablehlo.optimization_barrier", &[&to.operand(0)], &ty);
        let select = |to: &mut Lowering<'_>, which: &str, x: &str, y: &str, ty: &TensorType| {
            to.temporary(&format!("stablehlo.select {which}, {x}, {y} : {predicates}, {}", ty.mlir()))
        };
        let nan = ty.dtype.is_float().then(|| to.compare("NE", &x, &x, &ty));
        let numbers = nan.as_ref().map_or(x.clone(), |nan| {
            let best = to.splat(&ty, &best);
            select(to, nan, &best, &x, &ty)
        });
        let found = quirks::extreme_of_signed(to, extreme, &numbers, &ty, &[self.axis])
            .unwrap_or_else(|| self.reduced(to, extreme, &worst, &numbers, &ty));
        let axes: Vec<usize> = (0..ty.shape.len()).filter(|axis| *axis != self.axis).collect();
        let found = to.temporary(&format!(
            "stablehlo.broadcast_in_dim {found}, dims = {} : ({}) -> {}",
            dims_list(&axes),
            result.with_dtype(ty.dtype).mlir(),
            ty.mlir()
        ));
        let hit = to.compare("EQ", &numbers, &found, &ty);
        let positions = to.temporary(&format!("stablehlo.iota dim = {} : {}", self.axis, position.mlir()));
        let last = highest(DType::U32);
        let none = to.splat(&position, &last);
        let first_of = |to: &mut Lowering<'_>, which: &str| {
            let at = select(to, which, &positions, &none, &position);
            self.reduced(to, "stablehlo.minimum", &last, &at, &position)
        };
        let mut first = first_of(to, &hit);
        if let Some(nan) = nan {
            let first_nan = first_of(to, &nan);
            let none = to.splat(&result, &last);
            let any = to.compare("NE", &first_nan, &none, &result);
            first = to.temporary(&format!(
                "stablehlo.select {any}, {first_nan}, {first} : {}, {}",
                result.with_dtype(DType::Bool).mlir(),
                result.mlir()
            ));
        }
        to.line(&format!("stablehlo.convert {first} : ({}) -> {}", result.mlir(), to.result_type(0).mlir()));
    }

    /// Writes a reduction of `x` along the axis; the name of the result.
    fn reduced(self, to: &mut Lowering<'_>, operation: &str, init: &str, x: &str, ty: &TensorType) -> String {
        let init = to.splat(&TensorType::scalar(ty.dtype), init);
        let result = to.result_type(0).with_dtype(ty.dtype);
        let (x, ty) = quirks::filled_up(to, &init, &[self.axis], x, ty);
        to.temporary(&reduction(operation, &init, &[self.axis], &x, &ty, &result))
    }
}

impl Primitive for ArgReduce {
    fn name(&self) -> &'static str {
        "arg_reduce"
    }

    fn parameters(&self) -> String {
        format!("{} axis={}", format!("{:?}", self.extreme).to_lowercase(), self.axis)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("arg_reduce", args, 1)?;
        let name = format!("arg{:?}", self.extreme).to_lowercase();
        let shape = reduced_shape(&name, args[0], &[self.axis])?;
        if args[0].dtype == DType::Bool || args[0].shape[self.axis] == 0 {
            return Err(TypeFault::new(format!(
                "{name} is not defined on {} along axis {}",
                args[0], self.axis
            )));
        }
        Ok(smallvec![TensorType::new(DType::I32, shape)])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let groups = Groups::new(args[0].shape(), self.axis);
        let positions = crate::with_elements!(args[0].data(), v => groups.map(|base, inner| self.position(base, inner, v)));
        smallvec![HostTensor::new(groups.shape, Data::from(positions))]
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let x = batch_all_to_front(b, args, axes)[0];
        smallvec![(b.apply(ArgReduce { axis: self.axis + 1, ..*self }, &[x]), 0)]
    }

    fn computes(&self) -> bool {
        true
    }

    // A reduction of pairs (position, element).
    fn stablehlo(&self, to: &mut Lowering<'_>) {
        if !to.is_for_processor() {
            return self.by_extreme(to);
        }
        let ty = to.operand_type(0).clone();
        let (scalar, index) = (TensorType::scalar(ty.dtype), TensorType::scalar(DType::I32));
        let position = ty.with_dtype(DType::I32);
        let positions = to.temporary(&format!("stablehlo.iota dim = {} : {}", self.axis, position.mlir()));
        let worst = if self.extreme == Extreme::Max { lowest(ty.dtype) } else { highest(ty.dtype) };
        let worst = to.splat(&scalar, &worst);
        let last = to.splat(&index, &highest(DType::I32));
        let (s, i, p) = (scalar.mlir(), index.mlir(), TensorType::scalar(DType::Bool).mlir());
        let mut body = vec![
            format!("%better = {}", to.comparison(self.extreme.direction().mlir(), "%x", "%best", &scalar)),
            format!("%equal = {}", to.comparison("EQ", "%x", "%best", &scalar)),
            format!("%earlier = {}", to.comparison("LT", "%i", "%at", &index)),
        ];
        let (mut wins, mut ties) = ("%better", "%equal");
        if ty.dtype.is_float() {
            body.extend([
                format!("%nan = {}", to.comparison("NE", "%x", "%x", &scalar)),
                format!("%number = {}", to.comparison("EQ", "%best", "%best", &scalar)),
                format!("%bestnan = stablehlo.not %number : {p}"),
                format!("%newnan = stablehlo.and %nan, %number : {p}"),
                format!("%wins = stablehlo.or %better, %newnan : {p}"),
                format!("%bothnan = stablehlo.and %nan, %bestnan : {p}"),
                format!("%ties = stablehlo.or %equal, %bothnan : {p}"),
            ]);
            (wins, ties) = ("%wins", "%ties");
        }
        body.extend([
            format!("%first = stablehlo.and {ties}, %earlier : {p}"),
            format!("%moves = stablehlo.or {wins}, %first : {p}"),
            format!("%where = stablehlo.select %moves, %i, %at : {p}, {i}"),
            format!("%value = stablehlo.select {wins}, %x, %best : {p}, {s}"),
            format!("stablehlo.return %where, %value : {i}, {s}"),
        ]);
        let names = [to.results().remove(0), to.name_temporary()];
        let head = format!(
            "stablehlo.reduce({positions} init: {last}), ({} init: {worst}) across dimensions = [{}] : \
             ({}, {}, {i}, {s}) -> ({}, {}) reducer(%at: {i}, %i: {i}) (%best: {s}, %x: {s}) ",
            to.operand(0),
            self.axis,
            position.mlir(),
            ty.mlir(),
            to.result_type(0).mlir(),
            to.result_type(0).with_dtype(ty.dtype).mlir(),
        );
        to.region(&names, &head, &body, "");
    }

    fn cost(&self, args: &[&TensorType], _: &[&TensorType]) -> u64 {
        args[0].count() as u64
    }
}
