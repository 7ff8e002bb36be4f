//! Machines of a team: each with its own home, with or without a compiler or a key.

use std::sync::OnceLock;
use std::time::Duration;

use sheaf_foundation::SecretKey;
use sheaf_tests::{Output, Run, Sandbox};

/// A program that compiles quickly, with `--jit always`.
pub const SQUARES: &str = "(defn sum-of-squares [x] (sum (* x x)))\n(print (sum-of-squares [1 2 3]))\n";

/// Its output.
pub const FOURTEEN: &str = "14.0\n";

/// The arguments to run it compiled.
pub const RUN_SQUARES: [&str; 3] = ["squares.shf", "--jit", "always"];

/// The key of the writers, trusted by all readers.
pub fn writer() -> &'static SecretKey {
    static KEY: OnceLock<SecretKey> = OnceLock::new();
    KEY.get_or_init(|| SecretKey::generate("trunk").expect("a key"))
}

/// A machine of the team.
pub struct Machine {
    pub sandbox: Sandbox,
    environment: Vec<(String, String)>,
}

impl Machine {
    /// A machine with the compiler and the writers' key. `None`, after a message, if there is no compiler.
    pub fn writing(remote: &Remote) -> Option<Machine> {
        let machine = Machine { sandbox: Sandbox::with_compiler()?, environment: Vec::new() };
        Some(machine.using(remote).env("SHEAF_CACHE_KEY", writer().reveal()))
    }

    /// A machine without a compiler, which trusts the writers' key.
    pub fn reading(remote: &Remote) -> Machine {
        Machine { sandbox: Sandbox::new(), environment: Vec::new() }.using(remote).trusting()
    }

    /// A machine with a compiler and write access, but without a signing key.
    pub fn compiling(remote: &Remote) -> Option<Machine> {
        let machine = Machine { sandbox: Sandbox::with_compiler()?, environment: Vec::new() };
        Some(machine.using(remote).trusting().env("SHEAF_CACHE_MODE", "read-only"))
    }

    /// A machine without a compiler, key or remote.
    pub fn bare() -> Machine {
        Machine { sandbox: Sandbox::new(), environment: Vec::new() }
    }

    fn using(mut self, remote: &Remote) -> Machine {
        let Remote { address, environment } = remote;
        self.environment.extend(environment.iter().cloned());
        self.env("SHEAF_CACHE_REMOTE", address.as_str())
    }

    fn trusting(self) -> Machine {
        self.env("SHEAF_CACHE_TRUSTED_KEYS", writer().public().to_string())
    }

    /// Sets an environment variable for all runs.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Machine {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Copies an example of the repository.
    pub fn example(self, name: &str) -> Machine {
        self.sandbox.example(name);
        self
    }

    /// Writes [`SQUARES`].
    pub fn squares(self) -> Machine {
        self.sandbox.write("squares.shf", SQUARES);
        self
    }

    /// A run with these arguments.
    pub fn sheaf(&self, arguments: &[&str]) -> Run<'_> {
        let run = self.sandbox.sheaf(arguments).within(Duration::from_secs(480));
        self.environment.iter().fold(run, |run, (name, value)| run.env(name, value))
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.sheaf(arguments).run()
    }

    /// Compiles [`SQUARES`], and pushes it to this machine's remote.
    #[track_caller]
    pub fn push_squares(self) -> Machine {
        let machine = self.squares();
        let output = machine.run(&RUN_SQUARES);
        assert_eq!(warnings(&output), [""; 0], "{output}");
        assert_eq!(output.compiled(), FOURTEEN);
        machine
    }
}

/// The address of a remote cache, and its environment variables.
#[derive(Clone, Debug)]
pub struct Remote {
    pub address: String,
    pub environment: Vec<(String, String)>,
}

impl Remote {
    /// A remote that needs only its address.
    pub fn at(address: impl Into<String>) -> Remote {
        Remote { address: address.into(), environment: Vec::new() }
    }
}

/// The first lines of the warnings of a run.
pub fn warnings(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| line.starts_with("warning:")).collect()
}
