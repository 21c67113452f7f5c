//! A host's namespace: its interface, address, route and sysctls, each read back.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::settings::{HostSettings, MOST_ADDRESSES};
use crate::sys::link::no_offloads;
use crate::tools::Tool;

/// The interface of every host.
pub const INTERFACE: &str = "eth0";
/// The hardware address of every host: with ARP off, the kernel takes its own for that of its neighbours.
pub const HARDWARE: [u8; 6] = [0x02, 0x54, 0x43, 0, 0, 1];
/// The addresses of all hosts, further ones among them.
pub const PREFIX: &str = "10.64.0.0/10";

/// [`HARDWARE`], as `ip` has it.
pub fn hardware() -> String {
    HARDWARE.map(|byte| format!("{byte:02x}")).join(":")
}

/// The address of a host.
pub fn address(host: u32) -> Ipv4Addr {
    further(host, 0)
}

/// A host's address of this number; the first is its own.
fn further(host: u32, number: u8) -> Ipv4Addr {
    let place = host + 1;
    Ipv4Addr::new(10, 77 + number, (place >> 8) as u8, place as u8)
}

/// A host's addresses besides its own.
pub fn further_addresses(host: u32, settings: &HostSettings) -> Vec<Ipv4Addr> {
    (1..=settings.further_addresses as u8).map(|number| further(host, number)).collect()
}

/// The host of an address, and which of its addresses it is.
pub fn end_of(address: Ipv4Addr) -> Option<(u32, u8)> {
    let [10, place, high, low] = address.octets() else { return None };
    let number = place.checked_sub(77).filter(|number| u32::from(*number) < MOST_ADDRESSES)?;
    let host = (u32::from(high) << 8 | u32::from(low)).checked_sub(1)?;
    Some((host, number))
}

/// The host whose own address it is.
pub fn host_of(address: Ipv4Addr) -> Option<u32> {
    end_of(address).filter(|(_, number)| *number == 0).map(|(host, _)| host)
}

/// What a host is set to, as the kernel says it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReadBack {
    /// Sysctls.
    pub sysctls: Vec<(String, String)>,
    /// What its interface may do to packets, and whether it does.
    pub offloads: Vec<(String, bool)>,
    /// Its route, as `ip -json route` has it.
    pub route: serde_json::Value,
}

fn sysctl_file(name: &str) -> String {
    format!("/proc/sys/net/{name}")
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sets sysctls below `net.` in this process's namespace, and that there is no IPv6, and reads them back.
///
/// # Errors
/// One that cannot be had, or did not take.
pub fn set(sysctls: &[(&'static str, String)]) -> io::Result<Vec<(String, String)>> {
    let mut done = vec![];
    let no_ipv6 = ("ipv6/conf/all/disable_ipv6", "1".to_owned());
    for (name, value) in sysctls.iter().chain([&no_ipv6]) {
        let file = sysctl_file(name);
        if *name == no_ipv6.0 && !Path::new(&file).exists() {
            continue; // a kernel without IPv6 sends none
        }
        let said = |error: io::Error| io::Error::other(format!("sysctl net/{name}: {error}"));
        fs::write(&file, value).map_err(said)?;
        let found = words(&fs::read_to_string(&file).map_err(said)?);
        if found != words(value) {
            let message = format!("sysctl net/{name} is {found:?} and not {value:?}");
            return Err(io::Error::other(message));
        }
        done.push(((*name).to_owned(), found));
    }
    Ok(done)
}

/// Sets up the namespace that this process is in, whose interface is there and down.
///
/// # Errors
/// What cannot be had, or did not take.
pub fn set_up(host: u32, settings: &HostSettings) -> io::Result<ReadBack> {
    let mut done = ReadBack { sysctls: set(&settings.sysctls)?, ..ReadBack::default() };
    done.offloads = no_offloads(INTERFACE)?;
    let attributes: Vec<String> =
        settings.route.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let (own, attributes) = (address(host), attributes.join(" "));
    let more = further_addresses(host, settings)
        .iter()
        .map(|address| format!("address add {address}/32 dev {INTERFACE}\n"))
        .collect::<String>();
    Tool::Ip.does(&format!(
        "link set lo up\n\
         address add {own}/32 dev {INTERFACE}\n\
         {more}\
         link set {INTERFACE} arp off up\n\
         route add {PREFIX} dev {INTERFACE} src {own} congctl {} {attributes}\n",
        settings.congestion
    ))?;
    done.route = route()?;
    confirm(&done.route, settings)?;
    Ok(done)
}

fn route() -> io::Result<serde_json::Value> {
    let said = Tool::Ip.says(&["-json", "route", "show", "dev", INTERFACE])?;
    let routes: serde_json::Value = serde_json::from_str(&said)?;
    Ok(routes.get(0).cloned().unwrap_or_default())
}

/// Every attribute that was asked for is there.
fn confirm(route: &serde_json::Value, settings: &HostSettings) -> io::Result<()> {
    let empty = serde_json::Value::Null;
    let metrics = route.get("metrics").and_then(|metrics| metrics.get(0)).unwrap_or(&empty);
    let found = |name: &str| {
        let value = metrics.get(name).or_else(|| route.get(name)).unwrap_or(&empty);
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let congestion = ("congestion", settings.congestion.clone());
    for (name, value) in settings.route.iter().chain([&congestion]) {
        let there = found(name);
        // Times are shown in milliseconds, with or without the unit.
        if there.trim_end_matches("ms") != value.trim_end_matches("ms") {
            let message = format!("the route's {name} is {there} and not {value}: {route}");
            return Err(io::Error::other(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_addresses_of_their_own_and_never_a_broadcast() {
        for host in [0, 1, 254, 255, 256] {
            assert_eq!(host_of(address(host)), Some(host));
        }
        assert_eq!(address(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(host_of(Ipv4Addr::new(192, 0, 2, 1)), None);
        assert_eq!(host_of(Ipv4Addr::new(10, 77, 0, 0)), None);
        assert_eq!(end_of(address(255)), Some((255, 0)));
        assert_eq!(end_of(further(255, 7)), Some((255, 7)));
        assert_eq!((host_of(further(255, 7)), end_of(further(255, 8))), (None, None));
        let with =
            |further_addresses| HostSettings { further_addresses, ..HostSettings::default() };
        assert_eq!(further_addresses(4, &with(2)), [further(4, 1), further(4, 2)]);
        assert_eq!(further_addresses(4, &with(0)), [] as [Ipv4Addr; 0]);
    }
}
