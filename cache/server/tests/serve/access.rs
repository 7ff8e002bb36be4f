//! Tokens and roles, for both http and gRPC.

use std::fs;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use sheaf_cache_server::{ServeError, ServeOptions, Server};
use sheaf_foundation::Digest;
use tonic::{Code, Request};

use crate::common::{Clients, Serving, digest, encoded, options, result};

/// A server with three tokens.
fn serving(anonymous_read: bool) -> Serving {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let hash = |token: &str| Digest::of(token.as_bytes());
    let lines = [
        "# who may what".to_owned(),
        format!("write {} trunk expires=9999-12-31", hash("w")),
        format!("read {} pulls", hash("r")),
        format!("write {} old expires=2020-01-31", hash("old")),
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    Serving::on(folder, |options: &mut ServeOptions| {
        options.tokens = Some(file);
        options.anonymous_read = anonymous_read;
    })
}

/// The statuses of `GET` and `PUT` with this header, and the message.
async fn http(server: &Serving, authorization: Option<&str>) -> (u16, u16, String) {
    let path = format!("ac/{}", Digest::of(b"action"));
    let with = |request: reqwest::RequestBuilder| match authorization {
        Some(value) => request.header("authorization", value),
        None => request,
    };
    let get = with(server.get(&path)).send().await.unwrap().status();
    let put = with(server.put(&path, encoded(b""))).send().await.unwrap();
    let status = put.status();
    assert_eq!(status == 401, put.headers().contains_key("www-authenticate"));
    (get.as_u16(), status.as_u16(), put.text().await.unwrap())
}

#[tokio::test]
async fn http_asks_for_tokens() {
    let server = serving(false);
    let answer = http(&server, None).await;
    insta::assert_snapshot!(answer.2, @"a token is needed: send it as `Authorization: Bearer TOKEN`, or as the password of Basic");
    assert_eq!((answer.0, answer.1), (401, 401));
    let answer = http(&server, Some("Bearer r")).await;
    insta::assert_snapshot!(answer.2, @"this token allows reading only");
    assert_eq!((answer.0, answer.1), (404, 403));
    let answer = http(&server, Some("Bearer old")).await;
    insta::assert_snapshot!(answer.2, @r#"the token "old" has expired: ask for a new one"#);
    assert_eq!((answer.0, answer.1), (401, 401));
    for wrong in ["Bearer x", "Bearer ", "Basic x", "w", "Basic dzp4"] {
        let answer = http(&server, Some(wrong)).await;
        assert_eq!(answer, (401, 401, "the token is unknown here\n".into()), "{wrong}");
    }
    assert_eq!(server.status("status").await, 401);
    assert_eq!(server.status("metrics").await, 401);
    let status = server.get("status").bearer_auth("r").send().await.unwrap();
    assert_eq!(status.status(), 200);

    assert_eq!(http(&server, Some("Bearer w")).await.1, 201);
    assert_eq!(http(&server, Some("Bearer r")).await.0, 200);
    let basic = server.get("status").basic_auth("anybody", Some("r")).send().await.unwrap();
    assert_eq!(basic.status(), 200);
    server.stop().await;
}

#[tokio::test]
async fn reading_can_be_for_everybody() {
    let server = serving(true);
    let answer = http(&server, None).await;
    insta::assert_snapshot!(answer.2, @"writing needs a token");
    assert_eq!((answer.0, answer.1), (404, 401));
    assert_eq!(http(&server, Some("Bearer r")).await.1, 403);
    assert_eq!(http(&server, Some("Bearer w")).await.1, 201);
    // The holder of an expired token is told so.
    let old = http(&server, Some("Bearer old")).await;
    assert_eq!((old.0, old.1), (401, 401));
    assert_eq!(http(&server, None).await.0, 200);
    server.stop().await;
}

fn with<T>(message: T, token: Option<&str>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    request
}

/// The statuses of reading, writing and sending a blob with this token, and true if the capabilities allow writing.
async fn grpc(clients: &mut Clients, token: Option<&str>) -> ([Code; 3], Option<bool>) {
    let action_digest = Some(digest(b"action"));
    let code = |status: tonic::Status| status.code();
    let get = reapi::GetActionResultRequest { action_digest: action_digest.clone(), ..Default::default() };
    let get = clients.actions.get_action_result(with(get, token)).await.err().map_or(Code::Ok, code);
    let update = reapi::UpdateActionResultRequest {
        action_digest,
        action_result: Some(result(b"")),
        ..Default::default()
    };
    let update = clients.actions.update_action_result(with(update, token)).await.err().map_or(Code::Ok, code);
    let blobs = reapi::BatchUpdateBlobsRequest::default();
    let blobs = clients.cas.batch_update_blobs(with(blobs, token)).await.err().map_or(Code::Ok, code);
    let capabilities = reapi::GetCapabilitiesRequest::default();
    let capabilities = clients.capabilities.get_capabilities(with(capabilities, token)).await.ok();
    let enabled = capabilities.map(|capabilities| {
        let cache = capabilities.into_inner().cache_capabilities.unwrap();
        cache.action_cache_update_capabilities.unwrap().update_enabled
    });
    ([get, update, blobs], enabled)
}

#[tokio::test]
async fn grpc_asks_for_the_same_tokens() {
    use Code::{NotFound, Ok, PermissionDenied, Unauthenticated};
    let server = serving(false);
    let mut clients = server.clients().await;
    for token in [None, Some("x"), Some("old")] {
        assert_eq!(grpc(&mut clients, token).await, ([Unauthenticated; 3], None));
    }
    let reader = grpc(&mut clients, Some("r")).await;
    assert_eq!(reader, ([NotFound, PermissionDenied, PermissionDenied], Some(false)));
    assert_eq!(grpc(&mut clients, Some("w")).await, ([NotFound, Ok, Ok], Some(true)));
    assert_eq!(grpc(&mut clients, Some("r")).await.0[0], Ok);
    server.stop().await;

    let server = serving(true);
    let mut clients = server.clients().await;
    assert_eq!(grpc(&mut clients, None).await, ([NotFound, Unauthenticated, Unauthenticated], Some(false)));
    server.stop().await;
}

#[test]
fn a_wrong_file_of_tokens_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let mut options = options(folder.path());
    options.tokens = Some(file.clone());
    let message = |options: &ServeOptions| {
        let error = Server::bind(options).err().unwrap();
        assert!(!error.remedy().is_empty());
        error.to_string().replace(folder.path().to_str().unwrap(), "~")
    };
    insta::assert_snapshot!(message(&options), @"~/tokens cannot be read: No such file or directory (os error 2)");
    fs::write(&file, "read secret").unwrap();
    insta::assert_snapshot!(message(&options), @"~/tokens:1: after the role comes the SHA-256 of the token, 64 hexadecimal digits");
    options.tokens = None;
    options.listen = ([0, 0, 0, 0], 0).into();
    insta::assert_snapshot!(message(&options), @"without a file of tokens everybody who reaches this address could read and write: give --tokens FILE, listen on 127.0.0.1, or say --everyone");
    options.everyone = true;
    assert!(Server::bind(&options).is_ok());
    options = ServeOptions { everyone: false, listen: ([127, 0, 0, 1], 0).into(), ..options };
    options.anonymous_read = true;
    insta::assert_snapshot!(message(&options), @"without a file of tokens everybody may read and write, so anonymous reading means nothing");
    assert!(matches!(Server::bind(&options), Err(ServeError::Options(_))));
}
