//! Splats: uniform tensors stored as one number and a shape.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use super::{Data, HostTensor, Shape, TensorType, element_count};
use crate::map_elements;

/// Stored elements: individual, or one number for all.
#[derive(Clone)]
pub(super) enum Elements {
    /// Row-major.
    Each(Data),
    /// A uniform number, more than once.
    Same(Arc<Splat>),
}

/// One number, and its materialized elements after the first access.
pub(super) struct Splat {
    number: Data,
    count: usize,
    each: OnceLock<Data>,
}

impl Splat {
    fn expanded(&self) -> Data {
        map_elements!(&self.number, v => vec![v[0]; self.count])
    }
}

impl Elements {
    /// A splat of `count` elements of `number`.
    fn same(number: Data, count: usize) -> Elements {
        match count {
            1 => Elements::Each(number),
            0 => Elements::Each(map_elements!(&number, v => v[..0].to_vec())),
            _ => Elements::Same(Arc::new(Splat { number, count, each: OnceLock::new() })),
        }
    }

    /// All elements; a splat is materialized permanently.
    pub(super) fn each(&self) -> &Data {
        match self {
            Elements::Each(data) => data,
            Elements::Same(splat) => splat.each.get_or_init(|| splat.expanded()),
        }
    }

    /// The stored elements; one for a splat.
    pub(super) fn stored(&self) -> &Data {
        match self {
            Elements::Each(data) => data,
            Elements::Same(splat) => &splat.number,
        }
    }

    /// True for a splat.
    pub(super) fn is_splat(&self) -> bool {
        matches!(self, Elements::Same(_))
    }
}

impl HostTensor {
    /// A splat of `shape`: the element of `number` everywhere, in the memory of one element.
    ///
    /// # Panics
    /// If `number` has no element.
    pub fn repeated(number: &HostTensor, shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        let first = match number.stored() {
            one if one.len() == 1 => one.clone(),
            more => map_elements!(more, v => vec![v[0]]),
        };
        let elements = Elements::same(first, element_count(&shape));
        HostTensor { shape, elements }
    }

    /// The elements in row-major order; one for a splat.
    pub fn stored(&self) -> &Data {
        self.elements.stored()
    }

    /// True for a splat.
    pub fn is_splat(&self) -> bool {
        self.elements.is_splat()
    }

    /// The uniform number, compared bit by bit, as a tensor of rank 0; scans all stored elements.
    pub fn uniform(&self) -> Option<HostTensor> {
        // Equality with itself shifted by one element: one memory comparison, since tensors may be large.
        let width = self.dtype().byte_width();
        let stored = self.stored().bytes();
        let same = stored.len() >= width && stored[width..] == stored[..stored.len() - width];
        same.then(|| HostTensor::repeated(self, Shape::new()))
    }

    /// The bytes in memory order; a splat is materialized for the caller alone.
    pub fn copied_bytes(&self) -> Cow<'_, [u8]> {
        match &self.elements {
            Elements::Each(data) => Cow::Borrowed(data.bytes()),
            Elements::Same(splat) => Cow::Owned(splat.number.bytes().repeat(splat.count)),
        }
    }

    /// The number of bytes of all elements.
    pub fn byte_len(&self) -> usize {
        self.count() * self.dtype().byte_width()
    }

    /// A tensor of `shape` with elements that `f` selects; a splat stays a splat.
    #[must_use]
    pub fn moved(&self, shape: impl Into<Shape>, f: impl FnOnce(&Data) -> Data) -> Self {
        if self.is_splat() {
            HostTensor::repeated(self, shape)
        } else {
            HostTensor::new(shape, f(self.data()))
        }
    }

    /// `f` of the elements, elementwise; a splat computes once.
    #[must_use]
    pub fn mapped(&self, f: impl FnOnce(&Data) -> Data) -> Self {
        let results = f(self.stored());
        if self.is_splat() { self.with_number(results) } else { HostTensor::new(self.shape(), results) }
    }

    /// `f` of the elements of two tensors of one shape, pairwise. A splat passes its number alone.
    #[must_use]
    pub fn zipped(&self, other: &HostTensor, f: impl FnOnce(&Data, &Data) -> Data) -> Self {
        let results = f(self.stored(), other.stored());
        if self.is_splat() && other.is_splat() {
            self.with_number(results)
        } else {
            HostTensor::new(self.shape(), results)
        }
    }

    /// A splat of this shape.
    fn with_number(&self, number: Data) -> Self {
        HostTensor { shape: self.shape.clone(), elements: Elements::same(number, self.count()) }
    }
}

/// `f` of each pair of elements; a single element is broadcast.
pub fn pairs<T: Copy, U: Copy, R>(x: &[T], y: &[U], mut f: impl FnMut(T, U) -> R) -> Vec<R> {
    match (x, y) {
        (_, [b]) => x.iter().map(|a| f(*a, *b)).collect(),
        ([a], _) => y.iter().map(|b| f(*a, *b)).collect(),
        _ => x.iter().zip(y).map(|(a, b)| f(*a, *b)).collect(),
    }
}

impl PartialEq for HostTensor {
    fn eq(&self, other: &HostTensor) -> bool {
        let alike = self.is_splat() && other.is_splat();
        let data = |t: &HostTensor| if alike { t.stored().clone() } else { t.data().clone() };
        self.shape == other.shape && data(self) == data(other)
    }
}

/// Maximum bytes of elements that are compared by value; larger ones compare by address.
const MAX_COMPARED: usize = 4096;

impl HostTensor {
    /// True if both have one type and the same bits, as a splat or as elements. Large tensors only if they share
    /// memory.
    pub fn is_identical(&self, other: &HostTensor) -> bool {
        let (bits, others) = (self.stored().bytes(), other.stored().bytes());
        let same_place = std::ptr::eq(bits, others);
        self.ty() == other.ty()
            && self.is_splat() == other.is_splat()
            && (same_place || (bits.len() <= MAX_COMPARED && bits == others))
    }

    /// A hash consistent with [`HostTensor::is_identical`].
    pub fn hash_identity(&self, state: &mut impl Hasher) {
        let bits = self.stored().bytes();
        (self.ty(), self.is_splat(), bits.len()).hash(state);
        if bits.len() <= MAX_COMPARED { bits.hash(state) } else { bits.as_ptr().hash(state) }
    }
}

/// The type and the elements, for a splat its number; the address of large ones.
impl fmt::Debug for HostTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.stored().bytes();
        let ty: TensorType = self.ty();
        if bytes.len() > MAX_COMPARED {
            return write!(f, "{ty} at {:p}", bytes.as_ptr());
        }
        write!(f, "{ty} {}{bytes:02x?}", if self.is_splat() { "all " } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{DType, Number};

    const SHAPE: [usize; 2] = [3, 4];

    fn splat(x: f64) -> HostTensor {
        HostTensor::filled(DType::F32, SHAPE.as_slice(), x)
    }

    fn dense(x: f32) -> HostTensor {
        HostTensor::new(SHAPE.as_slice(), vec![x; 12])
    }

    #[test]
    fn a_splat_is_the_tensor_that_is_written_out() {
        assert!(splat(2.0).is_splat() && !dense(2.0).is_splat());
        assert_eq!(splat(2.0), dense(2.0));
        assert_ne!(splat(2.0), splat(3.0));
        assert_eq!(splat(f64::from(0.1_f32)).copied_bytes(), dense(0.1).copied_bytes());
        assert_eq!(splat(2.0).bytes(), dense(2.0).bytes());
        assert_eq!((splat(2.0).count(), splat(2.0).byte_len()), (12, 48));
        assert_eq!(splat(2.0).element(11), Number::Float(2.0));
    }

    #[test]
    fn none_and_one_are_no_splats() {
        for shape in [[0, 5], [1, 1]] {
            let tensor = HostTensor::filled(DType::I32, shape.as_slice(), 7.0);
            assert!(!tensor.is_splat());
            assert_eq!(tensor.data().len(), element_count(&shape));
        }
    }

    #[test]
    fn what_is_the_same_throughout_is_found_bit_for_bit() {
        let zeros = HostTensor::new(SHAPE.as_slice(), [vec![0.0_f32; 11], vec![-0.0]].concat());
        assert_eq!(zeros.uniform(), None);
        for tensor in [dense(5.0), splat(5.0)] {
            assert_eq!(tensor.uniform(), Some(HostTensor::scalar(5.0_f32)));
        }
    }

    #[test]
    fn a_number_beside_many_goes_with_each() {
        let row = [1, 2, 3];
        assert_eq!(pairs(&row, &[10], |a, b| a - b), [-9, -8, -7]);
        assert_eq!(pairs(&[10], &row, |a, b| a - b), [9, 8, 7]);
        assert_eq!(pairs(&row, &row, |a, b| a - b), [0, 0, 0]);
    }

    #[test]
    fn debugging_text_tells_tensors_apart() {
        assert_ne!(format!("{:?}", splat(2.0)), format!("{:?}", splat(3.0)));
        let large = || HostTensor::new([2000].as_slice(), (0..2000).collect::<Vec<i32>>());
        let (a, b) = (large(), large());
        assert_ne!(format!("{a:?}"), format!("{b:?}"));
        assert_eq!(format!("{a:?}"), format!("{:?}", a.clone()));
    }
}
