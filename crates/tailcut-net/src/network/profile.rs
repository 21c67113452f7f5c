//! The transports of a run as the machinery sees them: one profile each, to which connections refer
//! by number.

use std::sync::Arc;

use crate::amount::Limit;
use crate::measure::ideal::{Subflows, TransportShape};
use crate::scenario::Scenario;
use crate::topology::Graph;
use crate::transport::TransportSpec;
use crate::transport::custom_endpoints::CustomEndpoints;
use crate::transport::entropy::Surroundings;
use crate::transport::grant_pace::GrantPace;
use crate::transport::other_ends;
use crate::transport::spread::MultipathSpec;
use crate::transport::tcp::options::UNSCALED_WINDOW;
use crate::transport::tcp::{TcpSpec, WireSizes};

/// The number of a profile among those of a run.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProfileId(u8);

impl ProfileId {
    /// The one at this place of the run's.
    ///
    /// # Panics
    /// When a mixture has more parts than its check lets through.
    pub fn at(place: usize) -> ProfileId {
        ProfileId(u8::try_from(place).expect("a mixture has at most 64 parts"))
    }

    /// Returns the index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The transport of a connection.
#[derive(Debug, Clone)]
pub(super) struct TransportProfile {
    /// Segments, headers and acknowledgements.
    pub tcp: TcpSpec,
    /// The packet sizes.
    pub sizes: WireSizes,
    /// Connections are subflows that share the data of their flow.
    pub is_multipath: bool,
    /// Senders choose an entropy value, a source port, for each packet.
    pub has_entropy: bool,
    /// Receivers answer to the entropy value of the packet that they acknowledge.
    pub echoes_entropy: bool,
    /// Senders hand data to their interface in turns.
    pub takes_turns: bool,
    pub kind: TransportKind,
}

/// Declares a kind for each transport with its own ends, beside those with TCP's.
macro_rules! kinds {
    ($($name:ident($spec:ty),)*) => {
        /// The transport beyond what its packets look like.
        #[derive(Debug, Clone)]
        pub(super) enum TransportKind {
            Tcp,
            Multipath(Arc<dyn MultipathSpec>),
            $($name(Box<$spec>),)*
        }

        impl TransportKind {
            fn of(
                transport: &TransportSpec,
                graph: &Graph,
                interfaces: u32,
                sizes: &WireSizes,
            ) -> TransportKind {
                match (transport.multipath(), transport) {
                    (Some(multipath), _) => TransportKind::Multipath(multipath),
                    $((None, TransportSpec::$name(spec)) => TransportKind::$name(Box::new(spec.clone().fitted(graph, interfaces, sizes))),)*
                    (None, _) => TransportKind::Tcp,
                }
            }

            /// Senders wait for the answer to their SYNs before they send data.
            fn shakes_hands(&self) -> bool {
                match self {
                    TransportKind::Tcp | TransportKind::Multipath(_) => true,
                    $(TransportKind::$name(_) => <$spec as CustomEndpoints>::HANDSHAKE,)*
                }
            }

            /// A SYN opens connections.
            fn sends_syn(&self) -> bool {
                match self {
                    TransportKind::Tcp | TransportKind::Multipath(_) => true,
                    $(TransportKind::$name(_) => <$spec as CustomEndpoints>::SYN,)*
                }
            }

            /// Senders choose an entropy value for each packet.
            fn has_entropy(&self) -> bool {
                match self {
                    TransportKind::Tcp | TransportKind::Multipath(_) => false,
                    $(TransportKind::$name(_) => <$spec as CustomEndpoints>::ENTROPY,)*
                }
            }

            /// Senders hand data to their interface in turns.
            pub fn takes_turns(&self) -> bool {
                match self {
                    TransportKind::Tcp | TransportKind::Multipath(_) => false,
                    $(TransportKind::$name(_) => <$spec as CustomEndpoints>::TURNS,)*
                }
            }

            /// Returns the pace of a host's requests where that follows what its arrivals meet.
            pub fn grant_pace(&self, seed: u64, host: u32) -> Option<GrantPace> {
                match self {
                    TransportKind::Tcp | TransportKind::Multipath(_) => None,
                    $(TransportKind::$name(spec) => spec.grant_pace(seed, host),)*
                }
            }

            /// Receivers grant credits that nobody has asked for.
            pub fn grants_unasked(&self) -> bool {
                match self {
                    TransportKind::Tcp | TransportKind::Multipath(_) => false,
                    $(TransportKind::$name(spec) => spec.grants_unasked(),)*
                }
            }

            /// Receivers ask for packets.
            pub fn pulls(&self) -> bool {
                match self {
                    TransportKind::Tcp | TransportKind::Multipath(_) => false,
                    $(TransportKind::$name(_) => <$spec as CustomEndpoints>::PULLS,)*
                }
            }
        }
    };
}
other_ends!(kinds);

impl TransportProfile {
    /// Whether packets of one connection may take several paths.
    pub fn scatters(&self) -> bool {
        self.has_entropy
            || matches!(&self.kind, TransportKind::Multipath(spread) if spread.scatters())
    }

    /// Returns the transport as the closed form of a lone flow sees it. A window that may grow
    /// faster than NewReno's in congestion avoidance is taken to grow by what is acknowledged.
    pub fn shape(&self) -> TransportShape {
        let TransportProfile { tcp, sizes, kind, .. } = self;
        let mss = tcp.mss.0;
        let mut shape = TransportShape {
            mss,
            header: sizes.bare(),
            ack: sizes.bare(),
            syn: if kind.sends_syn() { sizes.syn() } else { 0 },
            handshake: kind.shakes_hands(),
            initial_window: tcp
                .initial_window
                .in_bytes(mss)
                .max(u64::from(tcp.congestion.min_window_segments()) * mss),
            ssthresh: match tcp.initial_ssthresh {
                Limit::AtMost(amount) if tcp.congestion.respects_ssthresh() => amount.in_bytes(mss),
                _ => u64::MAX,
            },
            receive_window: tcp.receive_window.0,
            first_window: match kind {
                TransportKind::Tcp | TransportKind::Multipath(_) => {
                    tcp.receive_window.0.min(UNSCALED_WINDOW)
                }
                _ => tcp.receive_window.0,
            },
            probes: tcp.reordering.probes(),
            acks_each: tcp.ack_every == 1,
            subflows: None,
        };
        if kind.pulls() {
            // A copy that is sent in doubt is one more packet to be pulled for: the window bounds
            // nothing.
            (shape.initial_window, shape.receive_window) = (u64::MAX, u64::MAX);
            shape.first_window = u64::MAX;
        }
        let TransportKind::Multipath(spread) = kind else { return shape };
        let others = u64::from(spread.subflows()) - 1;
        let shared = u64::from(spread.shared_window(mss)) * mss;
        shape.ssthresh = u64::MAX;
        shape.subflows = (others > 0).then(|| Subflows {
            after: spread.segments_before_join(),
            initial_window: shape.initial_window.saturating_mul(others),
            receive_window: shape.receive_window.saturating_mul(1 + others).min(shared),
        });
        shape.receive_window = shape.receive_window.min(shared);
        shape.first_window = shape.first_window.min(shared);
        shape
    }
}

/// Returns a profile per transport of the scenario; those of a mixture are in the order of its
/// parts.
pub(super) fn profiles(scenario: &Scenario) -> Vec<TransportProfile> {
    let one = |transport: &TransportSpec| {
        let mut tcp = transport.segment_spec();
        let sizes = WireSizes::new(&tcp, scenario.host.framing_overhead);
        let interfaces = scenario.scheme.interface.width(&scenario.graph);
        let kind = TransportKind::of(transport, &scenario.graph, interfaces, &sizes);
        tcp.entropy = tcp.entropy.map(|entropy| {
            let (full, answer) = (sizes.data(tcp.mss.0), sizes.bare());
            let around = Surroundings::of(&scenario.graph, full, answer, tcp.min_rto, false);
            entropy.fitted(&around)
        });
        let spreads = matches!(kind, TransportKind::Multipath(_));
        TransportProfile {
            sizes,
            is_multipath: spreads,
            has_entropy: kind.has_entropy() || tcp.entropy.is_some(),
            echoes_entropy: kind.has_entropy(),
            takes_turns: kind.takes_turns(),
            tcp,
            kind,
        }
    };
    scenario.scheme.transport.carriers().into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use tailcut_engine::Bytes;

    use super::*;
    use crate::amount::Amount;
    use crate::network::tests::scenario;
    use crate::transport::mixed::{Lot, MixedTransport, TransportPart};
    use crate::transport::mmptcp::MmptcpSpec;
    use crate::transport::mptcp::MptcpSpec;
    use crate::transport::ndp::NdpSpec;
    use crate::transport::pfabric::PfabricSpec;
    use crate::transport::tcp::HostDefaults;

    /// The profiles of a scenario with this transport.
    fn of(transport: TransportSpec) -> Vec<TransportProfile> {
        let mut scenario = scenario();
        scenario.scheme.transport = transport;
        profiles(&scenario)
    }

    fn shape(tcp: TcpSpec) -> TransportShape {
        of(TransportSpec::Tcp(tcp))[0].shape()
    }

    #[test]
    fn a_mixture_has_a_profile_for_each_of_its_parts_in_their_order() {
        let part = |transport| TransportPart { transport, weight: 1, above: Bytes(0), up_to: None };
        let parts = vec![
            part(TransportSpec::Mptcp(MptcpSpec::default())),
            part(TransportSpec::Tcp(TcpSpec::default())),
        ];
        let mixed = of(TransportSpec::Mixed(MixedTransport { parts, by: Lot::Flows }));
        let spreads: Vec<_> = mixed.iter().map(|profile| profile.is_multipath).collect();
        assert_eq!(spreads, [true, false]);
        assert_eq!(of(TransportSpec::Tcp(TcpSpec::default())).len(), 1);
    }

    #[test]
    fn a_profile_says_what_the_machinery_asks_of_a_transport() {
        let asked = |transport| {
            let profile = &of(transport)[0];
            (profile.is_multipath, profile.scatters(), profile.kind.pulls())
        };
        let tcp = TransportSpec::Tcp(TcpSpec::default());
        assert_eq!(asked(tcp), (false, false, false));
        let pfabric = TransportSpec::Pfabric(PfabricSpec::default());
        assert_eq!(asked(pfabric), (false, false, false));
        assert_eq!(asked(TransportSpec::Ndp(NdpSpec::default())), (false, false, true));
        assert_eq!(asked(TransportSpec::Mptcp(MptcpSpec::default())), (true, false, false));
        assert_eq!(asked(TransportSpec::Mmptcp(MmptcpSpec::default())), (true, true, false));
    }

    #[test]
    fn the_shape_of_plain_tcp_is_what_its_parameters_say() {
        let TransportShape { mss, handshake, initial_window, ssthresh, .. } =
            shape(TcpSpec::default());
        assert_eq!((mss, handshake, initial_window, ssthresh), (1_460, true, 12_000, u64::MAX));
        let TransportShape { receive_window, acks_each, probes, subflows, .. } =
            shape(TcpSpec::default());
        assert_eq!((receive_window, acks_each, probes, subflows), (64_000, true, false, None));
    }

    #[test]
    fn a_threshold_bounds_growth() {
        let initial_ssthresh = Limit::AtMost(Amount::Packets(20));
        let bounded = TcpSpec { initial_ssthresh, ..TcpSpec::default() };
        assert_eq!(shape(bounded.clone()).ssthresh, 29_200);
        let reordering = crate::transport::tcp::ReorderingSpec::of(HostDefaults::Linux);
        let probing = shape(TcpSpec { reordering, ..bounded });
        assert_eq!(
            (probing.ssthresh, probing.initial_window, probing.probes),
            (29_200, 12_000, true)
        );
    }

    #[test]
    fn acknowledgements_are_taken_to_come_at_once() {
        let delayed = shape(TcpSpec { ack_every: 2, ..TcpSpec::default() });
        assert_eq!(delayed, TransportShape { acks_each: false, ..shape(TcpSpec::default()) });
    }

    #[test]
    fn a_pulled_transport_has_no_window_or_handshake() {
        let pulled = of(TransportSpec::Ndp(NdpSpec::default()))[0].shape();
        let TransportShape { handshake, initial_window, receive_window, .. } = pulled;
        assert_eq!((handshake, initial_window, receive_window), (false, u64::MAX, u64::MAX));
    }

    #[test]
    fn subflows_help_with_their_windows_within_the_one_that_they_share() {
        let several = |subflows| {
            let receive_window = Bytes(100_000);
            let spec = MptcpSpec { subflows, receive_window, ..MptcpSpec::default() };
            of(TransportSpec::Mptcp(spec))[0].shape()
        };
        let whole = 68 * 1_460;
        let three = several(3);
        let expected = Subflows { after: 0, initial_window: 24_000, receive_window: whole };
        assert_eq!((three.subflows, three.receive_window), (Some(expected), 64_000));
        assert_eq!((several(1).subflows, three.ssthresh), (None, u64::MAX));
    }
}
