//! Transports whose ends are not TCP's. Their senders have the calls of TCP's, with parameters of
//! their own; the list of this folder has a line for each, from which whoever holds connections
//! makes one kind of end without a call through a table per packet.

use std::fmt::Debug;

use tailcut_engine::{Bytes, Rate, Time};

use super::grant_pace::GrantPace;
use super::segment::{DataAck, Segment};
use super::tcp::{self, Close, Recovery, TcpSpec, WireSizes};
use crate::amount::Amount;
use crate::packet::OptionStore;
use crate::topology::Graph;

/// The segments of transports that acknowledge every one selectively and end without a FIN: at
/// first, and at most, so many packets under way, repeated after `rto`.
pub(crate) fn one_by_one(mss: Bytes, initial_window: u32, max_window: u32, rto: Time) -> TcpSpec {
    TcpSpec {
        mss,
        initial_window: Amount::Packets(initial_window),
        receive_window: Bytes(u64::from(max_window).saturating_mul(mss.0)),
        recovery: Recovery::SackPrr,
        min_rto: rto,
        initial_rto: rto,
        ack_every: 1,
        close: Close::None,
        ..TcpSpec::default()
    }
}

/// The parameters of such a transport.
pub(crate) trait CustomEndpoints: Clone + Debug {
    type Sender: Clone + Debug;
    type Receiver: ReceivingEnd;

    /// A sender waits for the answer to its SYN before it sends data.
    const HANDSHAKE: bool = true;
    /// Whether a SYN opens connections; else their first data packet does.
    const SYN: bool = true;
    /// Whether receivers ask for packets, in turn at each host.
    const PULLS: bool = false;

    /// Whether senders choose an entropy value for each packet.
    const ENTROPY: bool = false;

    /// Whether senders hand data to their host's interface one packet at a time, in turn with the
    /// others of the host.
    const TURNS: bool = false;

    /// The parameters in a network where `interfaces` of a host carry a connection side by side:
    /// what is not said follows from it.
    fn fitted(self, graph: &Graph, interfaces: u32, sizes: &WireSizes) -> Self;
    /// The sending half of a connection of `size` bytes that opens at `open_at`.
    fn sender(&self, size: u64, open_at: Time) -> Self::Sender;
    /// The receiving half of a connection of so many segments.
    fn receiver(&self, segments: u32) -> Self::Receiver;
    /// Returns the packets that a sender has, or may have, under way.
    fn window(sender: &Self::Sender) -> u32;
    /// Returns the pace at which a host's requests follow what its arrivals meet; `None` where they
    /// follow its link alone.
    fn grant_pace(&self, _seed: u64, _host: u32) -> Option<GrantPace> {
        None
    }
    /// Returns whether receivers grant credits that nobody has asked for.
    fn grants_unasked(&self) -> bool {
        false
    }
    /// Seeds what a sender draws.
    fn draw_from(&self, _sender: &mut Self::Sender, _seed: u64, _entity: u64) {}
    /// Returns whether a sender wants a turn at its interface.
    fn wants_turn(&self, _sender: &Self::Sender) -> bool {
        false
    }
    /// The interface asks for a packet, for which so many senders of the host wait.
    fn grant_turn(_sender: &mut Self::Sender, _contenders: u32) {}
}

/// A receiver. What it does not say otherwise is done by TCP's, which reassembles.
pub(crate) trait ReceivingEnd: Clone + Debug {
    /// Returns the half that reassembles.
    fn tcp(&self) -> &tcp::Receiver;
    fn tcp_mut(&mut self) -> &mut tcp::Receiver;

    /// A packet has arrived. True when it completes the data. `spec` is what decides its
    /// transport's segments.
    fn on_packet(
        &mut self,
        spec: &TcpSpec,
        now: Time,
        packet: &Segment,
        options: &OptionStore,
    ) -> bool;

    /// Returns the next packet to send; call until `None`.
    #[inline]
    fn poll_transmit(
        &mut self,
        spec: &TcpSpec,
        sizes: &WireSizes,
        now: Time,
        data: Option<DataAck>,
        options: &mut OptionStore,
    ) -> Option<Segment> {
        self.tcp_mut().poll_transmit(spec, sizes, now, data, options)
    }

    /// Whether [`ReceivingEnd::poll_transmit`] has anything.
    #[inline]
    fn has_output(&self) -> bool {
        self.tcp().has_output()
    }

    /// The receiving application resets the connection.
    fn reset(&mut self) {
        self.tcp_mut().reset();
    }

    /// Returns the half that asks for packets, if the transport does.
    #[inline]
    fn pulls(&mut self) -> Option<&mut dyn Pull> {
        None
    }
}

/// A receiver that asks for packets.
pub(crate) trait Pull {
    /// True when it wants to ask and has no turn yet: from now on it has one.
    fn join_pull_queue(&mut self) -> bool;
    /// True when it has a turn: it gives it up.
    fn leave_pull_queue(&mut self) -> bool;
    /// Takes the receiver's turn: returns the request, if it still wants one. `unasked`: the turn is
    /// that of an idle connection.
    fn pull(&mut self, sizes: &WireSizes, pace: PullPace, unasked: bool) -> Option<PullRequest>;
}

/// The pace at which a host's links bring what it asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PullPace {
    /// Rate of the link to the host, or of several that packets choose among.
    pub rate: Rate,
    /// Time between full packets at that rate.
    pub full_packet: Time,
}

/// A request for packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PullRequest {
    pub segment: Segment,
    /// The host makes no other request for so long.
    pub pause: Time,
    pub rejoin: Rejoin,
}

/// The place of a receiver after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejoin {
    /// Among those that wait for their next turn.
    Queue,
    /// Among those that get a turn when nobody waits for one.
    Idle,
    /// Nowhere.
    Leave,
}
