//! `sheaf yank`: withdraws a published version from new resolutions.

use std::process::ExitCode;

use sheaf_project::DEFAULT_REGISTRY;
use sheaf_registry::tend;

use super::access;
use super::options::YankOptions;
use super::record::{change_index, refused};
use crate::evaluator::{Failed, exit_code, failed, project_here};
use crate::output::print_line;

/// Runs `sheaf yank`.
pub fn yank(options: &YankOptions) -> ExitCode {
    exit_code(&act(options))
}

fn act(options: &YankOptions) -> Result<(), Failed> {
    let YankOptions { package, version, reason, .. } = options;
    let access = access(&project_here()?, false)?;
    let registry = options.registry.as_deref().unwrap_or(DEFAULT_REGISTRY);
    let Some(index) = access.indexes.get(registry) else {
        let help = "name it in Sheaf.toml, [registries] default = \"https://registry.example/index\", or set SHEAF_REGISTRY";
        return Err(refused(format!("there is no address for the registry `{registry}`"), help));
    };
    let done = if reason.is_some() { "yanked" } else { "offered again:" };
    let message = format!("{done} {package} {version}");
    change_index(index, &message, |folder| {
        let path = tend::yank(folder, package, version, reason.as_deref()).map_err(failed)?;
        Ok(path.strip_prefix(folder).map(Into::into).unwrap_or(path))
    })?;
    print_line(&format!("{message} in {index}; projects that have locked it keep it"))
}
