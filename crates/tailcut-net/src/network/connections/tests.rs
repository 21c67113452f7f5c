//! Connections in their places, their chains, timers and packets: without a network.

use super::*;
use crate::amount::{Amount, Limit};
use crate::network::profile::{self, ProfileId};
use crate::packet::{NO_OPTIONS, SeqField};
use crate::topology::HostId;
use crate::transport::tcp::{self, TcpSpec, WireSizes};

const NOW: Time = Time::ZERO;

/// Plain TCP.
pub(in crate::network) fn tcp() -> Vec<TransportProfile> {
    let tcp = TcpSpec::default();
    let sizes = WireSizes::new(&tcp, Default::default());
    let kind = profile::TransportKind::Tcp;
    vec![TransportProfile {
        tcp,
        sizes,
        is_multipath: false,
        has_entropy: false,
        echoes_entropy: false,
        takes_turns: false,
        kind,
    }]
}

/// A connection of ten full segments that opens at once.
pub(in crate::network) fn opening(hosts: &Connections<'_>, flow: u32, copy: u8) -> NewConnection {
    NewConnection {
        key: FlowKey::new(HostId(0), HostId(1), 1_024, 5_000 + u16::from(copy)),
        flow: FlowIndex(flow),
        copy,
        from: 0,
        profile: ProfileId::at(0),
        sender: Sender::new(hosts.transport(ProfileId::at(0)), 14_600, NOW),
        closed: false,
    }
}

#[test]
fn places_are_used_again_and_what_was_there_has_no_owner() {
    let profiles = tcp();
    let mut hosts = Connections::new(&profiles);
    let [a, b] = [0, 1].map(|flow| hosts.admit(opening(&hosts, flow, 0)));
    let key = hosts.sender_info(a).key;
    assert_eq!(hosts.owner(a, key.reversed()), Some(FlowIndex(0)));
    assert_eq!(hosts.owner(a, FlowKey::new(HostId(5), HostId(6), 1, 2)), None);
    hosts.retire(a);
    assert_eq!((hosts.owner(a, key), hosts.live().collect::<Vec<_>>()), (None, vec![b]));
    let again = hosts.admit(opening(&hosts, 7, 0));
    assert_eq!((again, hosts.connections.len(), hosts.receiver_info(a).flow), (a, 2, FlowIndex(7)));
    hosts.retire(a);
    hosts.retire(b);
    assert!(!hosts.any());
}

#[test]
fn a_connection_is_over_when_nothing_of_it_is_under_way() {
    let profiles = tcp();
    let mut hosts = Connections::new(&profiles);
    let id = hosts.admit(opening(&hosts, 0, 0));
    hosts.fire_sender_timer(id, NOW);
    let transmit = hosts.poll_sender(id, NOW).expect("the SYN is due");
    assert_eq!(hosts.segment(id, NOW, transmit, None).flags, Flags::SYN);
    hosts.retain(id);
    hosts.sender_mut(id).abort();
    while hosts.poll_sender(id, NOW).is_some() {}
    assert!(!hosts.is_over(id), "the SYN is under way");
    hosts.release(id);
    assert!(hosts.is_over(id));
    hosts.retire(id);
    assert!(!hosts.is_over(id), "it is not there any more");
}

#[test]
fn a_timer_moves_earlier_only_and_is_forgotten_when_it_fires() {
    let profiles = tcp();
    let mut hosts = Connections::new(&profiles);
    let id = hosts.admit(opening(&hosts, 0, 0));
    let both = [hosts.wake_for_sender(id), hosts.wake_for_sender(id)];
    assert_eq!(both, [Some(NOW), None]);
    assert!(!hosts.fire_receiver_timer(id, NOW), "nothing waits there");
    assert_eq!(hosts.wake_for_sender(id), None, "each end has its own");
    assert!(!hosts.fire_sender_timer(id, NOW), "it has not been heard yet");
    while hosts.poll_sender(id, NOW).is_some() {}
    let first_rto = profiles[0].tcp.initial_rto;
    assert_eq!(hosts.wake_for_receiver(id), None, "the receiver still waits for nothing");
    assert_eq!(hosts.wake_for_sender(id), Some(NOW + first_rto));
}

#[test]
fn both_ends_hear_of_a_packet_and_say_what_it_did() {
    let profiles = tcp();
    let mut hosts = Connections::new(&profiles);
    let id = hosts.admit(opening(&hosts, 0, 0));
    hosts.fire_sender_timer(id, NOW);
    while hosts.poll_sender(id, NOW).is_some() {}
    let (key, options) = (hosts.sender_info(id).key, NO_OPTIONS);
    let packet = |seq, flags| Packet {
        key,
        connection: id,
        seq: SeqField::new(seq),
        options,
        wire_bytes: 1_538,
        flags,
    };
    let heard = hosts.on_packet_at_receiver(NOW, &packet(0, Flags::SYN));
    assert_eq!(heard, ReceiveOutcome { data: false, completed: false });
    assert!(hosts.owes_answer(id));
    let answer = hosts.poll_receiver(id, NOW, None).expect("a SYN is answered");
    assert!(answer.flags.has(Flags::SYN | Flags::TO_SENDER));
    hosts.on_packet_at_sender(NOW, &packet(0, answer.flags));
    assert_eq!(hosts.sender(id).phase(), ConnectionState::Established);
    let last =
        (0..10).map(|seq| hosts.on_packet_at_receiver(NOW, &packet(seq, Flags::DATA))).last();
    assert_eq!(last, Some(ReceiveOutcome { data: true, completed: true }));
    let flow = Flow { src: HostId(0), dst: HostId(1), bytes: 14_600, start: NOW, id: 0 };
    assert_eq!(hosts.brought(id, hosts.receiver(id).next_expected(), &flow), 14_600);
    assert_eq!(hosts.acknowledged(id), 0);
}

/// A subflow that has no data, and whose handshake is complete.
fn established(hosts: &mut Connections<'_>, copy: u8) -> ConnectionId {
    let sender = Sender::Tcp(tcp::Sender::open_ended(&hosts.transport(ProfileId::at(0)).tcp, NOW));
    let opening = NewConnection { sender, ..opening(hosts, 0, copy) };
    let id = hosts.admit(opening);
    hosts.fire_sender_timer(id, NOW);
    while hosts.poll_sender(id, NOW).is_some() {}
    let (key, options) = (hosts.sender_info(id).key, NO_OPTIONS);
    let packet = |flags| Packet {
        key,
        connection: id,
        seq: SeqField::new(0),
        options,
        wire_bytes: 84,
        flags,
    };
    hosts.on_packet_at_receiver(NOW, &packet(Flags::SYN));
    let answer = hosts.poll_receiver(id, NOW, None).expect("a SYN is answered");
    hosts.on_packet_at_sender(NOW, &packet(answer.flags));
    while hosts.poll_sender(id, NOW).is_some() {}
    id
}

#[test]
fn the_subflow_that_heard_of_the_end_closes_and_another_is_reset() {
    let mut profiles = tcp();
    for close in [Close::Fin, Close::None] {
        profiles[0].tcp.close = close;
        let mut hosts = Connections::new(&profiles);
        let [heard, other] = [0, 1].map(|copy| established(&mut hosts, copy));
        hosts.close_subflow(heard, true);
        hosts.close_subflow(other, false);
        let ended = [heard, other].map(|id| (hosts.sender(id).phase(), hosts.poll_sender(id, NOW)));
        let reset = match close {
            Close::Fin => (ConnectionState::Aborted, Some(Transmit::Reset)),
            Close::None => (ConnectionState::Done, None),
        };
        assert_eq!(ended, [(ConnectionState::Done, None), reset]);
    }
}

#[test]
fn coupling_is_asked_for_in_congestion_avoidance_only() {
    let mut profiles = tcp();
    for (ssthresh, asks) in [(Limit::Unlimited, false), (Limit::AtMost(Amount::Packets(2)), true)] {
        profiles[0].tcp.initial_ssthresh = ssthresh;
        let mut hosts = Connections::new(&profiles);
        let id = established(&mut hosts, 0);
        let mut asked = false;
        hosts.couple(id, || {
            asked = true;
            Some(0.5)
        });
        assert_eq!(asked, asks);
    }
}
