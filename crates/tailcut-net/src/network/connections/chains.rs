//! The connections of one flow: a chain at each of its hosts, from end to end, which goes by
//! nothing that lies at the other host.
//!
//! A run on one core fills both when it opens a connection. Where the ends of a flow lie apart, its
//! receiver's chain is of the connections that it has heard of.

use super::Connections;
use crate::measure::ConnectionEnd;
use crate::packet::ConnectionId;

/// The heads of a flow's chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::network) struct Chains {
    /// At the host that sends it.
    pub sending: Option<ConnectionId>,
    /// At the host that receives it.
    pub receiving: Option<ConnectionId>,
}

impl Connections<'_> {
    /// The connection after another one of its flow, at the host that sends.
    pub fn after(&self, id: ConnectionId) -> Option<ConnectionId> {
        self.sibling(ConnectionEnd::Sender, id)
    }

    /// The same, at the host that receives.
    pub fn after_at_receiver(&self, id: ConnectionId) -> Option<ConnectionId> {
        self.sibling(ConnectionEnd::Receiver, id)
    }

    /// The first connection of a sender's chain that carries a copy.
    pub fn find(&self, head: Option<ConnectionId>, copy: u8) -> Option<ConnectionId> {
        let mut at = head;
        while let Some(id) = at.filter(|id| self.sender_info(*id).copy != copy) {
            at = self.after(id);
        }
        at
    }

    /// Puts a connection in the chains before those of its copy and later ones; their heads from
    /// now on.
    pub fn insert(&mut self, chains: Chains, id: ConnectionId) -> Chains {
        Chains {
            sending: Some(self.insert_at(ConnectionEnd::Sender, chains.sending, id)),
            receiving: Some(self.insert_at(ConnectionEnd::Receiver, chains.receiving, id)),
        }
    }

    /// Puts a connection at the heads of the chains.
    pub fn prepend(&mut self, chains: Chains, id: ConnectionId) -> Chains {
        *self.sibling_mut(ConnectionEnd::Sender, id) = chains.sending;
        *self.sibling_mut(ConnectionEnd::Receiver, id) = chains.receiving;
        Chains { sending: Some(id), receiving: Some(id) }
    }

    /// Takes a connection out of its chains; their heads from now on.
    pub fn unlink(&mut self, chains: Chains, id: ConnectionId) -> Chains {
        Chains {
            sending: self.unlink_at(ConnectionEnd::Sender, chains.sending, id),
            receiving: self.unlink_at(ConnectionEnd::Receiver, chains.receiving, id),
        }
    }

    fn sibling(&self, end: ConnectionEnd, id: ConnectionId) -> Option<ConnectionId> {
        let connection = &self.connections[id.index()];
        match end {
            ConnectionEnd::Sender => connection.sending.sibling,
            ConnectionEnd::Receiver => connection.receiving.sibling,
        }
    }

    fn sibling_mut(&mut self, end: ConnectionEnd, id: ConnectionId) -> &mut Option<ConnectionId> {
        let connection = &mut self.connections[id.index()];
        match end {
            ConnectionEnd::Sender => &mut connection.sending.sibling,
            ConnectionEnd::Receiver => &mut connection.receiving.sibling,
        }
    }

    fn copy_at(&self, end: ConnectionEnd, id: ConnectionId) -> u8 {
        match end {
            ConnectionEnd::Sender => self.sender_info(id).copy,
            ConnectionEnd::Receiver => self.receiver_info(id).copy,
        }
    }

    fn insert_at(
        &mut self,
        end: ConnectionEnd,
        head: Option<ConnectionId>,
        id: ConnectionId,
    ) -> ConnectionId {
        let copy = self.copy_at(end, id);
        let (mut before, mut after) = (None, head);
        while let Some(earlier) = after.filter(|after| self.copy_at(end, *after) < copy) {
            (before, after) = (Some(earlier), self.sibling(end, earlier));
        }
        *self.sibling_mut(end, id) = after;
        let Some(before) = before else { return id };
        *self.sibling_mut(end, before) = Some(id);
        head.unwrap_or(id)
    }

    fn unlink_at(
        &mut self,
        end: ConnectionEnd,
        head: Option<ConnectionId>,
        id: ConnectionId,
    ) -> Option<ConnectionId> {
        let after = self.sibling(end, id);
        if head == Some(id) {
            return after;
        }
        let mut at = head;
        while let Some(before) = at {
            let next = self.sibling(end, before);
            if next == Some(id) {
                *self.sibling_mut(end, before) = after;
                break;
            }
            at = next;
        }
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::connections::tests::{opening, tcp};

    /// Both chains from a head on, as they must be alike on one core.
    fn ids(hosts: &Connections<'_>, chains: Chains) -> Vec<ConnectionId> {
        let sending = std::iter::successors(chains.sending, |id| hosts.after(*id));
        let receiving = std::iter::successors(chains.receiving, |id| hosts.after_at_receiver(*id));
        let sending: Vec<_> = sending.collect();
        assert_eq!(sending, receiving.collect::<Vec<_>>());
        sending
    }

    /// Connections of these copies, in chains.
    fn chained(hosts: &mut Connections<'_>, copies: &[u8]) -> Chains {
        copies.iter().fold(Chains::default(), |chains, &copy| {
            let id = hosts.admit(opening(hosts, 0, copy));
            hosts.insert(chains, id)
        })
    }

    #[test]
    fn the_connections_of_a_flow_are_in_the_order_of_copies() {
        let profiles = tcp();
        let mut hosts = Connections::new(&profiles);
        let chains = chained(&mut hosts, &[2, 0, 3, 1]);
        let copies = ids(&hosts, chains).into_iter().map(|id| hosts.receiver_info(id).copy);
        assert_eq!(copies.collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_later_connection_of_a_copy_is_found_first() {
        let profiles = tcp();
        let mut hosts = Connections::new(&profiles);
        let mut chains = chained(&mut hosts, &[1, 1, 1]);
        let [a, b, c] = [0, 1, 2].map(ConnectionId);
        assert_eq!(ids(&hosts, chains), [c, b, a]);
        assert_eq!((hosts.find(chains.sending, 1), hosts.find(chains.sending, 0)), (Some(c), None));
        for (gone, left) in [(b, &[c, a][..]), (c, &[a]), (a, &[])] {
            chains = hosts.unlink(chains, gone);
            assert_eq!(ids(&hosts, chains), left);
        }
    }

    #[test]
    fn prepend_puts_a_connection_first_at_both_hosts() {
        let profiles = tcp();
        let mut hosts = Connections::new(&profiles);
        let chains = chained(&mut hosts, &[0]);
        let id = hosts.admit(opening(&hosts, 0, 7));
        let chains = hosts.prepend(chains, id);
        assert_eq!(ids(&hosts, chains), [ConnectionId(1), ConnectionId(0)]);
    }

    #[test]
    fn each_host_keeps_to_its_own_chain() {
        let profiles = tcp();
        let mut hosts = Connections::new(&profiles);
        let chains = chained(&mut hosts, &[0, 1]);
        let [a, b] = [0, 1].map(ConnectionId);
        let receiving = hosts.unlink_at(ConnectionEnd::Receiver, chains.receiving, a);
        assert_eq!((receiving, hosts.after_at_receiver(b)), (Some(b), None));
        assert_eq!((chains.sending, hosts.after(a)), (Some(a), Some(b)), "the sender has both");
    }
}
