//! Load balancing: which of the equal-cost egress ports a packet takes.
//!
//! A new balancer is one file here and one line in the list below.

pub(crate) mod audit;
pub mod by_tier;
pub mod conga;
pub mod drill;
pub mod ecmp;
pub mod flowlet;
pub mod hash;
pub mod round_robin;
pub mod spray;
pub mod tinyflow;

/// The balancer that docs/howto/scheme.md adds, compiled and tested here too.
#[cfg(test)]
#[allow(dead_code)] // no list names it
#[path = "../../tests/pages/least_sent.rs"]
mod of_the_page;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use self::audit::Audit;
use crate::component::SpecError;
use crate::packet::{FlowKey, Packet};
use crate::topology::{Graph, PortId, Routes, SwitchId};

/// The choice of a switch among several equal-cost ports for a packet.
#[derive(Clone, Copy)]
pub(crate) struct PickContext<'a> {
    pub now: Time,
    pub switch: SwitchId,
    /// The link by which the packet has arrived.
    pub ingress: PortId,
    /// Number of ports.
    pub choices: u32,
    pub ports: &'a [PortId],
    /// State of the ports.
    pub queues: &'a dyn PortQueues,
}

/// The ports of a switch, as its balancer sees them.
pub(crate) trait PortQueues {
    /// Returns when the transmitter has sent all it was given: in the future while it is busy,
    /// [`Time::ZERO`] before the first packet.
    fn last_use(&self, port: PortId) -> Time;
    /// Returns the transmission time of packets in a scheduled queue, whose departures are not
    /// fixed yet; zero for other queues.
    fn queued(&self, port: PortId) -> Time;
    /// Returns the transmission time of `bytes` bytes on the link of a port, at its present rate.
    fn transmission(&self, port: PortId, bytes: u16) -> Time;
    /// Returns how long a packet offered at `now` would wait if all waiting packets went first. On
    /// ports of one rate, these times are ordered like the queues in bytes.
    fn wait(&self, port: PortId, now: Time) -> Time {
        self.last_use(port).since(now) + self.queued(port)
    }
}

/// The passage of a packet through a switch, once its egress port is chosen.
#[derive(Clone, Copy)]
pub(crate) struct PassContext<'a> {
    pub now: Time,
    pub switch: SwitchId,
    /// The link by which the packet has arrived.
    pub ingress: PortId,
    /// The port that the packet will be offered to.
    pub egress: PortId,
    /// State of the ports.
    pub queues: &'a dyn PortQueues,
}

/// The data that a balancer attaches to a packet for the switches on its path, as an overlay's
/// header does. It is 0 when a host sends the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OverlayHeader(pub u64);

/// The network and seed of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout<'a> {
    pub graph: &'a Graph,
    pub routes: &'a Routes,
    pub seed: u64,
}

/// The parameters of a strategy.
pub(crate) trait Strategy {
    /// State of all switches.
    type State: Pick;

    /// Refuses parameters that no switch can work with; the error names the parameter.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// Refuses parameters that do not suit a network: it lacks a named switch, or the state needs
    /// too much memory.
    fn check_topology(&self, _: &Graph) -> Result<(), SpecError> {
        Ok(())
    }
    /// Returns whether all packets of a connection take one path.
    fn is_per_connection(&self) -> bool {
        false
    }
    /// Returns why the strategy works at edge switches only; `None` if it works at any switch.
    fn edge_only(&self) -> Option<EdgeOnly> {
        None
    }
    /// Returns the strategy's kind if all switches of the fabric must run it, because they exchange
    /// what they see.
    fn fabric_only(&self) -> Option<&'static str> {
        None
    }
    /// Returns whether choices depend on the run's seed.
    fn draws(&self) -> bool {
        true
    }
    /// Returns whether every switch gives its ports equal shares whatever their rates, although a
    /// parameter could change that.
    fn has_equal_shares(&self) -> bool {
        false
    }
    /// Returns whether choices, or overlay headers, depend on the packets waiting at ports.
    fn looks_at_queues(&self) -> bool {
        false
    }
    /// Returns the memory in bytes that grows with the parameters.
    fn state_bytes(&self, _: &Graph) -> u64 {
        0
    }
    /// Creates the state of every switch at the beginning of a run.
    fn state(&self, layout: Layout<'_>) -> Self::State;
}

/// Error texts for a strategy of the edge in another place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeOnly {
    /// Code of the error.
    pub code: &'static str,
    /// Kind of the strategy in experiment files.
    pub kind: &'static str,
    /// Name of the strategy in prose.
    pub name: &'static str,
    pub why: &'static str,
}

/// The state of all switches, which picks ports.
pub(crate) trait Pick {
    /// Returns which of the ports at `fork` the packet takes, counted from 0. May mark or rewrite
    /// the packet.
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32;
    /// Predicts which of `ports`, from 0, every packet with this key takes at a switch. `None` if
    /// the choice depends on more than the key.
    fn predict(&self, _switch: SwitchId, _ports: &[PortId], _key: FlowKey) -> Option<u32> {
        None
    }
    /// Returns the size of flows from which on hosts mark their packets
    /// ([`Flags::LARGE_FLOW`](crate::packet::Flags)); `None` without marks.
    fn large_flow_threshold(&self) -> Option<Bytes> {
        None
    }
    /// Returns the audit of its guesses about flows, if it counts them.
    fn audit(&mut self) -> Option<&mut dyn Audit> {
        None
    }
    /// Returns whether packets carry overlay headers, so that [`Pick::pass`] is called at every
    /// switch.
    fn stamps(&self) -> bool {
        false
    }
    /// Updates the overlay header of a packet at a switch whose egress port is chosen.
    fn pass(&mut self, _: PassContext<'_>, _: &Packet, _: &mut OverlayHeader) {}
    /// Returns whether the balancer also sees packets that have only one port ([`Pick::see`]).
    fn sees_all(&self) -> bool {
        false
    }
    /// Sees a packet that leaves a switch by its only port.
    fn see(&mut self, _now: Time, _switch: SwitchId, _packet: &Packet) {}
    /// Adopts new routes, once routing has settled on them. The routes at the beginning of a run
    /// are in its [`Layout`].
    fn reroute(&mut self, _: &Graph, _: &Routes) {}
}

/// Forwards every call; a method left to its default would lose what `P` does.
#[deny(clippy::missing_trait_methods)]
impl<P: Pick> Pick for Box<P> {
    #[inline]
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
        P::pick(self, fork, packet)
    }
    fn predict(&self, switch: SwitchId, ports: &[PortId], key: FlowKey) -> Option<u32> {
        P::predict(self, switch, ports, key)
    }
    fn large_flow_threshold(&self) -> Option<Bytes> {
        P::large_flow_threshold(self)
    }
    fn audit(&mut self) -> Option<&mut dyn Audit> {
        P::audit(self)
    }
    fn stamps(&self) -> bool {
        P::stamps(self)
    }
    fn pass(&mut self, hop: PassContext<'_>, packet: &Packet, stamp: &mut OverlayHeader) {
        P::pass(self, hop, packet, stamp);
    }
    fn sees_all(&self) -> bool {
        P::sees_all(self)
    }
    fn see(&mut self, now: Time, switch: SwitchId, packet: &Packet) {
        P::see(self, now, switch, packet);
    }
    fn reroute(&mut self, graph: &Graph, routes: &Routes) {
        P::reroute(self, graph, routes);
    }
}

/// Writes the section `balance` of the experiment file, and the state of every switch's balancer:
/// one kind per strategy.
macro_rules! strategies {
    ($($(#[$about:meta])* $name:ident($parameters:ty),)*) => {
        /// Choice of switches among equal-cost paths.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        pub enum BalanceSpec {
            $($(#[$about])* $name($parameters),)*
        }

        /// The state of every switch's balancer.
        #[derive(Debug, Clone)]
        pub(crate) enum Balancer {
            $($name(<$parameters as Strategy>::State),)*
        }

        impl BalanceSpec {
            /// Refuses parameters that no switch can work with.
            ///
            /// # Errors
            /// The error names the parameter.
            pub fn check(&self) -> Result<(), SpecError> {
                match self { $(BalanceSpec::$name(spec) => Strategy::check(spec),)* }
            }

            /// Checks the parameters against a network.
            ///
            /// # Errors
            /// Refuses names of no switch, two names of one switch, and tables that do not fit into
            /// memory.
            pub fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
                match self { $(BalanceSpec::$name(spec) => Strategy::check_topology(spec, graph),)* }
            }

            /// Returns whether all packets of a connection take one path.
            pub fn is_per_connection(&self) -> bool {
                match self { $(BalanceSpec::$name(spec) => Strategy::is_per_connection(spec),)* }
            }

            /// Returns whether choices depend on the run's seed.
            pub fn draws(&self) -> bool {
                match self { $(BalanceSpec::$name(spec) => Strategy::draws(spec),)* }
            }

            /// Returns whether every switch gives its ports equal shares whatever their rates,
            /// although a parameter could change that.
            pub fn has_equal_shares(&self) -> bool {
                match self { $(BalanceSpec::$name(spec) => Strategy::has_equal_shares(spec),)* }
            }

            /// Returns whether choices, or overlay headers, depend on the packets waiting at ports.
            pub(crate) fn looks_at_queues(&self) -> bool {
                match self { $(BalanceSpec::$name(spec) => Strategy::looks_at_queues(spec),)* }
            }

            /// Returns why the strategy works at edge switches only; `None` if it works at any
            /// switch.
            pub(crate) fn edge_only(&self) -> Option<EdgeOnly> {
                match self { $(BalanceSpec::$name(spec) => Strategy::edge_only(spec),)* }
            }

            /// Returns the strategy's kind if all switches of the fabric must run it.
            pub(crate) fn fabric_only(&self) -> Option<&'static str> {
                match self { $(BalanceSpec::$name(spec) => Strategy::fabric_only(spec),)* }
            }

            /// Returns the memory in bytes that grows with the parameters.
            pub fn state_bytes(&self, graph: &Graph) -> u64 {
                match self { $(BalanceSpec::$name(spec) => Strategy::state_bytes(spec, graph),)* }
            }
        }

        impl Balancer {
            pub fn new(spec: &BalanceSpec, layout: Layout<'_>) -> Balancer {
                match spec { $(BalanceSpec::$name(spec) => Balancer::$name(spec.state(layout)),)* }
            }
        }

        #[deny(clippy::missing_trait_methods)]
        impl Pick for Balancer {
            #[inline]
            fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
                match self { $(Balancer::$name(state) => state.pick(fork, packet),)* }
            }
            fn predict(&self, switch: SwitchId, ports: &[PortId], key: FlowKey) -> Option<u32> {
                match self { $(Balancer::$name(state) => state.predict(switch, ports, key),)* }
            }
            fn large_flow_threshold(&self) -> Option<Bytes> {
                match self { $(Balancer::$name(state) => state.large_flow_threshold(),)* }
            }
            fn audit(&mut self) -> Option<&mut dyn Audit> {
                match self { $(Balancer::$name(state) => state.audit(),)* }
            }
            fn stamps(&self) -> bool {
                match self { $(Balancer::$name(state) => state.stamps(),)* }
            }
            fn pass(&mut self, hop: PassContext<'_>, packet: &Packet, stamp: &mut OverlayHeader) {
                match self { $(Balancer::$name(state) => state.pass(hop, packet, stamp),)* }
            }
            fn sees_all(&self) -> bool {
                match self { $(Balancer::$name(state) => state.sees_all(),)* }
            }
            fn see(&mut self, now: Time, switch: SwitchId, packet: &Packet) {
                match self { $(Balancer::$name(state) => state.see(now, switch, packet),)* }
            }
            fn reroute(&mut self, graph: &Graph, routes: &Routes) {
                match self { $(Balancer::$name(state) => state.reroute(graph, routes),)* }
            }
        }
    };
}

strategies! {
    /// A hash of the five-tuple, salted per switch, picks the path of a flow.
    Ecmp(ecmp::Ecmp),
    /// Every packet takes a port drawn uniformly at random (random packet spraying).
    Spray(spray::Spray),
    /// The packets towards one host take the ports in turn: spraying without chance.
    RoundRobin(round_robin::RoundRobin),
    /// A flow may change its port after a gap or a number of bytes (flowlets; FLARE).
    Flowlet(flowlet::Flowlet),
    /// Every packet takes the shortest of a few queues, drawn or remembered (DRILL).
    ///
    /// Some of these ports are drawn at random; the best of the draw before is compared, too.
    Drill(drill::Drill),
    /// Every flowlet takes the least congested path that leaf switches report (CONGA).
    Conga(conga::Conga),
    /// Edge switches give elephants new paths every few kilobytes, mice use ECMP.
    ///
    /// Edge switches detect elephants by sampling, by counters or by marks of hosts.
    #[serde(rename = "tinyflow")]
    TinyFlow(tinyflow::TinyFlow),
    /// Switches of each tier, and switches by name, choose in their own way.
    ByTier(by_tier::ByTier),
}

impl Default for BalanceSpec {
    fn default() -> Self {
        BalanceSpec::Ecmp(ecmp::Ecmp::default())
    }
}

impl BalanceSpec {
    /// The default of edge switches in a mixture: they spray (RPS, section IV-A).
    fn of_the_edge() -> BalanceSpec {
        BalanceSpec::Spray(spray::Spray {})
    }
}

/// Returns a choice among idle ports, for tests of strategies that depend on neither ports nor
/// queues.
#[cfg(test)]
pub(crate) fn blind(now: Time, switch: SwitchId, choices: u32) -> PickContext<'static> {
    struct Idle;
    impl PortQueues for Idle {
        fn last_use(&self, _: PortId) -> Time {
            Time::ZERO
        }
        fn queued(&self, _: PortId) -> Time {
            Time::ZERO
        }
        fn transmission(&self, _: PortId, _: u16) -> Time {
            Time::ZERO
        }
    }
    PickContext { now, switch, ingress: PortId(0), choices, ports: &[], queues: &Idle }
}
