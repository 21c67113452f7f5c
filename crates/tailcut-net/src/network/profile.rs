//! The transports of a run as the machinery sees them: one profile each, to which connections refer by number.

use tailcut_engine::Bytes;

use crate::amount::Limit;
use crate::measure::ideal::{Shape, Subflows};
use crate::scenario::Scenario;
use crate::transport::mmptcp::{ScatterThreshold, Switch};
use crate::transport::pfabric::PfabricSpec;
use crate::transport::tcp::{CongestionSpec, TcpSpec, WireSizes};
use crate::transport::TransportSpec;

/// What a connection goes by.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    /// Segments, headers and acknowledgements.
    pub tcp: TcpSpec,
    /// What they weigh.
    pub sizes: WireSizes,
    /// Connections are subflows that share the data of their flow.
    pub spreads: bool,
    pub kind: Kind,
}

/// The transport beyond what its packets look like.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Tcp,
    Pfabric(PfabricSpec),
    Multipath(Paths),
}

/// How a flow is spread.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    pub subflows: u32,
    /// Shared by all subflows.
    pub receive_window: Bytes,
    pub scatter: Option<Scatter>,
}

/// How a flow begins that scatters its packets first.
#[derive(Debug, Clone)]
pub(super) struct Scatter {
    pub switch: Switch,
    pub dupack_threshold: ScatterThreshold,
}

impl Profile {
    /// How its flows begin, if they scatter packets first.
    pub fn scatter(&self) -> Option<&Scatter> {
        match &self.kind {
            Kind::Multipath(paths) => paths.scatter.as_ref(),
            _ => None,
        }
    }

    /// What the lone-flow closed form needs to know. Where a window may grow faster than NewReno's in congestion avoidance, it is
    /// taken to do so by what is acknowledged.
    pub fn shape(&self) -> Shape {
        let Profile { tcp, sizes, kind, .. } = self;
        let mss = tcp.mss.0;
        let mut shape = Shape {
            mss,
            header: sizes.bare(),
            ack: sizes.bare(),
            syn: sizes.syn(),
            initial_window: tcp.initial_window.in_bytes(mss),
            ssthresh: match tcp.initial_ssthresh {
                Limit::AtMost(amount) if !matches!(tcp.congestion, CongestionSpec::Cubic(_)) => {
                    amount.in_bytes(mss)
                }
                _ => u64::MAX,
            },
            receive_window: tcp.receive_window.0,
            ack_every: tcp.ack_every,
            subflows: None,
        };
        let Kind::Multipath(paths) = kind else { return shape };
        let (others, shared) = (u64::from(paths.subflows) - 1, paths.in_segments(mss) * mss);
        let after = match &paths.scatter {
            Some(Scatter { switch: Switch::Volume { bytes }, .. }) => {
                bytes.0.div_ceil(mss).saturating_sub(1)
            }
            _ => 0,
        };
        shape.ssthresh = u64::MAX;
        shape.subflows = (others > 0).then(|| Subflows {
            after,
            initial_window: shape.initial_window.saturating_mul(others),
            receive_window: shape.receive_window.saturating_mul(1 + others).min(shared),
        });
        shape.receive_window = shape.receive_window.min(shared);
        shape
    }
}

impl Paths {
    /// The segments that the shared receive window holds.
    pub fn in_segments(&self, mss: u64) -> u64 {
        (self.receive_window.0 / mss).clamp(1, u64::from(u32::MAX))
    }
}

/// One profile per transport that the scenario names, a mixture's in the order of its parts.
pub(super) fn profiles(scenario: &Scenario) -> Vec<Profile> {
    let one = |transport: &TransportSpec| {
        let kind = match transport {
            TransportSpec::Tcp(_) | TransportSpec::Mixed(_) => Kind::Tcp,
            TransportSpec::Pfabric(spec) => Kind::Pfabric(spec.clone()),
            TransportSpec::Mptcp(spec) => Kind::Multipath(Paths {
                subflows: spec.subflows,
                receive_window: spec.receive_window,
                scatter: None,
            }),
            TransportSpec::Mmptcp(spec) => Kind::Multipath(Paths {
                subflows: spec.subflows,
                receive_window: spec.receive_window,
                scatter: Some(Scatter {
                    switch: spec.switch.clone(),
                    dupack_threshold: spec.dupack_threshold,
                }),
            }),
        };
        let tcp = transport.segments();
        let sizes = WireSizes::new(&tcp, scenario.host.framing_overhead);
        let spreads = matches!(kind, Kind::Multipath(_));
        Profile { sizes, spreads, tcp, kind }
    };
    match &scenario.scheme.transport {
        TransportSpec::Mixed(mixed) => mixed.parts.iter().map(|p| one(&p.transport)).collect(),
        transport => vec![one(transport)],
    }
}
