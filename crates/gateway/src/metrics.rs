//! What is counted while it happens. What can be seen at any moment is read when someone asks
//! (`admin`).

use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tidegate_bridge::OversizeFrames;
use tidegate_lifecycle::Cause;

use crate::stream::Kind;

/// What leads to a stream's target, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A session of this gateway.
    Local,
    /// A session of another gateway.
    Peer,
    /// Nothing: the stream ended before its path was open.
    None,
}

impl Route {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Peer => "peer",
            Self::None => "none",
        }
    }
}

/// Names and values of labels.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Makes the histograms of one family.
#[derive(Clone, Copy, Debug)]
struct OpenSeconds;

impl MetricConstructor<Histogram> for OpenSeconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new([
            0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0,
        ])
    }
}

/// What the streams count themselves.
#[derive(Debug)]
struct Oversize(OversizeFrames);

impl Collector for Oversize {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let count = ConstCounter::new(self.0.get());
        let (name, help) = (
            "tidegate_legacy_oversize_frames",
            "Frames above 64 KiB from peers that promised no limit",
        );
        count.encode(encoder.encode_descriptor(name, help, None, count.metric_type())?)
    }
}

/// The counters of a gateway.
#[derive(Debug)]
pub(crate) struct Metrics {
    opened: Family<Labels<2>, Counter>,
    ended: Family<Labels<3>, Counter>,
    open_seconds: Family<Labels<1>, Histogram, OpenSeconds>,
    /// Frames above the limit of those who promise one.
    pub(crate) oversize: OversizeFrames,
    ignored: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            opened: Family::default(),
            ended: Family::default(),
            open_seconds: Family::new_with_constructor(OpenSeconds),
            oversize: OversizeFrames::default(),
            ignored: Counter::default(),
        }
    }
}

impl Metrics {
    /// Enters every counter into `registry`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "tidegate_streams_opened",
            "Streams whose path was opened, by the route it took; none for those that never had one",
            self.opened.clone(),
        );
        registry.register(
            "tidegate_streams_ended",
            "Streams that ended, by cause",
            self.ended.clone(),
        );
        registry.register(
            "tidegate_stream_open_seconds",
            "From the request for a stream to its open path, the target's connect included",
            self.open_seconds.clone(),
        );
        registry.register_collector(Box::new(Oversize(self.oversize.clone())));
        registry.register(
            "tidegate_control_messages_ignored",
            "Messages of supervisors that were unknown, or about a relay of nobody",
            self.ignored.clone(),
        );
    }

    /// A stream's path is open, `waited` after it was asked for.
    pub(crate) fn opened(&self, kind: Kind, route: Route, waited: Duration) {
        let labels = [("route", route.as_str())];
        self.open_seconds
            .get_or_create(&labels)
            .observe(waited.as_secs_f64());
        self.count_opened(kind, route);
    }

    /// A stream has ended, or is about to, before its path was open.
    pub(crate) fn never_opened(&self, kind: Kind) {
        self.count_opened(kind, Route::None);
    }

    /// A stream ended.
    pub(crate) fn ended(&self, kind: Kind, cause: Cause) {
        let origin = match cause {
            Cause::Finished => "",
            Cause::Reset { origin, .. } => origin.as_str(),
        };
        let labels = [
            ("kind", kind.as_str()),
            ("reason", cause.reason_word()),
            ("origin", origin),
        ];
        self.ended.get_or_create(&labels).inc();
    }

    /// A supervisor said something that means nothing here.
    pub(crate) fn ignored(&self) {
        self.ignored.inc();
    }

    fn count_opened(&self, kind: Kind, route: Route) {
        let labels = [("kind", kind.as_str()), ("route", route.as_str())];
        self.opened.get_or_create(&labels).inc();
    }
}
