//! Address, connection and headers of a server.

use std::fmt;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use prost::Message as _;
use reqwest::Url;
use tonic::metadata::{Ascii, AsciiMetadataKey, BinaryMetadataValue, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use super::super::{RemoteError, shown as shown_url, shown_text};

/// Time limit for connecting; the rest is limited by the caller.
const CONNECT: Duration = Duration::from_secs(10);

/// Interval of keep-alive pings while waiting for an answer, which detect dead connections.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Flow-control windows: with the default of 64 KiB a distant server is slow.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Header that names the client in the server's log.
const REQUEST_METADATA: &str = "build.bazel.remote.execution.v2.requestmetadata-bin";

/// Options of a gRPC client.
#[derive(Clone, Default)]
pub struct GrpcOptions {
    /// Headers of every request, such as `authorization`: names and values. The values are never shown.
    pub headers: Vec<(String, String)>,
    /// Certificates (PEM) of authorities trusted in addition to the system's, which `SSL_CERT_FILE` replaces.
    pub authorities: Option<Vec<u8>>,
}

impl fmt::Debug for GrpcOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("GrpcOptions").field("headers", &names).finish_non_exhaustive()
    }
}

/// A server's address, and the headers of every request.
pub(super) struct Target {
    /// The address, without credentials.
    pub shown: String,
    /// The instance's name; empty if the address has no path.
    pub instance: String,
    endpoint: String,
    tls: bool,
    authorities: Option<Vec<u8>>,
    headers: Vec<(AsciiMetadataKey, MetadataValue<Ascii>)>,
    who: BinaryMetadataValue,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.shown).finish()
    }
}

impl Target {
    pub fn new(address: &str, options: GrpcOptions) -> Result<Self, RemoteError> {
        let parsed = Url::parse(address).ok();
        let Some((url, tls, host)) = parsed.as_ref().and_then(|url| {
            let tls = match url.scheme() {
                "grpc" => false,
                "grpcs" => true,
                _ => return None,
            };
            Some((url, tls, url.host_str().filter(|host| !host.is_empty())?))
        }) else {
            let cause =
                "it is not of the form grpc://HOST:PORT/INSTANCE or grpcs://HOST:PORT/INSTANCE".into();
            return Err(RemoteError::Address {
                address: parsed.map_or_else(|| shown_text(address), |url| shown_url(&url)),
                cause,
            });
        };
        let path = url.path().trim_matches('/');
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let shown =
            format!("{}://{host}{port}{}{path}", url.scheme(), if path.is_empty() { "" } else { "/" });
        let invalid = |cause: String| RemoteError::Address { address: shown.clone(), cause };
        let mut headers = Vec::new();
        for (name, value) in &options.headers {
            // The value is not quoted: it may be a token.
            let invalid = || invalid(format!("the header `{name}` cannot be sent"));
            let name =
                AsciiMetadataKey::from_bytes(name.to_ascii_lowercase().as_bytes()).map_err(|_| invalid())?;
            let mut value: MetadataValue<Ascii> = value.parse().map_err(|_| invalid())?;
            value.set_sensitive(true);
            headers.push((name, value));
        }
        let port = url.port().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self {
            instance: path.into(),
            endpoint: format!("{}://{host}:{port}", if tls { "https" } else { "http" }),
            tls,
            authorities: options.authorities,
            headers,
            who: who(),
            shown,
        })
    }

    /// The connection, opened by the first call and reopened when it breaks. Runs within a tokio runtime.
    pub fn connect(&self) -> Result<Channel, RemoteError> {
        let invalid = |error: tonic::transport::Error| RemoteError::Address {
            address: self.shown.clone(),
            cause: super::status::chain(&error),
        };
        let mut endpoint = Endpoint::from_shared(self.endpoint.clone())
            .and_then(|endpoint| endpoint.user_agent(concat!("sheaf/", env!("CARGO_PKG_VERSION"))))
            .map_err(invalid)?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        if self.tls {
            let mut tls = ClientTlsConfig::new().with_native_roots();
            if let Some(pem) = &self.authorities {
                tls = tls.ca_certificate(Certificate::from_pem(pem));
            }
            endpoint = endpoint.tls_config(tls).map_err(invalid)?;
        }
        Ok(endpoint.connect_lazy())
    }

    /// A request with the headers common to all calls.
    pub fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        for (name, value) in &self.headers {
            request.metadata_mut().insert(name.clone(), value.clone());
        }
        request.metadata_mut().insert_bin(REQUEST_METADATA, self.who.clone());
        request
    }

    /// `text` with the values of the headers removed, in case a server repeats them.
    pub fn without_secrets(&self, text: &str) -> String {
        let values = self.headers.iter().filter_map(|(_, value)| value.to_str().ok());
        values.filter(|value| !value.is_empty()).fold(text.to_owned(), |text, value| {
            let token = value.split_once(' ').map_or(value, |(_, token)| token);
            text.replace(value, "***").replace(if token.is_empty() { value } else { token }, "***")
        })
    }
}

fn who() -> BinaryMetadataValue {
    let details =
        api::ToolDetails { tool_name: "sheaf".into(), tool_version: env!("CARGO_PKG_VERSION").into() };
    let metadata = api::RequestMetadata { tool_details: Some(details), ..Default::default() };
    BinaryMetadataValue::from_bytes(&metadata.encode_to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str) -> Target {
        Target::new(address, GrpcOptions::default()).expect(address)
    }

    #[test]
    fn an_address_is_a_host_a_port_and_an_instance() {
        let parts = |address| {
            let target = target(address);
            (target.endpoint.clone(), target.instance.clone(), target.shown.clone())
        };
        let expected =
            |endpoint: &str, instance: &str, shown: &str| (endpoint.into(), instance.into(), shown.into());
        assert_eq!(parts("grpc://a:9092"), expected("http://a:9092", "", "grpc://a:9092"));
        assert_eq!(
            parts("grpc://a:9092/team/main/"),
            expected("http://a:9092", "team/main", "grpc://a:9092/team/main")
        );
        assert_eq!(parts("grpcs://a"), expected("https://a:443", "", "grpcs://a"));
        assert_eq!(parts("grpc://[::1]:80/x"), expected("http://[::1]:80", "x", "grpc://[::1]:80/x"));
        assert_eq!(parts("grpc://me:secret@a:1/x"), expected("http://a:1", "x", "grpc://a:1/x"));
    }

    #[test]
    fn other_addresses_are_refused_without_their_password() {
        let refused = |address| Target::new(address, GrpcOptions::default()).expect_err(address).to_string();
        insta::assert_snapshot!(refused("http://a"), @"`http://a/` is not the address of a remote cache: it is not of the form grpc://HOST:PORT/INSTANCE or grpcs://HOST:PORT/INSTANCE");
        for address in ["", "grpc", "grpc://", "grpc:a", "grpc://a:port", "grpc://a:99999"] {
            refused(address);
        }
        for address in ["http://me:secret@a", "grpc://me:secret@a:99999", "me:secret@a"] {
            assert!(!refused(address).contains("secret"), "{address}");
        }
    }

    #[test]
    fn headers_go_with_every_request_and_are_never_shown() {
        let headers = vec![("Authorization".into(), "Bearer secret".into()), ("x-team".into(), "a".into())];
        let options = GrpcOptions { headers, authorities: None };
        assert!(!format!("{options:?}").contains("secret"));
        let target = Target::new("grpc://a", options).expect("a target");
        assert!(!format!("{target:?}").contains("secret"));
        let request = target.request(());
        assert_eq!(request.metadata().get("authorization").expect("the header"), "Bearer secret");
        assert!(!format!("{:?}", request.metadata()).contains("secret"));
        assert_eq!(target.without_secrets("no right for secret"), "no right for ***");

        let headers = vec![("authorization".into(), "sec\nret".into())];
        let error =
            Target::new("grpc://a", GrpcOptions { headers, authorities: None }).expect_err("a line break");
        insta::assert_snapshot!(error, @"`grpc://a` is not the address of a remote cache: the header `authorization` cannot be sent");
    }
}
