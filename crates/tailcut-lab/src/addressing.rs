//! Addresses, ports and interface names of hosts.

use std::net::Ipv4Addr;

/// The interface of every host.
pub const INTERFACE: &str = "eth0";
/// The hardware address of every host: with ARP off, the kernel takes its own for that of its neighbours.
pub const HARDWARE_ADDRESS: [u8; 6] = [0x02, 0x54, 0x43, 0, 0, 1];
/// The addresses of all hosts, further ones among them.
pub const PREFIX: &str = "10.64.0.0/10";
/// Addresses of a host at most.
pub const MAX_ADDRESSES: u32 = 8;
/// Where hosts listen: beyond the source ports of flows, and those that the kernel chooses. The second copy of a flow goes to
/// the port after it.
pub const LISTEN_PORT: u16 = 62_000;
/// Connections of a flow, at most.
pub const MAX_COPIES: u16 = 2;
/// Where the last host listens for it: no port of the run's.
pub const IDLE_FLOW_PORT: u16 = LISTEN_PORT + MAX_COPIES;

/// [`HARDWARE`], as `ip` has it.
pub fn hardware_address() -> String {
    HARDWARE_ADDRESS.map(|byte| format!("{byte:02x}")).join(":")
}

/// The address of a host.
pub fn address(host: u32) -> Ipv4Addr {
    extra_address(host, 0)
}

/// A host's address of this number; the first is its own.
fn extra_address(host: u32, number: u8) -> Ipv4Addr {
    let place = host + 1;
    Ipv4Addr::new(10, 77 + number, (place >> 8) as u8, place as u8)
}

/// A host's addresses besides its own.
pub fn extra_addresses(host: u32, count: u32) -> Vec<Ipv4Addr> {
    (1..=count as u8).map(|number| extra_address(host, number)).collect()
}

/// The host of an address, and which of its addresses it is.
pub fn host_and_number(address: Ipv4Addr) -> Option<(u32, u8)> {
    let [10, place, high, low] = address.octets() else { return None };
    let number = place.checked_sub(77).filter(|number| u32::from(*number) < MAX_ADDRESSES)?;
    let host = (u32::from(high) << 8 | u32::from(low)).checked_sub(1)?;
    Some((host, number))
}

/// The host whose own address it is.
pub fn host_of(address: Ipv4Addr) -> Option<u32> {
    host_and_number(address).filter(|(_, number)| *number == 0).map(|(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_distinct_addresses_and_none_is_a_broadcast() {
        for host in [0, 1, 254, 255, 256] {
            assert_eq!(host_of(address(host)), Some(host));
        }
        assert_eq!(address(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(host_of(Ipv4Addr::new(192, 0, 2, 1)), None);
        assert_eq!(host_of(Ipv4Addr::new(10, 77, 0, 0)), None);
        assert_eq!(host_and_number(address(255)), Some((255, 0)));
        assert_eq!(host_and_number(extra_address(255, 7)), Some((255, 7)));
        assert_eq!(
            (host_of(extra_address(255, 7)), host_and_number(extra_address(255, 8))),
            (None, None)
        );
        assert_eq!(extra_addresses(4, 2), [extra_address(4, 1), extra_address(4, 2)]);
        assert_eq!(extra_addresses(4, 0), [] as [Ipv4Addr; 0]);
    }
}
