//! The Remote Execution API, and that it shares one cache with http.

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::bytestream::{QueryWriteStatusRequest, ReadRequest, WriteRequest};
use prost::Message as _;
use reapi::compressor::Value as Compressor;
use sheaf_foundation::Digest;
use tonic::{Code, Status};

use crate::common::{Clients, Serving, digest, encoded, files, noise, result, text};

/// Reads through `ByteStream`; returns the concatenated pieces.
async fn read(clients: &mut Clients, name: String, offset: i64, limit: i64) -> Result<Vec<u8>, Status> {
    let request = ReadRequest { resource_name: name, read_offset: offset, read_limit: limit };
    let mut pieces = clients.stream.read(request).await?.into_inner();
    let mut all = Vec::new();
    while let Some(piece) = pieces.message().await? {
        assert!(piece.data.len() <= 256 * 1024);
        all.extend(piece.data);
    }
    Ok(all)
}

/// Writes through `ByteStream` in pieces of 100,000 bytes.
async fn write(clients: &mut Clients, name: &str, bytes: &[u8]) -> Result<i64, Status> {
    let pieces: Vec<&[u8]> = if bytes.is_empty() { vec![bytes] } else { bytes.chunks(100_000).collect() };
    let last = pieces.len() - 1;
    let mut offset = 0;
    let messages: Vec<WriteRequest> = pieces
        .into_iter()
        .enumerate()
        .map(|(index, piece)| {
            let resource_name = if index == 0 { name.to_owned() } else { String::new() };
            let data = piece.to_vec();
            let request =
                WriteRequest { resource_name, write_offset: offset, finish_write: index == last, data };
            offset += piece.len() as i64;
            request
        })
        .collect();
    let response = clients.stream.write(futures_util::stream::iter(messages)).await?;
    Ok(response.into_inner().committed_size)
}

fn name(bytes: &[u8]) -> String {
    format!("blobs/{}/{}", Digest::of(bytes), bytes.len())
}

fn zstd_name(bytes: &[u8]) -> String {
    format!("compressed-blobs/zstd/{}/{}", Digest::of(bytes), bytes.len())
}

#[tokio::test]
async fn capabilities_say_what_is_spoken() {
    let server = Serving::with(|options| options.max_blob = 5_000_000);
    let request = reapi::GetCapabilitiesRequest { instance_name: "any/instance".into() };
    let found = server.clients().await.capabilities.get_capabilities(request).await.unwrap().into_inner();
    let version = |version: Option<bazel_remote_apis::build::bazel::semver::SemVer>| {
        version.map(|version| (version.major, version.minor))
    };
    assert_eq!(
        (version(found.low_api_version), version(found.high_api_version)),
        (Some((2, 0)), Some((2, 3)))
    );
    assert!(found.execution_capabilities.is_none());
    let cache = found.cache_capabilities.unwrap();
    assert_eq!(cache.digest_functions, [reapi::digest_function::Value::Sha256 as i32]);
    assert_eq!(cache.supported_compressors, [Compressor::Zstd as i32]);
    assert_eq!(cache.supported_batch_update_compressors, [Compressor::Zstd as i32]);
    assert!(cache.action_cache_update_capabilities.unwrap().update_enabled);
    assert_eq!(cache.max_cas_blob_size_bytes, 5_000_000);
    server.stop().await;
}

#[tokio::test]
async fn http_and_grpc_are_one_cache() {
    let server = Serving::start();
    let mut clients = server.clients().await;
    // From http to gRPC.
    let (program, action) = (text(300_000, 1), digest(b"action"));
    let digest_of_program = server.put_blob(&program).await;
    server.put(&format!("ac/{}", action.hash), encoded(&program)).send().await.unwrap();
    let get = |action: &reapi::Digest| reapi::GetActionResultRequest {
        action_digest: Some(action.clone()),
        instance_name: "main".into(),
        ..Default::default()
    };
    let found = clients.actions.get_action_result(get(&action)).await.unwrap().into_inner();
    assert_eq!(found, result(&program));
    assert_eq!(read(&mut clients, name(&program), 0, 0).await.unwrap(), program);
    assert_eq!(server.bytes(&format!("cas/{digest_of_program}")).await, program);

    // And back.
    let (program, action) = (noise(300_000, 2), digest(b"another action"));
    let missing = clients.actions.get_action_result(get(&action)).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    let update = reapi::UpdateActionResultRequest {
        action_digest: Some(action.clone()),
        action_result: Some(result(&program)),
        ..Default::default()
    };
    let answer = clients.actions.update_action_result(update).await.unwrap().into_inner();
    assert_eq!(answer, result(&program));
    // Without its blob it is a miss through both.
    assert_eq!(clients.actions.get_action_result(get(&action)).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(server.status(&format!("ac/{}", action.hash)).await, 404);
    let written = write(&mut clients, &format!("main/uploads/1-2-3/{}", name(&program)), &program).await;
    assert_eq!(written.unwrap(), 300_000);
    assert_eq!(server.bytes(&format!("ac/{}", action.hash)).await, encoded(&program));
    assert_eq!(server.bytes(&format!("cas/{}", Digest::of(&program))).await, program);
    server.stop().await;
}

#[tokio::test]
async fn byte_streams_carry_blobs_of_any_size_in_both_forms() {
    let server = Serving::start();
    let mut clients = server.clients().await;
    for (seed, bytes) in
        [noise(5_000_000, 1), text(5_000_000, 1), noise(131_072, 2), text(262_144, 2), b"a".to_vec()]
            .into_iter()
            .enumerate()
    {
        let upload = format!("uploads/{seed}/{}", name(&bytes));
        if seed % 2 == 0 {
            assert_eq!(write(&mut clients, &upload, &bytes).await.unwrap(), bytes.len() as i64);
        } else {
            let packed = zstd::encode_all(&bytes[..], 9).unwrap();
            let upload = format!("uploads/{seed}/{}", zstd_name(&bytes));
            assert_eq!(write(&mut clients, &upload, &packed).await.unwrap(), packed.len() as i64);
            // An existing blob is not uploaded again.
            assert_eq!(write(&mut clients, &upload, &packed).await.unwrap(), -1);
        }
        assert_eq!(write(&mut clients, &upload, &bytes).await.unwrap(), bytes.len() as i64);

        assert_eq!(read(&mut clients, format!("x/y/{}", name(&bytes)), 0, 0).await.unwrap(), bytes);
        let packed = read(&mut clients, zstd_name(&bytes), 0, 0).await.unwrap();
        assert_eq!(zstd::decode_all(&packed[..]).unwrap(), bytes);
        let length = bytes.len();
        for (offset, limit) in
            [(0, 1), (1, 0), (131_072, 0), (131_071, 2), (200_000, 100_000), (length - 1, 0), (length, 0)]
        {
            if offset > length {
                continue;
            }
            let end = if limit == 0 { length } else { length.min(offset + limit) };
            let part = read(&mut clients, name(&bytes), offset as i64, limit as i64).await.unwrap();
            assert!(part == bytes[offset..end], "{length} {offset} {limit}");
            let packed = read(&mut clients, zstd_name(&bytes), offset as i64, 0).await.unwrap();
            assert!(zstd::decode_all(&packed[..]).unwrap() == bytes[offset..], "{length} {offset} {limit}");
        }
    }
    // The empty blob always exists.
    assert_eq!(read(&mut clients, name(b""), 0, 0).await.unwrap(), b"");
    let packed = read(&mut clients, zstd_name(b""), 0, 0).await.unwrap();
    assert_eq!(zstd::decode_all(&packed[..]).unwrap(), b"");
    server.stop().await;
}

#[tokio::test]
async fn wrong_streams_are_refused_and_leave_nothing() {
    let server = Serving::start();
    let mut clients = server.clients().await;
    let (bytes, wrong) = (text(300_000, 1), text(300_000, 2));
    let code = |result: Result<i64, Status>| result.unwrap_err().code();
    let upload = format!("uploads/1/{}", name(&bytes));
    let zstd_upload = format!("uploads/1/{}", zstd_name(&bytes));
    let packed = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    for (upload, sent) in [
        (&upload, wrong.clone()),
        (&upload, bytes[..299_999].to_vec()),
        (&upload, [&bytes[..], b"x"].concat()),
        (&upload, Vec::new()),
        (&zstd_upload, packed(&wrong)),
        (&zstd_upload, bytes.clone()),
        (&zstd_upload, packed(&bytes)[..1000].to_vec()),
        // A decompression bomb.
        (&zstd_upload, packed(&vec![0; 50_000_000])),
        (&"nonsense".to_owned(), bytes.clone()),
    ] {
        assert_eq!(code(write(&mut clients, upload, &sent).await), Code::InvalidArgument, "{upload}");
    }
    // An unfinished write, and one that does not start at offset 0.
    let message = |write_offset, finish_write| {
        let resource_name = upload.clone();
        WriteRequest { resource_name, write_offset, finish_write, data: bytes.clone() }
    };
    for message in [message(0, false), message(10, true), message(-1, true)] {
        let status = clients.stream.write(futures_util::stream::iter([message])).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }
    let query = QueryWriteStatusRequest { resource_name: upload.clone() };
    let status = clients.stream.query_write_status(query.clone()).await.unwrap().into_inner();
    assert_eq!((status.complete, status.committed_size), (false, 0));
    assert_eq!(read(&mut clients, name(&bytes), 0, 0).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(files(server.folder.path()), ["lock"]);

    write(&mut clients, &upload, &bytes).await.unwrap();
    let status = clients.stream.query_write_status(query).await.unwrap().into_inner();
    assert_eq!((status.complete, status.committed_size), (true, 300_000));
    // The right digest with another size is another blob.
    let other_size = name(&bytes).replace("/300000", "/300001");
    assert_eq!(read(&mut clients, other_size, 0, 0).await.unwrap_err().code(), Code::NotFound);
    for (offset, limit, code) in
        [(300_001, 0, Code::OutOfRange), (-1, 0, Code::InvalidArgument), (0, -1, Code::InvalidArgument)]
    {
        assert_eq!(read(&mut clients, name(&bytes), offset, limit).await.unwrap_err().code(), code);
    }
    let limited = read(&mut clients, zstd_name(&bytes), 0, 10).await.unwrap_err();
    assert_eq!(limited.code(), Code::InvalidArgument);
    server.stop().await;
}

#[tokio::test]
async fn batches_tell_of_each_blob() {
    let server = Serving::start();
    let mut clients = server.clients().await;
    let (plain, packed, wrong) = (noise(100_000, 1), text(100_000, 1), noise(10, 2));
    let request = |digest, data, compressor: Compressor| reapi::batch_update_blobs_request::Request {
        digest: Some(digest),
        data,
        compressor: compressor.into(),
    };
    let requests = vec![
        request(digest(&plain), plain.clone(), Compressor::Identity),
        request(digest(&wrong), b"0123456789".to_vec(), Compressor::Identity),
        request(digest(&packed), zstd::encode_all(&packed[..], 3).unwrap(), Compressor::Zstd),
        request(digest(&wrong), wrong.clone(), Compressor::Deflate),
    ];
    let update = reapi::BatchUpdateBlobsRequest { requests, ..Default::default() };
    let responses = clients.cas.batch_update_blobs(update).await.unwrap().into_inner().responses;
    let codes: Vec<_> = responses.iter().map(|response| response.status.as_ref().unwrap().code).collect();
    let invalid = Code::InvalidArgument as i32;
    assert_eq!(codes, [0, invalid, 0, invalid]);
    assert_eq!(responses[1].digest, Some(digest(&wrong)));

    let digests = vec![digest(&packed), digest(&wrong), digest(&plain), digest(b"")];
    let find = reapi::FindMissingBlobsRequest { blob_digests: digests.clone(), ..Default::default() };
    let missing = clients.cas.find_missing_blobs(find).await.unwrap().into_inner().missing_blob_digests;
    assert_eq!(missing, [digest(&wrong)]);
    let read = reapi::BatchReadBlobsRequest { digests, ..Default::default() };
    let responses = clients.cas.batch_read_blobs(read).await.unwrap().into_inner().responses;
    let data: Vec<_> = responses.iter().map(|response| &response.data[..]).collect();
    assert_eq!(data, [&packed[..], b"", &plain, b""]);
    let codes: Vec<_> = responses.iter().map(|response| response.status.as_ref().unwrap().code).collect();
    assert_eq!(codes, [0, Code::NotFound as i32, 0, 0]);

    // Larger than a message.
    let large = reapi::Digest { size_bytes: 5_000_000, ..digest(&plain) };
    let read = reapi::BatchReadBlobsRequest { digests: vec![large], ..Default::default() };
    assert_eq!(clients.cas.batch_read_blobs(read).await.unwrap_err().code(), Code::InvalidArgument);
    let nonsense = reapi::Digest { hash: "abc".into(), size_bytes: -1 };
    let find = reapi::FindMissingBlobsRequest { blob_digests: vec![nonsense], ..Default::default() };
    assert_eq!(clients.cas.find_missing_blobs(find).await.unwrap_err().code(), Code::InvalidArgument);
    server.stop().await;
}

#[tokio::test]
async fn trees_are_told_whole_and_must_be_complete() {
    let server = Serving::start();
    let mut clients = server.clients().await;
    let file = |bytes: &[u8]| reapi::FileNode {
        name: "file".into(),
        digest: Some(digest(bytes)),
        ..Default::default()
    };
    let child = reapi::Directory { files: vec![file(b"content")], ..Default::default() };
    let node =
        |name: &str| reapi::DirectoryNode { name: name.into(), digest: Some(digest(&child.encode_to_vec())) };
    // The same folder twice, and a missing one.
    let gone = reapi::DirectoryNode { name: "gone".into(), digest: Some(digest(b"gone")) };
    let directories = vec![node("a"), node("b"), gone];
    let root = reapi::Directory { directories, ..Default::default() };
    let root_bytes = root.encode_to_vec();
    let get = reapi::GetTreeRequest { root_digest: Some(digest(&root_bytes)), ..Default::default() };
    assert_eq!(clients.cas.get_tree(get.clone()).await.unwrap_err().code(), Code::NotFound);
    server.put_blob(&root_bytes).await;
    server.put_blob(&child.encode_to_vec()).await;
    let mut pages = clients.cas.get_tree(get).await.unwrap().into_inner();
    let mut folders = Vec::new();
    while let Some(page) = pages.message().await.unwrap() {
        folders.extend(page.directories);
    }
    assert_eq!(folders, [root.clone(), child.clone()]);

    // An entry with an output folder exists only with all of its files.
    let tree = reapi::Tree { root: Some(root), children: vec![child] }.encode_to_vec();
    let folder =
        reapi::OutputDirectory { path: "out".into(), tree_digest: Some(digest(&tree)), ..Default::default() };
    let result = reapi::ActionResult { output_directories: vec![folder], ..Default::default() };
    let path = format!("ac/{}", Digest::of(b"action"));
    server.put(&path, result.encode_to_vec()).send().await.unwrap();
    assert_eq!(server.status(&path).await, 404);
    server.put_blob(&tree).await;
    assert_eq!(server.status(&path).await, 404);
    server.put_blob(b"content").await;
    assert_eq!(server.status(&path).await, 200);
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_offered_is_said_so() {
    let server = Serving::start();
    let mut clients = server.clients().await;
    let split = clients.cas.split_blob(reapi::SplitBlobRequest::default()).await.unwrap_err();
    assert_eq!(split.code(), Code::Unimplemented);
    // An unsupported service, as an execution client would call it.
    let mut execution = reapi::execution_client::ExecutionClient::new(server.channel().await);
    let error = execution.execute(reapi::ExecuteRequest::default()).await.unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    server.stop().await;
}
