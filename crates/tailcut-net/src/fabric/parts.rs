//! The specification of a fabric, and its construction.

use tailcut_engine::{RandomStream, Time};

use super::Fabric;
use super::incidents::FaultTimeline;
use super::interfaces::Interfaces;
use super::marks::Marks;
use super::pause::PauseState;
use super::scheduled::Scheduled;
use super::stamps::OverlayHeaders;
use super::ties::Brought;
use crate::amount::Limit;
use crate::balance::{BalanceSpec, Balancer, Layout};
use crate::component::SpecError;
use crate::faults::FaultsSpec;
use crate::host::HostSpec;
use crate::interface::InterfaceSpec;
use crate::port::{FULL_PACKET, Port};
use crate::queue::{Discipline, Order, Plain, PortContext, QueueSpec};
use crate::switch::SwitchSpec;
use crate::switch::pools::SharedBuffers;
use crate::topology::{Graph, PathCounts, PortId, RouteError, Routes};

/// The specification of a fabric.
#[derive(Debug, Clone)]
pub struct FabricSpec<'a> {
    /// The network.
    pub graph: &'a Graph,
    /// The queue of every switch port.
    pub queue: QueueSpec,
    /// The choice among equal-cost paths.
    pub balance: BalanceSpec,
    /// The choice of the interface of hosts with several.
    pub interface: InterfaceSpec,
    /// Switches.
    pub switch: SwitchSpec,
    /// The limit of a host's interface queue.
    pub nic_queue: Limit,
    /// For how long at most the interface of a host holds a packet back.
    pub jitter: Time,
    /// Bytes of a full data packet on the wire.
    pub full_packet: u64,
    /// The faults.
    pub faults: FaultsSpec,
    /// Events of one instant come in the order in which they were scheduled, as in ns-3, whatever
    /// the queue says.
    pub ties_as_scheduled: bool,
    /// Seed of whatever it draws.
    pub seed: u64,
}

impl<'a> FabricSpec<'a> {
    /// A network whose parts are all as they are when nothing is said of them.
    pub fn with_defaults(graph: &'a Graph) -> FabricSpec<'a> {
        FabricSpec {
            graph,
            queue: QueueSpec::default(),
            balance: BalanceSpec::default(),
            interface: InterfaceSpec::default(),
            switch: SwitchSpec::default(),
            nic_queue: HostSpec::default().nic_queue,
            jitter: Time::ZERO,
            full_packet: FULL_PACKET.into(),
            faults: FaultsSpec::default(),
            ties_as_scheduled: false,
            seed: 0,
        }
    }
}

/// Why a fabric cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FabricError {
    /// The graph has no routes.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A fault names something that does not exist, or two faults contradict each other.
    #[error("faults: {0}")]
    Fault(SpecError),
    /// A strategy is that of a switch that is not there.
    #[error("balance: {0}")]
    Balance(SpecError),
}

impl Fabric {
    /// Builds it, idle.
    ///
    /// # Errors
    /// When the graph has no routes, or something that shall fail or balance is not there.
    pub fn new(parts: &FabricSpec<'_>) -> Result<Fabric, FabricError> {
        Fabric::with_routes(parts, Fabric::find_routes(parts)?)
    }

    /// Finds the routes of a network, for several fabrics.
    ///
    /// # Errors
    /// When the graph has none, or something that shall balance is not there.
    pub(crate) fn find_routes(parts: &FabricSpec<'_>) -> Result<Routes, FabricError> {
        parts.balance.check_topology(parts.graph).map_err(FabricError::Balance)?;
        Ok(Routes::new(parts.graph)?)
    }

    /// Builds it, idle, with the routes of its network.
    ///
    /// # Errors
    /// When something that shall fail is not there.
    pub(crate) fn with_routes(
        parts: &FabricSpec<'_>,
        routes: Routes,
    ) -> Result<Fabric, FabricError> {
        let FabricSpec { graph, queue, balance, seed, .. } = parts;
        let mut ports = Vec::with_capacity(2 * graph.links.len());
        let mut scheduled = Scheduled::default();
        let control = parts.switch.flow_control();
        for link in &graph.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let number = PortId::at(ports.len());
                let host = graph.switch(from).is_none();
                let limit = match host {
                    true => parts.nic_queue,
                    false => link.queue_limit.unwrap_or(queue.limit()),
                };
                let tier = &graph.tiers[usize::from(link.tier)];
                let threshold = link.threshold.or_else(|| queue.threshold(tier, link.rate));
                let full_packet = parts.full_packet;
                let at = PortContext {
                    number: number.0,
                    host,
                    last_hop: !host && graph.switch(to).is_none(),
                    limit,
                    threshold,
                    full_packet,
                    seed: *seed,
                };
                let (mut limit, mut discipline) = (queue.limit_in_all(&at), queue.discipline(&at));
                if control.is_some() {
                    scheduled.place(number, queue.fifo(&at));
                    (limit, discipline) = (Limit::Unlimited, Discipline::Plain(Plain));
                } else if let Some(scheduler) = queue.scheduler(&at) {
                    scheduled.place(number, scheduler);
                }
                let mut port =
                    Port::with_discipline(link.rate, link.propagation, limit, discipline);
                if host && parts.jitter > Time::ZERO {
                    port.hold_back(
                        parts.jitter,
                        RandomStream::new(*seed, u64::from(from.0), "jitter"),
                    );
                }
                let order = match parts.ties_as_scheduled {
                    true => Order::Scheduled(0),
                    false => Order::at(queue.ties(), *seed, number.0),
                };
                ports.push(port.in_order(order).leading_to(to));
            }
        }
        let incidents = FaultTimeline::new(parts).map_err(FabricError::Fault)?;
        for (port, stream) in incidents.ports(*seed) {
            ports[port.index()].expect_faults(stream);
            let loss = graph.links[port.link()].loss;
            if loss > 0.0 {
                ports[port.index()].set_loss(loss);
            }
        }
        let layout = Layout { graph, routes: &routes, seed: *seed };
        let balancer = Balancer::new(balance, layout);
        let pools = SharedBuffers::new(&parts.switch, graph);
        let stamps = balancer.stamps().then(|| Box::new(OverlayHeaders::new(ports.len())));
        let interfaces = Interfaces::new(parts.interface.choice(), graph, *seed).map(Box::new);
        Ok(Fabric {
            ports,
            healthy_interfaces: interfaces.clone(),
            interfaces,
            routes,
            path_counts: PathCounts::default(),
            plain: scheduled.is_empty()
                && pools.is_none()
                && stamps.is_none()
                && !parts.ties_as_scheduled
                && !balancer.sees_all(),
            brought: parts.ties_as_scheduled.then(Brought::default),
            stamped: stamps.is_some(),
            keeps_paths: balance.is_per_connection() && parts.interface.is_per_connection(),
            scheduled,
            defers: false,
            after_departures: false,
            looked_at: balance.looks_at_queues(),
            hosts: graph.hosts,
            sees_all: balancer.sees_all(),
            marks: Marks::new(queue, balancer.large_flow_threshold()),
            plain_hash: balancer.plain_hash(),
            balancer,
            pools,
            stops: control.map(|kind| PauseState::new(kind, 2 * graph.links.len())),
            incidents,
            stamps,
        })
    }
}
