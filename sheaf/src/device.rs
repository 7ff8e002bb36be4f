//! `sheaf device`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sheaf_loader::DevicePolicy;
use sheaf_runtime::{Driver, Gpu, Runtime};
use sheaf_target::Cpu;

use crate::evaluator::{Failed, exit_code, failed, report_error};
use crate::progress::TerminalReporter;

/// Options of `sheaf device`.
#[derive(Args, Clone, Debug)]
pub struct DeviceOptions {
    #[command(subcommand)]
    action: Action,
}

/// Commands of `sheaf device`.
#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// List the devices of this machine, and the drivers that it lacks
    #[command(after_help = "Example:\n  sheaf device list")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs `sheaf device`.
pub fn device(options: &DeviceOptions) -> ExitCode {
    let Action::List { json } = options.action;
    exit_code(&list(json))
}

/// A device, or a driver that finds none.
struct Row {
    /// The name that `--device` takes.
    device: String,
    /// Its maker's name for it, or the reason why there is none.
    text: String,
    is_there: bool,
    is_default: bool,
    is_software: bool,
}

fn list(json: bool) -> Result<(), Failed> {
    let runtime = Runtime::new().map_err(failed)?;
    let default = DevicePolicy::Auto.open(&runtime, |_| true, &TerminalReporter).map_err(report_error)?;
    let default = default.map(|open| open.gpu);
    let cpu = Cpu::host();
    let mut rows = vec![Row {
        device: "cpu".into(),
        text: format!(
            "{}, {} cores",
            cpu.arch(),
            std::thread::available_parallelism().map_or(1, usize::from)
        ),
        is_there: true,
        is_default: default.is_none(),
        is_software: false,
    }];
    for driver in Driver::ALL {
        let absent = |text: String| Row {
            device: driver.name().into(),
            text,
            is_there: false,
            is_default: false,
            is_software: false,
        };
        let found = match runtime.gpus(driver) {
            Ok(found) => found,
            Err(error) => {
                rows.push(absent(match error {
                    // IREE's message without the places that it tried.
                    sheaf_runtime::Error::Driver { status, .. } => status
                        .message()
                        .split(';')
                        .next()
                        .unwrap_or_default()
                        .trim_end_matches(':')
                        .to_owned(),
                    error => error.to_string(),
                }));
                continue;
            }
        };
        if found.is_empty() {
            rows.push(absent("the driver finds no GPU".into()));
        }
        for (index, info) in found.into_iter().enumerate() {
            let gpu = Gpu { driver, index };
            rows.push(Row {
                device: gpu.to_string(),
                text: info.name,
                is_there: true,
                is_default: default == Some(gpu),
                is_software: info.is_software,
            });
        }
    }
    if json {
        println!("{:#}", json!({ "devices": rows.iter().map(Row::in_json).collect::<Vec<_>>() }));
    } else {
        rows.iter().for_each(|row| println!("{row}"));
    }
    Ok(())
}

impl Row {
    fn in_json(&self) -> Value {
        json!({
            "device": self.device,
            "available": self.is_there,
            "default": self.is_default,
            "software": self.is_software,
            (if self.is_there { "name" } else { "reason" }): self.text,
        })
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let absent = if self.is_there { "" } else { "not here: " };
        write!(f, "{:10} {absent}{}", self.device, self.text)?;
        if self.is_software {
            f.write_str(", in software")?;
        }
        f.write_str(if self.is_default { " (default)" } else { "" })
    }
}
