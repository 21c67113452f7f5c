//! A connection that is to be: what its packets go by, what it carries, and the sender that will.

use tailcut_engine::Time;
use tailcut_engine::random::mix;

use crate::network::foresight::{key_of, source_port};
use crate::network::profile::{Profile, ProfileId};
use crate::network::sender::Sender;
use crate::packet::{FlowKey, SERVICE_PORT};
use crate::replicate::machine::Open;
use crate::traffic::{Flow, FlowIndex};
use crate::transport::spread as subflow;
use crate::transport::tcp::{self, Congestion, Coupled};

/// A connection that is to be.
pub(in crate::network) struct Opening {
    /// What its packets go by, from sender to receiver.
    pub key: FlowKey,
    /// Whose bytes it carries.
    pub flow: FlowIndex,
    /// Its number among those of its flow.
    pub copy: u8,
    /// The first byte of the flow that it carries.
    pub from: u64,
    /// Its transport.
    pub profile: ProfileId,
    pub sender: Sender,
    /// The application at its receiver has gone.
    pub closed: bool,
}

/// A flow for which a connection is opened.
#[derive(Debug, Clone, Copy)]
pub(in crate::network) struct Carried<'a> {
    pub flow: &'a Flow,
    /// Its number in the run.
    pub index: FlowIndex,
    /// Number of its transport.
    pub profile: ProfileId,
    /// That transport.
    pub transport: &'a Profile,
}

impl Opening {
    /// A copy or a piece that replication asks for, over so many links. What its sender draws depends on nothing but seed, flow and number.
    pub fn copy(carried: Carried<'_>, open: &Open, links: u8, seed: u64) -> Opening {
        let Carried { flow, index, profile, transport } = carried;
        let &Open { copy, piece, from, bytes, at } = open;
        let mut sender = Sender::new(transport, bytes, at);
        sender.set_links(links);
        sender.draw_from(seed, mix(flow.id) ^ (piece << 8 | u64::from(copy)));
        let key = key_of(flow, copy, piece);
        Opening { key, flow: index, copy, from, profile, sender, closed: false }
    }

    /// A subflow that opens now. Its sender has no data yet.
    pub fn subflow(carried: Carried<'_>, open: subflow::Open, now: Time) -> Opening {
        let Carried { flow, index, profile, transport } = carried;
        let subflow::Open { copy, coupled, dupack_threshold } = open;
        let mut sender = tcp::Sender::open_ended(&transport.tcp, now);
        if coupled {
            sender.set_congestion(Congestion::Coupled(Coupled::default()));
        }
        if let Some(duplicates) = dupack_threshold {
            sender.set_dupack_threshold(duplicates);
        }
        let key = FlowKey::new(flow.src, flow.dst, source_port(flow.id, copy), SERVICE_PORT);
        let sender = Sender::Tcp(sender);
        Opening { key, flow: index, copy, from: 0, profile, sender, closed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::hosts::tests::tcp;
    use crate::topology::HostId;

    const NOW: Time = Time::from_us(7);

    fn flow() -> Flow {
        Flow { src: HostId(3), dst: HostId(5), bytes: 100_000, start: NOW, id: 11 }
    }

    fn carried<'a>(flow: &'a Flow, transport: &'a Profile) -> Carried<'a> {
        Carried { flow, index: FlowIndex(2), profile: ProfileId::at(0), transport }
    }

    #[test]
    fn a_piece_carries_its_bytes_from_a_port_of_its_own_when_its_time_comes() {
        let (flow, profiles) = (flow(), tcp());
        let carried = carried(&flow, &profiles[0]);
        let open = Open { copy: 1, piece: 4, from: 40_000, bytes: 2_920, at: Time::from_us(9) };
        let opening = Opening::copy(carried, &open, 6, 1);
        assert_eq!(opening.key, key_of(&flow, 1, 4));
        assert_eq!((opening.flow, opening.copy, opening.from), (FlowIndex(2), 1, 40_000));
        assert_eq!((opening.sender.segments(), opening.sender.deadline()), (2, open.at));
        assert!(!opening.closed);
    }

    #[test]
    fn a_subflow_is_given_data_later_and_bears_what_its_manager_says() {
        let (flow, profiles) = (flow(), tcp());
        let carried = carried(&flow, &profiles[0]);
        let open = |dupack_threshold| {
            let open = subflow::Open { copy: 3, coupled: true, dupack_threshold };
            Opening::subflow(carried, open, NOW)
        };
        let opening = open(Some(19));
        let expected = FlowKey::new(flow.src, flow.dst, source_port(11, 3), SERVICE_PORT);
        assert_eq!((opening.key, opening.copy, opening.from), (expected, 3, 0));
        assert_eq!((opening.sender.segments(), opening.sender.deadline()), (0, NOW));
        let bears = |opening: &Opening| opening.sender.tcp().map(tcp::Sender::dupack_threshold);
        let usual = profiles[0].tcp.dupack_threshold;
        assert_eq!([bears(&opening), bears(&open(None))], [Some(19), Some(usual)]);
    }
}
