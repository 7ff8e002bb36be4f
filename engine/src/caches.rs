//! Everything that may hold a compiled program: `__sheaf__`, the user's store, remote caches. They are asked in this
//! order, and a hit in a later one is copied to the earlier ones.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sheaf_artifacts::{Action, ActionKey, Leaf, Lookup, Tuning};
use sheaf_cache::remote::{Address, Credentials, KEY_VARIABLE, Secret};
use sheaf_cache::{
    BUDGET, CacheStats, Claim, Compilation, Exclusive, Fetched, RemoteAddress, RemoteSettings, Remotes,
    SignedClaim, Store, TrustedKeys, Upload, Wait, Wanted,
};
use sheaf_foundation::SecretKey;
use sheaf_lang::host::HostError;
use sheaf_project::{Home, Mode, PackagePrograms, Settings};

use super::action;
use super::compile::CompileRun;
use sheaf_loader::{Faults, Found, Job, Loader, NOT_KEPT, ProgramFolder, counted};

/// Maximum wait for uploads at the end of a run.
const LAST_UPLOADS: Duration = Duration::from_secs(30);

/// Default maximum size of the store, in bytes.
pub const STORE_SIZE: u64 = 5_000_000_000;

/// Number of programs put into the store after which it is collected, even within a day of the last collection.
const COLLECT_AFTER: usize = 200;

/// Consequence of a remote cache that fails.
const WITHOUT: &str = "the run goes on without it: what no other cache has is compiled here";

/// The caches of a run.
pub struct Caches {
    /// `__sheaf__` of the program.
    pub(crate) folder: Rc<ProgramFolder>,
    store: Store,
    remotes: RefCell<Option<Remotes>>,
    /// Signs programs compiled here.
    key: Option<Arc<SecretKey>>,
    /// Keys of the writers whose programs are used.
    trusted: TrustedKeys,
    /// True if a package's author is trusted to send programs.
    has_packages: bool,
    store_size: u64,
    /// Number of programs put into the store.
    added: Cell<usize>,
    /// Counts of programs by the cache that had them.
    stats: Cell<CacheStats>,
    faults: Rc<Faults>,
}

/// Secrets of the user that are not in files.
#[derive(Clone, Default)]
pub struct Secrets {
    key: Option<Arc<SecretKey>>,
    token: Option<Secret>,
}

impl Secrets {
    /// The texts of a signing key and of a bearer token for remote caches and clusters.
    ///
    /// # Errors
    ///
    /// The key is none.
    pub fn new(key: Option<String>, token: Option<String>) -> Result<Secrets, HostError> {
        let key = key
            .map(|text| text.parse().map(Arc::new).map_err(|error| no_key(KEY_VARIABLE, &error)))
            .transpose()?;
        Ok(Secrets { key, token: token.map(Secret::new) })
    }
}

fn no_key(origin: &str, error: &sheaf_foundation::KeySyntax) -> HostError {
    HostError {
        message: format!("{origin} does not hold a signing key: {error}"),
        help: Some("make one with `sheaf cache key new`".into()),
    }
}

/// The key with which programs are signed: that of `secrets`, or of the user's data folder; `None` without either.
pub fn signing_key(home: &Home, secrets: &Secrets) -> Result<Option<Arc<SecretKey>>, HostError> {
    if let Some(key) = &secrets.key {
        return Ok(Some(Arc::clone(key)));
    }
    let origin = home.cache_key().display().to_string();
    match std::fs::read_to_string(home.cache_key()) {
        Ok(text) => text.parse().map(|key| Some(Arc::new(key))).map_err(|error| no_key(&origin, &error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(HostError {
            message: format!("{origin} cannot be read: {error}"),
            help: Some("move that file away, and make a key with `sheaf cache key new`".into()),
        }),
    }
}

/// The keys that are trusted: the user's own, and those of the settings, without those that are revoked.
pub fn trusted_keys(settings: &Settings, own: Option<&SecretKey>) -> Result<TrustedKeys, HostError> {
    let unreadable = |list: &str, error: sheaf_foundation::KeySyntax| HostError {
        message: format!("{list} has a key that cannot be read: {error}"),
        help: Some("`sheaf cache key list` shows the key of a machine".into()),
    };
    let list = &settings.trusted_keys;
    let mut trusted = TrustedKeys::read(&list.value)
        .map_err(|error| unreadable(&format!("`trusted-keys` of {}", list.origin), error))?;
    if let Some(own) = own {
        trusted.add(own.public());
    }
    for key in &settings.revoked_keys {
        trusted.revoke(&key.parse().map_err(|error| unreadable("`revoked-keys`", error))?);
    }
    Ok(trusted)
}

/// The remote caches of the settings. `None` if there are none, or the network is to be left alone.
pub fn remotes(
    settings: &Settings,
    trusted: &TrustedKeys,
    secrets: &Secrets,
) -> Result<Option<Remotes>, HostError> {
    let remote = &settings.remote;
    let is_local = |address: &String| address.starts_with("file:");
    let offline = settings.offline.value;
    let addresses = remote.value.iter().filter(|address| !offline || is_local(address));
    let writable = settings.mode.value == Mode::ReadWrite;
    let mut addresses: Vec<_> = addresses
        .map(|address| RemoteAddress {
            address: address.clone(),
            named: settings.names_remote(address),
            writable,
        })
        .collect();
    // Packages are asked last, and only for what a key signs that the user trusts there.
    for programs in &settings.package_programs {
        let remote = &programs.remote;
        let is_reachable = !offline || is_local(remote);
        if is_trusted(trusted, programs)
            && is_reachable
            && !addresses.iter().any(|known| known.address == *remote)
        {
            addresses.push(RemoteAddress { address: remote.clone(), named: false, writable: false });
        }
    }
    let budget = settings.cache_timeout.value.map_or(BUDGET, Duration::from_secs);
    let settings = RemoteSettings {
        addresses,
        credentials: credentials(settings, secrets),
        trusted: trusted.clone(),
        budget,
        run_budget: Some(budget),
    };
    Remotes::open(&settings).map_err(|trouble| HostError {
        message: format!("{}: {trouble}", remote.origin),
        help: Some(trouble.remedy()),
    })
}

/// True if the user trusts the author of a package where its programs are.
fn is_trusted(trusted: &TrustedKeys, programs: &PackagePrograms) -> bool {
    programs.signer.parse().is_ok_and(|key| trusted.trusts(&key, &programs.remote))
}

/// Credentials for remote caches and clusters.
pub fn credentials(settings: &Settings, secrets: &Secrets) -> Credentials {
    Credentials {
        token: secrets.token.clone(),
        helper: settings.credential_helper.value.clone(),
        netrc: true,
    }
}

impl Caches {
    /// The caches besides the `__sheaf__` of a loader.
    pub fn open(
        home: &Home,
        loader: &Loader,
        settings: &Settings,
        secrets: &Secrets,
    ) -> Result<Caches, HostError> {
        let key = signing_key(home, secrets)?;
        let trusted = trusted_keys(settings, key.as_deref())?;
        let remotes = remotes(settings, &trusted, secrets)?;
        Ok(Caches {
            folder: Rc::clone(&loader.folder),
            store: Store::new(home.cache()),
            remotes: RefCell::new(remotes),
            key,
            has_packages: settings.package_programs.iter().any(|programs| is_trusted(&trusted, programs)),
            trusted,
            store_size: settings.max_size.value.unwrap_or(STORE_SIZE),
            added: Cell::new(0),
            stats: Cell::default(),
            faults: Rc::clone(&loader.faults),
        })
    }

    /// Removes the budget of look-ups in remote caches.
    pub fn be_patient(&self) {
        self.remotes.borrow_mut().iter_mut().for_each(Remotes::be_patient);
    }

    /// True if a package's author is trusted to send programs.
    pub fn has_packages(&self) -> bool {
        self.has_packages
    }

    /// The user's store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A program from the store or a remote cache, with its digest.
    pub fn shared_artifact(&self, job: &Job) -> Option<Found> {
        self.stored(job).or_else(|| self.fetch(job))
    }

    /// A program from the store.
    pub fn stored(&self, job: &Job) -> Option<Found> {
        let (bytes, entry) = self.in_store(&job.action.key())?;
        self.count(|stats| {
            stats.stored += 1;
            stats.saved += entry.claim.seconds;
        });
        Some(Found::of(&job.action, bytes, entry.claim.vmfb.digest, entry.claim.alternative))
    }

    fn in_store(&self, key: &ActionKey) -> Option<(Vec<u8>, SignedClaim)> {
        match self.store.get(key) {
            Lookup::Hit { bytes, entry } => {
                // The signer may have lost our trust since.
                let is_ours = entry.signer.as_ref().is_none_or(|signer| self.trusted.knows(signer));
                is_ours.then_some((bytes, entry))
            }
            Lookup::Miss(miss) => {
                self.faults.report(&miss);
                None
            }
        }
    }

    /// A program from a remote cache, kept in the store.
    pub fn fetch(&self, job: &Job) -> Option<Found> {
        let fetched = self.fetched(&job.action)?;
        self.count(|stats| {
            stats.fetched += 1;
            stats.saved += fetched.signed.claim.seconds;
        });
        let claim = &fetched.signed.claim;
        Some(Found::of(&job.action, fetched.vmfb, claim.vmfb.digest, claim.alternative))
    }

    /// The result of an action from a remote cache, kept in the store.
    fn fetched(&self, wanted: &Action) -> Option<Fetched> {
        let remotes = self.remotes.borrow();
        let remotes = remotes.as_ref()?;
        let action = action::described(wanted)?;
        let program = action::program(wanted);
        let fetched = remotes.get(&Wanted {
            key: wanted.key(),
            action: action.address,
            program: Address::of(program.as_bytes()),
            accepts: &|claim| !self.store.is_quarantined(claim),
        });
        for trouble in remotes.troubles() {
            self.faults.warn(&trouble, WITHOUT, Some(&trouble.remedy()));
        }
        let fetched = fetched?;
        if let Err(e) = self.store.put(&fetched.signed, program.as_bytes(), &fetched.vmfb) {
            self.faults.warn(&e, NOT_KEPT, Some(e.remedy()));
        }
        Some(fetched)
    }

    /// The tuning record of a job's program, from the store or a remote cache.
    pub fn tuning(&self, job: &Job) -> Option<Tuning> {
        let record = job.action.tuning_record();
        let in_store = self.in_store(&record.key()).map(|(bytes, _)| bytes);
        let bytes = in_store.or_else(|| self.fetched(&record).map(|fetched| fetched.vmfb))?;
        match Tuning::parse(&bytes) {
            Ok(tuning) => Some(tuning),
            Err(error) => {
                let help = "`sheaf tune --again` measures it here";
                self.faults.warn(&error, &format!("{} has its usual flags", job.name), Some(help));
                None
            }
        }
    }

    /// Waits until no other process compiles the job.
    pub fn exclusive(&self, job: &Job) -> Option<Exclusive> {
        let mut activity = None;
        let text = format!("waiting for another process that compiles {}", job.name);
        self.store.exclusive(&job.action.key(), |wait| {
            activity = match wait {
                Wait::Begun => Some(self.faults.reporter().begin(&text)),
                Wait::GivenUp => {
                    drop(activity.take());
                    let line = format!("the other process takes too long; compiling {} beside it", job.name);
                    self.faults.reporter().note(&line);
                    None
                }
            }
        })
    }

    /// Keeps a fresh program in all caches but `__sheaf__`.
    pub fn keep(&self, job: &Job, bytes: &[u8], run: CompileRun) {
        self.count(|stats| {
            stats.compiled += 1;
            stats.spent += run.seconds;
        });
        self.put(&job.name, job, &job.action, bytes, run);
    }

    /// Keeps the tuning record of a job's program likewise; `seconds` is what the measurements took.
    pub fn keep_tuning(&self, job: &Job, tuning: &Tuning, seconds: f64) {
        let run = CompileRun { seconds, alternative: 0 };
        let name = format!("{} (tuning record)", job.name);
        self.put(&name, job, &job.action.tuning_record(), &tuning.to_json(), run);
    }

    fn put(&self, name: &str, job: &Job, of: &Action, bytes: &[u8], run: CompileRun) {
        let program = action::program(of);
        let compilation = Compilation {
            function: name.to_owned(),
            inputs: job.specialisation.inputs.iter().map(Leaf::ty).collect(),
            alternative: run.alternative,
            seconds: run.seconds,
            time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        };
        let claim = Claim::new(of, program.as_bytes(), bytes, compilation);
        let signed = SignedClaim::new(claim, self.key.as_deref());
        match self.store.put(&signed, program.as_bytes(), bytes) {
            Ok(()) => self.added.set(self.added.get() + 1),
            Err(e) => self.faults.warn(&e, NOT_KEPT, Some(e.remedy())),
        }
        let remotes = self.remotes.borrow();
        let Some(remotes) = &*remotes else { return };
        if signed.signer.is_none() {
            if remotes.writes() {
                let help = "make a key with `sheaf cache key new`, or set SHEAF_CACHE_MODE to read-only";
                self.faults.warn(
                    &"what is compiled here is not sent to the remote cache",
                    "without a signature nobody would use it",
                    Some(help),
                );
            }
            return;
        }
        let Some(described) = action::described(of) else { return };
        let mut blobs = described.blobs;
        blobs.push((Address::of(bytes), bytes.to_vec().into()));
        remotes.put(Upload { action: described.address, signed, blobs });
    }

    fn count(&self, change: impl FnOnce(&mut CacheStats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }
}

impl Drop for Caches {
    /// Ends the uploads, or drops them with a word; then sees to the size of the store.
    fn drop(&mut self) {
        if let Some(mut remotes) = self.remotes.borrow_mut().take() {
            let activity = match remotes.uploading() {
                0 => None,
                n => {
                    let text = format!("sending {} to the remote cache", counted(n, "compiled program"));
                    Some(self.faults.reporter().begin(&text))
                }
            };
            let dropped = remotes.finish(LAST_UPLOADS);
            drop(activity);
            for trouble in remotes.troubles() {
                self.faults.warn(&trouble, WITHOUT, Some(&trouble.remedy()));
            }
            if dropped > 0 {
                let programs = counted(dropped, "compiled program");
                let message = format!("not sent to the remote cache: {programs}");
                let help = "`sheaf cache push` sends them";
                self.faults.reporter().warn(
                    message,
                    Some(&format!("it took more than {} s", LAST_UPLOADS.as_secs())),
                    Some(help),
                );
            }
        }
        let stats = self.stats.get();
        if stats != CacheStats::default() {
            self.store.count(&stats);
        }
        if self.added.get() > 0 && self.store.is_due(COLLECT_AFTER, self.added.get()) {
            self.store.collect(self.store_size);
        }
    }
}
