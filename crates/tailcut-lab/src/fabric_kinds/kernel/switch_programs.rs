//! Switches that remember flows: a BPF program marks packets on their way in, as `nft` does for those that do not. Each switch has
//! a program of its own. A new one is a file in `bpf/`, and one in
//! [`balance`](super::balance), which says what it is told.

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

/// A program, and what every switch tells its own.
pub struct ProgramSpec {
    /// Its file in `bpf/`.
    pub name: &'static str,
    /// Its parameters, as its `struct settings` has them.
    pub settings: Vec<u8>,
    /// Maps that have as many entries as the plan says, with nothing in them.
    pub empty: Vec<(&'static str, u32)>,
    /// Maps, and what is in them from the beginning.
    pub filled: Vec<(&'static str, Vec<u64>)>,
}

/// Parameters, the long ones first, as a `struct settings` has them.
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

/// A program for each switch of a run, where its balancer takes one. The kernel lets nobody but the machine's root do this.
///
/// # Errors
/// Why there are none.
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

/// A switch's program is told how many ways lead to which host, where there are several.
///
/// # Errors
/// The kernel's.
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

/// What a switch's program has been told is as it should be.
///
/// # Errors
/// What is not.
pub fn verify_path_counts(program: &BpfObject, switch: &SwitchTables<'_>) -> io::Result<()> {
    let ways = program.map("ways")?;
    for (address, count) in path_counts(switch) {
        let there = ways.get(&address.octets())?;
        if there != (count > 0).then(|| count.to_ne_bytes().to_vec()) {
            let text = format!("the ways to {address} are {there:?}, not {count}");
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

/// How many ways lead to each host; 0 where there is nothing to choose.
fn path_counts(switch: &SwitchTables<'_>) -> Vec<(Ipv4Addr, u32)> {
    let ways = |ports: usize| if ports > 1 { ports as u32 } else { 0 };
    switch.hosts().map(|(_, address, ports)| (*address, ways(ports.len()))).collect()
}

/// A switch's program sees what comes in by these interfaces, for as long as what this gives is kept: by those to hosts alone, where
/// it is one of the edge.
///
/// # Errors
/// The kernel's.
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
