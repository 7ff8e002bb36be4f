//! Cost of a cached program: from the store, and from a cache server over loopback http. Also the time to list and to
//! collect a store of 10,000 programs, and the cost of an upload to the program that makes it.

use std::path::Path;
use std::time::{Duration, Instant};

use sheaf_artifacts::{Action, Cpu, Lookup};
use sheaf_benches::median_of;
use sheaf_cache::remote::{Address, Credentials};
use sheaf_cache::{
    BUDGET, Claim, Compilation, RemoteAddress, RemoteSettings, Remotes, SignedClaim, Store, TrustedKeys,
    Upload, Wanted,
};
use sheaf_cache_server::{ServeOptions, Server};
use sheaf_foundation::{Digest, SecretKey};

const ENTRIES: usize = 10_000;
const HITS: usize = 300;
const SIZES: [usize; 2] = [16_000, 200_000];

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SecretKey::generate("bench").expect("random numbers");
    hits_in_the_store(folder.path(), &key);
    hits_at_a_remote(folder.path(), &key);
    large_store(folder.path());
}

/// The median, in seconds.
fn action(number: usize) -> Action {
    Action {
        program: format!("module @sheaf {{ // {number}\n}}"),
        compiler: "3.13.0".into(),
        compiler_digest: Digest::of(b"3.13.0"),
        flags: (0..12).map(|i| format!("--some-flag-of-the-compiler-{i}=true")).collect(),
        alternatives: vec![],
        tuned: None,
        device: "cpu".into(),
        cpu: Some(Cpu { arch: "x86_64".into(), features: (0..25).map(|i| format!("feature{i}")).collect() }),
        donation: [].into(),
        debug: false,
        rejected: vec![],
    }
}

/// Bytes that compress as VMFBs do, to about a third: words of a small vocabulary.
fn vmfb(seed: usize, size: usize) -> Vec<u8> {
    let mut state = seed as u64 ^ 0x9E37_79B9_7F4A_7C15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..size).map(|i| if i % 4 == 0 { (next() >> 40) as u8 } else { (next() >> 61) as u8 }).collect()
}

fn signed(number: usize, bytes: &[u8], key: Option<&SecretKey>) -> (Action, SignedClaim) {
    let action = action(number);
    let compilation = Compilation {
        alternative: 0,
        function: format!("step-{number}"),
        inputs: vec!["f32[32,128]".into(); 20],
        seconds: 1.0 + number as f64 % 7.0,
        time: 1_790_000_000,
    };
    let claim = Claim::new(&action, action.program.as_bytes(), bytes, compilation);
    (action, SignedClaim::new(claim, key))
}

fn hits_in_the_store(folder: &Path, key: &SecretKey) {
    for size in SIZES {
        let store = Store::new(folder.join(format!("hits-{size}")));
        let all: Vec<_> = (0..HITS)
            .map(|number| {
                let bytes = vmfb(number, size);
                let (action, signed) = signed(number, &bytes, Some(key));
                store.put(&signed, action.program.as_bytes(), &bytes).expect("a disk");
                action
            })
            .collect();
        let times: Vec<f64> = all
            .iter()
            .map(|action| {
                let start = Instant::now();
                let hit = store.get(&action.key());
                let elapsed = start.elapsed().as_secs_f64();
                assert!(matches!(hit, Lookup::Hit { .. }));
                elapsed
            })
            .collect();
        println!(
            "a hit in the store, {size} bytes: {:.3} ms (median of {HITS}; key, signature, digest)",
            1e3 * median_of(times)
        );
    }
}

fn hits_at_a_remote(folder: &Path, key: &SecretKey) {
    let options = ServeOptions::new(([127, 0, 0, 1], 0).into(), folder.join("served"));
    let server = Server::bind(&options).expect("a port");
    let address = format!("http://{}", server.address());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let stopped = async { drop(stopped.await) };
        runtime.expect("a runtime").block_on(server.run(stopped)).expect("a server");
    });
    let mut trusted = TrustedKeys::default();
    trusted.add(key.public());
    let open = || {
        let settings = RemoteSettings {
            addresses: vec![RemoteAddress { address: address.clone(), named: true, writable: true }],
            credentials: Credentials::default(),
            trusted: trusted.clone(),
            budget: BUDGET,
            run_budget: None,
        };
        Remotes::open(&settings).expect("an address").expect("a remote")
    };
    for size in SIZES {
        let mut remotes = open();
        let mut puts = Vec::new();
        let mut all = Vec::new();
        for number in 0..HITS {
            let bytes = vmfb(number + size, size);
            let (action, signed) = signed(number + size, &bytes, Some(key));
            let address = Address::of(format!("action {}", number + size).as_bytes());
            all.push((action, address));
            let upload = Upload { action: address, blobs: vec![(Address::of(&bytes), bytes.into())], signed };
            let start = Instant::now();
            remotes.put(upload);
            puts.push(start.elapsed().as_secs_f64());
        }
        assert_eq!(remotes.finish(Duration::from_secs(120)), 0);
        assert_eq!(remotes.troubles(), []);
        let remotes = open();
        let times: Vec<f64> = all
            .iter()
            .map(|(action, address)| {
                let start = Instant::now();
                let hit = remotes.get(&Wanted {
                    key: action.key(),
                    action: *address,
                    program: Address::of(action.program.as_bytes()),
                    accepts: &|_| true,
                });
                let elapsed = start.elapsed().as_secs_f64();
                assert!(hit.is_some());
                elapsed
            })
            .collect();
        println!(
            "a hit over loopback http, {size} bytes: {:.3} ms; handing an upload over: {:.4} ms (medians of {HITS})",
            1e3 * median_of(times),
            1e3 * median_of(puts)
        );
    }
    drop(stop);
    serving.join().expect("a server");
}

fn large_store(folder: &Path) {
    let store = Store::new(folder.join("large"));
    for number in 0..ENTRIES {
        let bytes = vmfb(number, 500);
        let (action, signed) = signed(number, &bytes, None);
        store.put(&signed, action.program.as_bytes(), &bytes).expect("a disk");
    }
    let start = Instant::now();
    assert_eq!(store.list().len(), ENTRIES);
    let listed = start.elapsed().as_secs_f64();
    let size = store.size();
    let start = Instant::now();
    let collected = store.collect(size.bytes / 2);
    let elapsed = start.elapsed().as_secs_f64();
    println!(
        "{ENTRIES} entries: listed in {listed:.3} s; collected to half in {elapsed:.3} s ({} removed)",
        collected.removed.entries
    );
}
