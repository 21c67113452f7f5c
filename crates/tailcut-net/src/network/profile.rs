//! The transports of a run as the machinery sees them: one profile each, to which connections refer by number.

use std::sync::Arc;

use crate::amount::Limit;
use crate::measure::ideal::{Shape, Subflows};
use crate::scenario::Scenario;
use crate::transport::ends::Ends;
use crate::transport::other_ends;
use crate::transport::spread::Spread;
use crate::transport::tcp::{TcpSpec, WireSizes};
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

/// One kind per transport whose ends are its own, besides those whose ends are TCP's.
macro_rules! kinds {
    ($($name:ident($spec:ty),)*) => {
        /// The transport beyond what its packets look like.
        #[derive(Debug, Clone)]
        pub(super) enum Kind {
            Tcp,
            Spread(Arc<dyn Spread>),
            $($name($spec),)*
        }

        impl Kind {
            fn of(transport: &TransportSpec) -> Kind {
                match (transport.spread(), transport) {
                    (Some(spread), _) => Kind::Spread(spread),
                    $((None, TransportSpec::$name(spec)) => Kind::$name(spec.clone()),)*
                    (None, _) => Kind::Tcp,
                }
            }

            /// Senders wait for the answer to their SYNs before they send data.
            fn shakes_hands(&self) -> bool {
                match self {
                    Kind::Tcp | Kind::Spread(_) => true,
                    $(Kind::$name(_) => <$spec as Ends>::HANDSHAKE,)*
                }
            }

            /// Receivers ask for packets.
            pub fn pulls(&self) -> bool {
                match self {
                    Kind::Tcp | Kind::Spread(_) => false,
                    $(Kind::$name(_) => <$spec as Ends>::PULLS,)*
                }
            }
        }
    };
}
other_ends!(kinds);

impl Profile {
    /// Whether packets of one connection may take several paths.
    pub fn scatters(&self) -> bool {
        matches!(&self.kind, Kind::Spread(spread) if spread.scatters())
    }

    /// What the lone-flow closed form needs to know. Where a window may grow faster than NewReno's in congestion avoidance, it is
    /// taken to do so by what is acknowledged.
    pub fn shape(&self) -> Shape {
        let Profile { tcp, sizes, kind, .. } = self;
        let mss = tcp.mss.0;
        let probes = tcp.reordering.probes();
        let mut shape = Shape {
            mss,
            header: sizes.bare(),
            ack: sizes.bare(),
            syn: sizes.syn(),
            handshake: kind.shakes_hands(),
            // A probe of the tail leaves whatever the window says, one at a time.
            initial_window: (tcp.initial_window.in_bytes(mss) + if probes { mss } else { 0 })
                .max(u64::from(tcp.congestion.least_window()) * mss),
            ssthresh: match tcp.initial_ssthresh {
                Limit::AtMost(amount) if tcp.congestion.heeds_threshold() && !probes => {
                    amount.in_bytes(mss)
                }
                _ => u64::MAX,
            },
            receive_window: tcp.receive_window.0,
            // A lower bound: no ACK is ever later than that.
            ack_every: match tcp.quick_acks == 0 && tcp.congestion.grows_by_acks() {
                true => tcp.ack_every,
                false => 1,
            },
            acks_each: tcp.ack_every == 1,
            subflows: None,
        };
        if kind.pulls() {
            // A copy that is sent in doubt is one more packet to be pulled for: the window bounds nothing.
            (shape.initial_window, shape.receive_window) = (u64::MAX, u64::MAX);
        }
        let Kind::Spread(spread) = kind else { return shape };
        let others = u64::from(spread.subflows()) - 1;
        let shared = u64::from(spread.shared_window(mss)) * mss;
        shape.ssthresh = u64::MAX;
        shape.subflows = (others > 0).then(|| Subflows {
            after: spread.alone(),
            initial_window: shape.initial_window.saturating_mul(others),
            receive_window: shape.receive_window.saturating_mul(1 + others).min(shared),
        });
        shape.receive_window = shape.receive_window.min(shared);
        shape
    }
}

/// One profile per transport that the scenario names, a mixture's in the order of its parts.
pub(super) fn profiles(scenario: &Scenario) -> Vec<Profile> {
    let one = |transport: &TransportSpec| {
        let kind = Kind::of(transport);
        let tcp = transport.segments();
        let sizes = WireSizes::new(&tcp, scenario.host.framing_overhead);
        let spreads = matches!(kind, Kind::Spread(_));
        Profile { sizes, spreads, tcp, kind }
    };
    match &scenario.scheme.transport {
        TransportSpec::Mixed(mixed) => mixed.parts.iter().map(|p| one(&p.transport)).collect(),
        transport => vec![one(transport)],
    }
}
