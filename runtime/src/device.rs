//! Opened devices, and the handle that creates programs and buffers on them.

use std::rc::Rc;

use eerie_sys::runtime as iree;

use crate::error::{Error, Status, check};
use crate::ffi::{Counted, Ref, host_allocator};
use crate::process::Process;
use crate::runtime::{Shared, Target};
use crate::staging::Staging;
use crate::{Buffer, ElementType, Memory, Program, Vmfb, gpu, hal, sync, task};

/// An opened device: IREE's object, the allocator of its buffers, the VM module that its programs import, and memory for copies.
pub(crate) struct Backend {
    // Declared before the device, whose memory it is: must be dropped first.
    pub(crate) staging: Staging,
    pub(crate) device: Ref<iree::iree_hal_device_t>,
    pub(crate) allocator: Ref<iree::iree_hal_allocator_t>,
    pub(crate) module: Ref<iree::iree_vm_module_t>,
}

impl Backend {
    pub(crate) fn open(process: &Process, target: Target) -> Result<Self, Status> {
        let _alone = process.changing();
        match target {
            Target::LocalSync => hal::open(process, sync::device()?),
            Target::LocalTask(workers) => hal::open(process, task::device(workers)?),
            Target::Gpu(gpu) => hal::open(process, gpu::device(process, gpu)?),
        }
    }
}

/// An execution device. Cloning is cheap and shares the device.
#[derive(Clone)]
pub struct Device {
    pub(crate) backend: Rc<Backend>,
    pub(crate) target: Target,
    // Declared after the backend: must be dropped last.
    pub(crate) shared: Rc<Shared>,
}

impl Device {
    /// A handle of the device opened for `target`.
    pub(crate) fn new(shared: Rc<Shared>, target: Target, backend: Rc<Backend>) -> Self {
        Self { backend, target, shared }
    }

    /// The target of this device.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Current and peak memory of this device's buffers.
    pub fn memory(&self) -> Memory {
        Memory::of(&self.backend.allocator)
    }

    /// The compute capability of a GPU of CUDA, as (major, minor); `None` for other devices.
    pub fn compute_capability(&self) -> Option<(u32, u32)> {
        gpu::compute_capability(&self.backend.device)
    }

    /// Loads a program: links its kernels and runs its initialisers. The bytes are used in place.
    pub fn load(&self, vmfb: &Vmfb) -> Result<Program, Error> {
        Program::load(self, vmfb)
    }

    /// Copies `bytes`, elements in row-major order and in the machine's byte order, to a new buffer.
    ///
    /// A shape `[]` is a single element, as in MLIR's `tensor<f32>`.
    pub fn upload(&self, element: ElementType, shape: &[usize], bytes: &[u8]) -> Result<Buffer, Error> {
        Buffer::upload(self, element, shape, bytes)
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.target)
    }
}

/// Calls one of IREE's constructors and takes ownership of the object.
///
/// # Safety
///
/// `construct` calls a function of IREE's that either stores an owned reference through the pointer and returns OK,
/// or fails. Its other arguments are valid for that function.
pub(crate) unsafe fn create<T: Counted>(
    construct: impl FnOnce(*mut *mut T) -> iree::iree_status_t,
) -> Result<Ref<T>, Status> {
    let mut raw = std::ptr::null_mut();
    let status = construct(&raw mut raw);
    // SAFETY: the status comes from IREE and is used once; on success `raw` holds a reference that is ours.
    unsafe {
        check(status)?;
        Ok(Ref::adopt(raw))
    }
}

/// The loader of kernels of the compiler's backend `llvm-cpu`: ELF images independent of any system, which need no
/// linker and no file.
pub(crate) fn embedded_elf_loader() -> Result<Ref<iree::iree_hal_executable_loader_t>, Status> {
    // SAFETY: no plugins are wanted, for which null stands.
    unsafe {
        create(|out| iree::iree_hal_embedded_elf_loader_create(std::ptr::null_mut(), host_allocator(), out))
    }
}
