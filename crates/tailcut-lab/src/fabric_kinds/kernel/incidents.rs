//! Failures during a run: links by `ip link`, rates by `tbf`, and routes at reconvergence.

use std::collections::BTreeSet;
use std::io;

use tailcut_engine::{Rate, Time};
use tailcut_net::faults::{Change, ChangeKind, FaultsSpec};
use tailcut_net::topology::{Graph, PortId, Routes, SwitchId};

use super::commands::{change_rate, interface};
use super::switches::Switches;
use crate::fabric::ports::near_end;
use crate::sys::process;
use crate::tools::Tool;

/// Returns both directions of every link that is down at some time.
///
/// # Errors
/// The incidents do not fit the network.
pub fn ports_taken_down(faults: &FaultsSpec, graph: &Graph) -> io::Result<BTreeSet<PortId>> {
    let changes = faults.changes(graph).map_err(io::Error::other)?;
    let links = changes.iter().filter_map(|change| match change.what {
        ChangeKind::Down { link, .. } => Some(link as usize),
        _ => None,
    });
    Ok(links.flat_map(PortId::both_directions).collect())
}

/// Pending changes, and the state of the links.
pub struct Incidents {
    changes: Vec<Change>,
    next: usize,
    /// Per link: the number of incidents that keep it down, and how many of them routing knows.
    down: Vec<u16>,
    known: Vec<u16>,
}

impl Incidents {
    /// Creates the changes of a run.
    ///
    /// # Errors
    /// The incidents do not fit the network.
    pub fn new(switches: &Switches<'_>) -> io::Result<Incidents> {
        let scenario = &switches.prepared.scenario;
        let changes = scenario.faults.changes(&scenario.graph).map_err(io::Error::other)?;
        let links = scenario.graph.links.len();
        Ok(Incidents { changes, next: 0, down: vec![0; links], known: vec![0; links] })
    }

    /// Returns when the next change is due, from the start of the run.
    pub fn next(&self) -> Option<Time> {
        self.changes.get(self.next).map(|change| change.at)
    }

    /// Carries out the changes that are due by now.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn carry_out(&mut self, now: Time, switches: &mut Switches<'_>) -> io::Result<()> {
        let count = |down: bool, reasons: u16| if down { reasons + 1 } else { reasons - 1 };
        let mut touched = BTreeSet::new();
        let mut rates: Vec<(PortId, Option<Rate>)> = vec![];
        let mut learned = false;
        while let Some(&change) = self.changes.get(self.next).filter(|change| change.at <= now) {
            self.next += 1;
            match change.what {
                ChangeKind::Down { link, down } => {
                    let reasons = &mut self.down[link as usize];
                    *reasons = count(down, *reasons);
                    touched.insert(link as usize);
                }
                ChangeKind::Learned { link, down } => {
                    let reasons = &mut self.known[link as usize];
                    *reasons = count(down, *reasons);
                    learned = true;
                }
                ChangeKind::Rate(port, rate) => rates.push((port, rate)),
                ChangeKind::Loss(..) | ChangeKind::Delay(..) | ChangeKind::Noticed { .. } => {}
            }
        }
        for link in touched {
            switches.set_link(link, self.down[link] == 0)?;
        }
        for (port, rate) in rates {
            switches.set_rate(port, rate)?;
        }
        if learned {
            let known = &self.known;
            let graph = &switches.prepared.scenario.graph;
            let whole = Routes::new(graph).map_err(io::Error::other)?;
            let routes = whole.avoiding(graph, |link| known[link] == 0);
            switches.learn(routes.map_err(io::Error::other)?)?;
        }
        process::join_network(&switches.home)
    }
}

impl Switches<'_> {
    /// Sets a link up or down at its ends that are switches: a host would lose its route. The other
    /// end of a link that is down cannot send either.
    fn set_link(&mut self, link: usize, up: bool) -> io::Result<()> {
        match up {
            true => self.down.remove(&link),
            false => self.down.insert(link),
        };
        let (graph, how) = (&self.prepared.scenario.graph, if up { "up" } else { "down" });
        for port in PortId::both_directions(link) {
            let node = near_end(graph, port);
            if let Some(number) = graph.switch(node) {
                let line = format!("link set {} {how}\n", interface(port));
                self.within(node, || Tool::Ip.run_batch(&line))?;
                self.stale.insert(number);
                self.unverified.insert(node);
            }
        }
        Ok(())
    }

    /// Restores the routes that the kernel removed, or marked as dead, with a failed link; the
    /// kernel does not restore all of them when the link is up again.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn restore_routes(&mut self) -> io::Result<()> {
        while let Some(number) = self.stale.pop_first() {
            self.restore_switch(number)?;
        }
        process::join_network(&self.home)
    }

    fn restore_switch(&mut self, number: SwitchId) -> io::Result<()> {
        let node = number.node(self.prepared.scenario.graph.hosts);
        self.within(node, || self.set_routes(number))?;
        let (routes, most) = {
            let switch = self.switch(number);
            (switch.routes(), switch.largest_mark())
        };
        self.applied[number.index()] = routes;
        let ruled = &mut self.ruled[number.index()];
        *ruled = most.max(*ruled);
        self.unverified.insert(node);
        Ok(())
    }

    /// Undoes what the run has left broken: sets links up, resets rates, and restores the initial
    /// routes of every switch.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn repair(&mut self) -> io::Result<()> {
        for link in self.down.clone() {
            self.set_link(link, true)?;
        }
        for port in self.rates.keys().copied().collect::<Vec<_>>() {
            self.set_rate(port, None)?;
        }
        let whole = Routes::new(&self.prepared.scenario.graph).map_err(io::Error::other)?;
        self.learn(whole)?;
        self.restore_routes()
    }

    fn set_rate(&mut self, port: PortId, rate: Option<Rate>) -> io::Result<()> {
        match rate {
            Some(rate) => self.rates.insert(port, rate),
            None => self.rates.remove(&port),
        };
        let scenario = &self.prepared.scenario;
        let (_, limit) = self.rate_and_limit(port);
        let (mtu, framing) = (self.prepared.hosts.mtu, scenario.host.framing_overhead.0);
        let name = self.interface(port);
        let lines = change_rate(&name, self.rate(port), limit, mtu, framing);
        let node = near_end(&scenario.graph, port);
        self.unverified.insert(node);
        self.within(node, || Tool::Tc.run_batch(&lines))
    }

    /// Installs new routes on every switch whose routes change.
    fn learn(&mut self, routes: Routes) -> io::Result<()> {
        self.routes = routes;
        self.rerouted = true;
        let graph = &self.prepared.scenario.graph;
        for number in graph.each_switch() {
            if self.switch(number).routes() != self.applied[number.index()] {
                self.restore_switch(number)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tailcut_net::topology::chain::Chain;
    use tailcut_net::topology::find::link_name;

    use super::*;

    /// Returns the links of a chain of two hosts and two switches that these incidents take down.
    fn links(incidents: serde_json::Value) -> BTreeSet<String> {
        let chain: Chain = serde_json::from_value(json!({})).expect("it is a chain");
        let graph = chain.build().expect("it can be built");
        let faults = serde_json::from_value(json!({ "incidents": incidents }));
        let down =
            ports_taken_down(&faults.expect("they are faults"), &graph).expect("they suit it");
        down.into_iter().map(|port| link_name(&graph, port)).collect()
    }

    fn named<const COUNT: usize>(names: [&str; COUNT]) -> BTreeSet<String> {
        names.map(str::to_owned).into()
    }

    #[test]
    fn rate_changes_take_no_link_down() {
        let slow = json!({ "kind": "rate", "link": "s0>s1", "rate": "1Mbps", "at": "1ms" });
        assert_eq!(links(json!([])), named([]));
        assert_eq!(links(json!([slow])), named([]));
        let fails = json!({ "kind": "link-down", "link": "h0>s0", "at": "2ms", "until": "3ms" });
        assert_eq!(links(json!([slow, fails])), named(["h0>s0", "s0>h0"]));
        let fails = json!({ "kind": "switch-down", "switch": "s1", "at": "2ms" });
        assert_eq!(links(json!([fails])), named(["s0>s1", "s1>s0", "s1>h1", "h1>s1"]));
    }
}
