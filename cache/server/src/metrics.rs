//! Metrics of a server: at `/metrics` for Prometheus, at `/status` as JSON.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use serde_json::json;

use super::storage::Storage;

/// Protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "these are the values of labels")]
pub(crate) enum Protocol {
    http,
    grpc,
}

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "these are the values of labels")]
pub(crate) enum Request {
    action_read,
    action_write,
    blob_read,
    blob_write,
    blob_find,
    other,
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "these are the values of labels")]
pub(crate) enum Outcome {
    /// Done, or found.
    ok,
    /// Not found.
    miss,
    /// The sender lacks permission.
    denied,
    /// The request is malformed, or its content is wrong.
    bad,
    /// The server failed.
    failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    protocol: Protocol,
    request: Request,
    outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LookupLabels {
    outcome: Lookup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "these are the values of labels")]
enum Lookup {
    hit,
    miss,
}

/// The counters. Look-ups of actions are counted apart from blobs, for the hit rate.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    requests: Family<RequestLabels, Counter>,
    lookups: Family<LookupLabels, Counter>,
    /// Bytes of entries received, as transferred.
    pub received: Counter,
    /// Bytes of entries sent, as transferred.
    pub sent: Counter,
    /// Open connections.
    pub connections: Gauge,
}

impl Metrics {
    /// All counters zero.
    pub fn new() -> Self {
        let metrics = Self {
            requests: Family::default(),
            lookups: Family::default(),
            received: Counter::default(),
            sent: Counter::default(),
            connections: Gauge::default(),
        };
        // Both labels exist from the start: a rate needs both.
        metrics.lookup(Lookup::hit);
        metrics.lookup(Lookup::miss);
        metrics
    }

    /// Counts a request.
    pub fn count(&self, protocol: Protocol, request: Request, outcome: Outcome) {
        self.requests.get_or_create(&RequestLabels { protocol, request, outcome }).inc();
        if request == Request::action_read {
            match outcome {
                Outcome::ok => self.lookup(Lookup::hit).inc(),
                Outcome::miss => self.lookup(Lookup::miss).inc(),
                _ => 0,
            };
        }
    }

    fn lookup(&self, outcome: Lookup) -> Counter {
        self.lookups.get_or_create_owned(&LookupLabels { outcome })
    }

    /// The text of `/metrics`.
    pub fn text(&self, storage: &Storage) -> String {
        let mut registry = Registry::with_prefix("sheaf_cache");
        registry.register(
            "requests",
            "Requests by protocol, what they wanted and what came of it",
            self.requests.clone(),
        );
        registry.register(
            "action_lookups",
            "Look-ups of actions; a miss is also an entry whose blobs are gone",
            self.lookups.clone(),
        );
        registry.register_with_unit(
            "received",
            "Bytes of entries that came in",
            Unit::Bytes,
            self.received.clone(),
        );
        registry.register_with_unit("sent", "Bytes of entries that went out", Unit::Bytes, self.sent.clone());
        registry.register("connections", "Connections that are open", self.connections.clone());
        registry.register("evictions", "Entries removed for want of space", storage.evictions().clone());
        let totals = storage.totals();
        let gauge = |value: u64| {
            let gauge: Gauge = Gauge::default();
            gauge.set(value as i64);
            gauge
        };
        registry.register("actions", "Entries of the action cache", gauge(totals.actions as u64));
        registry.register("blobs", "Blobs", gauge(totals.blobs as u64));
        registry.register_with_unit("size", "Space taken on the disk", Unit::Bytes, gauge(totals.space));
        registry.register_with_unit(
            "capacity",
            "Space that may be taken on the disk",
            Unit::Bytes,
            gauge(storage.capacity()),
        );
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut out, &registry);
        out
    }

    /// The text of `/status`.
    pub fn status(&self, storage: &Storage) -> String {
        let totals = storage.totals();
        let status = json!({
            "actions": totals.actions,
            "blobs": totals.blobs,
            "bytes": totals.space,
            "capacity_bytes": storage.capacity(),
            "max_blob_bytes": storage.max_blob(),
            "evictions": storage.evictions().get(),
            "action_hits": self.lookup(Lookup::hit).get(),
            "action_misses": self.lookup(Lookup::miss).get(),
            "received_bytes": self.received.get(),
            "sent_bytes": self.sent.get(),
            "connections": self.connections.get(),
        });
        format!("{status:#}\n")
    }
}
