//! BPF programs of switches that remember flows: a program marks incoming packets, as `nft` does
//! for other balancers. Each switch has its own instance. A new one is a file in `bpf/`, and one in
//! [`super::balance`] with its parameters.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;

use tailcut_net::scenario::Scenario;
use tailcut_net::topology::PortId;

use super::balance;
use super::commands::SwitchTables;
use crate::bpf_programs::compiled;
use crate::sys::bpf::BpfObject;

/// A BPF program and its initial maps.
pub struct ProgramSpec {
    /// The name of its file in `bpf/`.
    pub name: &'static str,
    /// The parameters, laid out as its `struct settings`.
    pub settings: Vec<u8>,
    /// Empty maps, with their numbers of entries.
    pub empty: Vec<(&'static str, u32)>,
    /// Maps with their initial contents.
    pub filled: Vec<(&'static str, Vec<u64>)>,
}

/// Lays out parameters as a `struct settings`, the 64-bit ones first.
pub fn settings(long: &[u64], short: &[u32]) -> Vec<u8> {
    let long = long.iter().flat_map(|number| number.to_ne_bytes());
    long.chain(short.iter().flat_map(|number| number.to_ne_bytes())).collect()
}

impl ProgramSpec {
    fn load(&self, bytes: &[u8]) -> io::Result<BpfObject> {
        let filled = self.filled.iter().map(|(name, values)| (*name, values.len() as u32));
        let entries: Vec<(&str, u32)> = self.empty.iter().copied().chain(filled).collect();
        let object = BpfObject::load(bytes, &entries, None)?;
        object.map("settings")?.set(&0_u32.to_ne_bytes(), &self.settings)?;
        for (name, values) in &self.filled {
            let map = object.map(name)?;
            for (place, value) in (0_u32..).zip(values) {
                map.set(&place.to_ne_bytes(), &value.to_ne_bytes())?;
            }
        }
        Ok(object)
    }
}

/// Loads a program per switch, if the balancer needs one. Requires root of the machine.
///
/// # Errors
/// The reason why the programs cannot be loaded.
pub fn load(scenario: &Scenario, directory: Option<&Path>) -> Result<Vec<BpfObject>, String> {
    let Some(choice) = balance::find(&scenario.scheme.balance) else { return Ok(vec![]) };
    let mut all = vec![];
    let mut bytes = None;
    for switch in scenario.graph.each_switch() {
        let Some(wanted) = choice.program(scenario, switch) else { break };
        let bytes = match &mut bytes {
            Some(bytes) => bytes,
            none => none.insert(compiled(directory, wanted.name)?),
        };
        let loaded = wanted.load(bytes);
        all.push(loaded.map_err(|error| format!("the BPF program {}: {error}", wanted.name))?);
    }
    Ok(all)
}

/// Writes to the program's `ways` map how many equal-cost ports lead to each host; hosts with a
/// single port are removed.
///
/// # Errors
/// The kernel's error.
pub fn write_path_counts(program: &BpfObject, switch: &SwitchTables<'_>) -> io::Result<()> {
    let ways = program.map("ways")?;
    for (address, count) in path_counts(switch) {
        match count {
            0 => ways.remove(&address.octets())?,
            count => ways.set(&address.octets(), &count.to_ne_bytes())?,
        }
    }
    Ok(())
}

/// Verifies that the program's `ways` map matches the switch's routes.
///
/// # Errors
/// The first entry that differs.
pub fn verify_path_counts(program: &BpfObject, switch: &SwitchTables<'_>) -> io::Result<()> {
    let ways = program.map("ways")?;
    for (address, count) in path_counts(switch) {
        let there = ways.get(&address.octets())?;
        if there != (count > 0).then(|| count.to_ne_bytes().to_vec()) {
            let text = format!("the number of paths to {address} is {there:?}, not {count}");
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

/// Returns the number of equal-cost ports to each host; 0 if there is no choice.
fn path_counts(switch: &SwitchTables<'_>) -> Vec<(Ipv4Addr, u32)> {
    let ways = |ports: usize| if ports > 1 { ports as u32 } else { 0 };
    switch.hosts().map(|(_, address, ports)| (*address, ways(ports.len()))).collect()
}

/// Attaches a switch's program to the ingress of its interfaces, or of those to hosts only if the
/// balancer acts at the edge. It stays attached while the returned descriptors are open.
///
/// # Errors
/// The kernel's error.
pub fn attach(
    program: &BpfObject,
    scenario: &Scenario,
    interfaces: &[(u32, PortId)],
) -> io::Result<Vec<OwnedFd>> {
    let Scenario { graph, scheme, .. } = scenario;
    let edge_only = balance::find(&scheme.balance).is_some_and(|choice| choice.is_at_edge_only());
    let leads_to_host = |port: PortId| graph.switch(graph.far_end(port)).is_none();
    let seen = interfaces.iter().filter(|(_, port)| !edge_only || leads_to_host(*port));
    seen.map(|(number, _)| program.attach("choose", *number)).collect()
}
