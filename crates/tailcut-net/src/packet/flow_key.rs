//! The addresses of a packet in 64 bits: two hosts and two ports.

use super::SERVICE_PORT;
use crate::topology::{HostId, MAX_HOSTS};

/// Source and destination host and port, as the packet carries them.
///
/// Between hosts below 65,536 the key has 16 bits each, from the top: source, destination, source
/// port, destination port. One of the two ports is then a service port, so that no key has both a
/// source port from 32,768 and a destination port from 61,440. Keys that do are of another layout:
/// their 27 other port bits hold three more bits of each host, the number of the service port, the
/// other port, and which of both the service port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey(pub u64);

/// The port bits that are set in the layout for more than 65,536 hosts.
const WIDE: u64 = 0x8000_f000;
/// Number of service ports that the wide layout can name, from [`SERVICE_PORT`].
pub const SERVICE_PORTS: u16 = 1 << SERVICE_BITS;

/// Bits of a host above the lower 16.
const HIGH_BITS: u32 = MAX_HOSTS.ilog2() - 16;
const HIGH: u32 = (1 << HIGH_BITS) - 1;
const SERVICE_BITS: u32 = 4;
/// Shift of the destination's upper bits, above the service port, the other port and the
/// direction.
const HIGH_SHIFT: u32 = SERVICE_BITS + 17;

/// The port bits of a wide key, apart.
#[derive(Clone, Copy)]
struct WidePorts {
    src_high: u32,
    dst_high: u32,
    /// The service port, counted from [`SERVICE_PORT`].
    service: u32,
    /// The port that is no service port.
    other: u32,
    /// Whether the source port is the service port.
    from_service: bool,
}

impl WidePorts {
    const fn pack(self) -> u64 {
        let bits = self.src_high << (HIGH_SHIFT + HIGH_BITS)
            | self.dst_high << HIGH_SHIFT
            | self.service << 17
            | self.other << 1
            | self.from_service as u32;
        WIDE | (bits as u64 & 0xfff) | (bits as u64 & 0x7ff_f000) << 4
    }

    const fn unpack(key: u64) -> WidePorts {
        let bits = (key & 0xfff | key >> 4 & 0x7ff_f000) as u32;
        WidePorts {
            src_high: bits >> (HIGH_SHIFT + HIGH_BITS) & HIGH,
            dst_high: bits >> HIGH_SHIFT & HIGH,
            service: bits >> 17 & (SERVICE_PORTS as u32 - 1),
            other: bits >> 1 & 0xffff,
            from_service: bits & 1 == 1,
        }
    }
}

impl FlowKey {
    /// Returns the key of packets from `src:sport` to `dst:dport`.
    ///
    /// # Panics
    /// Hosts from 65,536 must be below [`MAX_HOSTS`], and one of the ports one of the
    /// [`SERVICE_PORTS`]. Debug builds panic if the key of other hosts would be of the wide layout.
    pub const fn new(src: HostId, dst: HostId, sport: u16, dport: u16) -> FlowKey {
        let hosts = (src.0 as u64 & 0xffff) << 48 | (dst.0 as u64 & 0xffff) << 32;
        let ports = (sport as u64) << 16 | dport as u64;
        if (src.0 | dst.0) >> 16 == 0 {
            debug_assert!(ports & WIDE != WIDE, "one of the ports is a service port");
            return FlowKey(hosts | ports);
        }
        assert!(src.0 < MAX_HOSTS && dst.0 < MAX_HOSTS, "keys do not address that many hosts");
        let from_service = dport.wrapping_sub(SERVICE_PORT) >= SERVICE_PORTS;
        let (service, other) = if from_service { (sport, dport) } else { (dport, sport) };
        let service = service.wrapping_sub(SERVICE_PORT);
        assert!(service < SERVICE_PORTS, "one of the ports is a service port");
        let ports = WidePorts {
            src_high: src.0 >> 16,
            dst_high: dst.0 >> 16,
            service: service as u32,
            other: other as u32,
            from_service,
        };
        FlowKey(hosts | ports.pack())
    }

    /// Returns whether the key is of the layout for more than 65,536 hosts.
    #[inline]
    const fn is_wide(self) -> bool {
        self.0 & WIDE == WIDE
    }

    /// Returns the key of packets in the other direction.
    #[inline]
    pub const fn reversed(self) -> FlowKey {
        if self.is_wide() {
            return self.wide_reversed();
        }
        let (hosts, ports) = ((self.0 >> 32) as u32, self.0 as u32);
        FlowKey((hosts.rotate_left(16) as u64) << 32 | ports.rotate_left(16) as u64)
    }

    /// Returns the key with another source port: the entropy value of a packet towards the receiver.
    #[inline]
    pub const fn with_sport(self, sport: u16) -> FlowKey {
        if self.is_wide() {
            return self.wide_with_sport(sport);
        }
        FlowKey(self.0 & !0xffff_0000 | (sport as u64) << 16)
    }

    /// Returns the key with another destination port: the entropy value of a packet towards the
    /// sender.
    #[inline]
    pub const fn with_dport(self, dport: u16) -> FlowKey {
        if self.is_wide() {
            return self.wide_with_dport(dport);
        }
        FlowKey(self.0 & !0xffff | dport as u64)
    }

    /// Returns the key of a packet whose ports an edge switch rewrites: `port` takes the place of
    /// the source port, or where there are more than 65,536 hosts that of the port that is no
    /// service port.
    #[inline(never)]
    pub const fn rewritten(self, port: u16) -> FlowKey {
        if self.is_wide() {
            let ports = WidePorts { other: port as u32, ..WidePorts::unpack(self.0) };
            return FlowKey(self.0 & !0xffff_ffff | ports.pack());
        }
        let key = self.with_sport(port);
        if key.is_wide() { self.with_sport(port & 0x7fff) } else { key }
    }

    /// Returns the sending host.
    #[inline]
    pub const fn src(self) -> HostId {
        if self.is_wide() {
            return self.wide_src();
        }
        HostId(self.low_src() as u32)
    }

    /// Returns the receiving host.
    #[inline]
    pub const fn dst(self) -> HostId {
        if self.is_wide() {
            return self.wide_dst();
        }
        HostId(self.low_dst() as u32)
    }

    /// Returns the lower 16 bits of the sending host: all of them below 65,536 hosts.
    #[inline]
    pub(crate) const fn low_src(self) -> usize {
        (self.0 >> 48) as usize
    }

    /// Returns the lower 16 bits of the receiving host: all of them below 65,536 hosts.
    #[inline]
    pub(crate) const fn low_dst(self) -> usize {
        (self.0 >> 32) as usize & 0xffff
    }

    /// Returns the source port.
    pub const fn sport(self) -> u16 {
        if self.is_wide() {
            let ports = WidePorts::unpack(self.0);
            let service = SERVICE_PORT + ports.service as u16;
            return if ports.from_service { service } else { ports.other as u16 };
        }
        (self.0 >> 16) as u16
    }

    /// Returns the destination port.
    pub const fn dport(self) -> u16 {
        if self.is_wide() {
            let ports = WidePorts::unpack(self.0);
            let service = SERVICE_PORT + ports.service as u16;
            return if ports.from_service { ports.other as u16 } else { service };
        }
        self.0 as u16
    }
}

/// Slow paths of keys of the wide layout. Out of line, so that other keys pay for the question only.
impl FlowKey {
    #[cold]
    #[inline(never)]
    const fn wide_src(self) -> HostId {
        HostId(self.low_src() as u32 | WidePorts::unpack(self.0).src_high << 16)
    }

    #[cold]
    #[inline(never)]
    const fn wide_dst(self) -> HostId {
        HostId(self.low_dst() as u32 | WidePorts::unpack(self.0).dst_high << 16)
    }

    #[cold]
    #[inline(never)]
    const fn wide_with_sport(self, sport: u16) -> FlowKey {
        FlowKey::new(self.src(), self.dst(), sport, self.dport())
    }

    #[cold]
    #[inline(never)]
    const fn wide_with_dport(self, dport: u16) -> FlowKey {
        FlowKey::new(self.src(), self.dst(), self.sport(), dport)
    }

    #[cold]
    #[inline(never)]
    const fn wide_reversed(self) -> FlowKey {
        FlowKey::new(self.dst(), self.src(), self.dport(), self.sport())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Ends = (HostId, HostId, u16, u16);

    fn ends(key: FlowKey) -> Ends {
        (key.src(), key.dst(), key.sport(), key.dport())
    }

    fn key((src, dst, sport, dport): Ends) -> FlowKey {
        FlowKey::new(src, dst, sport, dport)
    }

    /// Pairs of hosts on both sides of every bit that the wide layout adds, with ports on both
    /// sides of every limit.
    fn every() -> impl Iterator<Item = Ends> {
        let hosts = [0, 1, 65_535, 65_536, 65_537, 131_071, 131_072, 300_000, MAX_HOSTS - 1];
        let services = [0, 1, 15, SERVICE_PORTS - 1].map(|number| SERVICE_PORT + number);
        let others = [0, 1, 1_024, 5_000, 5_001, 5_016, 32_767, 32_768, 61_023, 61_440, 65_535];
        hosts.into_iter().flat_map(move |src| {
            let pairs = hosts.into_iter().filter(move |&dst| dst != src);
            pairs.flat_map(move |dst| {
                services.into_iter().flat_map(move |service| {
                    others.into_iter().flat_map(move |other| {
                        let (src, dst) = (HostId(src), HostId(dst));
                        [(src, dst, other, service), (src, dst, service, other)]
                    })
                })
            })
        })
    }

    #[test]
    fn hosts_and_ports_are_read_back() {
        every().for_each(|one| assert_eq!(ends(key(one)), one));
    }

    #[test]
    fn keys_of_different_ends_differ() {
        let mut seen = std::collections::BTreeMap::new();
        for one in every() {
            assert_eq!(*seen.entry(key(one).0).or_insert(one), one);
        }
    }

    #[test]
    fn a_key_reverses_hosts_and_ports() {
        for (src, dst, sport, dport) in every() {
            let back = key((src, dst, sport, dport)).reversed();
            assert_eq!(ends(back), (dst, src, dport, sport));
        }
    }

    #[test]
    fn an_entropy_value_replaces_the_port_that_is_no_service_port() {
        for (src, dst, sport, dport) in every() {
            let key = key((src, dst, sport, dport));
            for entropy in [0, 5_003, 40_000, u16::MAX] {
                let (forth, back) = (SERVICE_PORT + 3, SERVICE_PORT);
                let forth = FlowKey::new(src, dst, sport, forth).with_sport(entropy);
                assert_eq!(ends(forth), (src, dst, entropy, SERVICE_PORT + 3));
                let back = FlowKey::new(src, dst, back, dport).with_dport(entropy);
                assert_eq!(ends(back), (src, dst, SERVICE_PORT, entropy));
            }
            assert_eq!(key.with_sport(sport).with_dport(dport), key);
        }
    }

    #[test]
    fn rewriting_keeps_the_hosts() {
        for (src, dst, sport, dport) in every() {
            let key = key((src, dst, sport, dport));
            for port in [0, 5_003, 40_000, u16::MAX] {
                let once = key.rewritten(port);
                assert_eq!((once.src(), once.dst()), (src, dst));
                assert_eq!(once.rewritten(port), once);
                assert_ne!(once.rewritten(port ^ 1), once);
            }
        }
    }

    #[test]
    #[should_panic(expected = "keys do not address that many hosts")]
    fn hosts_beyond_the_largest_have_no_key() {
        let _ = FlowKey::new(HostId(0), HostId(MAX_HOSTS), 1_024, SERVICE_PORT);
    }

    #[test]
    #[should_panic(expected = "one of the ports is a service port")]
    fn hosts_beyond_16_bits_talk_to_services() {
        let _ = FlowKey::new(HostId(0), HostId(70_000), 1_024, 80);
    }
}
