//! GPUs: the drivers that this build has, the GPUs that they find, and the devices on them.

use std::ptr::null_mut;

use eerie_sys::runtime as iree;

use crate::device::create;
use crate::error::{Status, check};
use crate::ffi::{Ref, host_allocator, text_of, view};
use crate::hal::proactor_pool;
use crate::process::Process;
use crate::runtime::Gpu;

/// A driver of GPUs. It loads the library of the GPU's maker when it is first used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Driver {
    /// CUDA, for NVIDIA's GPUs.
    Cuda,
    /// Vulkan, for GPUs of all makers, and for processors by a renderer in software.
    Vulkan,
    /// Metal, for Apple's GPUs.
    Metal,
}

/// A GPU that a driver has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuInfo {
    /// The name that its maker gave it.
    pub name: String,
    /// True if a processor computes in its stead.
    pub is_software: bool,
}

impl Driver {
    /// All drivers.
    pub const ALL: [Self; 3] = [Self::Cuda, Self::Vulkan, Self::Metal];

    /// Its name, on the command line and in IREE.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Vulkan => "vulkan",
            Self::Metal => "metal",
        }
    }

    /// True if this build has it.
    pub const fn is_linked(self) -> bool {
        match self {
            Self::Cuda => cfg!(feature = "cuda"),
            Self::Vulkan => cfg!(feature = "vulkan"),
            Self::Metal => cfg!(all(target_os = "macos", target_arch = "aarch64")),
        }
    }

    /// Starts it. `process` is the state that its registration changes.
    fn start(self, process: &Process) -> Result<Ref<iree::iree_hal_driver_t>, Status> {
        if !self.is_linked() {
            return Err(Status::unavailable(format!("this program was built without {}", self.name())));
        }
        #[cfg(feature = "cuda")]
        if self == Self::Cuda {
            return crate::cuda::driver();
        }
        let registry = process.drivers()?;
        // SAFETY: the registry is live, and names the drivers of this build.
        unsafe {
            create(|out| {
                iree::iree_hal_driver_registry_try_create(registry, view(self.name()), host_allocator(), out)
            })
        }
    }
}

/// The GPUs that a driver finds.
pub(crate) fn list(process: &Process, driver: Driver) -> Result<Vec<GpuInfo>, Status> {
    let driver = driver.start(process)?;
    let (mut count, mut infos) = (0, null_mut());
    // SAFETY: the driver is live, the out pointers are to locals; on success `infos` leads to `count` descriptions, in one
    // allocation that is freed once, after the texts in it were copied.
    unsafe {
        check(iree::iree_hal_driver_query_available_devices(
            driver.as_ptr(),
            host_allocator(),
            &raw mut count,
            &raw mut infos,
        ))?;
        let described = (0..count).map(|i| GpuInfo::named(&text_of((*infos.add(i)).name)));
        let described = described.collect();
        iree::iree_allocator_free(host_allocator(), infos.cast());
        Ok(described)
    }
}

impl GpuInfo {
    /// The renderers in software say in their names what they are: Mesa's `llvmpipe`, and `SwiftShader`.
    fn named(name: &str) -> Self {
        let is_software = ["llvmpipe", "SwiftShader"].iter().any(|renderer| name.contains(renderer));
        Self { name: name.to_owned(), is_software }
    }
}

/// Creates the device.
pub(crate) fn device(process: &Process, gpu: Gpu) -> Result<Ref<iree::iree_hal_device_t>, Status> {
    let driver = gpu.driver.start(process)?;
    let pool = proactor_pool()?;
    let parameters =
        iree::iree_hal_device_create_params_t { next: std::ptr::null(), proactor_pool: pool.as_ptr() };
    // SAFETY: driver and pool are live; the device keeps its own references to them. There are no parameters by name.
    unsafe {
        create(|out| {
            iree::iree_hal_driver_create_device_by_ordinal(
                driver.as_ptr(),
                gpu.index,
                0,
                std::ptr::null(),
                &raw const parameters,
                host_allocator(),
                out,
            )
        })
    }
}

/// The compute capability of a device of CUDA.
pub(crate) fn compute_capability(device: &Ref<iree::iree_hal_device_t>) -> Option<(u32, u32)> {
    let number = |key: &str| {
        let mut number = 0;
        // SAFETY: the device is live, the out pointer is to a local. Other devices do not know the category.
        let status = unsafe {
            check(iree::iree_hal_device_query_i64(
                device.as_ptr(),
                view("cuda.device"),
                view(key),
                &raw mut number,
            ))
        };
        status.ok().and_then(|()| u32::try_from(number).ok())
    };
    Some((number("compute_capability_major")?, number("compute_capability_minor")?))
}
