//! The rules for Nix: a package with a dependency, built by a real Nix in its sandbox, without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use sheaf_tests::package::{change_hash, commit, with_dependency};
use sheaf_tests::release::{COMPILER, Release, SHEAF, done};
use sheaf_tests::{Sandbox, Server};
use tempfile::TempDir;

use crate::servers;

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/nix");

/// Nix without users of its own, whose builders see the tools of this system and no network.
const SETTINGS: &str = "build-users-group =
sandbox = true
sandbox-paths = /bin /usr /lib /lib64
substituters =
experimental-features = nix-command flakes
flake-registry =
";

/// A package, with a dependency in a git repository of its own.
struct Package {
    sandbox: Sandbox,
    /// Servers of the release: a builder sees no files of this system, but for those named in the settings.
    servers: [Server; 2],
    digests: [String; 2],
    /// Held for the tests that share it.
    _release: Arc<Release>,
    /// Folder of a store of its own.
    store: TempDir,
}

impl Package {
    /// `None` without Nix, which is said.
    fn new() -> Option<Package> {
        servers::tool("SHEAF_TEST_NIX", "", "nix")?;
        let release = Release::shared()?;
        let sandbox = Sandbox::with_compiler()?;
        with_dependency(&sandbox);
        let files = [SHEAF, COMPILER].map(|name| release.file(name));
        let servers = [0, 1].map(|n| Server::mirror(&files[n].0, Duration::ZERO));
        let digests = files.map(|(_, digest)| digest);
        let store = tempfile::tempdir().expect("a folder");
        let package = Package { sandbox, servers, digests, _release: release, store };
        package.sandbox.write("net/flake.nix", package.flake());
        commit(&package.sandbox.path("net"));
        Some(package)
    }

    /// The definitions of the tools, with `import` being a function of the library's arguments.
    fn tools(&self, import: &str) -> String {
        let [sheaf, compiler] =
            [(0, SHEAF), (1, COMPILER)].map(|(n, name)| format!("{}/{name}", self.servers[n].url()));
        let [sheaf_digest, compiler_digest] = &self.digests;
        format!(
            r#"system = "{}-linux";
      bare = {import} {{ inherit system; }};
      sheaf = bare.fetchSheaf {{ url = "{sheaf}"; sha256 = "{sheaf_digest}"; }};
      tools = {import} {{ inherit system sheaf; }};
      compiler = tools.fetchCompiler {{ url = "{compiler}"; sha256 = "{compiler_digest}"; }};"#,
            std::env::consts::ARCH
        )
    }

    fn flake(&self) -> String {
        let rules = Path::new(RULES).canonicalize().expect("the rules");
        format!(
            r#"{{
  inputs.rules.url = "path:{}";
  outputs = {{ self, rules }}:
    let
      {}
    in {{
      packages.${{system}}.default = tools.buildSheafPackage {{ src = self; inherit compiler; }};
      devShells.${{system}}.default = tools.devShell {{ inherit compiler; }};
      checks.${{system}}.builds = self.packages.${{system}}.default;
    }};
}}
"#,
            rules.display(),
            self.tools("rules.lib.forSystem")
        )
    }

    /// Without flakes.
    fn plain(&self) -> String {
        let rules = Path::new(RULES).canonicalize().expect("the rules");
        self.package(&format!("import {}", rules.display()))
    }

    /// The package by the overlay, in a package set with what it reads of nixpkgs. Tools come from there alone: copies of this system's.
    fn overlaid(&self) -> String {
        let rules = Path::new(RULES).canonicalize().expect("the rules");
        format!(
            r#"let
  system = "{}-linux";
  copied = name: names: derivation {{
    inherit name system names;
    builder = "/bin/sh";
    PATH = "/usr/bin:/bin";
    args = [ "-euc" "mkdir -p $out/bin; for name in $names; do cp -L $(command -v $name) $out/bin/$name; done" ];
  }};
  packages = {{
    stdenv.hostPlatform = {{ inherit system; }};
    lib.makeBinPath = packages: builtins.concatStringsSep ":" (map (package: "${{package}}/bin") packages);
    bash = copied "bash" [ "bash" ];
    coreutils = copied "coreutils" [ "chmod" "cp" "ln" "ls" "mkdir" "rm" "sort" ];
    findutils = copied "findutils" [ "find" ];
    gnugrep = copied "gnugrep" [ "grep" ];
    gnutar = copied "gnutar" [ "tar" ];
    gzip = copied "gzip" [ "gzip" ];
  }};
  final = packages // ((import {}/flake.nix).outputs {{ self = null; }}).overlays.default final packages;
in {}"#,
            std::env::consts::ARCH,
            rules.display(),
            self.package("final.sheafRules")
        )
    }

    /// The package by a function of the library's arguments, with another option than the flake's.
    fn package(&self, import: &str) -> String {
        let tools = self.tools(import);
        format!(
            "let\n      {tools}\nin tools.buildSheafPackage {{ src = ./net; inherit compiler; frozenShapes = true; }}\n"
        )
    }

    fn nix(&self, arguments: &[&str]) -> Output {
        let nix = servers::tool("SHEAF_TEST_NIX", "", "nix").expect("asked before");
        let mut command = Command::new(nix);
        command.args(arguments).arg("--store").arg(self.store.path()).current_dir(self.sandbox.path("net"));
        command.env("HOME", self.sandbox.home()).env("NIX_CONFIG", SETTINGS);
        command.output().expect("nix starts")
    }

    /// Builds; the names of the derivations that were built, without their hashes.
    fn build(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.nix(&[&["build", "-L", "-v"], arguments].concat());
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        let built = said.lines().filter_map(|line| line.strip_prefix("building '/nix/store/"));
        built.filter_map(|name| Some(name.split_once('-')?.1.split('.').next()?.to_owned())).collect()
    }

    /// Output in the store that a link of `build` leads to.
    fn linked(&self, link: &str) -> PathBuf {
        let link = fs::read_link(self.sandbox.path("net").join(link)).expect("a result");
        self.store.path().join(link.strip_prefix("/").expect("a path from the root"))
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        // Nix makes outputs read-only.
        let _ = Command::new("chmod").args(["-R", "u+w"]).arg(self.store.path()).output();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_package_is_built_and_its_dependencies_once() {
    let Some(package) = Package::new() else { return };
    let sandbox = &package.sandbox;
    let built = package.build(&[]);
    assert!(built.iter().any(|name| name == "xor-net"), "{built:?}");
    let bundle = package.linked("result").join("share/sheaf/xor-net");
    // Its path is that in the store, which is the root's only for builders.
    let launcher = fs::read_to_string(package.linked("result").join("bin/xor-net")).expect("a launcher");
    assert!(launcher.contains("/share/sheaf/xor-net/sheaf-rt\" \"$@\""), "{launcher}");
    let run = done(Command::new(bundle.join("sheaf-rt")).env_clear().current_dir(sandbox.path("")));
    assert!(run.contains("[1. 1.] -> 0.0"), "{run}");
    sandbox.run(&["bundle", "verify", &bundle.display().to_string()]).silent();

    // A run uses what Nix compiled: on a machine without a compiler, with its own copy of the sources.
    let user = Sandbox::new();
    for folder in ["__sheaf__", "src"] {
        for name in Sandbox::files(&bundle.join(folder)) {
            user.write(
                &format!("net/{folder}/{name}"),
                fs::read(bundle.join(folder).join(&name)).expect("a file"),
            );
        }
    }
    user.write("net/src/scaling.shf", fs::read(sandbox.path("scaling/src/lib.shf")).expect("a file"));
    user.write("net/Sheaf.toml", "[package]\nname = \"xor-net\"\nversion = \"0.1.0\"\n");
    let run =
        user.sheaf(&["run", "--offline", "--strict", "--jit", "always"]).at("net").run().compiled_nothing();
    assert!(run.contains("[1. 1.] -> 0.0"), "{run}");

    if sheaf_tests::nightly() {
        // The same derivation gives the same bytes.
        assert_eq!(package.build(&["--rebuild"]), Vec::<String>::new());
    }

    let main = fs::read_to_string(sandbox.path("net/src/main.shf")).expect("the program");
    sandbox.write("net/src/main.shf", main.replace("500 0.7", "600 0.7"));
    commit(&sandbox.path("net"));
    assert_eq!(package.build(&[]), ["xor-net"]);
    if !sheaf_tests::nightly() {
        return;
    }

    // The library without a flake, for the same sources and with another option: its packages are those that are there.
    sandbox.write("plain.nix", package.plain());
    assert_eq!(package.build(&["--impure", "--file", "../plain.nix", "--out-link", "plain"]), ["xor-net"]);

    sandbox.write("overlaid.nix", package.overlaid());
    let built = package.build(&["--impure", "--file", "../overlaid.nix", "--out-link", "overlaid"]);
    assert!(
        ["gnutar", "sheaf-compiler", "sheaf-deps", "xor-net"]
            .iter()
            .all(|&name| built.iter().any(|made| made == name)),
        "{built:?}"
    );
    let launcher = fs::read_to_string(package.linked("overlaid").join("bin/xor-net")).expect("a launcher");
    assert!(launcher.starts_with("#!/nix/store/") && launcher.contains("-bash/bin/bash\n"), "{launcher}");

    let checked = package.nix(&["flake", "check"]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let rules = package.nix(&["flake", "check", &format!("path:{RULES}")]);
    assert!(rules.status.success(), "{}", text(&rules.stderr));
    package.build(&[&format!(".#devShells.{}-linux.default", std::env::consts::ARCH), "--out-link", "shell"]);
}

#[test]
fn a_dependency_that_is_not_what_the_lock_says_is_refused() {
    let Some(package) = Package::new() else { return };
    change_hash(&package.sandbox, "net/Sheaf.lock");
    commit(&package.sandbox.path("net"));
    let output = package.nix(&["build"]);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("hash mismatch in fixed-output derivation"), "{said}");
}
