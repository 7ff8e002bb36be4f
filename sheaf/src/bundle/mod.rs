//! `sheaf bundle`: a program, what it needs, and the runtime, in one folder or file.

mod options;
mod runtime;
mod sources;
mod verify;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sheaf_artifacts::{ArtifactFolder, MANIFEST_FILE};
use sheaf_bundle::{FORMAT, MANIFEST, Manifest, RUNTIME, SIGNATURE, Signature};
use sheaf_foundation::atomic;
use sheaf_lang::eval::{Jit, Options};
use sheaf_project::Project;
use sheaf_target::{Destination, Processor};

pub use options::BundleCommand;
use options::{BundleOptions, Existing};
use sources::{Collected, Used};

use crate::build;
use crate::cli::{BuildOptions, FunctionOptions};
use crate::evaluator::{
    Failed, failed, home, interpreter_with, on_large_stack, project_of, report_error, secrets,
};
use crate::messages;
use crate::packages::options::DependencyOptions;
use crate::packages::{self, sbom};
use crate::run::main_program;
use crate::sources::read_source;

/// Runs `sheaf bundle`.
pub fn bundle(command: &BundleCommand) -> ExitCode {
    match &command.command {
        Some(Existing::Verify(options)) => verify::verify(options),
        None => on_large_stack(|| make(&command.options)),
    }
}

/// The form of a bundle.
enum Form {
    Folder(PathBuf),
    Gzip(PathBuf),
    Xz(PathBuf),
    Executable(PathBuf),
}

impl Form {
    fn path(&self) -> &Path {
        let (Form::Folder(path) | Form::Gzip(path) | Form::Xz(path) | Form::Executable(path)) = self;
        path
    }
}

fn make(options: &BundleOptions) -> Result<(), Failed> {
    let (file, project) = match &options.file {
        Some(file) => (file.clone(), project_of(file)?),
        None => main_program()?,
    };
    let name = name_of(&file, &project);
    let form = form(options, &name)?;
    let processor = runtime::processor(&options.platform)?;
    let collected = collect(options, &file, &project)?;
    let runtime = runtime::find(&options.platform, &collected.parts, options.runtime.as_deref())?;
    // Beside its place, so that it can be renamed.
    let beside =
        form.path().parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(beside).map_err(unwritten(beside))?;
    let staging =
        tempfile::Builder::new().prefix(".sheaf-bundle-").tempdir_in(beside).map_err(unwritten(beside))?;
    let root = staging.path().join(&name);
    for (place, path) in &collected.files {
        copy(path, &root.join(place))?;
    }
    for path in data(&options.data)? {
        copy(&path, &root.join(&path))?;
    }
    let artifacts = root.join("__sheaf__");
    let devices = match &options.programs {
        Some(programs) => take(programs, &artifacts)?,
        None => compile(options, processor, &file, &artifacts)?,
    };
    write(&root.join("licenses/sheaf.txt"), include_bytes!("../../../LICENSE"))?;
    if let Some(bom) = sbom::bill(&project)? {
        write(&root.join("sbom.json"), bom.as_bytes())?;
    }
    let manifest = |files| Manifest {
        format: FORMAT.into(),
        name: name.clone(),
        version: project.manifest.as_ref().and_then(|m| m.package.version.as_ref()).map(ToString::to_string),
        sheaf: env!("CARGO_PKG_VERSION").into(),
        platform: options.platform.clone(),
        devices: devices.clone(),
        program: collected.program.clone(),
        package: project.manifest.as_ref().and_then(|m| m.package.name.clone()),
        dependencies: collected.dependencies.clone(),
        frozen_shapes: options.frozen_shapes,
        files,
    };
    write(&root.join(RUNTIME), &runtime)?;
    make_executable(&root.join(RUNTIME))?;
    let files = sheaf_bundle::files_in(&root).map_err(unwritten(&root))?;
    let text = sheaf_artifacts::to_pretty_json(&manifest(files)).map_err(failed)?;
    write(&root.join(MANIFEST), &text)?;
    if let Some(key) = sheaf_engine::signing_key(&home()?, &secrets()?).map_err(report_error)? {
        let signature = Signature { key: key.public(), signature: key.sign(&text) };
        write(&root.join(SIGNATURE), &sheaf_artifacts::to_pretty_json(&signature).map_err(failed)?)?;
    }
    publish(&form, &root, &name, &options.platform, &runtime)?;
    let size = size_of(form.path()).map_err(unwritten(form.path()))?;
    println!(
        "{}: {} for {}, {} KB",
        form.path().display(),
        devices.join(", "),
        options.platform,
        size.div_ceil(1000)
    );
    Ok(())
}

/// The package's name, or that of the program's file.
fn name_of(file: &Path, project: &Project) -> String {
    let package = project.manifest.as_ref().and_then(|manifest| manifest.package.name.clone());
    let is_main = project.main().is_some_and(|main| same_file(&main, file));
    match package.filter(|_| is_main) {
        Some(name) => name,
        None => file.file_stem().map_or("program".into(), |stem| stem.to_string_lossy().into_owned()),
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    fs::canonicalize(a).ok().zip(fs::canonicalize(b).ok()).is_some_and(|(a, b)| a == b)
}

/// Form and path of the result; a folder must be new or a bundle.
fn form(options: &BundleOptions, name: &str) -> Result<Form, Failed> {
    let given = options.output.clone();
    if options.single_file {
        return Ok(Form::Executable(given.unwrap_or_else(|| format!("{name}-{}", options.platform).into())));
    }
    let path = given.unwrap_or_else(|| format!("{name}-{}", options.platform).into());
    let ends_with = |ending| path.to_string_lossy().ends_with(ending);
    if ends_with(".tar.gz") {
        return Ok(Form::Gzip(path));
    }
    if ends_with(".tar.xz") {
        return Ok(Form::Xz(path));
    }
    if path.exists() && !path.join(MANIFEST).is_file() {
        let message = format!("{} is there, and no bundle", path.display());
        messages::error(message, Some("name another place with --output"));
        return Err(Failed);
    }
    Ok(Form::Folder(path))
}

/// The sources of the program.
fn collect(options: &BundleOptions, file: &Path, project: &Project) -> Result<Collected, Failed> {
    let text = read_source(file)?;
    let how = DependencyOptions::of(&options.lock, &options.network);
    let (used, answers) = Used::new(packages::prepare(project, &how)?);
    let evaluation = Options { jit: Jit::Never, ..Options::default() };
    let mut interp = interpreter_with(evaluation, project, Box::new(used));
    interp.prepare_program(&file.display().to_string(), &text).map_err(|errors| {
        errors.iter().for_each(|error| messages::show(&interp.sources, error));
        Failed
    })?;
    sources::collect(&interp, file, &project.root, &answers)
}

/// The files of the patterns, each relative to the current folder and inside of it.
fn data(patterns: &[String]) -> Result<Vec<PathBuf>, Failed> {
    let mut found = Vec::new();
    for pattern in patterns {
        let before = found.len();
        let paths = glob::glob(pattern)
            .map_err(|error| failed(format!("{pattern} is no pattern of files: {error}")))?;
        for path in paths {
            let path = path.map_err(failed)?;
            let inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            if !inside {
                let message = format!("{} lies outside of the current folder", path.display());
                messages::error(
                    message,
                    Some("run the command where the program runs; its data is read from there"),
                );
                return Err(Failed);
            }
            if path.is_file() {
                found.push(path);
            }
        }
        if found.len() == before {
            messages::error(format!("no file is called {pattern}"), Some("correct --data"));
            return Err(Failed);
        }
    }
    Ok(found)
}

/// Compiles for each device into the folder; their names.
fn compile(
    options: &BundleOptions,
    usual: Processor,
    file: &Path,
    artifacts: &Path,
) -> Result<Vec<String>, Failed> {
    let processors = if options.cpu.is_empty() { vec![usual] } else { options.cpu.clone() };
    let mut names = Vec::new();
    for device in &options.device {
        let of_cpu = matches!(device, Destination::Cpu(_));
        for cpu in if of_cpu { &processors[..] } else { &[Processor::Host] } {
            names.push(if of_cpu { format!("cpu:{cpu}") } else { device.to_string() });
            let selection = FunctionOptions::all(Some(file.to_owned()), options.shapes.clone());
            let plain = BuildOptions::plain(selection, options.lock.clone(), options.network.clone());
            let build = BuildOptions { device: device.clone(), cpu: *cpu, ..plain };
            build::into_folder(&build, artifacts)?;
        }
    }
    // It belongs to the store, not to the result.
    let _ = fs::remove_file(artifacts.join(sheaf_artifacts::LOCK_FILE));
    Ok(names)
}

/// Copies compiled programs into the folder; the names of their devices.
fn take(programs: &Path, artifacts: &Path) -> Result<Vec<String>, Failed> {
    let entries = ArtifactFolder::open(programs).entries().map_err(|miss| {
        messages::error(&miss, miss.remedy());
        Failed
    })?;
    if entries.is_empty() {
        let help = "build it with `sheaf build` or `sheaf step link`";
        messages::error(format!("{} has no compiled programs", programs.display()), Some(help));
        return Err(Failed);
    }
    for name in entries.iter().map(|entry| entry.file.as_str()).chain([MANIFEST_FILE]) {
        copy(&programs.join(name), &artifacts.join(name))?;
    }
    let devices: BTreeSet<String> = entries.into_iter().map(|entry| entry.device).collect();
    Ok(devices.into_iter().collect())
}

/// Puts a finished folder into its place, in its form.
fn publish(form: &Form, root: &Path, name: &str, platform: &str, runtime: &[u8]) -> Result<(), Failed> {
    match form {
        Form::Folder(path) => {
            if path.exists() {
                // The older folder is a bundle: `form` has looked.
                let old = root.with_extension("old");
                fs::rename(path, &old).map_err(unwritten(path))?;
            }
            fs::rename(root, path).map_err(unwritten(path))
        }
        Form::Gzip(path) => {
            let archive = sheaf_bundle::pack(root, name, true).map_err(unwritten(path))?;
            atomic::replace(path, &archive).map_err(failed)
        }
        Form::Xz(path) => {
            let archive = sheaf_bundle::pack_xz(root, name, platform).map_err(unwritten(path))?;
            atomic::replace(path, &archive).map_err(failed)
        }
        Form::Executable(path) => {
            let archive = sheaf_bundle::pack(root, "", false).map_err(unwritten(path))?;
            let mut bytes = Vec::with_capacity(runtime.len() + archive.len() + 64);
            sheaf_bundle::append(runtime, &archive, &mut bytes).map_err(unwritten(path))?;
            atomic::replace(path, &bytes).map_err(failed)?;
            make_executable(path)
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), Failed> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(unwritten(folder))?;
    }
    fs::copy(from, to)
        .map(drop)
        .map_err(|error| failed(format!("{} cannot be copied: {error}", from.display())))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    atomic::write(path, bytes).map_err(failed)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), Failed> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(unwritten(path))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), Failed> {
    Ok(())
}

fn size_of(path: &Path) -> std::io::Result<u64> {
    if path.is_dir() {
        Ok(sheaf_bundle::files_in(path)?.iter().map(|file| file.size).sum())
    } else {
        Ok(fs::metadata(path)?.len())
    }
}

fn unwritten(path: &Path) -> impl Fn(std::io::Error) -> Failed + '_ {
    move |error| failed(format!("{} cannot be written: {error}", path.display()))
}
