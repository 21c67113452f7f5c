//! A connection that is to be: what its packets go by, what it carries, and the sender that will.

use tailcut_engine::random::mix;
use tailcut_engine::{RandomStream, Time};

use crate::network::flow_predictor::{key_of, source_port};
use crate::network::profile::{ProfileId, TransportProfile};
use crate::network::sender::Sender;
use crate::packet::{FlowKey, SERVICE_PORT};
use crate::replicate::machine::OpenConnection;
use crate::traffic::{Flow, FlowIndex};
use crate::transport::spread as subflow;
use crate::transport::tcp::{self, Congestion, Coupled};

/// A connection that is to be.
pub(in crate::network) struct NewConnection {
    /// The key of its packets from sender to receiver.
    pub key: FlowKey,
    /// The flow whose bytes it carries.
    pub flow: FlowIndex,
    /// The connection's number within its flow.
    pub copy: u8,
    /// The first byte of the flow that it carries.
    pub from: u64,
    /// The transport profile.
    pub profile: ProfileId,
    pub sender: Sender,
    /// The application at its receiver has gone.
    pub closed: bool,
}

/// A flow for which a connection is opened.
#[derive(Debug, Clone, Copy)]
pub(in crate::network) struct FlowContext<'a> {
    pub flow: &'a Flow,
    /// The flow's index in the run.
    pub index: FlowIndex,
    /// Number of its transport.
    pub profile: ProfileId,
    /// The transport profile.
    pub transport: &'a TransportProfile,
}

impl NewConnection {
    /// A copy or a piece that replication asks for, over so many links. What its sender draws
    /// depends on nothing but seed, flow and number.
    pub fn copy(
        carried: FlowContext<'_>,
        open: &OpenConnection,
        links: u8,
        seed: u64,
    ) -> NewConnection {
        let FlowContext { flow, index, profile, transport } = carried;
        let &OpenConnection { copy, piece, from, bytes, at } = open;
        let mut sender = Sender::new(transport, bytes, at);
        sender.set_links(links);
        let entity = mix(flow.id) ^ (piece << 8 | u64::from(copy));
        sender.draw_from(transport, seed, entity);
        let key = key_of(flow, copy, piece);
        if let Some(entropy) = &transport.tcp.entropy {
            let stream = RandomStream::new(seed, entity, "entropy");
            sender.choose_ports(entropy.state(stream), key.sport());
        }
        NewConnection { key, flow: index, copy, from, profile, sender, closed: false }
    }

    /// A subflow that opens now. Its sender has no data yet.
    pub fn subflow(
        carried: FlowContext<'_>,
        open: subflow::OpenSubflow,
        now: Time,
    ) -> NewConnection {
        let FlowContext { flow, index, profile, transport } = carried;
        let subflow::OpenSubflow { subflow: copy, coupled, dupack_threshold } = open;
        let mut sender = tcp::Sender::open_ended(&transport.tcp, now);
        if coupled {
            sender.set_congestion(Congestion::Coupled(Coupled::default()));
        }
        if let Some(duplicates) = dupack_threshold {
            sender.set_dupack_threshold(duplicates);
        }
        let key = FlowKey::new(flow.src, flow.dst, source_port(flow.id, copy), SERVICE_PORT);
        let sender = Sender::Tcp(sender);
        NewConnection { key, flow: index, copy, from: 0, profile, sender, closed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::connections::tests::tcp;
    use crate::topology::HostId;

    const NOW: Time = Time::from_us(7);

    fn flow() -> Flow {
        Flow { src: HostId(3), dst: HostId(5), bytes: 100_000, start: NOW, id: 11 }
    }

    fn carried<'a>(flow: &'a Flow, transport: &'a TransportProfile) -> FlowContext<'a> {
        FlowContext { flow, index: FlowIndex(2), profile: ProfileId::at(0), transport }
    }

    #[test]
    fn a_piece_carries_its_bytes_from_a_port_of_its_own_when_its_time_comes() {
        let (flow, profiles) = (flow(), tcp());
        let carried = carried(&flow, &profiles[0]);
        let open =
            OpenConnection { copy: 1, piece: 4, from: 40_000, bytes: 2_920, at: Time::from_us(9) };
        let opening = NewConnection::copy(carried, &open, 6, 1);
        assert_eq!(opening.key, key_of(&flow, 1, 4));
        assert_eq!((opening.flow, opening.copy, opening.from), (FlowIndex(2), 1, 40_000));
        assert_eq!((opening.sender.segments(), opening.sender.deadline()), (2, open.at));
        assert!(!opening.closed);
    }

    #[test]
    fn a_subflow_opens_empty_with_its_managers_dupack_threshold() {
        let (flow, profiles) = (flow(), tcp());
        let carried = carried(&flow, &profiles[0]);
        let open = |dupack_threshold| {
            let open = subflow::OpenSubflow { subflow: 3, coupled: true, dupack_threshold };
            NewConnection::subflow(carried, open, NOW)
        };
        let opening = open(Some(19));
        let expected = FlowKey::new(flow.src, flow.dst, source_port(11, 3), SERVICE_PORT);
        assert_eq!((opening.key, opening.copy, opening.from), (expected, 3, 0));
        assert_eq!((opening.sender.segments(), opening.sender.deadline()), (0, NOW));
        let bears =
            |opening: &NewConnection| opening.sender.tcp().map(tcp::Sender::dupack_threshold);
        let usual = profiles[0].tcp.dupack_threshold;
        assert_eq!([bears(&opening), bears(&open(None))], [Some(19), Some(usual)]);
    }
}
