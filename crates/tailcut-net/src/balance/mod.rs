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

/// The balancer that docs/howto/scheme.md adds: it compiles and passes its test here, too.
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

/// A switch that has several equal-cost ports for a packet.
#[derive(Clone, Copy)]
pub(crate) struct PickContext<'a> {
    pub now: Time,
    pub switch: SwitchId,
    /// The link by which the packet has come.
    pub ingress: PortId,
    /// How many ports there are.
    pub choices: u32,
    /// The ports.
    pub ports: &'a [PortId],
    /// What is known of them.
    pub queues: &'a dyn PortQueues,
}

/// What a switch knows of its ports.
pub(crate) trait PortQueues {
    /// When a port was used last: when the last bit of all that its transmitter was given leaves, which is to come while it is
    /// busy, or left. [`Time::ZERO`] before its first packet.
    fn last_use(&self, port: PortId) -> Time;
    /// How long the transmitter will take for what waits and has no time to leave yet: where the order is decided at departure.
    fn queued(&self, port: PortId) -> Time;
    /// How long so many bytes take on the link of a port, at its present rate.
    fn transmission(&self, port: PortId, bytes: u16) -> Time;
    /// How long a packet offered at `now` would wait if all that is there went first. On ports of one rate the order
    /// of these times is that of the queues in bytes.
    fn wait(&self, port: PortId, now: Time) -> Time {
        self.last_use(port).since(now) + self.queued(port)
    }
}

/// A packet at a switch that knows by which port it sends it.
#[derive(Clone, Copy)]
pub(crate) struct PassContext<'a> {
    pub now: Time,
    pub switch: SwitchId,
    /// The link by which it has come.
    pub ingress: PortId,
    /// The port that it will be offered to.
    pub egress: PortId,
    /// What is known of ports.
    pub queues: &'a dyn PortQueues,
}

/// What a balancer writes on a packet for the switches on its way, as in the header of an overlay. Packets of hosts come with an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OverlayHeader(pub u64);

/// Where a strategy works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout<'a> {
    pub graph: &'a Graph,
    pub routes: &'a Routes,
    pub seed: u64,
}

/// The parameters of a strategy.
pub(crate) trait Strategy {
    /// What its switches remember.
    type State: Pick;

    /// Refuses parameters that no switch can work with; the error names the parameter.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// Refuses parameters that do not suit a network: it has no such switch, or needs too much memory.
    fn check_topology(&self, _: &Graph) -> Result<(), SpecError> {
        Ok(())
    }
    /// True when all packets of a connection take one path.
    fn is_per_connection(&self) -> bool {
        false
    }
    /// Why it is not for any switch alone, if it is a strategy of the edge as a whole.
    fn edge_only(&self) -> Option<EdgeOnly> {
        None
    }
    /// Its kind, if it is a strategy of the fabric as a whole: its switches tell each other what they see.
    fn fabric_only(&self) -> Option<&'static str> {
        None
    }
    /// True when choices depend on the run's seed.
    fn draws(&self) -> bool {
        true
    }
    /// True when every switch gives its ports equal shares whatever their rates are, and could do otherwise.
    fn has_equal_shares(&self) -> bool {
        false
    }
    /// True when a choice, or what is written on a packet, goes by what waits at ports.
    fn looks_at_queues(&self) -> bool {
        false
    }
    /// Bytes of memory that grow with the parameters.
    fn state_bytes(&self, _: &Graph) -> u64 {
        0
    }
    /// The state of every switch, as a run begins.
    fn state(&self, layout: Layout<'_>) -> Self::State;
}

/// What is said of a strategy of the edge where another place is meant for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeOnly {
    /// Of the error.
    pub code: &'static str,
    /// As experiments write it.
    pub kind: &'static str,
    /// As people do.
    pub name: &'static str,
    pub why: &'static str,
}

/// The switches at work.
pub(crate) trait Pick {
    /// Which of the ports at `fork` the packet takes, counted from 0. It may be marked or rewritten.
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32;
    /// Returns which of these ports every packet with this key takes at a switch, where it goes by nothing else: that is when
    /// its strategy keeps paths.
    fn predict(&self, _switch: SwitchId, _ports: &[PortId], _key: FlowKey) -> Option<u32> {
        None
    }
    /// Hosts are to mark the packets of flows of at least so many bytes ([`Flags::LARGE_FLOW`](crate::packet::Flags)).
    fn large_flow_threshold(&self) -> Option<Bytes> {
        None
    }
    /// What it guesses of flows, if that is to be counted.
    fn audit(&mut self) -> Option<&mut dyn Audit> {
        None
    }
    /// Packets have stamps, and it is told of each switch that they pass ([`Pick::pass`]).
    fn stamps(&self) -> bool {
        false
    }
    /// A packet passes a switch; its port was picked before, where there were several.
    fn pass(&mut self, _: PassContext<'_>, _: &Packet, _: &mut OverlayHeader) {}
    /// Whether the balancer sees packets that have one port alone, too ([`Pick::see`]).
    fn sees_all(&self) -> bool {
        false
    }
    /// A packet leaves a switch by the only port that leads to its host.
    fn see(&mut self, _now: Time, _switch: SwitchId, _packet: &Packet) {}
    /// Routing has settled on other routes, which switches go by from now on. Those that a run begins with are in its [`Layout`].
    fn reroute(&mut self, _: &Graph, _: &Routes) {}
}

/// Passes every call on: a method that it left to its default would lose what `P` does.
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

/// Writes the section `balance` of the experiment file, and the state of every switch's balancer: one kind per strategy.
macro_rules! strategies {
    ($($(#[$about:meta])* $name:ident($parameters:ty),)*) => {
        /// How switches choose among equal-cost paths.
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
            /// Names the parameter.
            pub fn check(&self) -> Result<(), SpecError> {
                match self { $(BalanceSpec::$name(spec) => Strategy::check(spec),)* }
            }

            /// Checks the parameters against a network.
            ///
            /// # Errors
            /// When the network has no such switch, one is named twice, or the tables would not fit into memory.
            pub fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
                match self { $(BalanceSpec::$name(spec) => Strategy::check_topology(spec, graph),)* }
            }

            /// True when all packets of a connection take one path.
            pub fn is_per_connection(&self) -> bool {
                match self { $(BalanceSpec::$name(spec) => Strategy::is_per_connection(spec),)* }
            }

            /// True when choices depend on the run's seed.
            pub fn draws(&self) -> bool {
                match self { $(BalanceSpec::$name(spec) => Strategy::draws(spec),)* }
            }

            /// True when every switch gives its ports equal shares whatever their rates are, and could do otherwise.
            pub fn has_equal_shares(&self) -> bool {
                match self { $(BalanceSpec::$name(spec) => Strategy::has_equal_shares(spec),)* }
            }

            /// True when a choice, or what is written on a packet, goes by what waits at ports.
            pub(crate) fn looks_at_queues(&self) -> bool {
                match self { $(BalanceSpec::$name(spec) => Strategy::looks_at_queues(spec),)* }
            }

            /// Why it is not for any switch alone, if it is a strategy of the edge as a whole.
            pub(crate) fn edge_only(&self) -> Option<EdgeOnly> {
                match self { $(BalanceSpec::$name(spec) => Strategy::edge_only(spec),)* }
            }

            /// Its kind, if it is a strategy of the fabric as a whole.
            pub(crate) fn fabric_only(&self) -> Option<&'static str> {
                match self { $(BalanceSpec::$name(spec) => Strategy::fabric_only(spec),)* }
            }

            /// Bytes of memory that grow with the parameters.
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
    /// Every packet takes a port of its own, uniformly at random (random packet spraying).
    Spray(spray::Spray),
    /// The packets towards one host take the ports in turn: spraying without chance.
    RoundRobin(round_robin::RoundRobin),
    /// A flow may change its port after a gap or so many bytes (flowlets, as in FLARE).
    Flowlet(flowlet::Flowlet),
    /// Every packet takes the shortest queue of a few ports: some at random, and the best before (DRILL).
    Drill(drill::Drill),
    /// Every flowlet takes the way with the least congestion, which leaf switches tell each other (CONGA).
    Conga(conga::Conga),
    /// Edge switches detect elephants and give each a new path every few kilobytes; all else is ECMP.
    #[serde(rename = "tinyflow")]
    TinyFlow(tinyflow::TinyFlow),
    /// Switches of each tier choose in their own way, and so do switches by name.
    ByTier(by_tier::ByTier),
}

impl Default for BalanceSpec {
    fn default() -> Self {
        BalanceSpec::Ecmp(ecmp::Ecmp::default())
    }
}

impl BalanceSpec {
    /// What the switches that hosts hang on do in a mixture, when nothing is said of them: they spray (RPS, section IV-A).
    fn of_the_edge() -> BalanceSpec {
        BalanceSpec::Spray(spray::Spray {})
    }
}

/// Idle ports, and their numbers: for tests of what looks at neither.
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
