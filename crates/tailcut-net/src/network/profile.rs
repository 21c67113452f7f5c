//! The transports of a run as the machinery sees them: one profile each, to which connections refer by number.

use super::wire::WireSizes;
use crate::scenario::Scenario;
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
    pub kind: Kind,
}

/// The transport beyond what its packets look like.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Tcp,
    Pfabric(PfabricSpec),
}

/// One profile per transport that the scenario names.
pub(super) fn profiles(scenario: &Scenario) -> Vec<Profile> {
    let profile = |tcp: TcpSpec, kind: Kind| {
        let sizes = WireSizes::new(&tcp, &scenario.host);
        Profile { ecn: tcp.uses_ecn(), tcp, sizes, kind }
    };
    vec![match &scenario.scheme.transport {
        TransportSpec::Tcp(tcp) => profile(tcp.clone(), Kind::Tcp),
        TransportSpec::Pfabric(spec) => profile(spec.segments(), Kind::Pfabric(spec.clone())),
    }]
}
