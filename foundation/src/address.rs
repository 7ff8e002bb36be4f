//! Addresses: what they may carry, and how they are printed.

use std::net::Ipv4Addr;

use url::Url;

/// True if the connection is encrypted or local.
pub fn is_private(address: &Url) -> bool {
    let is_loopback = match address.host() {
        // In addresses of unknown schemes, such as grpc, IP addresses are parsed as names.
        Some(url::Host::Domain(name)) => {
            name == "localhost" || name.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback())
        }
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    is_loopback || matches!(address.scheme(), "https" | "grpcs")
}

/// An address for display: without user name, password, query and fragment.
pub fn shown(address: &Url) -> String {
    if !address.has_authority() && address.scheme() != "file" {
        // An apparent scheme may be a user's name.
        return shown_text(address.as_str());
    }
    let mut address = address.clone();
    let _ = address.set_username("");
    let _ = address.set_password(None);
    address.set_query(None);
    address.set_fragment(None);
    address.to_string()
}

/// The printable part of an invalid address, without any part that may be a password.
pub fn shown_text(address: &str) -> String {
    let address = address.trim();
    let scheme = address.split_once("://").map(|(scheme, _)| scheme);
    let scheme = scheme.filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let scheme = scheme.map(|scheme| format!("{scheme}://")).unwrap_or_default();
    let rest = match address.rsplit_once('@') {
        Some((_, rest)) => rest.split(['?', '#']).next().unwrap_or_default(),
        // The part after a colon may be a port, or a password of an address without a host.
        None => match address[scheme.len()..].split_once([':', '?', '#']) {
            Some((head, _)) => return format!("{scheme}{head}…"),
            None => &address[scheme.len()..],
        },
    };
    format!("{scheme}{rest}")
}

/// Canonical spelling of a remote's address, without credentials.
pub fn normal_address(address: &str) -> String {
    let shown = Url::parse(address.trim()).map_or_else(|_| shown_text(address), |url| shown(&url));
    shown.trim_end_matches('/').to_owned()
}
