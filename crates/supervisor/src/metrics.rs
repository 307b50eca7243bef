//! What `/metrics` tells of this supervisor.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};
use tidegate_bridge::OPEN_STATES;
use tidegate_daemon::process;
use tidegate_lifecycle::Cause;
use tidegate_lifecycle::session::GatewayState;
use tidegate_transport::Buffered;

use crate::exec::Commands;
use crate::streams::{Kind, Streams};

/// Where a supervisor's streams lead: there is no other gateway behind it.
const ROUTE: &str = "target";
/// Where those lead that ended before there was a stream.
const NO_ROUTE: &str = "none";

const SESSION_STATES: [GatewayState; 2] = [GatewayState::Live, GatewayState::DrainOnly];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SessionLabels {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OpenedLabels {
    kind: &'static str,
    route: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndedLabels {
    kind: &'static str,
    reason: &'static str,
    origin: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

/// Every metric of one supervisor.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    sessions: Family<SessionLabels, Gauge>,
    opened: Family<OpenedLabels, Counter>,
    ended: Family<EndedLabels, Counter>,
    open_seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    ignored: Counter,
}

impl Metrics {
    pub(crate) fn new(
        streams: Arc<Streams>,
        buffered: Arc<Buffered>,
        commands: Option<Commands>,
    ) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("tidegate"),
            sessions: Family::default(),
            opened: Family::default(),
            ended: Family::default(),
            open_seconds: Family::new_with_constructor(open_seconds),
            ignored: Counter::default(),
        };
        metrics.register();
        for state in SESSION_STATES.map(GatewayState::as_str) {
            let _ = metrics.sessions.get_or_create(&SessionLabels { state });
        }
        let live = Live {
            streams,
            buffered,
            commands,
        };
        metrics.registry.register_collector(Box::new(live));
        process::register(&mut metrics.registry);
        metrics
    }

    fn register(&mut self) {
        fn add(registry: &mut Registry, name: &str, help: &str, metric: impl Metric) {
            registry.register(name, help, metric);
        }
        let registry = &mut self.registry;
        add(
            registry,
            "sessions",
            "Sessions that stand",
            self.sessions.clone(),
        );
        add(
            registry,
            "streams_opened",
            "Streams that were asked for, by where they lead; none for those without a target",
            self.opened.clone(),
        );
        add(
            registry,
            "streams_ended",
            "Streams that ended",
            self.ended.clone(),
        );
        add(
            registry,
            "control_messages_ignored",
            "Messages of gateways that were unknown, or about a stream that is not here",
            self.ignored.clone(),
        );
        registry.register_with_unit(
            "stream_open",
            "From the request for a stream to its connected target",
            Unit::Seconds,
            self.open_seconds.clone(),
        );
    }

    /// A session stands, until what is returned is dropped.
    pub(crate) fn session(&self) -> Standing {
        Standing::new(self.sessions.clone(), GatewayState::Live)
    }

    /// A stream's target is connected, `after` it was asked for.
    pub(crate) fn opened(&self, kind: Kind, after: Duration) {
        self.count_opened(kind, ROUTE);
        let histogram = self
            .open_seconds
            .get_or_create(&RouteLabels { route: ROUTE });
        histogram.observe(after.as_secs_f64());
    }

    /// A stream ended before its target was connected.
    pub(crate) fn never_opened(&self, kind: Kind, cause: Cause) {
        self.count_opened(kind, NO_ROUTE);
        self.ended(kind, cause);
    }

    /// A stream that was counted as opened ended.
    pub(crate) fn ended(&self, kind: Kind, cause: Cause) {
        let origin = match cause {
            Cause::Finished => "",
            Cause::Reset { origin, .. } => origin.as_str(),
        };
        let labels = EndedLabels {
            kind: kind.as_str(),
            reason: cause.reason_word(),
            origin,
        };
        self.ended.get_or_create(&labels).inc();
    }

    fn count_opened(&self, kind: Kind, route: &'static str) {
        let kind = kind.as_str();
        self.opened
            .get_or_create(&OpenedLabels { kind, route })
            .inc();
    }

    /// A gateway said something that means nothing here.
    pub(crate) fn ignored(&self) {
        self.ignored.inc();
    }

    /// Everything, as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// A session that is counted.
#[derive(Debug)]
pub(crate) struct Standing {
    sessions: Family<SessionLabels, Gauge>,
    state: GatewayState,
}

impl Standing {
    fn new(sessions: Family<SessionLabels, Gauge>, state: GatewayState) -> Self {
        let standing = Self { sessions, state };
        standing.gauge().inc();
        standing
    }

    /// It takes no new streams.
    pub(crate) fn drains(&mut self) {
        self.gauge().dec();
        self.state = GatewayState::DrainOnly;
        self.gauge().inc();
    }

    fn gauge(&self) -> Gauge {
        let state = self.state.as_str();
        self.sessions
            .get_or_create(&SessionLabels { state })
            .clone()
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.gauge().dec();
    }
}

fn open_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// What is counted when somebody asks.
#[derive(Debug)]
struct Live {
    streams: Arc<Streams>,
    buffered: Arc<Buffered>,
    commands: Option<Commands>,
}

impl Collector for Live {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        self.encode_streams(&mut encoder)?;
        self.encode_bytes(&mut encoder)?;
        let running = self.commands.as_ref().map_or(0, Commands::running);
        let running = ConstGauge::new(running as u64);
        let (help, kind) = (
            "Commands that run, or whose descendants do",
            running.metric_type(),
        );
        running.encode(encoder.encode_descriptor("execs", help, None, kind)?)?;
        let buffered = ConstGauge::new(self.buffered.get() as u64);
        let help = "Payload bytes held in this process";
        let kind = buffered.metric_type();
        buffered.encode(encoder.encode_descriptor("buffered", help, Some(&Unit::Bytes), kind)?)
    }
}

impl Live {
    fn encode_streams(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let counts = self.streams.count();
        let zero = ConstGauge::new(0u64);
        let help = "Streams that are open, or being opened";
        let mut family = encoder.encode_descriptor("streams", help, None, zero.metric_type())?;
        for kind in Kind::ALL {
            for state in OPEN_STATES {
                let count = counts.get(&(kind, state)).copied().unwrap_or_default();
                let labels = [("kind", kind.as_str()), ("state", state)];
                ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_bytes(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let bytes = self.streams.bytes();
        let zero = ConstCounter::new(0u64);
        let help = "Payload bytes handed on";
        let mut family =
            encoder.encode_descriptor("stream_bytes", help, None, zero.metric_type())?;
        for (direction, count) in [("upstream", bytes.up), ("downstream", bytes.down)] {
            let labels = [("direction", direction)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_lifecycle::{Origin, Reason};

    #[test]
    fn names_are_those_that_dashboards_know() {
        let streams = Arc::new(Streams::default());
        let metrics = Metrics::new(Arc::clone(&streams), Buffered::new(), None);
        let _open = streams.enter(Kind::Forward, 9);
        let (_one, mut other) = (metrics.session(), metrics.session());
        other.drains();
        metrics.ignored();
        metrics.opened(Kind::Ssh, Duration::from_millis(3));
        let cause = Cause::Reset {
            origin: Origin::Target,
            reason: Reason::TargetReset,
        };
        metrics.never_opened(Kind::Forward, cause);
        let text = metrics.text();
        for line in [
            "tidegate_sessions{state=\"live\"} 1",
            "tidegate_sessions{state=\"draining\"} 1",
            "tidegate_streams{kind=\"forward\",state=\"opening\"} 1",
            "tidegate_streams_opened_total{kind=\"ssh\",route=\"target\"} 1",
            "tidegate_streams_opened_total{kind=\"forward\",route=\"none\"} 1",
            "tidegate_streams_ended_total{kind=\"forward\",reason=\"TARGET_RESET\",origin=\"target\"} 1",
            "tidegate_control_messages_ignored_total 1",
            "tidegate_stream_bytes_total{direction=\"upstream\"} 0",
            "tidegate_stream_open_seconds_count{route=\"target\"} 1",
            "tidegate_buffered_bytes 0",
            "tidegate_execs 0",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line} in\n{text}");
        }
    }
}
