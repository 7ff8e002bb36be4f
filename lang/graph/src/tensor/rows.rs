//! Rows of host tensors: their entries along axis 0.

use std::ops::Range;

use super::shared::FilePart;
use super::{Element, HostTensor, Shape, TensorType};
use crate::{map_elements, with_element_type};

impl HostTensor {
    /// Consecutive rows. Those of a tensor in files stay there, unread.
    ///
    /// # Panics
    /// If the tensor has no axis, or fewer rows.
    #[must_use]
    pub fn rows(&self, rows: Range<usize>) -> HostTensor {
        let width: usize = self.shape()[1..].iter().product();
        let shape: Shape = std::iter::once(rows.len()).chain(self.shape()[1..].iter().copied()).collect();
        let (first, end) = (rows.start * width, rows.end * width);
        if self.stored().files().is_empty() {
            return self.moved(shape, |data| map_elements!(data, v => v[first..end].to_vec()));
        }
        let bytes = self.dtype().byte_width();
        let parts = cut(self.stored().files(), first * bytes..end * bytes);
        let ty = TensorType::new(self.dtype(), shape);
        HostTensor::in_files(&ty, parts).expect("whole elements of this dtype")
    }

    /// A copy of the rows at these positions.
    ///
    /// # Panics
    /// If the tensor has no axis, or a row is not there.
    #[must_use]
    pub fn rows_at(&self, rows: &[usize]) -> HostTensor {
        let width: usize = self.shape()[1..].iter().product();
        let shape: Shape = std::iter::once(rows.len()).chain(self.shape()[1..].iter().copied()).collect();
        self.moved(shape, |data| {
            map_elements!(data, v => {
                let mut taken = Vec::with_capacity(rows.len() * width);
                rows.iter().for_each(|row| taken.extend_from_slice(&v[row * width..(row + 1) * width]));
                taken
            })
        })
    }

    /// A copy of rows of several tensors of one dtype and row shape: the position of the tensor, and of its row.
    ///
    /// # Panics
    /// If there is no tensor, their types differ, or a row is not there.
    pub fn rows_among(tensors: &[HostTensor], rows: &[(usize, usize)]) -> HostTensor {
        let first = &tensors[0];
        let width: usize = first.shape()[1..].iter().product();
        let shape: Shape = std::iter::once(rows.len()).chain(first.shape()[1..].iter().copied()).collect();
        with_element_type!(first.dtype(), T => {
            let all: Vec<&[T]> = tensors.iter().filter_map(|t| T::elements(t.data())).collect();
            let mut taken: Vec<T> = Vec::with_capacity(rows.len() * width);
            for (tensor, row) in rows {
                taken.extend_from_slice(&all[*tensor][row * width..(row + 1) * width]);
            }
            HostTensor::new(shape, taken)
        })
    }

    /// Tensors of one dtype and row shape, one after the other along axis 0. Those in files stay there, unread, unless some
    /// are in memory.
    ///
    /// # Panics
    /// If there is none, or their types differ.
    pub fn joined(tensors: &[HostTensor]) -> HostTensor {
        let first = &tensors[0];
        let count = tensors.iter().map(|t| t.shape()[0]).sum();
        let shape: Shape = std::iter::once(count).chain(first.shape()[1..].iter().copied()).collect();
        let ty = TensorType::new(first.dtype(), shape);
        let full = || tensors.iter().filter(|t| t.count() > 0);
        if full().all(|t| !t.stored().files().is_empty()) {
            let parts = full().flat_map(|t| t.stored().files()).cloned().collect();
            return HostTensor::in_files(&ty, parts).expect("whole elements of this dtype");
        }
        let bytes: Vec<u8> = tensors.iter().flat_map(|t| t.copied_bytes().into_owned()).collect();
        HostTensor::from_bytes(&ty, &bytes).expect("the elements of this type")
    }
}

/// The bytes at `range` of parts that follow each other.
fn cut(parts: &[FilePart], range: Range<usize>) -> Vec<FilePart> {
    let mut taken = Vec::new();
    let mut before = 0;
    for part in parts {
        let length = part.range.len();
        let (first, end) = (range.start.max(before), range.end.min(before + length));
        if first < end {
            let range = part.range.start + first - before..part.range.start + end - before;
            taken.push(FilePart { file: part.file.clone(), range });
        }
        before += length;
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tensor::DType;

    /// `u16` numbers from 0 on, in a file that has one byte more at its start.
    fn in_file(count: u16, shape: &[usize], offset: usize) -> HostTensor {
        let bytes = (0..count).flat_map(u16::to_le_bytes);
        let file: Vec<u8> = std::iter::repeat_n(9, offset).chain(bytes).collect();
        let range = offset..file.len();
        let part = FilePart { file: Arc::new(file), range };
        HostTensor::in_files(&TensorType::new(DType::U16, shape), vec![part]).unwrap()
    }

    #[test]
    fn rows_of_a_file_are_those_of_memory_whatever_their_alignment() {
        let numbers: Vec<u16> = (0..24).collect();
        let memory = HostTensor::new([6, 4].as_slice(), numbers);
        for offset in [0, 1, 2, 3] {
            let file = in_file(24, &[6, 4], offset);
            assert_eq!(file, memory);
            for (start, end) in [(0, 6), (2, 5), (3, 3)] {
                let rows = file.rows(start..end);
                assert!(start == end || !rows.data().files().is_empty() || offset % 2 == 1);
                assert_eq!(rows, memory.rows(start..end), "{start}..{end}");
            }
            assert_eq!(file.rows_at(&[5, 0, 5]), memory.rows_at(&[5, 0, 5]));
            let among = HostTensor::rows_among(&[file.clone(), memory.clone()], &[(1, 5), (0, 0)]);
            assert_eq!(among, memory.rows_at(&[5, 0]));
            let ends = [file.rows(4..6), file.rows(0..1)];
            assert_eq!(HostTensor::joined(&ends), memory.rows_at(&[4, 5, 0]));
            assert_eq!(HostTensor::joined(&ends).rows(1..3), memory.rows_at(&[5, 0]));
            assert_eq!(HostTensor::joined(&[memory.rows(4..6), file.rows(0..1)]), memory.rows_at(&[4, 5, 0]));
        }
    }

    #[test]
    fn a_splat_stays_one() {
        let splat = HostTensor::filled(DType::F32, [6, 4].as_slice(), 2.0);
        assert!(splat.rows(1..3).is_splat() && splat.rows_at(&[1, 1]).is_splat());
    }
}
