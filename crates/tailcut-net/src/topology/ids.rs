//! Numbers of nodes, hosts, switches and ports, each kind with a type of its own.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Largest number of hosts: packets address them by 19 bits.
pub const MAX_HOSTS: u32 = 1 << 19;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the number that stands for index `place` of a table.
            #[inline]
            pub const fn at(place: usize) -> $name {
                $name(place as u32)
            }
            /// Returns the number as an index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A host or a switch: hosts are numbered `0..hosts`, switches follow.
    NodeId
}

number! {
    /// A host; its number is also its number as a node.
    HostId
}

number! {
    /// A switch, numbered from 0 among the switches.
    SwitchId
}

number! {
    /// The directed link that leaves a node: `2 * link` from `a`, `2 * link + 1` from `b`.
    PortId
}

impl NodeId {
    /// Returns the host that the node is in a network of `hosts` hosts, or `None` for a switch.
    #[inline]
    pub const fn host(self, hosts: u32) -> Option<HostId> {
        if self.0 < hosts { Some(HostId(self.0)) } else { None }
    }
    /// Returns the switch that the node is in a network of `hosts` hosts, or `None` for a host.
    #[inline]
    pub const fn switch(self, hosts: u32) -> Option<SwitchId> {
        match self.0.checked_sub(hosts) {
            Some(number) => Some(SwitchId(number)),
            None => None,
        }
    }
}

impl HostId {
    /// Returns the number of the host as a node.
    #[inline]
    pub const fn node(self) -> NodeId {
        NodeId(self.0)
    }
}

impl SwitchId {
    /// Returns the number of the switch as a node in a network of `hosts` hosts.
    #[inline]
    pub const fn node(self, hosts: u32) -> NodeId {
        NodeId(hosts + self.0)
    }
}

impl PortId {
    /// Returns both ports of the link at index `link`, that of end `a` first.
    #[inline]
    pub const fn both_directions(link: usize) -> [PortId; 2] {
        [PortId::at(2 * link), PortId::at(2 * link + 1)]
    }
    /// Returns the index of the port's link.
    #[inline]
    pub const fn link(self) -> usize {
        self.0 as usize / 2
    }
    /// Returns the port of the other direction of the link.
    #[inline]
    pub const fn reversed(self) -> PortId {
        PortId(self.0 ^ 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switch_nodes_are_numbered_after_hosts() {
        assert_eq!([3, 4].map(|n| NodeId(n).host(4)), [Some(HostId(3)), None]);
        assert_eq!(HostId(3).node(), NodeId(3));
        assert_eq!(
            [3, 4, 9].map(|n| NodeId(n).switch(4)),
            [None, Some(SwitchId(0)), Some(SwitchId(5))]
        );
        assert_eq!(SwitchId(5).node(4), NodeId(9));
    }

    #[test]
    fn a_link_has_a_port_at_either_end() {
        let [of_a, of_b] = PortId::both_directions(3);
        assert_eq!((of_a.index(), of_b.index(), of_b.link()), (6, 7, 3));
        assert_eq!((of_a.reversed(), of_b.reversed()), (of_b, of_a));
    }
}
