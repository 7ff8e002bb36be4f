//! Handles: sequences whose items are read from files when they are asked for.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::dict::Key;
use super::items::Items;
use super::tensor::Tensor;
use crate::host::Pending;
use sheaf_graph::tensor::{DType, FileBytes, FileChanged, HostTensor, Shape, TensorType};

/// A handle: items of a lazy sequence, in some order.
#[derive(Debug)]
pub struct Handle {
    /// The sequence.
    pub(crate) lazy: Rc<Lazy>,
    /// Its items that this handle has.
    pub(crate) picked: Picked,
    /// All of them as one tensor, once it was asked for.
    pub(crate) whole: OnceCell<Tensor>,
}

/// The items of a sequence that a handle has.
#[derive(Clone, Debug)]
pub(crate) enum Picked {
    /// All.
    All,
    /// Consecutive ones.
    Range(Range<usize>),
    /// Those at these positions, in this order.
    At(Arc<[usize]>),
}

/// A lazy sequence.
#[derive(Debug)]
pub(crate) enum Lazy {
    /// Rows of numbers.
    Rows(Rows),
    /// The lines of a text file, each a JSON value.
    Lines(Lines),
    /// Parts of another sequence.
    Batches(Batches),
}

/// Rows of numbers in files, or in memory.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// The file or pattern of files, for messages.
    pub name: String,
    /// Tensors of one dtype and row shape, one after the other. Never empty.
    pub parts: Arc<[HostTensor]>,
    /// The position of the first row of each part, and at last the number of all.
    pub starts: Arc<[usize]>,
}

/// The lines of a text file that are not blank.
pub(crate) struct Lines {
    /// The file, for messages.
    pub name: String,
    pub file: Arc<dyn FileBytes>,
    /// Start and end of each line, and its number in the file, counted from 1; found at the first access.
    pub places: OnceCell<Vec<(Range<usize>, usize)>>,
}

/// Batches of consecutive items of a sequence, or of several side by side.
#[derive(Debug)]
pub(crate) struct Batches {
    pub source: Source,
    /// Items of a batch; the last may have fewer.
    pub size: usize,
    /// Number of batches.
    pub count: usize,
    /// Number of items of the source.
    pub items: usize,
    /// Positions of the items, if they are shuffled.
    pub order: Option<Arc<[usize]>>,
    /// The batch that is prepared on another thread, by its position.
    pub ahead: RefCell<Option<(usize, Pending<Prepared>)>>,
    /// Number of batches that were prepared so and used.
    pub used: Cell<usize>,
}

/// The rows of a batch, for each column that was prepared.
pub(crate) type Prepared = Vec<Result<HostTensor, FileChanged>>;

/// The items that batches are made of.
#[derive(Debug)]
pub(crate) enum Source {
    /// One sequence.
    One(Column),
    /// The values of a dictionary, side by side.
    Named(Vec<(Key, Column)>),
}

/// A sequence that batches are made of.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    /// Rows of numbers, those of a handle or of a tensor.
    Rows(Rows, Picked),
    /// Items of a list.
    List(Items),
    /// Items of a handle.
    Handle(Rc<Handle>),
}

impl Picked {
    /// The position in the sequence of item `i`.
    pub fn position(&self, i: usize) -> usize {
        match self {
            Picked::All => i,
            Picked::Range(range) => range.start + i,
            Picked::At(rows) => rows[i],
        }
    }
}

impl Rows {
    /// The rows of tensors of one dtype and row shape.
    pub fn new(name: impl Into<String>, parts: Vec<HostTensor>) -> Rows {
        let mut starts = vec![0];
        for part in &parts {
            starts.push(starts[starts.len() - 1] + part.shape()[0]);
        }
        Rows { name: name.into(), parts: parts.into(), starts: starts.into() }
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.parts[0].dtype()
    }

    /// The shape of a row.
    pub fn row(&self) -> &[usize] {
        &self.parts[0].shape()[1..]
    }

    /// The type of a tensor of `count` rows.
    pub fn ty(&self, count: usize) -> TensorType {
        let shape: Shape = std::iter::once(count).chain(self.row().iter().copied()).collect();
        TensorType::new(self.dtype(), shape)
    }

    /// Consecutive rows; those in files stay there, unread.
    pub fn slice(&self, rows: Range<usize>) -> HostTensor {
        let mut taken = Vec::new();
        for (part, start) in self.parts.iter().zip(self.starts.iter()) {
            let (first, end) = (rows.start.max(*start), rows.end.min(start + part.shape()[0]));
            if first < end {
                taken.push(part.rows(first - start..end - start));
            }
        }
        match taken.len() {
            0 => self.parts[0].rows(0..0),
            1 => taken.swap_remove(0),
            _ => HostTensor::joined(&taken),
        }
    }

    /// A copy of the rows at these positions.
    pub fn gather(&self, rows: &[usize]) -> HostTensor {
        if let [one] = &*self.parts {
            return one.rows_at(rows);
        }
        let place = |row: &usize| {
            let part = self.starts.partition_point(|start| start <= row) - 1;
            (part, row - self.starts[part])
        };
        HostTensor::rows_among(&self.parts, &rows.iter().map(place).collect::<Vec<_>>())
    }

    /// Fails if one of the files has changed.
    pub fn check(&self) -> Result<(), FileChanged> {
        self.parts.iter().try_for_each(HostTensor::check_files)
    }

    /// True if some of the rows are in files.
    pub fn in_files(&self) -> bool {
        self.parts.iter().any(|part| !part.stored().files().is_empty())
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lines").field(&self.name).finish()
    }
}

impl Lazy {
    /// The number of items.
    fn count(&self) -> usize {
        match self {
            Lazy::Rows(rows) => rows.count(),
            Lazy::Lines(lines) => lines.places().len(),
            Lazy::Batches(batches) => batches.count,
        }
    }
}

impl Lines {
    /// Start and end of each line, and its number in the file.
    pub fn places(&self) -> &[(Range<usize>, usize)] {
        self.places.get_or_init(|| {
            let bytes = self.file.bytes();
            let mut places = Vec::new();
            let mut start = 0;
            for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
                if !line.trim_ascii().is_empty() {
                    places.push((start..start + line.len(), number + 1));
                }
                start += line.len() + 1;
            }
            places
        })
    }
}

impl Handle {
    /// All items of a sequence.
    pub(crate) fn new(lazy: Lazy) -> Handle {
        Handle { lazy: Rc::new(lazy), picked: Picked::All, whole: OnceCell::new() }
    }

    /// The number of items.
    pub fn count(&self) -> usize {
        match &self.picked {
            Picked::All => self.lazy.count(),
            Picked::Range(range) => range.len(),
            Picked::At(rows) => rows.len(),
        }
    }

    /// The position in the sequence of item `i`.
    pub(crate) fn position(&self, i: usize) -> usize {
        self.picked.position(i)
    }

    /// The same sequence with those of the items.
    pub(crate) fn part(&self, items: Range<usize>) -> Handle {
        let picked = match &self.picked {
            Picked::All => Picked::Range(items),
            Picked::Range(range) => Picked::Range(range.start + items.start..range.start + items.end),
            Picked::At(rows) => Picked::At(rows[items].into()),
        };
        Handle { lazy: Rc::clone(&self.lazy), picked, whole: OnceCell::new() }
    }

    /// The same sequence with the items at these positions.
    pub(crate) fn reordered(&self, items: &[usize]) -> Handle {
        let rows = items.iter().map(|i| self.position(*i)).collect();
        Handle { lazy: Rc::clone(&self.lazy), picked: Picked::At(rows), whole: OnceCell::new() }
    }

    /// The rows and their type, if the items are rows of numbers.
    pub(crate) fn rows(&self) -> Option<(&Rows, TensorType)> {
        if let Lazy::Rows(rows) = &*self.lazy { Some((rows, rows.ty(self.count()))) } else { None }
    }

    /// Shown by `print`: its kind, its size and the files.
    pub fn text(&self) -> String {
        match &*self.lazy {
            Lazy::Rows(rows) => format!("<handle {} {}>", rows.ty(self.count()), rows.name),
            Lazy::Lines(lines) => format!("<handle lines[{}] {}>", self.count(), lines.name),
            Lazy::Batches(batches) => format!("<handle batches[{}] of {}>", self.count(), batches.size),
        }
    }
}
