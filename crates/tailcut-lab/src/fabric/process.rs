//! The process of the simulator's fabric.

use std::io;
use std::os::unix::net::UnixStream;

use tailcut_net::PredictedFlow;
use tailcut_net::packet::FlowKey;

use super::carrier::{FabricCarrier, FlowTable, RING_FRAMES};
use crate::hosts::idle_flows::IdlePlan;
use crate::messages::FabricCommand;
use crate::prepared::Prepared;
use crate::sys::packet_ring::{FrameDirections, PacketRing};
use crate::worker::{receive_command, send_result};

/// Runs the fabric's process, from its ring to its reports.
///
/// # Errors
/// The supervisor's exit, or the error that was sent to it.
pub fn run_fabric(
    prepared: &Prepared,
    interfaces: Vec<u32>,
    channel: &UnixStream,
) -> io::Result<()> {
    let keys = |predicted: &'_ [PredictedFlow]| -> Vec<(FlowKey, u64)> {
        predicted.iter().map(|one| (one.key, one.record.flow.bytes)).collect()
    };
    let races = prepared.hosts.repnet.as_ref().is_some_and(|how| how.kernel_chooses_ports);
    let racing = races.then_some(prepared.scenario.graph.hosts);
    let mut frames =
        PacketRing::new(FrameDirections::Incoming, prepared.hosts.mtu as usize, RING_FRAMES);
    loop {
        let crossing = receive_command(channel)?;
        let (scenario, flows) = match crossing {
            FabricCommand::IdleFlows => {
                let IdlePlan { scenario, flows: predicted } = &prepared.idle;
                (scenario, FlowTable::alone(keys(predicted).into_iter()))
            }
            FabricCommand::Run => {
                let flows = FlowTable::new(keys(&prepared.flows).into_iter(), racing);
                (&prepared.scenario, flows.with_guests(!prepared.guests.is_empty()))
            }
        };
        let captured = match (crossing, &prepared.capture) {
            (FabricCommand::Run, Some(asked)) => asked.open(&scenario.graph).map(Some),
            _ => Ok(None),
        };
        let made = match &mut frames {
            Ok(frames) => captured
                .map_err(io::Error::other)
                .and_then(|tap| FabricCarrier::new(scenario, frames, &interfaces, flows, tap)),
            Err(error) => Err(io::Error::other(error.to_string())),
        };
        let carrier = match made {
            Ok(carrier) => {
                send_result(channel, Ok(()))?;
                carrier
            }
            Err(error) => return send_result::<()>(channel, Err(error)),
        };
        let report = carrier.run(receive_command(channel)?, channel.try_clone()?);
        channel.set_nonblocking(false)?;
        send_result(channel, report)?;
    }
}
