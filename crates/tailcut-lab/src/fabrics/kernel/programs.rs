//! Switches that remember flows: a BPF program marks packets on their way in, as `nft` does for those that do not. Each switch has
//! a program of its own. A new one is a file in `bpf/`, what it is told here, and an arm in [`wanted`].

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;

use tailcut_net::balance::flowlet::Flowlet;
use tailcut_net::balance::BalanceSpec;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::PortId;

use super::lines::Switch;
use crate::programs::compiled;
use crate::sys::bpf::Object;

/// A program, and what every switch tells its own.
struct Wanted {
    /// Its file in `bpf/`.
    name: &'static str,
    /// Maps that have as many entries as the plan says.
    entries: Vec<(&'static str, u32)>,
    /// Its parameters, as its `struct settings` has them.
    settings: Vec<u8>,
}

/// The program that realises a balancer; none if it takes none.
fn wanted(balance: &BalanceSpec, framing: u32) -> Option<Wanted> {
    match balance {
        BalanceSpec::Flowlet(spec) => Some(flowlet(spec, framing)),
        _ => None,
    }
}

fn flowlet(spec: &Flowlet, framing: u32) -> Wanted {
    let long = [spec.gap.as_ns(), spec.bytes.0].map(u64::to_ne_bytes).concat();
    let short = [spec.entries, framing].map(u32::to_ne_bytes).concat();
    Wanted {
        name: "flowlet",
        entries: vec![("table", spec.entries)],
        settings: [long, short].concat(),
    }
}

/// A program for each switch of a run, where its balancer takes one. The kernel lets nobody but the machine's root do this.
pub fn load(scenario: &Scenario, directory: Option<&Path>) -> Result<Vec<Object>, String> {
    let framing = scenario.host.framing_overhead.0 as u32;
    let Some(wanted) = wanted(&scenario.scheme.balance, framing) else { return Ok(vec![]) };
    let bytes = compiled(directory, wanted.name)?;
    let one = |_| {
        let object = Object::load(&bytes, &wanted.entries, None)?;
        object.map("settings")?.set(&0_u32.to_ne_bytes(), &wanted.settings)?;
        Ok(object)
    };
    let all: io::Result<Vec<Object>> = (0..scenario.graph.switches).map(one).collect();
    all.map_err(|error| format!("the BPF program {}: {error}", wanted.name))
}

/// A switch's program is told how many ways lead to which host, where there are several.
pub fn tell(program: &Object, switch: &Switch<'_>) -> io::Result<()> {
    let ways = program.map("ways")?;
    for (address, count) in several(switch) {
        match count {
            0 => ways.remove(&address.octets())?,
            count => ways.set(&address.octets(), &count.to_ne_bytes())?,
        }
    }
    Ok(())
}

/// What a switch's program has been told is as it should be.
pub fn confirm(program: &Object, switch: &Switch<'_>) -> io::Result<()> {
    let ways = program.map("ways")?;
    for (address, count) in several(switch) {
        let there = ways.get(&address.octets())?;
        if there != (count > 0).then(|| count.to_ne_bytes().to_vec()) {
            let text = format!("the ways to {address} are {there:?}, not {count}");
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

/// How many ways lead to each host; 0 where there is nothing to choose.
fn several(switch: &Switch<'_>) -> Vec<(Ipv4Addr, u32)> {
    let ways = |ports: usize| if ports > 1 { ports as u32 } else { 0 };
    switch.hosts().map(|(_, address, ports)| (*address, ways(ports.len()))).collect()
}

/// A switch's program sees what comes in by these interfaces, for as long as what this gives is kept.
pub fn attach(program: &Object, interfaces: &[(u32, PortId)]) -> io::Result<Vec<OwnedFd>> {
    interfaces.iter().map(|(number, _)| program.attach("choose", *number)).collect()
}
