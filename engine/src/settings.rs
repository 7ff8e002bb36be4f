//! Projects and settings of a process: files of the user and the project, environment and options together.

use std::path::Path;

use sheaf_lang::host::HostError;
use sheaf_project::{Home, HomeError, Options, Owners, Project, Request, Settings, Trusted, UserConfig};

use sheaf_loader::Reporter;

/// Looks up an environment variable.
pub type Environment = dyn Fn(&str) -> Option<String>;

/// The project that a folder is in.
///
/// # Errors
///
/// Its `Sheaf.toml`, or the user's configuration, cannot be read.
pub fn project_of(
    folder: &Path,
    environment: &Environment,
    reporter: &dyn Reporter,
) -> Result<Project, HostError> {
    let project = Project::locate_from(folder, owners(environment)?).map_err(plain)?;
    project.passed_over.iter().for_each(|line| reporter.passed_over(&line.to_string()));
    Ok(project)
}

/// Owners of files that count, by the environment and the user's configuration.
fn owners(environment: &Environment) -> Result<Owners, HostError> {
    let named = match Home::locate(environment) {
        Ok(home) => UserConfig::read(&home.config_file()).map_err(plain)?.safe_directories,
        // Without a home there is no configuration; one of another user is an error.
        Err(HomeError::NoHome) => Vec::new(),
        Err(error) => return Err(plain(error)),
    };
    Ok(Owners::of_process(environment, &named))
}

/// The settings in force for a project.
///
/// # Errors
///
/// The user's folders are the project's, or a setting has no meaning.
pub fn settings_of(
    project: &Project,
    home: &Home,
    options: &Options,
    environment: &Environment,
    reporter: &dyn Reporter,
) -> Result<Settings, HostError> {
    home.outside(project, environment).map_err(plain)?;
    let user = UserConfig::read(&home.config_file()).map_err(plain)?;
    let manifest_warnings = project.manifest.iter().flat_map(|m| &m.warnings);
    for warning in user.warnings.iter().chain(manifest_warnings) {
        reporter.warn(warning, None, None);
    }
    let trusted = Trusted::new(home.trust());
    let allowed = |request: &Request| trusted.allows(&project.root, request);
    let settings = Settings::merge(Some(&user), project.manifest.as_ref(), allowed, environment, options);
    let settings = settings.map_err(plain)?;
    for refused in &settings.refused {
        reporter.warn(refused, None, Some(&refused.remedy()));
    }
    settings.passed_over.iter().for_each(|line| reporter.passed_over(&line.to_string()));
    Ok(settings)
}

fn plain(error: impl std::fmt::Display) -> HostError {
    HostError { message: error.to_string(), help: None }
}
