//! Command line of `sheaf cache`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use sheaf_cache_server::ServeOptions;

use crate::cli::{NetworkOptions, PullOptions};

/// Commands of `sheaf cache`.
#[derive(Clone, Debug, Subcommand)]
pub enum CacheCommand {
    /// Show the number of programs, and their size on the disk
    Size {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show programs by function, device, compiler and signer, and the seconds of compilation that they save
    Stats {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove programs that save the fewest seconds for their bytes, until the rest fits
    #[command(after_help = "Example:\n  sheaf cache gc --max-size 500MB")]
    Gc {
        /// Maximum size afterwards, such as `500 MB`; by default that of the settings, or 5 GB
        #[arg(long, value_name = "SIZE", value_parser = size)]
        max_size: Option<u64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove everything
    Clear,
    /// Read everything whole, and remove damaged programs
    Verify {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Say why a function was compiled: the compilation that is nearest to the last one, and the differences
    #[command(after_help = "Example:\n  sheaf cache why train-step")]
    Why {
        /// The function
        function: String,
        /// The remotes to search.
        #[command(flatten)]
        network: NetworkOptions,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Write everything to one file, signed if there is a key
    #[command(after_help = "Example:\n  sheaf cache export programs.tar")]
    Export {
        /// The file
        file: PathBuf,
    },
    /// Take in the programs of such a file that trusted keys have signed
    Import {
        /// The file
        file: PathBuf,
        /// The keys to trust.
        #[command(flatten)]
        network: NetworkOptions,
    },
    /// Fetch the programs that `sheaf build` would compile, and compile nothing
    #[command(after_help = "Example:\n  sheaf cache pull train.shf --shapes shapes.json")]
    Pull(PullOptions),
    /// Send this project's compiled programs to the remote caches: those that its __sheaf__ lists
    #[command(after_help = "Example:\n  sheaf cache push --cache-remote https://cache.example")]
    Push {
        /// Send those of all projects
        #[arg(long)]
        all: bool,
        /// The remotes.
        #[command(flatten)]
        network: NetworkOptions,
    },
    /// Compile some programs again, and put away those that then compute something else
    #[command(after_help = "Example:\n  sheaf cache audit --sample 5%")]
    Audit {
        /// The share to audit, such as 5%
        #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
        sample: f64,
        /// The seed of the choice; the same number chooses the same programs
        #[arg(long, value_name = "NUMBER")]
        seed: Option<u64>,
        /// The source of the compiler.
        #[command(flatten)]
        network: NetworkOptions,
    },
    /// Serve a shared cache: Bazel's http form and the Remote Execution API on one port
    #[command(after_help = "Examples:\n  sheaf cache serve --folder /var/cache/sheaf\n  \
                      sheaf cache serve --listen 0.0.0.0:9092 --folder /var/cache/sheaf --tokens tokens --tls-cert cert.pem --tls-key key.pem")]
    Serve(ServeArguments),
    /// The keys that sign and that are trusted
    #[command(subcommand)]
    Key(KeyCommand),
}

/// Options of `sheaf cache serve`.
#[derive(Args, Clone, Debug)]
pub struct ServeArguments {
    /// The address to listen on; with port 0 the system chooses one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9092")]
    pub listen: SocketAddr,
    /// The folder of the cache
    #[arg(long)]
    pub folder: PathBuf,
    /// Maximum size of the folder; the least recently used entries go first
    #[arg(long, value_name = "SIZE", default_value = "10GiB", value_parser = room)]
    pub size: u64,
    /// Maximum size of a blob
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = room)]
    pub max_blob: u64,
    /// Readers and writers: a file with a line `ROLE SHA-256-OF-TOKEN [NAME] [expires=DATE]` for each token; without
    /// it, everybody
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// Let everybody who reaches the address read and write; without tokens needed where that is not this machine alone
    #[arg(long, conflicts_with = "tokens")]
    pub everyone: bool,
    /// Let those without a token read
    #[arg(long, requires = "tokens")]
    pub anonymous_read: bool,
    /// The certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Maximum connections at a time
    #[arg(long, value_name = "N", default_value_t = ServeOptions::MAX_CONNECTIONS, value_parser = connections)]
    pub max_connections: usize,
    /// Maximum time of requests under way when the server stops, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub stop_timeout: u64,
}

/// Commands of `sheaf cache key`.
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Make the key that signs programs compiled here, and show its public half
    #[command(after_help = "Example:\n  sheaf cache key new ada-laptop")]
    New {
        /// A name for people: letters, digits, `-`, `_` and `.`
        name: String,
        /// Print the secret key instead of keeping it, for the secrets of a CI system (`SHEAF_CACHE_KEY`)
        #[arg(long)]
        print_secret: bool,
    },
    /// Show the key of this machine, and those that are trusted
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust a key, for all projects of this user
    #[command(after_help = "Example:\n  sheaf cache key trust ci:5d41… --from https://cache.example")]
    Trust {
        /// The public key, as `sheaf cache key new` and `list` show it
        key: String,
        /// Trust it only for programs from this remote
        #[arg(long, value_name = "ADDRESS")]
        from: Option<String>,
    },
    /// Trust a key no longer: its programs are compiled again
    Revoke {
        /// The public key, or its name
        key: String,
    },
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    let percent = number.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a sample is a percentage above 0, such as 5%".into())
}

fn connections(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "a number of connections is a whole one above 0, such as 400".into())
}

/// A size for something to lie in.
fn room(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("a size of 0 has room for nothing; give one such as 10GiB".into()),
        bytes => Ok(bytes),
    }
}

fn size(text: &str) -> Result<u64, String> {
    sheaf_project::parse_size(text)
        .ok_or_else(|| "a size is a number with a unit, such as 500MB or 2GiB".into())
}
