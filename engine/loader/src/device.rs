//! The device of a run: the processor, or a GPU for which all programs are compiled.

use std::path::Path;
use std::str::FromStr;

use sheaf_lang::host::HostError;
use sheaf_runtime::{Driver, Gpu, GpuInfo, Runtime};
use sheaf_target::Destination;

use crate::report::Reporter;

/// Policy for the device of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DevicePolicy {
    /// The first GPU that is one in hardware, by CUDA, else by Vulkan or Metal; the processor if there is none.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// This GPU; it is an error if it is not there.
    Gpu(Gpu),
}

impl FromStr for DevicePolicy {
    type Err = String;

    /// `auto`, `cpu`, `cuda`, `vulkan` or `metal`; the last three with an index, as in `cuda:1`.
    fn from_str(text: &str) -> Result<DevicePolicy, String> {
        match text {
            "auto" => return Ok(DevicePolicy::Auto),
            "cpu" => return Ok(DevicePolicy::Cpu),
            _ => {}
        }
        let (name, index) = text.split_once(':').unwrap_or((text, "0"));
        let Some(driver) = Driver::ALL.into_iter().find(|driver| driver.name() == name) else {
            return Err("devices are auto, cpu, cuda, vulkan and metal, a GPU with its index: cuda:1".into());
        };
        let Ok(index) = index.parse() else {
            return Err(format!("the index of a GPU is a whole number from 0 on: {name}:1"));
        };
        Ok(DevicePolicy::Gpu(Gpu { driver, index }))
    }
}

/// A GPU that serves a run, and the compilation for it.
#[derive(Clone, Debug)]
pub struct OpenGpu {
    /// The GPU.
    pub gpu: Gpu,
    /// The target of its compilations.
    pub destination: Destination,
    /// The reason for the choice, a clause.
    pub why: &'static str,
}

impl DevicePolicy {
    /// The GPU of a run, opened; `None` for the processor. `serves` says whether there are programs for a kind of device, or a
    /// compiler.
    ///
    /// # Errors
    ///
    /// The GPU that the policy names is not there, or does not open.
    pub fn open(
        self,
        runtime: &Runtime,
        serves: impl Fn(&str) -> bool,
        reporter: &dyn Reporter,
    ) -> Result<Option<OpenGpu>, HostError> {
        match self {
            DevicePolicy::Cpu => Ok(None),
            DevicePolicy::Gpu(gpu) => open(runtime, gpu, "as --device says").map(Some),
            DevicePolicy::Auto => {
                let mut found =
                    Driver::ALL.into_iter().filter(|driver| may_be_there(*driver) && serves(driver.name()));
                let Some(gpu) = found.find_map(|driver| first_in_hardware(runtime, driver)) else {
                    return Ok(None);
                };
                match open(runtime, gpu, "the first GPU of this machine") {
                    Ok(open) => Ok(Some(open)),
                    Err(error) => {
                        reporter.warn(
                            &error.message,
                            Some(&"programs run on the processor"),
                            error.help.as_deref(),
                        );
                        Ok(None)
                    }
                }
            }
        }
    }
}

/// The first GPU of a driver that is no renderer in software. A driver that does not start is none: `sheaf device list` gives the reason.
fn first_in_hardware(runtime: &Runtime, driver: Driver) -> Option<Gpu> {
    let gpus = runtime.gpus(driver).ok()?;
    let index = gpus.iter().position(|gpu| !gpu.is_software)?;
    Some(Gpu { driver, index })
}

/// True if the system shows hardware for a driver. The start of a driver loads the library of the GPU's maker, which takes longer
/// than all else before the first result.
fn may_be_there(driver: Driver) -> bool {
    let any = |paths: &[&str]| paths.iter().any(|path| Path::new(path).exists());
    driver.is_linked()
        && match driver {
            _ if cfg!(not(target_os = "linux")) => true,
            // The last is that of the Windows Subsystem for Linux.
            Driver::Cuda => any(&["/dev/nvidiactl", "/dev/nvhost-ctrl", "/dev/dxg"]),
            Driver::Vulkan | Driver::Metal => any(&["/dev/dri/renderD128", "/dev/dri/renderD129"]),
        }
}

/// Opens a GPU. An absent one is an error that names those that are there.
fn open(runtime: &Runtime, gpu: Gpu, why: &'static str) -> Result<OpenGpu, HostError> {
    let driver = gpu.driver;
    let help = |text: &str| {
        Some(format!("{text}; `sheaf device list` shows the devices, `--device cpu` runs on the processor"))
    };
    if !driver.is_linked() {
        return Err(HostError {
            message: format!("there is no device {gpu}: this program was built without {}", driver.name()),
            help: help(match driver {
                Driver::Metal => "Metal is for Apple's processors under macOS",
                Driver::Cuda | Driver::Vulkan => "build it with the feature of that name",
            }),
        });
    }
    let found = runtime.gpus(driver).map_err(|error| HostError {
        message: format!("there is no device {gpu}: {error}"),
        help: help(&format!("install the {} driver of the GPU's maker", driver.name())),
    })?;
    if gpu.index >= found.len() {
        return Err(HostError {
            message: format!("there is no device {gpu}: {}", shown(driver, &found)),
            help: help("name one of those"),
        });
    }
    let device = runtime
        .device(sheaf_runtime::Target::Gpu(gpu))
        .map_err(|error| HostError { message: error.to_string(), help: help("update the driver") })?;
    let destination = match driver {
        Driver::Cuda => Destination::cuda(device.compute_capability()),
        Driver::Vulkan => Destination::Vulkan(None),
        Driver::Metal => Destination::Metal,
    };
    Ok(OpenGpu { gpu, destination, why })
}

/// `cuda finds cuda (NVIDIA L4) and cuda:1 (NVIDIA L4)`.
fn shown(driver: Driver, found: &[GpuInfo]) -> String {
    let one = |(index, info): (usize, &GpuInfo)| format!("{} ({})", Gpu { driver, index }, info.name);
    let all: Vec<String> = found.iter().enumerate().map(one).collect();
    if all.is_empty() {
        format!("{} finds no GPU", driver.name())
    } else {
        format!("{} finds {}", driver.name(), all.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_with_an_index() {
        let gpu = |driver, index| Ok(DevicePolicy::Gpu(Gpu { driver, index }));
        assert_eq!("auto".parse(), Ok(DevicePolicy::Auto));
        assert_eq!("cpu".parse(), Ok(DevicePolicy::Cpu));
        assert_eq!("cuda".parse(), gpu(Driver::Cuda, 0));
        assert_eq!("vulkan:2".parse(), gpu(Driver::Vulkan, 2));
        assert_eq!("metal:0".parse(), gpu(Driver::Metal, 0));
        for wrong in ["gpu", "cpu:1", "cuda:", "cuda:-1", "cuda:sm_89"] {
            assert!(wrong.parse::<DevicePolicy>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn absent_gpus_are_errors_that_say_which_there_are() {
        let info = |name: &str| GpuInfo { name: name.into(), is_software: false };
        assert_eq!(shown(Driver::Cuda, &[]), "cuda finds no GPU");
        assert_eq!(
            shown(Driver::Cuda, &[info("NVIDIA L4"), info("NVIDIA T4")]),
            "cuda finds cuda (NVIDIA L4) and cuda:1 (NVIDIA T4)"
        );
        let runtime = Runtime::new().unwrap();
        let absent = Gpu { driver: Driver::Metal, index: 7 };
        let error = DevicePolicy::Gpu(absent).open(&runtime, |_| true, &()).unwrap_err();
        assert!(error.message.starts_with("there is no device metal:7: "), "{error}");
        assert!(error.help.unwrap().contains("`sheaf device list`"));
        assert!(DevicePolicy::Auto.open(&runtime, |_| false, &()).unwrap().is_none());
    }
}
