//! Set-up of a host's namespace: interface, address, route and sysctls, each read back.

use std::io;

use crate::addressing::{INTERFACE, PREFIX, address, extra_addresses};
use crate::host_settings::HostSettings;
use crate::messages::HostReadBack;
use crate::sys::link::disable_offloads;
use crate::sys::sysctl::set_sysctls;
use crate::tools::Tool;

/// Sets up the current namespace as that of a host; its interface exists and is down.
///
/// # Errors
/// A setting that the kernel refuses, or that has another value when read back.
pub fn set_up(host: u32, settings: &HostSettings) -> io::Result<HostReadBack> {
    let mut done =
        HostReadBack { sysctls: set_sysctls(&settings.sysctls)?, ..HostReadBack::default() };
    done.offloads = disable_offloads(INTERFACE)?;
    let attributes: Vec<String> =
        settings.route.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let (own, attributes) = (address(host), attributes.join(" "));
    let more = extra_addresses(host, settings.further_addresses)
        .iter()
        .map(|address| format!("address add {address}/32 dev {INTERFACE}\n"))
        .collect::<String>();
    Tool::Ip.run_batch(&format!(
        "link set lo up\n\
         address add {own}/32 dev {INTERFACE}\n\
         {more}\
         link set {INTERFACE} arp off up\n\
         route add {PREFIX} dev {INTERFACE} src {own} congctl {} {attributes}\n",
        settings.congestion
    ))?;
    done.route = route()?;
    verify_route(&done.route, settings)?;
    Ok(done)
}

fn route() -> io::Result<serde_json::Value> {
    let said = Tool::Ip.output(&["-json", "route", "show", "dev", INTERFACE])?;
    let routes: serde_json::Value = serde_json::from_str(&said)?;
    Ok(routes.get(0).cloned().unwrap_or_default())
}

/// Verifies that the route has every requested attribute.
fn verify_route(route: &serde_json::Value, settings: &HostSettings) -> io::Result<()> {
    let empty = serde_json::Value::Null;
    let metrics = route.get("metrics").and_then(|metrics| metrics.get(0)).unwrap_or(&empty);
    let found = |name: &str| {
        let value = metrics.get(name).or_else(|| route.get(name)).unwrap_or(&empty);
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let congestion = ("congestion", settings.congestion.clone());
    for (name, value) in settings.route.iter().chain([&congestion]) {
        let there = found(name);
        // `ip` prints times in milliseconds, with or without the unit.
        if there.trim_end_matches("ms") != value.trim_end_matches("ms") {
            let message = format!("the route's {name} is {there}, not {value}: {route}");
            return Err(io::Error::other(message));
        }
    }
    Ok(())
}
