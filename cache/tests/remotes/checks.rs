//! Conformance tests for all remotes, whatever the protocol.

use bazel_remote_apis::build::bazel::remote::execution::v2::{ActionResult, OutputFile};
use bytes::Bytes;
use sheaf_cache::remote::Address;
use sheaf_foundation::Digest;

/// Bytes that no two tests share and that hardly compress.
pub fn bytes(seed: &str, size: usize) -> Bytes {
    let mut state =
        u64::from_le_bytes(Digest::of(seed.as_bytes()).0[..8].try_into().expect("eight bytes")) | 1;
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes.into()
}

/// The result of a compilation with the output `blob`, and a claim of 3 KB.
pub fn result(blob: Address) -> ActionResult {
    let file = OutputFile { path: "main.vmfb".into(), digest: Some(blob.into()), ..OutputFile::default() };
    let claim =
        format!("{{\"claim\":\"{}\"}}\n{{\"signature\":\"{}\"}}\n", "c".repeat(2800), "s".repeat(200));
    ActionResult {
        output_files: vec![file],
        exit_code: 0,
        stdout_raw: claim.into(),
        ..ActionResult::default()
    }
}

/// Checks a remote, any value with the methods of all protocols. The remote may hold anything except the blobs derived
/// from `seed`.
macro_rules! keeps_its_promises {
    ($remote:expr, $seed:expr) => {{
        use sheaf_cache::remote::{Address, RemoteError};
        use $crate::checks::{bytes, result};

        let (remote, seed) = (&$remote, $seed);
        let small = bytes(&format!("small {seed}"), 200_000);
        let large = bytes(&format!("large {seed}"), 9_000_000);
        let (small_address, large_address) = (Address::of(&small), Address::of(&large));
        let action = Address::of(format!("action {seed}").as_bytes());

        // Empty at first.
        assert_eq!(remote.read(small_address).await, Ok(None));
        assert_eq!(remote.read(large_address).await, Ok(None));
        assert_eq!(remote.action_result(action).await, Ok(None));
        assert_eq!(remote.missing(&[small_address, large_address]).await, Ok(vec![small_address, large_address]));
        assert_eq!(remote.missing(&[]).await, Ok(vec![]));

        // A written blob is present, and read unchanged. Writing it again is allowed.
        remote.write(small_address, small.clone()).await.expect("a small blob is written");
        assert_eq!(remote.missing(&[small_address, large_address]).await, Ok(vec![large_address]));
        assert_eq!(remote.read(small_address).await, Ok(Some(small.clone())));
        remote.write(large_address, large.clone()).await.expect("a large blob is written");
        remote.write(large_address, large.clone()).await.expect("a large blob is written again");
        assert_eq!(remote.missing(&[large_address, small_address]).await, Ok(vec![]));
        assert!(remote.read(large_address).await == Ok(Some(large.clone())), "a large blob is read");

        // An empty blob, and many concurrent readers.
        let empty = Address::of(b"");
        remote.write(empty, bytes::Bytes::new()).await.expect("an empty blob is written");
        assert_eq!(remote.read(empty).await, Ok(Some(bytes::Bytes::new())));
        let readers = (0..16).map(|_| remote.read(small_address));
        for read in futures_util::future::join_all(readers).await {
            assert_eq!(read, Ok(Some(small.clone())));
        }

        // The result of an action keeps its claim, inline or as a blob of its own.
        let sent = result(small_address);
        remote.set_action_result(action, &sent).await.expect("a result is written");
        let found = remote.action_result(action).await.expect("an answer").expect("the result");
        assert_eq!(found.exit_code, 0);
        assert_eq!(found.output_files[0].path, "main.vmfb");
        assert_eq!(found.output_files[0].digest, sent.output_files[0].digest);
        let claim = match &found.stdout_digest {
            Some(digest) if found.stdout_raw.is_empty() => {
                let address = Address { digest: digest.hash.parse().expect("SHA-256"), size: digest.size_bytes as u64 };
                remote.read(address).await.expect("an answer").expect("the claim").to_vec()
            }
            _ => found.stdout_raw.clone(),
        };
        assert_eq!(claim, sent.stdout_raw);

        // A later result replaces an earlier one.
        let sent = result(large_address);
        remote.set_action_result(action, &sent).await.expect("another result is written");
        let found = remote.action_result(action).await.expect("an answer").expect("the result");
        assert_eq!(found.output_files[0].digest, sent.output_files[0].digest);

        // Bytes that do not match the address, small and large, are refused when they are written or when they are
        // read.
        for size in [1000, 6_000_000] {
            let right = bytes(&format!("right {size} {seed}"), size);
            let wrong = bytes(&format!("wrong {size} {seed}"), size);
            let (address, found) = (Address::of(&right), Address::of(&wrong).digest);
            match remote.write(address, wrong).await {
                Err(error) => {
                    assert!(matches!(error, RemoteError::Failed { .. }), "{error}");
                    assert_eq!(remote.read(address).await, Ok(None));
                }
                Ok(()) => match remote.read(address).await {
                    Err(RemoteError::Altered { expected, found: seen, .. }) => {
                        assert_eq!((expected, seen), (address.digest, found));
                    }
                    Err(error) => panic!("{error}"),
                    Ok(_) => panic!("wrong bytes were read"),
                },
            }
        }

        // A result whose blob is gone counts as missing, or the blob is not found.
        let gone = Address::of(format!("gone {seed}").as_bytes());
        let orphan = Address::of(format!("orphan {seed}").as_bytes());
        if remote.set_action_result(orphan, &result(gone)).await.is_ok() {
            if remote.action_result(orphan).await.expect("an answer").is_some() {
                assert_eq!(remote.read(gone).await, Ok(None));
            }
        }
    }};
}
pub(crate) use keeps_its_promises;
