//! Says to a trace ([`crate::trace`]) which flow is in hand, and what happens to it at its hosts.

use super::Network;
use super::partition::Extent;
use crate::measure::Observer;
use crate::packet::{ConnectionId, Flags, Packet};
use crate::topology::PortId;
use crate::topology::find::link_name;
use crate::trace::{self, trace};
use crate::traffic::FlowIndex;

impl<O: Observer, E: Extent> Network<'_, O, E> {
    /// Takes the flow of a packet in hand.
    #[inline(always)]
    pub(super) fn trace_packet(&self, packet: &Packet) {
        if trace::is_active() {
            self.trace_flow(self.hosts.flow_of(packet));
        }
    }

    /// Takes the flow of a receiver in hand.
    #[inline(always)]
    pub(super) fn trace_receiver(&self, id: ConnectionId) {
        if trace::is_active() {
            self.trace_flow(self.hosts.receiver_info(id).flow);
        }
    }

    #[cold]
    fn trace_flow(&self, flow: FlowIndex) {
        trace::set_flow(self.clock.now(), self.flows.flow(flow).id);
    }

    /// Prints the end of a packet before, or on, the link of `port`.
    #[cold]
    pub(super) fn trace_loss(&self, how: &str, port: PortId, packet: &Packet) {
        self.trace_packet(packet);
        if trace::is_followed() {
            let way = if packet.flags.has(Flags::TO_SENDER) {
                "to its sender"
            } else {
                "to its receiver"
            };
            let (seq, bytes) = (packet.seq.number(), packet.wire_bytes);
            let link = link_name(&self.scenario.graph, port);
            trace!("packet {way} {how} at {link}: segment {seq}, {bytes} B");
        }
    }

    /// Takes the flow of a sender in hand and returns its window in bytes; 0 if it is not followed.
    #[inline(always)]
    pub(super) fn traced_window(&self, id: ConnectionId) -> u64 {
        if trace::is_active() {
            self.trace_flow(self.hosts.sender_info(id).flow);
        }
        match trace::is_followed() {
            true => self.hosts.sender(id).cwnd(self.hosts.sender_profile(id)),
            false => 0,
        }
    }

    /// Prints the window of a sender if it was `before` another one.
    #[inline(always)]
    pub(super) fn trace_window(&self, id: ConnectionId, before: u64) {
        if trace::is_followed() {
            let now = self.hosts.sender(id).cwnd(self.hosts.sender_profile(id));
            if now != before {
                trace!("window changes from {before} to {now} B");
            }
        }
    }

    /// Prints which timer of a sender is due, if any; returns its window as
    /// [`Network::traced_window`] does.
    #[inline(always)]
    pub(super) fn trace_sender_timer(&self, id: ConnectionId) -> u64 {
        let window = self.traced_window(id);
        if trace::is_followed() {
            let (deadline, timer) = self.hosts.sender(id).timer();
            if deadline <= self.clock.now() {
                trace!("the sender's timer fires: {timer:?}");
            }
        }
        window
    }
}
