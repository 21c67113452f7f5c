//! Load balancing: which of the equal-cost egress ports a packet takes.
//!
//! A new balancer is one file here and one line in the list below.

pub mod audit;
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
use crate::registry::registry;
use crate::topology::{Graph, PortId, Routes, SwitchId};

/// The choice of a switch among several equal-cost ports for a packet.
#[derive(Clone, Copy)]
pub struct PickContext<'a> {
    /// When the packet is forwarded.
    pub now: Time,
    /// The switch.
    pub switch: SwitchId,
    /// The link by which the packet has arrived.
    pub ingress: PortId,
    /// Number of ports.
    pub choices: u32,
    /// The ports.
    pub ports: &'a [PortId],
    /// State of the ports.
    pub queues: &'a dyn PortQueues,
}

/// The ports of a switch, as its balancer sees them.
pub trait PortQueues {
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
pub struct PassContext<'a> {
    /// When the packet is forwarded.
    pub now: Time,
    /// The switch.
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
pub struct OverlayHeader(pub u64);

/// The network and seed of a run.
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    /// The network.
    pub graph: &'a Graph,
    /// The routes at the beginning of the run.
    pub routes: &'a Routes,
    /// Seed of the run.
    pub seed: u64,
}

/// The parameters of a strategy.
pub trait Strategy {
    /// State of all switches.
    type State: Pick
    where
        Self: Sized;

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
    fn state(&self, layout: Layout<'_>) -> Self::State
    where
        Self: Sized;
}

/// Error texts for a strategy of the edge in another place.
#[derive(Debug, Clone, Copy)]
pub struct EdgeOnly {
    /// Code of the error.
    pub code: &'static str,
    /// Kind of the strategy in experiment files.
    pub kind: &'static str,
    /// Name of the strategy in prose.
    pub name: &'static str,
    /// The hint: what to write instead, or why.
    pub why: &'static str,
}

/// The state of all switches, which picks ports.
pub trait Pick {
    /// Returns which of the ports at `fork` the packet takes, counted from 0. May mark or rewrite
    /// the packet.
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32;
    /// Returns the salts where every choice of the run is that of [`hash::pick`]. The fabric then
    /// makes it itself and calls [`Pick::pick`] no more.
    fn plain_hash(&self) -> Option<hash::Salts> {
        None
    }
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

registry! {
    /// Choice of switches among equal-cost paths.
    pub enum BalanceSpec: Strategy {
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

    /// The state of every switch's balancer.
    pub(crate) enum Balancer: Pick = Box<Strategy::State>, state(layout: Layout<'_>) {
        /// Returns which of the ports at `fork` the packet takes, counted from 0.
        static pub fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32;
    }
}

impl Balancer {
    pub fn new(spec: &BalanceSpec, layout: Layout<'_>) -> Balancer {
        Balancer::of(spec, layout).expect("every balancer has a state")
    }
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
