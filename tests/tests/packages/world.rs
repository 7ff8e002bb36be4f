//! A registry and packages in real git repositories, behind a git server on loopback.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use sheaf_tests::{Output, Run, Sandbox};
use tempfile::TempDir;

use crate::http_backend;

/// Bare repositories, served as `git://127.0.0.1:PORT/NAME.git`, where anybody may push.
pub struct World {
    folder: TempDir,
    daemon: Child,
    port: u16,
    /// Smart http instead of git's own protocol.
    web: Option<SocketAddr>,
}

impl World {
    /// A world with an empty registry `index.git`.
    pub fn new() -> World {
        World::with(false)
    }

    /// The same, over smart http.
    pub fn over_http() -> World {
        World::with(true)
    }

    fn with(http: bool) -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (daemon, port) = serve(folder.path());
        let web = http.then(|| http_backend::http(folder.path()));
        let world = World { folder, daemon, port, web };
        let made = Sandbox::new();
        made.run(&["registry", "init", "index", "--name", "team"]).silent();
        world.push(&made.path("index"), "index", &[]);
        world
    }

    /// A world whose registry has the packages of `examples/packages`.
    pub fn with_packages() -> World {
        World::new().fill()
    }

    /// Publishes the packages of `examples/packages`.
    pub fn fill(self) -> World {
        let world = self;
        for name in ["optim-extra", "attention-lib"] {
            let author = Sandbox::new();
            author.example_folder("packages");
            world.push(&author.path(&format!("packages/{name}")), name, &["v0.1.0"]);
            let published = world.sheaf(&author, &["publish"]).at(&format!("packages/{name}")).run();
            assert_eq!(published.code, Some(0), "{published}");
        }
        world
    }

    /// The address of a repository.
    pub fn address(&self, name: &str) -> String {
        match self.web {
            Some(address) => format!("http://{address}/{name}.git"),
            None => format!("git://127.0.0.1:{}/{name}.git", self.port),
        }
    }

    /// The port of git's own protocol.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A run with this world's registry as the default one.
    pub fn sheaf<'a>(&self, sandbox: &'a Sandbox, arguments: &[&str]) -> Run<'a> {
        let run = sandbox.sheaf(arguments).env("SHEAF_REGISTRY", self.address("index"));
        run.env("GIT_AUTHOR_NAME", "Ada")
            .env("GIT_AUTHOR_EMAIL", "ada@author.example")
            .env("GIT_COMMITTER_NAME", "Ada")
            .env("GIT_COMMITTER_EMAIL", "ada@author.example")
    }

    /// Commits a folder as a repository of its own, with tags, and pushes it.
    pub fn push(&self, folder: &Path, name: &str, tags: &[&str]) {
        let bare = self.bare(name);
        if !bare.exists() {
            git(
                self.folder.path(),
                &["init", "--quiet", "--bare", "--initial-branch=main", &format!("{name}.git")],
            );
            git(&bare, &["config", "http.receivepack", "true"]);
        }
        if !folder.join(".git").exists() {
            git(folder, &["init", "--quiet", "--initial-branch=main"]);
            git(folder, &["remote", "add", "origin", &self.address(name)]);
        }
        git(folder, &["add", "--all"]);
        git(folder, &["commit", "--quiet", "--allow-empty", "-m", "change"]);
        for tag in tags {
            git(folder, &["tag", "--force", tag]);
        }
        git(folder, &["push", "--quiet", "--force", bare.to_str().expect("text"), "HEAD:main", "--tags"]);
    }

    /// Publishes a package of one file with this `[package]` and these dependencies.
    pub fn publish(&self, name: &str, version: &str, dependencies: &str, text: &str) {
        let author = Sandbox::new();
        let existing = self.bare(name);
        if existing.exists() {
            git(&author.path(""), &["clone", "--quiet", existing.to_str().expect("text"), "p"]);
            git(&author.path("p"), &["remote", "set-url", "origin", &self.address(name)]);
        }
        author.write(
            "p/Sheaf.toml",
            format!(
                "[package]\nname = \"{name}\"\nversion = \"{version}\"\nlicense = \"MIT\"\ndescription = \"A test\"\n\n\
                 [dependencies]\n{dependencies}\n"
            ),
        );
        author.write("p/src/lib.shf", text);
        self.push(&author.path("p"), name, &[&format!("v{version}")]);
        let published = self.sheaf(&author, &["publish", "--no-test"]).at("p").run();
        assert_eq!(published.code, Some(0), "{published}");
    }

    /// A checkout of the registry, to be changed and pushed.
    pub fn checkout(&self, sandbox: &Sandbox) -> PathBuf {
        git(&sandbox.path(""), &["clone", "--quiet", self.bare("index").to_str().expect("text"), "index"]);
        sandbox.path("index")
    }

    /// The folder of a bare repository.
    pub fn bare(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.git"))
    }

    /// Ends the server: nobody can be reached any more.
    pub fn cut(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }

    /// A text without the parts that differ from run to run.
    pub fn neutral(&self, output: &Output) -> String {
        let text = format!("{output}").replace(&format!(":{}", self.port), ":PORT");
        text.replace(&*self.folder.path().to_string_lossy(), "$WORLD")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Runs git without the configuration of this machine; its output.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@author.example")])
        .envs([("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@author.example")])
        .output()
        .expect("git starts");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A git server for the repositories in a folder, on a port of its own.
fn serve(folder: &Path) -> (Child, u16) {
    let program = PathBuf::from(git(folder, &["--exec-path"])).join("git-daemon");
    for _ in 0..20 {
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|socket| socket.local_addr())
            .expect("a port")
            .port();
        let mut child = Command::new(&program)
            .args(["--export-all", "--reuseaddr", "--enable=receive-pack", "--listen=127.0.0.1"])
            .args([format!("--port={port}"), format!("--base-path={}", folder.display())])
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("git-daemon starts");
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return (child, port);
            }
            if child.try_wait().expect("a status").is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("git-daemon does not start");
}

/// The names and contents of the files that a refused command must leave as they are.
pub fn project_files(sandbox: &Sandbox, project: &str) -> Vec<(String, String)> {
    ["Sheaf.toml", "Sheaf.lock"]
        .into_iter()
        .filter_map(|name| {
            let text = fs::read_to_string(sandbox.path(&format!("{project}/{name}"))).ok()?;
            Some((name.to_owned(), text))
        })
        .collect()
}
