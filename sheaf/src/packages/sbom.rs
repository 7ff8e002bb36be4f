//! `sheaf sbom`: a bill of materials of the project, in `CycloneDX` 1.6.

use std::process::ExitCode;

use serde_json::{Value, json};
use sheaf_foundation::atomic;
use sheaf_project::{Found, LockedPackage, MANIFEST_NAME, Project, SheafToml, Source};
use sheaf_registry::store::SourceStore;
use sheaf_registry::tree::TreeHash;

use super::install::package;
use super::options::SbomOptions;
use super::tree::read_lock;
use crate::evaluator::{Failed, exit_code, failed, home};
use crate::output::print_line;

/// Runs `sheaf sbom`.
pub fn sbom(options: &SbomOptions) -> ExitCode {
    exit_code(&act(options))
}

fn act(options: &SbomOptions) -> Result<(), Failed> {
    let text = bom(&package()?)?;
    match &options.output {
        Some(path) => atomic::replace(path, text.as_bytes()).map_err(failed),
        None => print_line(text.trim_end()),
    }
}

/// The bill of a project; `None` if it is no package.
pub fn bill(project: &Project) -> Result<Option<String>, Failed> {
    if project.manifest.is_none() { Ok(None) } else { bom(project).map(Some) }
}

fn bom(project: &Project) -> Result<String, Failed> {
    let lock = read_lock(project)?;
    let store = SourceStore::new(home()?.sources());
    let own = project.manifest.as_ref().map(|manifest| manifest.package.clone()).unwrap_or_default();
    let name = own.name.unwrap_or_else(|| "project".into());
    let version = own.version.map_or("0.0.0".to_owned(), |version| version.to_string());
    let root = format!("{name}@{version}");
    let manifest_of = |locked: &LockedPackage| {
        let folder = match (&locked.source, &locked.tree) {
            (Source::Path { folder }, _) => project.lock_root().join(folder),
            (_, tree) => store.get(&tree.as_deref()?.parse().ok()?).ok()??,
        };
        let path = folder.join(MANIFEST_NAME);
        SheafToml::parse(&path, &std::fs::read_to_string(&path).ok()?).ok()
    };
    let mut components: Vec<Value> =
        lock.packages.iter().map(|locked| component(locked, manifest_of(locked).as_ref())).collect();
    if let Found::File(Some(compiler)) = project.lock().map_err(failed)? {
        components.push(json!({
            "type": "application", "bom-ref": "iree-compiler", "name": "iree-compiler", "version": compiler.iree,
            "scope": "excluded",
        }));
    }
    let needs = |edges: &[sheaf_project::LockedEdge]| -> Vec<String> {
        edges.iter().filter_map(|edge| lock.packages.iter().find(|p| edge.names(p))).map(reference).collect()
    };
    let mut dependencies = vec![json!({ "ref": root, "dependsOn": needs(&lock.roots) })];
    dependencies.extend(
        lock.packages.iter().map(|p| json!({ "ref": reference(p), "dependsOn": needs(&p.dependencies) })),
    );
    // Without a time and a random serial number: the same lock gives the same bytes.
    let bom = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": { "components": [{ "type": "application", "name": "sheaf", "version": env!("CARGO_PKG_VERSION") }] },
            "component": { "type": "application", "bom-ref": root, "name": name, "version": version },
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(format!("{bom:#}\n"))
}

/// A name for a package that no other has.
fn reference(locked: &LockedPackage) -> String {
    format!("{}@{}#{}", locked.name, locked.version, locked.source)
}

fn component(locked: &LockedPackage, manifest: Option<&SheafToml>) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(locked),
        "name": locked.name,
        "version": locked.version,
        "purl": format!("pkg:generic/{}@{}", locked.name, locked.version),
    });
    let package = manifest.map(|manifest| &manifest.package);
    if let Some(description) = package.and_then(|package| package.description.as_ref()) {
        component["description"] = json!(description);
    }
    if let Some(license) = package.and_then(|package| package.license.as_ref()) {
        component["licenses"] = json!([{ "expression": license }]);
    }
    if let Some(authors) = package.map(|package| &package.authors).filter(|authors| !authors.is_empty()) {
        let authors: Vec<_> = authors.iter().map(|name| json!({ "name": name })).collect();
        component["authors"] = json!(authors);
    }
    // The hash of the package's NAR archive, as Nix computes it.
    if let Some(tree) = locked.tree.as_deref().and_then(|tree| tree.parse::<TreeHash>().ok()) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": tree.hex() }]);
    }
    let repository = match &locked.source {
        Source::Git { url, .. } => Some(url),
        _ => locked.repository.as_ref(),
    };
    if let Some(repository) = repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    let facts = [("sheaf:commit", &locked.commit), ("sheaf:signer", &locked.signer)];
    let properties: Vec<_> = facts
        .into_iter()
        .filter_map(|(name, value)| Some(json!({ "name": name, "value": value.as_ref()? })))
        .collect();
    if !properties.is_empty() {
        component["properties"] = json!(properties);
    }
    component
}
