//! All remote caches of a run: read in order, written in the background, and never blocking the run for long.
//!
//! Each look-up has a time budget, and so have all look-ups of a run together. A remote that exceeds it, cannot be
//! reached or refuses access is skipped for the rest of the run, with one warning. Programs found in a later remote are
//! uploaded to the earlier ones.
//!
//! Remotes are untrusted: accepted are only claims signed by a trusted key for the requested action, and bytes with the
//! digest that the claim names.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2::{ActionResult, OutputFile};
use bytes::Bytes;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use crate::claim::{CLAIM_LIMIT, Claim, ClaimError, SignedClaim};
use crate::reapi::OUTPUT;
use crate::remote::{Address, Credentials, Remote, RemoteError, background};
use crate::trusted_keys::TrustedKeys;
use sheaf_artifacts::ActionKey;
use sheaf_foundation::PublicKey;

/// Maximum size of a VMFB taken from a remote, in bytes.
const VMFB_LIMIT: u64 = 4 << 30;
/// Number of claims in a remote's list of a function's latest programs.
const RECENT: usize = 16;

/// Minimum transfer rate for which an upload is worthwhile, in bytes per second.
const SLOWEST: f64 = 64.0 * 1024.0;

/// Configuration of the remote caches.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// The remotes in look-up order.
    pub addresses: Vec<RemoteAddress>,
    /// Credentials sent to the remotes.
    pub credentials: Credentials,
    /// The keys whose claims are accepted.
    pub trusted: TrustedKeys,
    /// Time limit of a look-up; an upload gets more, in proportion to its bytes.
    pub budget: Duration,
    /// Time limit of all look-ups in one remote together, not counting time that they saved in compilation; `None` for
    /// no limit.
    pub run_budget: Option<Duration>,
}

/// A remote cache and its rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Its address.
    pub address: String,
    /// True if the user named it, rather than a file of the project or a package: others see no credentials.
    pub named: bool,
    /// True to upload locally compiled programs.
    pub writable: bool,
}

/// Default of both budgets: enough for 10 MB over a slow line, short compared with a compilation.
pub const BUDGET: Duration = Duration::from_secs(10);

/// The remote caches of a run.
#[derive(Debug)]
pub struct Remotes {
    tiers: Arc<Vec<Tier>>,
    trusted: TrustedKeys,
    budget: Duration,
    run_budget: Option<Duration>,
    troubles: Troubles,
    uploads: Option<UnboundedSender<(Upload, usize)>>,
    /// Number of unfinished uploads.
    open: Arc<AtomicUsize>,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Tier {
    /// The address as written, for trust decisions; never shown.
    address: String,
    /// The address without credentials.
    shown: String,
    remote: Remote,
    readable: AtomicBool,
    writable: AtomicBool,
    /// Time spent on its look-ups in this run, minus the compile time that they saved.
    lost: Mutex<Duration>,
    /// Blobs found damaged there: the next upload overwrites them.
    damaged: Mutex<BTreeSet<Address>>,
}

/// A problem with a remote or with its data. The run continues.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The remote fails, and is skipped for the rest of the run.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// An entry without a signature.
    #[error("{remote} has a program for {function}, but nobody signed it")]
    Unsigned {
        /// The remote.
        remote: String,
        /// The function that the entry names.
        function: String,
    },
    /// An entry of an untrusted signer.
    #[error("{remote} has a program for {function}, but it is signed by {signer}, who is not trusted")]
    UntrustedSigner {
        /// The remote.
        remote: String,
        /// The function that the entry names.
        function: String,
        /// The signer.
        signer: PublicKey,
    },
    /// An altered or malformed entry.
    #[error("{remote} has an entry that cannot be believed: {cause}")]
    Altered {
        /// The remote.
        remote: String,
        /// The defect.
        cause: String,
    },
}

impl Trouble {
    /// The fix to suggest to the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Remote(error) => error.remedy().into(),
            Self::Unsigned { .. } => "let those who fill that cache sign: `sheaf cache key new` there".into(),
            Self::UntrustedSigner { signer, .. } => {
                format!("if you know that key, run `sheaf cache key trust {signer}`")
            }
            Self::Altered { .. } => {
                "somebody or something changed it there; it is replaced when the program is compiled and sent again".into()
            }
        }
    }
}

/// A look-up in a remote.
pub struct Wanted<'a> {
    /// The action's key.
    pub key: ActionKey,
    /// The action's address in the remotes.
    pub action: Address,
    /// The program to compile.
    pub program: Address,
    /// True for trusted claims that are usable here.
    pub accepts: &'a dyn Fn(&Claim) -> bool,
}

/// A compiled program from a remote; signature, signer and all digests have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// Its claim and signer.
    pub signed: SignedClaim,
    /// The VMFB.
    pub vmfb: Vec<u8>,
    /// The remote that served it, without credentials.
    pub remote: String,
}

/// A compiled program to upload.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The action under which it is found.
    pub action: Address,
    /// The claim.
    pub signed: SignedClaim,
    /// Its blobs: the VMFB, the program, and the description of the action.
    pub blobs: Vec<(Address, Bytes)>,
}

type Troubles = Arc<Mutex<Vec<Trouble>>>;

impl Remotes {
    /// Opens the remotes without sending anything yet. `None` if there are none. An invalid address is an error; one
    /// without credentials is reported as trouble and skipped.
    pub fn open(settings: &RemoteSettings) -> Result<Option<Self>, Trouble> {
        if settings.addresses.is_empty() {
            return Ok(None);
        }
        let mut tiers = Vec::new();
        let troubles = Troubles::default();
        for RemoteAddress { address, named, writable } in &settings.addresses {
            let url = Remote::parse(address)?;
            let headers = match settings.credentials.headers(&url, *named) {
                Ok(headers) => headers,
                Err(error) => {
                    note(&troubles, error.into());
                    continue;
                }
            };
            tiers.push(Tier {
                address: address.clone(),
                shown: crate::remote::shown(&url),
                remote: Remote::open(&url, headers, *named)?,
                readable: AtomicBool::new(true),
                writable: AtomicBool::new(*writable),
                lost: Mutex::default(),
                damaged: Mutex::default(),
            });
        }
        let runtime = background("remote-cache")?;
        let (uploads, queue) = mpsc::unbounded_channel();
        let mut remotes = Self {
            tiers: Arc::new(tiers),
            trusted: settings.trusted.clone(),
            budget: settings.budget,
            run_budget: settings.run_budget,
            troubles,
            uploads: Some(uploads),
            open: Arc::default(),
            runtime: None,
        };
        let uploader = Uploader {
            tiers: Arc::clone(&remotes.tiers),
            troubles: Arc::clone(&remotes.troubles),
            open: Arc::clone(&remotes.open),
            budget: remotes.budget,
        };
        runtime.spawn(uploader.run(queue));
        remotes.runtime = Some(runtime);
        Ok(Some(remotes))
    }

    /// The compiled program for `wanted`, from the first remote that has one. Problems are reported by
    /// [`troubles`](Self::troubles).
    pub fn get(&self, wanted: &Wanted<'_>) -> Option<Fetched> {
        let runtime = self.runtime.as_ref()?;
        for (index, tier) in self.tiers.iter().enumerate() {
            if !tier.readable.load(Ordering::Relaxed) {
                continue;
            }
            match self.look_up(runtime, tier, wanted) {
                Ok(Some(fetched)) => {
                    if index > 0 {
                        let vmfb = (fetched.signed.claim.vmfb, Bytes::from(fetched.vmfb.clone()));
                        self.send(
                            Upload {
                                action: wanted.action,
                                signed: fetched.signed.clone(),
                                blobs: vec![vmfb],
                            },
                            index,
                        );
                    }
                    return Some(fetched);
                }
                Ok(None) => {}
                Err(trouble) => {
                    match &trouble {
                        // Concerns this entry only.
                        Trouble::Remote(RemoteError::Altered { .. }) => {}
                        // Perhaps only this entry, which is then overwritten, or another kind of server. Background
                        // uploads may be slow.
                        Trouble::Remote(RemoteError::Unreadable { .. } | RemoteError::Slow { .. }) => {
                            tier.readable.store(false, Ordering::Relaxed);
                        }
                        Trouble::Remote(_) => {
                            tier.readable.store(false, Ordering::Relaxed);
                            // A remote that cannot be read can rarely be written, and waiting for it twice is useless.
                            tier.writable.store(false, Ordering::Relaxed);
                        }
                        _ => {}
                    }
                    note(&self.troubles, trouble);
                }
            }
        }
        None
    }

    /// Looks up in one remote, within what remains of its budget in this run.
    fn look_up(
        &self,
        runtime: &Runtime,
        tier: &Tier,
        wanted: &Wanted<'_>,
    ) -> Result<Option<Fetched>, Trouble> {
        let mut lost = tier.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.run_budget.map_or(Duration::MAX, |budget| budget.saturating_sub(*lost));
        let slow = |address: &str| {
            let seconds = self.run_budget.unwrap_or_default().as_secs();
            Trouble::Remote(RemoteError::Slow { address: address.into(), seconds })
        };
        if left.is_zero() {
            return Err(slow(&tier.shown));
        }
        let start = Instant::now();
        let found = runtime.block_on(within(self.budget.min(left), &tier.shown, self.fetch(tier, wanted)));
        *lost += start.elapsed();
        if let Ok(Some(Fetched { signed, .. })) = &found {
            // A signed number of seconds may still be invalid.
            let saved = Duration::try_from_secs_f64(signed.claim.seconds).unwrap_or_default();
            *lost = lost.saturating_sub(saved);
        }
        match found {
            Err(Trouble::Remote(RemoteError::Timeout { address, .. })) if left < self.budget => {
                Err(slow(&address))
            }
            found => found,
        }
    }

    async fn fetch(&self, tier: &Tier, wanted: &Wanted<'_>) -> Result<Option<Fetched>, Trouble> {
        let Some(result) = tier.remote.action_result(wanted.action).await? else { return Ok(None) };
        let remote = || tier.shown.clone();
        // The cause may quote arbitrary remote data.
        let altered = |cause: String| {
            let cause = cause.replace(char::is_control, " ").chars().take(300).collect();
            Trouble::Altered { remote: remote(), cause }
        };
        let Some(text) = claim_text(tier, &result).await? else { return Ok(None) };
        if text.is_empty() {
            // A cluster has compiled it for a client that has not signed it yet.
            return Err(Trouble::Unsigned { remote: remote(), function: "this action".into() });
        }
        let signed = SignedClaim::read(&text).map_err(|error: ClaimError| altered(error.to_string()))?;
        let function = || signed.claim.function.clone();
        match &signed.signer {
            None => return Err(Trouble::Unsigned { remote: remote(), function: function() }),
            Some(signer) if !self.trusted.trusts(signer, &tier.address) => {
                let signer = signer.clone();
                return Err(Trouble::UntrustedSigner { remote: remote(), function: function(), signer });
            }
            Some(_) => {}
        }
        if signed.claim.key != wanted.key {
            return Err(altered(format!("it is the claim for {}", signed.claim.key)));
        }
        if signed.claim.program != wanted.program {
            return Err(altered(format!(
                "its program for {} is not the one that its key is made of",
                function()
            )));
        }
        if !(wanted.accepts)(&signed.claim) {
            return Ok(None);
        }
        let vmfb = signed.claim.vmfb;
        if vmfb.size > VMFB_LIMIT {
            return Err(altered(format!("its program has {} bytes", vmfb.size)));
        }
        let read = tier.remote.read(vmfb).await;
        if let Err(RemoteError::Altered { .. } | RemoteError::Unreadable { .. }) = &read {
            tier.damaged.lock().unwrap_or_else(PoisonError::into_inner).insert(vmfb);
        }
        // An entry whose blob has been evicted is a miss.
        let Some(bytes) = read? else { return Ok(None) };
        Ok(Some(Fetched { signed, vmfb: bytes.into(), remote: remote() }))
    }

    /// Removes the budget of the run's look-ups together.
    pub fn be_patient(&mut self) {
        self.run_budget = None;
    }

    /// True if any remote is writable.
    pub fn writes(&self) -> bool {
        self.tiers.iter().any(|tier| tier.writable.load(Ordering::Relaxed))
    }

    /// Uploads a program to all remotes, in the background.
    pub fn put(&self, upload: Upload) {
        self.send(upload, self.tiers.len());
    }

    /// Uploads a program to the first `tiers` remotes, in the background.
    fn send(&self, upload: Upload, tiers: usize) {
        if let Some(uploads) = &self.uploads {
            self.open.fetch_add(1, Ordering::Relaxed);
            // The receiver lives as long as the runtime.
            let _ = uploads.send((upload, tiers));
        }
    }

    /// The latest claims for functions of this name, from the first remote that has any; claims without a trusted
    /// signature are left out.
    pub fn recent(&self, function: &str) -> Vec<SignedClaim> {
        let Some(runtime) = &self.runtime else { return Vec::new() };
        for tier in self.tiers.iter() {
            let found = runtime.block_on(within(self.budget, &tier.shown, async {
                let result = tier.remote.action_result(recent_address(function)).await?;
                Ok(result.map(|result| read_recent(&result)).unwrap_or_default())
            }));
            match found {
                Ok(claims) if claims.is_empty() => {}
                Ok(mut claims) => {
                    claims
                        .retain(|c| c.signer.as_ref().is_some_and(|s| self.trusted.trusts(s, &tier.address)));
                    return claims;
                }
                Err(trouble) => note(&self.troubles, trouble),
            }
        }
        Vec::new()
    }

    /// The problems since the last call.
    pub fn troubles(&self) -> Vec<Trouble> {
        std::mem::take(&mut *self.troubles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Number of uploads in progress.
    pub fn uploading(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits at most `patience` for the uploads, and drops the rest; returns the number dropped.
    pub fn finish(&mut self, patience: Duration) -> usize {
        self.uploads = None;
        let Some(runtime) = self.runtime.take() else { return 0 };
        let open = Arc::clone(&self.open);
        runtime.block_on(async {
            let done = async {
                while open.load(Ordering::Relaxed) > 0 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            let _ = timeout(patience, done).await;
        });
        runtime.shutdown_background();
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for Remotes {
    /// Does not wait: a folder on a disconnected disk never answers.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The receiving end of the upload queue.
struct Uploader {
    tiers: Arc<Vec<Tier>>,
    troubles: Troubles,
    open: Arc<AtomicUsize>,
    budget: Duration,
}

impl Uploader {
    async fn run(self, mut queue: UnboundedReceiver<(Upload, usize)>) {
        while let Some((upload, tiers)) = queue.recv().await {
            for tier in &self.tiers[..tiers] {
                if !tier.writable.load(Ordering::Relaxed) {
                    continue;
                }
                let budget = self.budget + transfer_time(&upload);
                if let Err(trouble) = within(budget, &tier.shown, send(tier, &upload)).await {
                    if is_of_the_remote(&trouble) {
                        tier.writable.store(false, Ordering::Relaxed);
                    }
                    note(&self.troubles, trouble);
                }
            }
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Transfer time of the blobs at [`SLOWEST`].
fn transfer_time(upload: &Upload) -> Duration {
    let bytes: usize = upload.blobs.iter().map(|(_, bytes)| bytes.len()).sum();
    Duration::from_secs_f64(bytes as f64 / SLOWEST)
}

/// True if the next upload would fail too: one blob that is too large says nothing of the others.
fn is_of_the_remote(trouble: &Trouble) -> bool {
    !matches!(trouble, Trouble::Remote(RemoteError::TooLarge { .. }))
}

async fn send(tier: &Tier, upload: &Upload) -> Result<(), Trouble> {
    let claim = &upload.signed.claim;
    let addresses: Vec<Address> = upload.blobs.iter().map(|(address, _)| *address).collect();
    let missing = tier.remote.missing(&addresses).await?;
    for (address, bytes) in &upload.blobs {
        let is_damaged = tier.damaged.lock().unwrap_or_else(PoisonError::into_inner).contains(address);
        if is_damaged || missing.contains(address) {
            tier.remote.write(*address, bytes.clone()).await?;
        }
    }
    let result = ActionResult {
        output_files: vec![OutputFile {
            path: OUTPUT.into(),
            digest: Some(claim.vmfb.into()),
            ..OutputFile::default()
        }],
        stdout_raw: upload.signed.text().to_vec(),
        ..ActionResult::default()
    };
    // Last, so that an entry is never found incomplete.
    tier.remote.set_action_result(upload.action, &result).await?;
    remember(tier, &upload.signed).await
}

/// Adds a claim to the remote's list of the latest ones for its function. Of two concurrent writers one may be lost,
/// which only costs an explanation its best example.
async fn remember(tier: &Tier, signed: &SignedClaim) -> Result<(), Trouble> {
    let address = recent_address(&signed.claim.function);
    let older = match tier.remote.action_result(address).await {
        // A malformed list is replaced.
        Err(RemoteError::Unreadable { .. } | RemoteError::Altered { .. }) => None,
        found => found?.map(|result| read_recent(&result)),
    };
    let mut text = signed.text().to_vec();
    let others = older.unwrap_or_default().into_iter().filter(|c| c.claim.key != signed.claim.key);
    for other in others.take(RECENT - 1) {
        text.extend(other.text());
    }
    let result = ActionResult { stdout_raw: text, ..ActionResult::default() };
    Ok(tier.remote.set_action_result(address, &result).await?)
}

/// The address of a remote's list of the latest claims for functions of this name.
fn recent_address(function: &str) -> Address {
    Address::of(format!("sheaf recent\n{function}").as_bytes())
}

fn read_recent(result: &ActionResult) -> Vec<SignedClaim> {
    let lines: Vec<&[u8]> = result.stdout_raw.split_inclusive(|byte| *byte == b'\n').collect();
    lines.chunks(2).filter_map(|pair| SignedClaim::read(&pair.concat()).ok()).collect()
}

/// The claim in an action's result. A server may have moved it to its blobs.
async fn claim_text(tier: &Tier, result: &ActionResult) -> Result<Option<Vec<u8>>, Trouble> {
    if !result.stdout_raw.is_empty() {
        return Ok(Some(result.stdout_raw.clone()));
    }
    let Some(digest) = &result.stdout_digest else { return Ok(Some(Vec::new())) };
    let (Ok(hash), size @ 0..) = (digest.hash.parse(), digest.size_bytes) else {
        return Ok(Some(Vec::new()));
    };
    if size as u64 > CLAIM_LIMIT {
        return Ok(Some(Vec::new()));
    }
    let blob = Address { digest: hash, size: size as u64 };
    Ok(tier.remote.read(blob).await?.map(Vec::from))
}

/// The result of `work`, or an error after the budget.
async fn within<T>(
    budget: Duration,
    address: &str,
    work: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    match timeout(budget, work).await {
        Ok(result) => result,
        Err(_) => Err(RemoteError::Timeout { address: address.into(), seconds: budget.as_secs() }.into()),
    }
}

fn note(troubles: &Troubles, trouble: Trouble) {
    troubles.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
}
