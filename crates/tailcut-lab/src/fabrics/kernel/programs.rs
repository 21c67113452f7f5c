//! Switches that remember flows: a BPF program marks packets on their way in, as `nft` does for those that do not. Each switch has
//! a program of its own. A new one is a file in `bpf/`, what it is told here, and an arm in [`wanted`].

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;

use tailcut_engine::Stream;
use tailcut_net::balance::flowlet::Flowlet;
use tailcut_net::balance::tinyflow::{Detect, TinyFlow};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{PortId, SwitchId};

use super::lines::Switch;
use crate::programs::compiled;
use crate::sys::bpf::Object;

/// A program, and what every switch tells its own.
struct Wanted {
    /// Its file in `bpf/`.
    name: &'static str,
    /// Its parameters, as its `struct settings` has them.
    settings: Vec<u8>,
    /// Maps that have as many entries as the plan says, with nothing in them.
    empty: Vec<(&'static str, u32)>,
    /// Maps, and what is in them from the beginning.
    filled: Vec<(&'static str, Vec<u64>)>,
}

/// The program that realises a run's balancer at a switch; none if it takes none.
fn wanted(scenario: &Scenario, switch: SwitchId) -> Option<Wanted> {
    let framing = scenario.host.framing_overhead.0 as u32;
    match &scenario.scheme.balance {
        BalanceSpec::Flowlet(spec) => Some(flowlet(spec, framing)),
        BalanceSpec::TinyFlow(spec) => {
            let stream = Stream::new(scenario.seed, u64::from(switch.0), "samples of kernels");
            Some(tinyflow(spec, framing, scenario.graph.hosts, stream))
        }
        _ => None,
    }
}

fn flowlet(spec: &Flowlet, framing: u32) -> Wanted {
    Wanted {
        name: "flowlet",
        settings: settings(&[spec.gap.as_ns(), spec.bytes.0], &[spec.entries, framing]),
        empty: vec![("table", spec.entries)],
        filled: vec![],
    }
}

/// So many skips are there to be drawn from: a power of two.
const SKIPS: u32 = 1_024;

fn tinyflow(spec: &TinyFlow, framing: u32, hosts: u32, mut stream: Stream) -> Wanted {
    let TinyFlow {
        detect,
        sample_every,
        samples,
        window,
        poll_every,
        elephant,
        reroute_every,
        reroute: _,
        forget,
    } = spec;
    let random = matches!(detect, Detect::RandomSkip | Detect::RandomSkipSwitch);
    let per_host = matches!(detect, Detect::RandomSkip | Detect::ExactPort);
    let polls = matches!(detect, Detect::PolledCounters);
    let skips = if random { quantiles(sample_every.0) } else { vec![sample_every.0] };
    let samplers = if per_host { hosts } else { 1 };
    let begin = (0..samplers).map(|_| skips[stream.below(skips.len() as u64) as usize]).collect();
    let long = [
        window.as_ns(),
        forget.as_ns(),
        if polls { poll_every.as_ns().max(1) } else { 0 },
        elephant.0,
        reroute_every.0,
    ];
    let short = [*samples, u32::from(per_host), skips.len() as u32 - 1, framing];
    Wanted {
        name: "tinyflow",
        settings: settings(&long, &short),
        empty: vec![],
        filled: vec![("skips", skips), ("samplers", begin)],
    }
}

/// Numbers of which each is as likely, with this mean: the middles of as many parts of an exponential distribution.
fn quantiles(mean: u64) -> Vec<u64> {
    let middle = |part: u32| (f64::from(part) + 0.5) / f64::from(SKIPS);
    let all = || (0..SKIPS).map(|part| -(-middle(part)).ln_1p());
    let cut = all().sum::<f64>() / f64::from(SKIPS);
    all().map(|skip| (mean as f64 * skip / cut).round().max(1.0) as u64).collect()
}

fn settings(long: &[u64], short: &[u32]) -> Vec<u8> {
    let long = long.iter().flat_map(|number| number.to_ne_bytes());
    long.chain(short.iter().flat_map(|number| number.to_ne_bytes())).collect()
}

impl Wanted {
    fn load(&self, bytes: &[u8]) -> io::Result<Object> {
        let filled = self.filled.iter().map(|(name, values)| (*name, values.len() as u32));
        let entries: Vec<(&str, u32)> = self.empty.iter().copied().chain(filled).collect();
        let object = Object::load(bytes, &entries, None)?;
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
pub fn load(scenario: &Scenario, directory: Option<&Path>) -> Result<Vec<Object>, String> {
    let mut all = vec![];
    let mut bytes = None;
    for switch in scenario.graph.each_switch() {
        let Some(wanted) = wanted(scenario, switch) else { break };
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
///
/// # Errors
/// What is not.
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

/// A switch's program sees what comes in by these interfaces, for as long as what this gives is kept: by those to hosts alone, where
/// it is one of the edge.
///
/// # Errors
/// The kernel's.
pub fn attach(
    program: &Object,
    scenario: &Scenario,
    interfaces: &[(u32, PortId)],
) -> io::Result<Vec<OwnedFd>> {
    let Scenario { graph, scheme, .. } = scenario;
    let edge_only = matches!(scheme.balance, BalanceSpec::TinyFlow(_));
    let leads_to_host = |port: PortId| graph.switch(graph.far_end(port)).is_none();
    let seen = interfaces.iter().filter(|(_, port)| !edge_only || leads_to_host(*port));
    seen.map(|(number, _)| program.attach("choose", *number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_have_the_mean_of_the_plan_and_are_as_long_as_without_memory() {
        let skips = quantiles(100_000);
        let count = |at_least: f64| {
            let longer = skips.iter().filter(|skip| **skip as f64 >= at_least * 100_000.0).count();
            longer as f64 / skips.len() as f64
        };
        let mean = skips.iter().sum::<u64>() as f64 / skips.len() as f64;
        assert!((mean - 100_000.0).abs() < 1.0, "{mean}");
        for at_least in [0.1_f64, 0.5, 1.0, 2.0, 4.0] {
            assert!((count(at_least) - (-at_least).exp()).abs() < 0.002, "{at_least}");
        }
        assert_eq!(quantiles(1).iter().min(), Some(&1));
    }

    #[test]
    fn a_sampler_for_each_host_or_for_the_switch_begins_with_a_skip() {
        let made = |detect| {
            let spec = TinyFlow { detect, ..TinyFlow::default() };
            let wanted = tinyflow(&spec, 38, 6, Stream::new(1, 0, "samples of kernels"));
            let count =
                |name| wanted.filled.iter().find(|(of, _)| *of == name).expect("it is").1.len();
            assert_eq!(wanted.settings.len(), 56);
            (count("skips"), count("samplers"))
        };
        assert_eq!(made(Detect::RandomSkip), (1_024, 6));
        assert_eq!(made(Detect::RandomSkipSwitch), (1_024, 1));
        assert_eq!(made(Detect::ExactPort), (1, 6));
        assert_eq!(made(Detect::ExactSwitch), (1, 1));
    }
}
