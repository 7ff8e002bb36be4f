//! Tensors: concrete ones hold elements, traced ones a variable of a graph under construction.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use ustr::Ustr;

use crate::host::Buffer;
use sheaf_graph::graph::{Builder, Var};
use sheaf_graph::primitives::Site;
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType};
use sheaf_syntax::Span;

/// A tensor value.
#[derive(Clone, Debug)]
pub enum Tensor {
    /// A tensor with elements.
    Concrete(Rc<Concrete>),
    /// A tracer: a variable of a trace.
    Traced(Rc<Traced>),
}

/// A tensor with elements: on the host, on the device, or both. Copies made on demand are kept, so an argument on the
/// device is not uploaded again, and a result is downloaded only when it is read.
pub struct Concrete {
    pub(crate) ty: TensorType,
    pub(crate) host: OnceCell<HostTensor>,
    pub(crate) device: OnceCell<Buffer>,
    pub(crate) origin: OnceCell<Origin>,
    /// Pending check flags of the calls that computed it.
    pub(crate) flags: RefCell<Option<Flags>>,
    /// True if it has passed the guards on all values.
    pub(crate) passed: Cell<bool>,
}

impl Concrete {
    /// A tensor in host memory; `weak` for numbers.
    pub fn from_host(host: HostTensor, weak: bool) -> Rc<Concrete> {
        let ty = TensorType { weak, ..host.ty() };
        Rc::new(Concrete {
            ty,
            host: OnceCell::from(host),
            device: OnceCell::new(),
            origin: OnceCell::new(),
            flags: RefCell::default(),
            passed: Cell::new(false),
        })
    }

    /// A tensor on the device, valid if no flag is set.
    pub fn from_device(ty: TensorType, buffer: Buffer, flags: Option<Flags>) -> Rc<Concrete> {
        Rc::new(Concrete {
            ty,
            host: OnceCell::new(),
            device: OnceCell::from(buffer),
            origin: OnceCell::new(),
            flags: RefCell::new(flags),
            passed: Cell::new(false),
        })
    }

    /// A copy in host memory only, if the elements are there; else itself.
    pub(crate) fn anew(self: &Rc<Self>) -> Rc<Concrete> {
        let Some(host) = self.host.get() else { return Rc::clone(self) };
        let copy = Concrete::from_host(host.clone(), self.ty.weak);
        copy.comes_from(self.origin.get().copied());
        copy
    }

    /// Sets the call or literal as its origin, unless it is known.
    pub(crate) fn made_at(&self, place: Option<Span>) {
        self.comes_from(place.map(Origin::Made));
    }

    /// Sets the origin, unless it is known.
    pub(crate) fn comes_from(&self, origin: Option<Origin>) {
        if let Some(origin) = origin {
            let _ = self.origin.set(origin);
        }
    }

    /// Its type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The elements, if they are in host memory.
    pub fn host_if_there(&self) -> Option<&HostTensor> {
        self.host.get()
    }

    /// The elements for an observer: a copy from the device is not kept. `None` if they cannot be read.
    pub(crate) fn peek(&self) -> Option<HostTensor> {
        match self.host.get() {
            Some(host) => Some(host.clone()),
            None => self.device.get()?.read(&self.ty).ok(),
        }
    }

    /// The check flags to read before its elements.
    pub(crate) fn flags(&self) -> Option<Flags> {
        self.flags.borrow().clone()
    }
}

impl fmt::Debug for Concrete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.ty)
    }
}

/// The origin of a tensor: never in the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The call or literal that made it.
    Made(Span),
    /// Its typed parameter.
    Declared(Span),
}

impl Origin {
    /// The span.
    pub fn span(self) -> Span {
        let (Origin::Made(span) | Origin::Declared(span)) = self;
        span
    }
}

/// A tracer: a variable of a trace.
pub struct Traced {
    pub(crate) trace: Rc<Trace>,
    pub(crate) var: Var,
    pub(crate) ty: TensorType,
    /// The value, if the evaluator computes while it records (differentiation of interpreted code).
    pub(crate) concrete: Option<Rc<Concrete>>,
    /// The call that recorded it, or the origin of its argument.
    pub(crate) origin: Option<Origin>,
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "traced {} {:?}", self.var, self.ty)
    }
}

/// A graph under construction. Traces nest: one of a higher level may use tensors of lower levels, which become
/// captures, additional parameters of its graph.
pub struct Trace {
    pub(crate) level: u32,
    pub(crate) builder: RefCell<Builder>,
    pub(crate) captures: RefCell<Vec<(Rc<Traced>, Var)>>,
    pub(crate) constants: RefCell<Vec<(Rc<Concrete>, Var)>>,
    /// Known numbers broadcast to a shape, by their bytes: most are used many times, and share one constant.
    pub(crate) fills: RefCell<HashMap<Fill, Rc<Concrete>>>,
    pub(crate) limit: usize,
    pub(crate) open: Regions,
}

/// The regions being traced, shared by all traces of an evaluator.
pub(crate) type Regions = Rc<RefCell<OpenRegions>>;

/// The traces of nested regions.
#[derive(Default)]
pub(crate) struct OpenRegions {
    /// Those of branches and checkpoints. Computations on outer tensors are recorded in the innermost of them: they run
    /// only if that branch is taken, and a checkpoint recomputes them rather than keeping them.
    pub(crate) closed: Vec<Rc<Trace>>,
    /// Those and the bodies of loops, which may run zero steps: so checks are recorded in the innermost region.
    pub(crate) all: Vec<Rc<Trace>>,
    /// The trace of the whole program, if there is one.
    pub(crate) root: Option<Rc<Trace>>,
}

/// The dtype and the bytes of a number, and the shape it is broadcast to.
pub(crate) type Fill = (DType, Vec<u8>, Shape);

impl Tensor {
    /// A concrete tensor in host memory.
    pub fn host(host: HostTensor) -> Tensor {
        Tensor::Concrete(Concrete::from_host(host, false))
    }

    /// A concrete tensor in host memory, made by a call.
    pub fn made(host: HostTensor, place: Option<Span>) -> Tensor {
        let made = Concrete::from_host(host, false);
        made.made_at(place);
        Tensor::Concrete(made)
    }

    /// A weak number in host memory.
    pub fn weak(host: HostTensor) -> Tensor {
        Tensor::Concrete(Concrete::from_host(host, true))
    }

    /// True if it is the same tensor.
    pub fn is(&self, other: &Tensor) -> bool {
        match (self, other) {
            (Tensor::Concrete(a), Tensor::Concrete(b)) => Rc::ptr_eq(a, b),
            (Tensor::Traced(a), Tensor::Traced(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Its type.
    pub fn ty(&self) -> &TensorType {
        match self {
            Tensor::Concrete(c) => c.ty(),
            Tensor::Traced(t) => &t.ty,
        }
    }

    /// The origin, if it is known.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Tensor::Concrete(c) => c.origin.get().copied(),
            Tensor::Traced(t) => t.origin,
        }
    }

    /// The extents of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.ty().shape
    }

    /// The concrete value, unless it is traced without one.
    pub fn concrete(&self) -> Option<&Rc<Concrete>> {
        match self {
            Tensor::Concrete(c) => Some(c),
            Tensor::Traced(t) => t.concrete.as_ref(),
        }
    }

    /// True for a tracer.
    pub fn is_traced(&self) -> bool {
        matches!(self, Tensor::Traced(_))
    }

    /// True for a boolean scalar unknown while tracing.
    pub(crate) fn is_unknown_truth(&self) -> bool {
        self.concrete().is_none() && *self.ty() == TensorType::scalar(DType::Bool)
    }

    /// True for a variable of a trace nested in that of `level`.
    pub(crate) fn is_traced_within(&self, level: u32) -> bool {
        matches!(self, Tensor::Traced(t) if t.trace.level > level)
    }

    /// True for a variable of the trace of that level.
    pub fn is_traced_at(&self, level: u32) -> bool {
        matches!(self, Tensor::Traced(t) if t.trace.level == level)
    }
}

/// The check results of a compiled call, read on demand.
pub struct Flag {
    pub(crate) buffer: Buffer,
    pub(crate) ty: TensorType,
    pub(crate) sites: Rc<[Arc<Site>]>,
    /// The called function, and the span of the call.
    pub(crate) function: Option<Ustr>,
    pub(crate) called_at: Option<Span>,
    /// True if no check failed.
    pub(crate) passed: Cell<bool>,
}

/// The flags of all calls that a tensor depends on, except those known to have passed.
pub type Flags = Rc<[Rc<Flag>]>;
