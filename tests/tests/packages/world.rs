//! A registry and packages in real git repositories, behind a git server on loopback.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use sheaf_tests::{Output, Run, Sandbox, skip};
use tempfile::TempDir;

use crate::http_backend::HttpServer;
use crate::servers::{Server, tool, words};
use crate::static_web::{Reply, Web};

/// Bare repositories, served as `git://127.0.0.1:PORT/NAME.git`, where anybody may push.
pub struct World {
    folder: TempDir,
    daemon: Child,
    port: u16,
    way: Way,
}

/// Protocol between `sheaf` and the servers.
enum Way {
    /// Git's own.
    Git,
    /// Smart http.
    Http(HttpServer),
    /// A real `sshd` on a port, until it is cut.
    Ssh { server: Option<Server>, port: u16 },
    /// A static copy of the registry's files over http, and git's own protocol for the rest.
    Sparse { web: Web, cut: Arc<AtomicBool> },
}

impl World {
    /// A world with an empty registry `index.git`.
    pub fn new() -> World {
        World::with(|_| Some(Way::Git)).expect("it needs nothing else")
    }

    /// The same, over smart http. Repositories under `private/` want this `Authorization`.
    pub fn over_http(private: Option<&str>) -> World {
        World::with(|folder| Some(Way::Http(HttpServer::start(folder, private))))
            .expect("it needs nothing else")
    }

    /// The same, over ssh. `None` without an `sshd`, after printing that.
    pub fn over_ssh() -> Option<World> {
        World::with(|folder| {
            let server = sshd(folder)?;
            Some(Way::Ssh { port: server.port, server: Some(server) })
        })
    }

    /// The same, with a static copy of the registry's files, which is always up to date.
    pub fn with_static_copy() -> World {
        let way = |folder: &Path| {
            let (bare, cut) = (folder.join("index.git"), Arc::new(AtomicBool::new(false)));
            let is_cut = Arc::clone(&cut);
            let web = Web::new(move |request| match request.path.strip_prefix("/index/") {
                Some(path) if !is_cut.load(Ordering::SeqCst) => {
                    file_of_index(&bare, path).map_or(Reply::Status(404), |text| Reply::Body(text, ""))
                }
                _ => Reply::Status(503),
            });
            Some(Way::Sparse { web, cut })
        };
        World::with(way).expect("it needs nothing else")
    }

    fn with(way: impl FnOnce(&Path) -> Option<Way>) -> Option<World> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let way = way(folder.path())?;
        let (daemon, port) = serve(folder.path());
        let world = World { folder, daemon, port, way };
        let made = Sandbox::new();
        made.run(&["registry", "init", "index", "--name", "team"]).silent();
        world.push(&made.path("index"), "index", &[]);
        Some(world)
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
            let published = world.author(&author, &["publish"]).at(&format!("packages/{name}")).run();
            assert_eq!(published.code, Some(0), "{published}");
        }
        world
    }

    /// The address of a repository.
    pub fn address(&self, name: &str) -> String {
        match &self.way {
            Way::Http(server) => format!("http://{}/{name}.git", server.address),
            Way::Ssh { port, .. } => format!("ssh://127.0.0.1:{port}{}", self.bare(name).display()),
            _ => format!("git://127.0.0.1:{}/{name}.git", self.port),
        }
    }

    /// The address of the registry for its users.
    pub fn registry(&self) -> String {
        match &self.way {
            Way::Sparse { web, .. } => format!("sparse+http://{}/index", web.host()),
            _ => self.address("index"),
        }
    }

    /// The server of the static copy.
    pub fn static_copy(&self) -> &Web {
        let Way::Sparse { web, .. } = &self.way else { panic!("a world without a static copy") };
        web
    }

    /// The server of smart http.
    pub fn http(&self) -> &HttpServer {
        let Way::Http(server) = &self.way else { panic!("a world without smart http") };
        server
    }

    /// The port of git's own protocol.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A run with this world's registry as the default one.
    pub fn sheaf<'a>(&self, sandbox: &'a Sandbox, arguments: &[&str]) -> Run<'a> {
        let run = sandbox.sheaf(arguments).env("SHEAF_REGISTRY", self.registry());
        match &self.way {
            Way::Ssh { server: Some(server), .. } => {
                run.env("PATH", path_with(&server.folder.path().join("bin")))
            }
            _ => run,
        }
    }

    /// The same for authors, who push: with a name for commits, and the registry's repository.
    pub fn author<'a>(&self, sandbox: &'a Sandbox, arguments: &[&str]) -> Run<'a> {
        let run = self.sheaf(sandbox, arguments).env("SHEAF_REGISTRY", self.address("index"));
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
        let published = self.author(&author, &["publish", "--no-test"]).at("p").run();
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

    /// Ends the servers: connections are refused from now on.
    pub fn cut(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        match &mut self.way {
            Way::Git => {}
            Way::Http(server) => server.cut(),
            Way::Ssh { server, .. } => drop(server.take()),
            Way::Sparse { cut, .. } => cut.store(true, Ordering::SeqCst),
        }
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
    let output = git_output(folder, arguments);
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A file of a registry's bare repository as it is now; `None` if it does not exist.
pub fn file_of_index(bare: &Path, path: &str) -> Option<String> {
    let output = git_output(bare, &["show", &format!("main:{path}")]);
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn git_output(folder: &Path, arguments: &[&str]) -> std::process::Output {
    Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@author.example")])
        .envs([("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@author.example")])
        .output()
        .expect("git starts")
}

/// The search path, with a folder before it.
fn path_with(folder: &Path) -> String {
    let rest = std::env::var("PATH").unwrap_or_default();
    format!("{}:{rest}", folder.display())
}

/// A real `sshd` for this user on loopback, with keys of its own, and in `bin` an `ssh` with the other key: OpenSSH looks for its
/// settings in the home of the account, whatever `HOME` says. `None` without an `sshd`, after printing that.
fn sshd(world: &Path) -> Option<Server> {
    let sshd = tool("SHEAF_TEST_SSHD", "", "sshd")?;
    // Started by root it wants the folder of its package.
    if let Err(error) = fs::create_dir_all("/run/sshd")
        && fs::metadata(world).is_ok_and(|folder| std::os::unix::fs::MetadataExt::uid(&folder) == 0)
    {
        skip(&format!("sshd needs the folder /run/sshd: {error}"));
        return None;
    }
    Some(Server::start(|folder, port| {
        for key in ["host", "user"] {
            let file = folder.join(key);
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file).status();
            assert!(made.expect("ssh-keygen starts").success());
        }
        let shown = folder.display();
        let path = std::env::var("PATH").unwrap_or_default();
        let settings = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {shown}/host\nAuthorizedKeysFile {shown}/user.pub\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\nSetEnv PATH={path}\n"
        );
        let client = format!(
            "#!/bin/sh\nexec /usr/bin/env PATH='{path}' ssh -F /dev/null -o IdentityFile={shown}/user -o IdentitiesOnly=yes \
             -o UserKnownHostsFile={shown}/known -o StrictHostKeyChecking=accept-new -o BatchMode=yes \"$@\"\n"
        );
        fs::create_dir(folder.join("bin")).expect("a folder");
        fs::write(folder.join("sshd_config"), settings).expect("a file");
        fs::write(folder.join("bin/ssh"), client).expect("a file");
        fs::set_permissions(folder.join("bin/ssh"), fs::Permissions::from_mode(0o755)).expect("a file");
        words([&sshd, &"-D", &"-e", &"-f", &folder.join("sshd_config")])
    }))
}

/// Forwards connections after a delay, and ends each after so many bytes of the server.
pub fn proxy(port: u16, limit: &Arc<AtomicUsize>, delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let limit = Arc::clone(limit);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let limit = Arc::clone(&limit);
            thread::spawn(move || {
                thread::sleep(delay);
                let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
                let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
                thread::spawn(move || std::io::copy(&mut from, &mut to));
                let (mut client, mut sent, mut buffer) = (client, 0, [0; 4096]);
                while sent < limit.load(Ordering::SeqCst) {
                    let length = server.read(&mut buffer).ok().filter(|length| *length > 0)?;
                    client.write_all(&buffer[..length]).ok()?;
                    sent += length;
                }
                client.shutdown(Shutdown::Both).ok()
            });
        }
    });
    address
}

/// A listener that counts its connections, and closes each.
pub struct Trap {
    address: SocketAddr,
    count: Arc<AtomicUsize>,
}

impl Trap {
    /// A listener; its thread ends with the process.
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let count = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&count);
        thread::spawn(move || {
            for stream in listener.incoming() {
                seen.fetch_add(1, Ordering::SeqCst);
                drop(stream);
            }
        });
        Self { address, count }
    }

    /// Its host and port.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The number of connections so far.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
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
