//! All remote caches of a run: asked in their order, filled in the background, and none of them ever in the way.
//!
//! A look-up has a time budget, and so have all look-ups of a run together. A remote that does not keep to it, cannot be
//! reached or refuses access is left alone for the rest of the run, and one warning says so. What a later remote has, the
//! earlier ones get.
//!
//! Nothing of a remote is believed but a claim that a trusted key has signed for the very action that was asked for, and
//! bytes with the digest that the claim names.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2::{ActionResult, OutputFile};
use bytes::Bytes;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use crate::action::ActionKey;
use crate::claim::{CLAIM_LIMIT, Claim, ClaimError, SignedClaim};
use crate::reapi::OUTPUT;
use crate::remote::{Address, Credentials, Remote, RemoteError, background};
use crate::signing::{PublicKey, TrustedKeys};

/// The largest VMFB that is taken from a remote, in bytes.
const VMFB_LIMIT: u64 = 4 << 30;
/// How many claims a remote's list of a function's latest programs has.
const RECENT: usize = 16;

/// The speed of the slowest line that is worth an upload, in bytes a second.
const SLOWEST: f64 = 64.0 * 1024.0;

/// How remote caches are used.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// Their addresses, in the order in which they are asked, and whether the user named each, not a file of the project.
    pub addresses: Vec<(String, bool)>,
    /// Whether what is compiled here is sent there.
    pub writable: bool,
    /// What they are told to let the user in.
    pub credentials: Credentials,
    /// Whose claims are believed.
    pub trusted: TrustedKeys,
    /// How long a look-up may take; an upload has more time, for its bytes.
    pub budget: Duration,
    /// How long all look-ups in one remote may take, beyond the time that the compilation of what they found took somebody;
    /// none for those who want what is there whatever it takes.
    pub run_budget: Option<Duration>,
}

/// Both budgets where nobody sets others: long enough for 10 MB over a slow line, short beside a compilation.
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
    /// Uploads that have not ended.
    open: Arc<AtomicUsize>,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Tier {
    /// The address as it was written, for trust; never shown.
    address: String,
    /// The address without credentials.
    shown: String,
    remote: Remote,
    readable: AtomicBool,
    writable: AtomicBool,
    /// How long its look-ups took in this run, without the time that was saved by what they found.
    lost: Mutex<Duration>,
    /// Blobs that are there and are not what they should be: they are written over.
    damaged: Mutex<BTreeSet<Address>>,
}

/// Something is wrong with a remote or with what it gave. The run goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The remote does not serve, and is left alone.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// An entry without a signature.
    #[error("{remote} has a program for {function}, but nobody signed it")]
    Unsigned {
        /// The remote.
        remote: String,
        /// The function that it says it is for.
        function: String,
    },
    /// An entry of somebody who is not trusted.
    #[error("{remote} has a program for {function}, but it is signed by {signer}, who is not trusted")]
    Stranger {
        /// The remote.
        remote: String,
        /// The function that it says it is for.
        function: String,
        /// Who signed it.
        signer: PublicKey,
    },
    /// An entry that was altered, or is none.
    #[error("{remote} has an entry that cannot be believed: {cause}")]
    Altered {
        /// The remote.
        remote: String,
        /// What is wrong with it.
        cause: String,
    },
}

impl Trouble {
    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Remote(error) => error.remedy().into(),
            Self::Unsigned { .. } => "let those who fill that cache sign: `sheaf cache key new` there".into(),
            Self::Stranger { signer, .. } => {
                format!("if you know that key, run `sheaf cache key trust {signer}`")
            }
            Self::Altered { .. } => {
                "somebody or something changed it there; it is replaced when the program is compiled and sent again".into()
            }
        }
    }
}

/// What is looked for in a remote.
pub struct Wanted<'a> {
    /// The action.
    pub key: ActionKey,
    /// What the remotes know it as.
    pub action: Address,
    /// The program that is compiled.
    pub program: Address,
    /// Whether a claim that is believed is of use here.
    pub accepts: &'a dyn Fn(&Claim) -> bool,
}

/// A compiled program from a remote: its signature, its signer and all digests have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// What is said of it, and by whom.
    pub signed: SignedClaim,
    /// The VMFB.
    pub vmfb: Vec<u8>,
    /// The remote that gave it, without credentials.
    pub remote: String,
}

/// A compiled program on its way to the remotes.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The action, by which it is looked up.
    pub action: Address,
    /// The claim.
    pub signed: SignedClaim,
    /// The blobs that belong to it: the VMFB, the program, and what describes the action.
    pub blobs: Vec<(Address, Bytes)>,
}

type Troubles = Arc<Mutex<Vec<Trouble>>>;

impl Remotes {
    /// Opens the remotes; nothing is sent yet. `None` where there are none. An address that makes no sense is an error; one
    /// for which there are no credentials is trouble, and is left alone.
    pub fn open(settings: &RemoteSettings) -> Result<Option<Self>, Trouble> {
        if settings.addresses.is_empty() {
            return Ok(None);
        }
        let mut tiers = Vec::new();
        let troubles = Troubles::default();
        for (address, chosen) in &settings.addresses {
            let url = Remote::parse(address)?;
            let headers = match settings.credentials.headers(&url, *chosen) {
                Ok(headers) => headers,
                Err(error) => {
                    note(&troubles, error.into());
                    continue;
                }
            };
            tiers.push(Tier {
                address: address.clone(),
                shown: crate::remote::shown(&url),
                remote: Remote::open(&url, headers, *chosen)?,
                readable: AtomicBool::new(true),
                writable: AtomicBool::new(settings.writable),
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

    /// The compiled program for what is `wanted`, from the first remote that has one. Trouble on the way is told by
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
                        // Of the entry alone.
                        Trouble::Remote(RemoteError::Altered { .. }) => {}
                        // Perhaps of the entry alone, which is then written over; perhaps of some other server. And what is
                        // sent in the background may take its time.
                        Trouble::Remote(RemoteError::Unreadable { .. } | RemoteError::Slow { .. }) => {
                            tier.readable.store(false, Ordering::Relaxed);
                        }
                        Trouble::Remote(_) => {
                            tier.readable.store(false, Ordering::Relaxed);
                            // What cannot be read can seldom be written, and waiting for it twice helps nobody.
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

    /// Looks in one remote, for no longer than it still has in this run.
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
            // What somebody signs may still be no number of seconds.
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
        // It may quote what is there, which may be anything.
        let altered = |cause: String| {
            let cause = cause.replace(char::is_control, " ").chars().take(300).collect();
            Trouble::Altered { remote: remote(), cause }
        };
        let Some(text) = claim_text(tier, &result).await? else { return Ok(None) };
        if text.is_empty() {
            // A cluster has compiled it for somebody who has not signed it yet.
            return Err(Trouble::Unsigned { remote: remote(), function: "this action".into() });
        }
        let signed = SignedClaim::read(&text).map_err(|error: ClaimError| altered(error.to_string()))?;
        let function = || signed.claim.function.clone();
        match &signed.signer {
            None => return Err(Trouble::Unsigned { remote: remote(), function: function() }),
            Some(signer) if !self.trusted.trusts(signer, &tier.address) => {
                let signer = signer.clone();
                return Err(Trouble::Stranger { remote: remote(), function: function(), signer });
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
        // An entry whose blob has been collected is no entry.
        let Some(bytes) = read? else { return Ok(None) };
        Ok(Some(Fetched { signed, vmfb: bytes.into(), remote: remote() }))
    }

    /// Looks for everything from now on, whatever it takes together.
    pub fn be_patient(&mut self) {
        self.run_budget = None;
    }

    /// Whether any of them is written.
    pub fn writes(&self) -> bool {
        self.tiers.iter().any(|tier| tier.writable.load(Ordering::Relaxed))
    }

    /// Sends a program to all remotes, in the background.
    pub fn put(&self, upload: Upload) {
        self.send(upload, self.tiers.len());
    }

    /// Sends a program to the first `tiers` remotes, in the background.
    fn send(&self, upload: Upload, tiers: usize) {
        if let Some(uploads) = &self.uploads {
            self.open.fetch_add(1, Ordering::Relaxed);
            // The other end lives as long as the runtime.
            let _ = uploads.send((upload, tiers));
        }
    }

    /// The latest claims for functions of this name, from the first remote that knows any. Those that are not signed by
    /// somebody trusted are left out.
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

    /// The trouble since the last time that somebody asked.
    pub fn troubles(&self) -> Vec<Trouble> {
        std::mem::take(&mut *self.troubles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many uploads are under way.
    pub fn uploading(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits for the uploads for at most `patience`, and drops the rest, whose number it returns.
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
    /// Waits for nobody: a folder on a disk that has gone never answers.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The other end of the queue of uploads.
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

/// What the blobs take on the slowest line that is worth an upload.
fn transfer_time(upload: &Upload) -> Duration {
    let bytes: usize = upload.blobs.iter().map(|(_, bytes)| bytes.len()).sum();
    Duration::from_secs_f64(bytes as f64 / SLOWEST)
}

/// Whether the next upload would come to no better end: a blob that is too large says nothing of the others.
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
    // Last, so that whoever finds it finds all of it.
    tier.remote.set_action_result(upload.action, &result).await?;
    remember(tier, &upload.signed).await
}

/// Adds a claim to the remote's list of the latest ones for its function. Two writers at once may lose one of them, which
/// costs an explanation its best example, and nothing else.
async fn remember(tier: &Tier, signed: &SignedClaim) -> Result<(), Trouble> {
    let address = recent_address(&signed.claim.function);
    let older = match tier.remote.action_result(address).await {
        // What is no list is replaced by one.
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

/// Where a remote keeps the latest claims for functions of a name.
fn recent_address(function: &str) -> Address {
    Address::of(format!("sheaf recent\n{function}").as_bytes())
}

fn read_recent(result: &ActionResult) -> Vec<SignedClaim> {
    let lines: Vec<&[u8]> = result.stdout_raw.split_inclusive(|byte| *byte == b'\n').collect();
    lines.chunks(2).filter_map(|pair| SignedClaim::read(&pair.concat()).ok()).collect()
}

/// The claim in an action's result. A server may have moved it among its blobs.
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

/// What `work` gives, if it does so within the budget.
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
