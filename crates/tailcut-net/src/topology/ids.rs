//! What the places of a network are numbered by: each kind of number is a type of its own.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        pub struct $name(pub u32);

        impl $name {
            /// The one at this place of a table.
            #[inline]
            pub const fn at(place: usize) -> $name {
                $name(place as u32)
            }
            /// Its place.
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
    /// A host: its number as a node, too.
    HostId
}

number! {
    /// A switch, numbered over switches.
    SwitchId
}

number! {
    /// The directed link that leaves a node: `2 * link` from `a`, `2 * link + 1` from `b`.
    PortId
}

impl NodeId {
    /// The host that it is among so many; none where it is a switch.
    #[inline]
    pub const fn host(self, hosts: u32) -> Option<HostId> {
        if self.0 < hosts { Some(HostId(self.0)) } else { None }
    }
    /// The switch that it is among so many hosts; none where it is one of them.
    #[inline]
    pub const fn switch(self, hosts: u32) -> Option<SwitchId> {
        match self.0.checked_sub(hosts) {
            Some(number) => Some(SwitchId(number)),
            None => None,
        }
    }
}

impl HostId {
    /// Its number as a node.
    #[inline]
    pub const fn node(self) -> NodeId {
        NodeId(self.0)
    }
}

impl SwitchId {
    /// Its number as a node, behind so many hosts.
    #[inline]
    pub const fn node(self, hosts: u32) -> NodeId {
        NodeId(hosts + self.0)
    }
}

impl PortId {
    /// The ports of the link at this place, that of `a` first.
    #[inline]
    pub const fn both_directions(link: usize) -> [PortId; 2] {
        [PortId::at(2 * link), PortId::at(2 * link + 1)]
    }
    /// Its link's place.
    #[inline]
    pub const fn link(self) -> usize {
        self.0 as usize / 2
    }
    /// The other direction of its link.
    #[inline]
    pub const fn reversed(self) -> PortId {
        PortId(self.0 ^ 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_numbered_behind_hosts() {
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
