//! The input of a simulated run.

use tailcut_engine::Time;

use crate::fabric::FabricSpec;
use crate::faults::FaultsSpec;
pub use crate::horizon::Horizon;
use crate::host::HostSpec;
pub use crate::measure::series::SeriesSpec;
pub use crate::scheme::Scheme;
use crate::switch::SwitchSpec;
use crate::topology::Graph;
use crate::traffic::Flow;
use crate::traffic::demand::Jobs;
use crate::transport::tcp::WireSizes;

/// A fully resolved run.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The network.
    pub graph: Graph,
    /// Host interfaces and framing.
    pub host: HostSpec,
    /// Switches.
    pub switch: SwitchSpec,
    /// The faults.
    pub faults: FaultsSpec,
    /// The scheme under test.
    pub scheme: Scheme,
    /// The flows: those that wait for nothing in order of start time, then the others.
    pub flows: Vec<Flow>,
    /// Dependencies of flows, and the jobs that they make up; empty for open-loop traffic.
    pub jobs: Jobs,
    /// The end of the run.
    pub horizon: Horizon,
    /// Seed of whatever the scheme itself draws.
    pub seed: u64,
    /// Requested time series.
    pub series: SeriesSpec,
    /// At how many instants all ports are sampled, at the most; 0 where they are not.
    pub max_port_samples: u32,
}

impl Scenario {
    /// Returns the latest end of the run.
    pub fn end(&self) -> Time {
        self.horizon.arrivals + self.horizon.drain
    }

    /// Returns the specification of the fabric.
    pub fn fabric_spec(&self) -> FabricSpec<'_> {
        let segments = self.scheme.transport.segment_spec();
        let sizes = WireSizes::new(&segments, self.host.framing_overhead);
        FabricSpec {
            graph: &self.graph,
            queue: self.scheme.queue.clone(),
            balance: self.scheme.balance.clone(),
            interface: self.scheme.interface.clone(),
            switch: self.switch.clone(),
            nic_queue: self.host.nic_queue,
            jitter: self.host.jitter,
            full_packet: sizes.data(segments.mss.0).into(),
            faults: self.faults.clone(),
            ties_as_scheduled: self.scheme.transport.ties_as_scheduled(),
            seed: self.seed,
        }
    }
}

/// The progress of a run; the simulator calls back with it every 2^20 events, or as often as its
/// [`RunWatcher`](crate::watch::RunWatcher) asks.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Events handled.
    pub events: u64,
    /// Links crossed by packets so far, data or ACKs: one per packet and link.
    pub packet_hops: u64,
    /// Flows that have finished.
    pub finished_flows: u64,
}
