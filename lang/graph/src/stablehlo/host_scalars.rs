//! Integers that the host computes: the counter of a loop in blocks, and what is computed of it.
//!
//! IREE computes a tensor of one number on the device, and a slice at a place that such a tensor gives waits until the host has read it.

use super::Lowering;
use crate::primitives::{Add, Binary, Compare, Convert, Direction, Max, Min, Mul, Select, Sub};
use crate::tensor::{DType, TensorType};

impl Lowering<'_> {
    /// Writes the scalar tensor of a number that the host has, of this dtype; its name.
    pub fn host_scalar(&mut self, number: &str, dtype: DType) -> String {
        let name = self.name_temporary();
        self.define_host_scalar(&name, number, dtype);
        name
    }

    /// Writes the equation, if it computes with a number of the host alone, or converts one; false if it is yet to be written.
    pub fn on_host(&mut self) -> bool {
        self.can_branch() && (self.converted_from_host() || self.computed_on_host())
    }

    /// Writes the equation for numbers of the host, if all its operands are such numbers or constants; false if it is yet to be written for the
    /// device. A truth value is computed by both: IREE refuses a tensor that a truth value of the host makes.
    fn computed_on_host(&mut self) -> bool {
        let scalars = || self.eqn.inputs.iter().chain(&self.eqn.outputs).map(|v| self.ty(*v));
        let is_host = |i: usize| self.emitter.host_scalars.contains_key(&self.operand(i));
        let operands = 0..self.operand_count();
        if !operands.clone().any(is_host)
            || !operands.clone().all(|i| is_host(i) || self.repeated_number(i).is_some())
            || !scalars().all(|ty| ty.rank() == 0 && is_of_host(ty))
        {
            return false;
        }
        let Some(operation) = self.host_operation() else { return false };
        let types: Vec<DType> = operands.clone().map(|i| self.operand_type(i).dtype).collect();
        let numbers: Vec<String> =
            operands.zip(&types).map(|(i, dtype)| self.host_number(i, *dtype)).collect();
        let to = self.result_type(0).dtype;
        let text = match operation {
            HostOperation::Same => numbers[0].clone(),
            HostOperation::Convert(name) => {
                self.temporary(&format!("{name} {} : {} to {}", numbers[0], types[0].mlir(), to.mlir()))
            }
            HostOperation::Usual(name) => {
                let last = types[types.len() - 1];
                self.temporary(&format!("{name} {} : {}", numbers.join(", "), last.mlir()))
            }
        };
        let result = self.name(self.result_var(0)).to_owned();
        if to == DType::Bool {
            self.emitter.host_scalars.insert(result, text);
            return false;
        }
        self.define_host_scalar(&result, &text, to);
        true
    }

    /// Writes the conversion of a number of the host to a float, a truth value, or an integer without sign of the same width; false, and nothing
    /// written, if the equation is none. IREE makes one of conversions that follow each other on the host, of types that it then refuses.
    fn converted_from_host(&mut self) -> bool {
        if !self.eqn.op.is::<Convert>() || !self.operand_type(0).dtype.is_integer() {
            return false;
        }
        let (x, from, to) = (self.operand(0), self.operand_type(0).clone(), self.result_type(0).clone());
        let Some(number) = self.emitter.host_scalars.get(&x).cloned() else { return false };
        let text = match to.dtype {
            float if float.is_float() => {
                let wide = if float.is_half() { to.with_dtype(DType::F32) } else { to.clone() };
                let (from, into) = (from.dtype.mlir(), wide.dtype.mlir());
                let number = self.temporary(&format!("arith.sitofp {number} : {from} to {into}"));
                let tensor = format!("tensor.from_elements {number} : {}", wide.mlir());
                if float.is_half() {
                    let wide = wide.mlir();
                    let tensor = self.temporary(&tensor);
                    let held = self.temporary(&format!("stablehlo.optimization_barrier {tensor} : {wide}"));
                    format!("stablehlo.convert {held} : ({wide}) -> {}", to.mlir())
                } else {
                    tensor
                }
            }
            DType::Bool => {
                let zero = self.splat(&from, "0");
                self.comparison("NE", &x, &zero, &from)
            }
            dtype if dtype.is_unsigned() && dtype.byte_width() == from.dtype.byte_width() => {
                format!("stablehlo.bitcast_convert {x} : ({}) -> {}", from.mlir(), to.mlir())
            }
            _ => return false,
        };
        self.line(&text);
        true
    }

    fn define_host_scalar(&mut self, name: &str, number: &str, dtype: DType) {
        self.define(name, &format!("tensor.from_elements {number} : {}", TensorType::scalar(dtype).mlir()));
        self.emitter.host_scalars.insert(name.to_owned(), number.to_owned());
    }

    /// Operand `i` on the host.
    fn host_number(&mut self, i: usize, dtype: DType) -> String {
        if let Some(number) = self.emitter.host_scalars.get(&self.operand(i)) {
            return number.clone();
        }
        let number = self.repeated_number(i).unwrap_or_default();
        self.temporary(&format!("arith.constant {number} : {}", dtype.mlir()))
    }

    /// The operation of the host that does what the equation does with scalars.
    fn host_operation(&self) -> Option<HostOperation> {
        let op = &self.eqn.op;
        if op.is::<Convert>() {
            let [from, to] = [self.operand_type(0).dtype, self.result_type(0).dtype];
            if from == DType::Bool || to == DType::Bool {
                return None;
            }
            return Some(match from.byte_width().cmp(&to.byte_width()) {
                std::cmp::Ordering::Less => HostOperation::Convert("arith.extsi"),
                std::cmp::Ordering::Equal => HostOperation::Same,
                std::cmp::Ordering::Greater => HostOperation::Convert("arith.trunci"),
            });
        }
        if let Some(compare) = op.downcast_ref::<Compare>() {
            return Some(HostOperation::Usual(match compare.direction {
                Direction::Eq => "arith.cmpi eq,",
                Direction::Ne => "arith.cmpi ne,",
                _ if self.operand_type(0).dtype == DType::Bool => return None,
                Direction::Lt => "arith.cmpi slt,",
                Direction::Le => "arith.cmpi sle,",
                Direction::Gt => "arith.cmpi sgt,",
                Direction::Ge => "arith.cmpi sge,",
            }));
        }
        if op.is::<Select>() {
            return Some(HostOperation::Usual("arith.select"));
        }
        let of_integers = self.result_type(0).dtype != DType::Bool;
        let name = match () {
            () if op.is::<Binary<Add>>() => "arith.addi",
            () if op.is::<Binary<Sub>>() => "arith.subi",
            () if op.is::<Binary<Mul>>() => "arith.muli",
            () if op.is::<Binary<Min>>() => "arith.minsi",
            () if op.is::<Binary<Max>>() => "arith.maxsi",
            () => return None,
        };
        of_integers.then_some(HostOperation::Usual(name))
    }
}

/// An operation on numbers of the host.
enum HostOperation {
    /// The operand as it is.
    Same,
    /// From one width to another.
    Convert(&'static str),
    /// Of the type of the last operand.
    Usual(&'static str),
}

/// True for dtypes that the host computes with.
fn is_of_host(ty: &TensorType) -> bool {
    ty.dtype == DType::Bool || ty.dtype.is_signed_integer()
}
