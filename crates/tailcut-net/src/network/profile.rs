//! The transports of a run as the machinery sees them: one profile each, to which connections refer by number.

use tailcut_engine::Bytes;

use super::wire::WireSizes;
use crate::scenario::Scenario;
use crate::transport::mmptcp::{ScatterThreshold, Switch};
use crate::transport::pfabric::PfabricSpec;
use crate::transport::tcp::TcpSpec;
use crate::transport::TransportSpec;

/// What a connection goes by.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    /// Segments, headers and acknowledgements.
    pub tcp: TcpSpec,
    /// What they weigh.
    pub sizes: WireSizes,
    /// Connections negotiate ECN.
    pub ecn: bool,
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
        let sizes = WireSizes::new(&tcp, &scenario.host);
        let spreads = matches!(kind, Kind::Multipath(_));
        Profile { ecn: tcp.uses_ecn(), sizes, spreads, tcp, kind }
    };
    match &scenario.scheme.transport {
        TransportSpec::Mixed(mixed) => mixed.parts.iter().map(|p| one(&p.transport)).collect(),
        transport => vec![one(transport)],
    }
}
