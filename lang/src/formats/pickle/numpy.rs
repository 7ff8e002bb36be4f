//! The functions and classes by which NumPy's arrays are put together, done here.

use std::sync::Arc;

use super::Fault;
use super::objects::{Id, Object, Objects};
use super::reader::shown;
use crate::formats::npy;
use crate::program::{Tensor, Value};
use sheaf_graph::tensor::{FilePart, Shape, TensorType};

/// A name of Python that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    /// Makes an array, whose state follows.
    Reconstruct,
    /// Makes an array of a buffer.
    FromBuffer,
    /// Makes a number.
    Scalar,
    Ndarray,
    Dtype,
    /// Makes bytes of a string, as older protocols write bytes.
    Encode,
    /// Makes no bytes, as older protocols write the elements of an array without any.
    Bytes,
}

impl Global {
    pub fn named(module: &str, name: &str) -> Option<Global> {
        Some(match (module, name) {
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Global::Reconstruct,
            ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Global::Scalar,
            ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Global::FromBuffer,
            ("numpy", "ndarray") => Global::Ndarray,
            ("numpy", "dtype") => Global::Dtype,
            ("_codecs", "encode") => Global::Encode,
            ("builtins" | "__builtin__", "bytes") => Global::Bytes,
            _ => return None,
        })
    }
}

/// A dtype as NumPy names it, such as `f4`, and the order of its bytes, such as `<`.
#[derive(Clone, Debug)]
pub(super) struct Dtype {
    name: String,
    order: String,
}

/// An array; without elements until its state is set.
#[derive(Clone, Default)]
pub(super) struct Array(Option<Elements>);

#[derive(Clone)]
struct Elements {
    dtype: Dtype,
    shape: Shape,
    fortran: bool,
    bytes: FilePart,
}

impl Objects {
    /// The result of a call.
    pub fn called(&self, function: Id, arguments: Id) -> Result<Object, Fault> {
        let wrong =
            || Fault::Broken("it calls a function of NumPy with other arguments than NumPy does".into());
        let Object::Global(global) = &self[function] else {
            return Err(Fault::Broken("it calls what is no function".into()));
        };
        let arguments = self.items(arguments).ok_or_else(wrong)?;
        Ok(match (global, arguments) {
            (Global::Encode, [text, encoding]) => {
                let (text, encoding) = self.text(*text).zip(self.text(*encoding)).ok_or_else(wrong)?;
                if !matches!(encoding, "latin1" | "latin-1") {
                    return Err(wrong());
                }
                let bytes = text.chars().map(|c| u8::try_from(u32::from(c)).map_err(|_| wrong()));
                let bytes: Vec<u8> = bytes.collect::<Result<_, _>>()?;
                Object::Bytes(FilePart { range: 0..bytes.len(), file: Arc::new(bytes) })
            }
            (Global::Bytes, []) => Object::Bytes(FilePart { range: 0..0, file: Arc::new(Vec::new()) }),
            (Global::Dtype, [name, ..]) => Object::Dtype(Dtype {
                name: self.text(*name).ok_or_else(wrong)?.to_owned(),
                order: "<".into(),
            }),
            (Global::Reconstruct, [class, ..]) if matches!(self[*class], Object::Global(Global::Ndarray)) => {
                Object::Array(Array::default())
            }
            (Global::Scalar, [dtype, bytes]) => Object::Array(Array(Some(Elements {
                dtype: self.dtype(*dtype)?,
                shape: Shape::new(),
                fortran: false,
                bytes: self.bytes(*bytes).ok_or_else(wrong)?,
            }))),
            (Global::FromBuffer, [bytes, dtype, shape, order]) => Object::Array(Array(Some(Elements {
                dtype: self.dtype(*dtype)?,
                shape: self.shape(*shape)?,
                fortran: self.text(*order).ok_or_else(wrong)? == "F",
                bytes: self.bytes(*bytes).ok_or_else(wrong)?,
            }))),
            _ => return Err(wrong()),
        })
    }

    /// Sets the state of an array or a dtype.
    pub fn set_state(&mut self, target: Id, state: Id) -> Result<(), Fault> {
        let state = self.items(state).map(<[Id]>::to_vec);
        let wrong = || Fault::Broken("it has an array of NumPy with another state than NumPy writes".into());
        let new = match (&self[target], state.as_deref()) {
            (Object::Array(_), Some([_, shape, dtype, fortran, bytes])) => {
                let Object::Bool(fortran) = self[*fortran] else {
                    let Object::Int(fortran) = self[*fortran] else { return Err(wrong()) };
                    return self.fill(target, [*shape, *dtype, *bytes], fortran != 0);
                };
                return self.fill(target, [*shape, *dtype, *bytes], fortran);
            }
            (Object::Dtype(dtype), Some([_, order, ..])) => {
                let order = self.text(*order).ok_or_else(wrong)?.to_owned();
                Object::Dtype(Dtype { order, ..dtype.clone() })
            }
            (Object::Array(_) | Object::Dtype(_), _) => return Err(wrong()),
            _ => return Err(Fault::Refused("it sets the state of an object of a class".into())),
        };
        self[target] = new;
        Ok(())
    }

    fn fill(&mut self, target: Id, [shape, dtype, bytes]: [Id; 3], fortran: bool) -> Result<(), Fault> {
        let dtype = self.dtype(dtype)?;
        let Some(bytes) = self.bytes(bytes) else {
            // A list of Python objects; the name of the dtype says so.
            npy::dtype(&dtype.name)?;
            return Err(Fault::Broken("it has an array of NumPy without bytes".into()));
        };
        let shape = self.shape(shape)?;
        self[target] = Object::Array(Array(Some(Elements { dtype, shape, fortran, bytes })));
        Ok(())
    }

    fn dtype(&self, id: Id) -> Result<Dtype, Fault> {
        match &self[id] {
            Object::Dtype(dtype) => Ok(dtype.clone()),
            _ => Err(Fault::Broken("it has an array of NumPy without a dtype".into())),
        }
    }

    fn shape(&self, id: Id) -> Result<Shape, Fault> {
        let wrong = || Fault::Broken("it has an array of NumPy with a shape that is none".into());
        let extent = |id: &Id| match self[*id] {
            Object::Int(n) => usize::try_from(n).map_err(|_| wrong()),
            _ => Err(wrong()),
        };
        self.items(id).ok_or_else(wrong)?.iter().map(extent).collect()
    }
}

impl Array {
    /// The tensor, whose elements stay in the file if they lie there as they are wanted.
    pub fn value(&self) -> Result<Value, Fault> {
        let Some(Elements { dtype, shape, fortran, bytes }) = &self.0 else {
            return Err(Fault::Broken("it has an array of NumPy without elements".into()));
        };
        let (ty, swapped) = npy::dtype(&format!("{}{}", shown(&dtype.order), shown(&dtype.name)))?;
        let width = ty.byte_width();
        let count = shape.iter().try_fold(width, |n, extent| n.checked_mul(*extent));
        if count != Some(bytes.range.len()) {
            let found = bytes.range.len();
            let ty = TensorType::new(ty, shape.clone());
            return Err(Fault::Broken(format!("an array {ty} in it has {found} bytes")));
        }
        let tensor = npy::array(ty, shape.clone(), [*fortran, swapped], bytes.clone());
        let tensor = tensor.ok_or_else(|| "an array in it has a bool that is neither 0 nor 1".to_owned())?;
        Ok(Value::Tensor(Tensor::host(tensor)))
    }
}
