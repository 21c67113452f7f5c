//! Addresses, ports and interface names of hosts.

use std::net::Ipv4Addr;

/// The name of every host's network interface.
pub const INTERFACE: &str = "eth0";
/// The hardware address of every interface. With ARP off, the kernel uses an interface's own
/// address for its neighbours.
pub const HARDWARE_ADDRESS: [u8; 6] = [0x02, 0x54, 0x43, 0, 0, 1];
/// The prefix of all host addresses, extra ones included.
pub const PREFIX: &str = "10.64.0.0/10";
/// The most addresses of a host.
pub const MAX_ADDRESSES: u32 = 8;
/// The port on which hosts listen, above the source ports of flows and the kernel's ephemeral
/// ports. The second copy of a flow goes to the port after it.
pub const LISTEN_PORT: u16 = 62_000;
/// The most connections of a flow.
pub const MAX_COPIES: u16 = 2;
/// The port on which the last host listens for idle flows; no flow of the run uses it.
pub const IDLE_FLOW_PORT: u16 = LISTEN_PORT + MAX_COPIES;

/// Returns [`HARDWARE_ADDRESS`] in the notation of `ip`.
pub fn hardware_address() -> String {
    HARDWARE_ADDRESS.map(|byte| format!("{byte:02x}")).join(":")
}

/// Returns the address of a host.
pub fn address(host: u32) -> Ipv4Addr {
    extra_address(host, 0)
}

/// Returns a host's address of this number; number 0 is its own address.
fn extra_address(host: u32, number: u8) -> Ipv4Addr {
    let place = host + 1;
    Ipv4Addr::new(10, 77 + number, (place >> 8) as u8, place as u8)
}

/// Returns a host's `count` addresses besides its own.
pub fn extra_addresses(host: u32, count: u32) -> Vec<Ipv4Addr> {
    (1..=count as u8).map(|number| extra_address(host, number)).collect()
}

/// Returns the host of an address and the number of that address; none if it is no host's.
pub fn host_and_number(address: Ipv4Addr) -> Option<(u32, u8)> {
    let [10, place, high, low] = address.octets() else { return None };
    let number = place.checked_sub(77).filter(|number| u32::from(*number) < MAX_ADDRESSES)?;
    let host = (u32::from(high) << 8 | u32::from(low)).checked_sub(1)?;
    Some((host, number))
}

/// Returns the host whose own address it is, if any.
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
