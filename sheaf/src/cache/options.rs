//! What can be typed after `sheaf cache`.

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::NetworkOptions;

/// What to do with compiled programs.
#[derive(Clone, Debug, Subcommand)]
pub enum CacheCommand {
    /// How many programs there are, and what they take on the disk
    Size {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What there is, by function, device, compiler and signer, and the seconds of compilation that it saves
    Stats {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove what saves the fewest seconds for its bytes, until the rest fits
    #[command(after_help = "Example:\n  sheaf cache gc --max-size 500MB")]
    Gc {
        /// How much may stay, such as `500 MB`; by default what the settings say, or 5 GB
        #[arg(long, value_name = "SIZE", value_parser = size)]
        max_size: Option<u64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove everything
    Clear,
    /// Read everything whole, and remove what is damaged
    Verify {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Say why a function was compiled: the compilation that is nearest to the last one, and what differs
    #[command(after_help = "Example:\n  sheaf cache why train-step")]
    Why {
        /// The function
        function: String,
        /// Where to look.
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
    /// Take in what trusted keys have signed in such a file
    Import {
        /// The file
        file: PathBuf,
        /// Whom to trust.
        #[command(flatten)]
        network: NetworkOptions,
    },
    /// Send what was compiled here to the remote caches
    #[command(after_help = "Example:\n  sheaf cache push --cache-remote https://cache.example")]
    Push {
        /// Where to.
        #[command(flatten)]
        network: NetworkOptions,
    },
    /// The keys that sign and that are trusted
    #[command(subcommand)]
    Key(KeyCommand),
}

/// What to do with keys.
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Make the key that signs what is compiled here, and show its public half
    #[command(after_help = "Example:\n  sheaf cache key new ada-laptop")]
    New {
        /// A name for people: letters, digits, `-`, `_` and `.`
        name: String,
        /// Print the secret key instead of keeping it, for the secrets of a CI system: SHEAF_CACHE_KEY
        #[arg(long)]
        print_secret: bool,
    },
    /// Show the key of this machine, and those that are trusted
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust what a key signs, for all projects of this user
    #[command(after_help = "Example:\n  sheaf cache key trust ci:5d41… --from https://cache.example")]
    Trust {
        /// The public key, as `sheaf cache key new` and `list` show it
        key: String,
        /// Trust it only for what comes from this remote
        #[arg(long, value_name = "ADDRESS")]
        from: Option<String>,
    },
    /// Trust a key no longer: what it signed is compiled again
    Revoke {
        /// The public key, or its name
        key: String,
    },
}

fn size(text: &str) -> Result<u64, String> {
    sheaf_registry::parse_size(text)
        .ok_or_else(|| "a size is a number with a unit, such as 500MB or 2GiB".into())
}
