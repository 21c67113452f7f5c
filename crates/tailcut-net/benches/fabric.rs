//! Speed and memory of the simulator on fat-trees: what a user's run costs.
//!
//! Web search at load 0.5 on 1 Gbps links of 1 us, 100-packet drop-tail ports,
//! an ACK per packet, 12 KB initial window, min RTO 10 ms, ECMP: 0.1 s of
//! arrivals and 0.1 s simulated. Each run is a process of its own, so that its
//! peak memory is that of a run. `cargo bench -p tailcut-net --bench fabric [-- CASE ...]`.

use std::ops::ControlFlow;
use std::process::Command;

use tailcut_engine::Time;
use tailcut_net::amount::Amount;
use tailcut_net::component::OneOrEach;
use tailcut_net::faults::FaultsSpec;
use tailcut_net::host::HostSpec;
use tailcut_net::queue::QueueSpec;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::{Horizon, Scenario, Scheme, SeriesSpec};
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::traffic::demand::Jobs;
use tailcut_net::traffic::poisson::Poisson;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::transport::tcp::{CongestionSpec, Recovery, TcpSpec};
use tailcut_net::transport::TransportSpec;

/// A row of the table: its name, the fabric's k, and the scheme.
struct Case {
    name: &'static str,
    k: u32,
    scheme: fn() -> Scheme,
}

fn tcp() -> Scheme {
    let spec = TcpSpec {
        initial_window: Amount::Bytes(12_000),
        min_rto: Time::from_ms(10),
        ..TcpSpec::default()
    };
    Scheme { transport: TransportSpec::Tcp(spec), ..Scheme::default() }
}

fn repflow() -> Scheme {
    Scheme { replicate: ReplicateSpec::Repflow(Default::default()), ..tcp() }
}

fn repsyn() -> Scheme {
    Scheme { replicate: ReplicateSpec::Repsyn(Default::default()), ..tcp() }
}

fn with(change: impl FnOnce(&mut TcpSpec)) -> Scheme {
    let mut scheme = tcp();
    if let TransportSpec::Tcp(spec) = &mut scheme.transport {
        change(spec);
    }
    scheme
}

fn sack() -> Scheme {
    with(|spec| spec.recovery = Recovery::SackPrr)
}

fn cubic() -> Scheme {
    with(|spec| spec.congestion = CongestionSpec::Cubic(Default::default()))
}

fn dctcp() -> Scheme {
    let scheme = with(|spec| spec.congestion = CongestionSpec::Dctcp(Default::default()));
    Scheme { queue: QueueSpec::Ecn(Default::default()), ..scheme }
}

fn pfabric() -> Scheme {
    Scheme {
        transport: TransportSpec::Pfabric(Default::default()),
        queue: QueueSpec::Pfabric(Default::default()),
        ..Scheme::default()
    }
}

fn mptcp() -> Scheme {
    Scheme { transport: TransportSpec::Mptcp(Default::default()), ..Scheme::default() }
}

fn mmptcp() -> Scheme {
    Scheme { transport: TransportSpec::Mmptcp(Default::default()), ..Scheme::default() }
}

const CASES: &[Case] = &[
    Case { name: "k4-tcp", k: 4, scheme: tcp },
    Case { name: "k8-tcp", k: 8, scheme: tcp },
    Case { name: "k16-tcp", k: 16, scheme: tcp },
    Case { name: "k16-repflow", k: 16, scheme: repflow },
    Case { name: "k16-repsyn", k: 16, scheme: repsyn },
    Case { name: "k16-sack", k: 16, scheme: sack },
    Case { name: "k16-cubic", k: 16, scheme: cubic },
    Case { name: "k16-dctcp", k: 16, scheme: dctcp },
    Case { name: "k16-pfabric", k: 16, scheme: pfabric },
    Case { name: "k16-mptcp", k: 16, scheme: mptcp },
    Case { name: "k16-mmptcp", k: 16, scheme: mmptcp },
];

fn scenario(case: &Case) -> Scenario {
    let no_files = |path: &str| -> std::io::Result<Vec<u8>> { panic!("reads no file: {path}") };
    let propagation = OneOrEach::One(Time::from_us(1));
    let topology = FatTree { k: case.k, propagation, ..FatTree::default() };
    let graph = topology.build().expect("k is even");
    let horizon = Horizon { arrivals: Time::from_ms(100), drain: Time::ZERO };
    let traffic = TrafficSpec::Poisson(Poisson { load: 0.5, ..Poisson::default() });
    let demand = traffic.generate(&graph, &horizon, 1, &no_files).expect("the traffic is valid");
    let flows = demand.flows;
    Scenario {
        faults: FaultsSpec::default(),
        switch: SwitchSpec::default(),
        graph,
        host: HostSpec::default(),
        scheme: (case.scheme)(),
        flows,
        horizon,
        seed: 1,
        jobs: Jobs::default(),
        series: SeriesSpec::default(),
    }
}

/// Peak resident memory of this process in megabytes.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: 0 kB");
    let kibibytes = line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) * 1024.0 / 1e6
}

/// Time that this process has spent on a processor, in seconds: on an idle machine the wall time, and
/// unlike it still meaningful on a busy one.
fn processor_seconds() -> f64 {
    let text =
        std::fs::read_to_string("/proc/self/schedstat").expect("Linux accounts for processes");
    let nanoseconds: f64 =
        text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    nanoseconds * 1e-9
}

/// Runs one case; prints its figures for the parent.
fn run(case: &Case) {
    let scenario = scenario(case);
    let start = processor_seconds();
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let outcome = tailcut_net::simulate(&scenario, go_on).expect("the scenario is valid");
    let seconds = processor_seconds() - start;
    let finished = || outcome.flows.iter().filter(|f| f.fct.is_some());
    let delivered: u64 = finished().map(|f| f.flow.bytes).sum();
    let (hops, memory) = (outcome.counters.packet_hops, peak_megabytes());
    let (flows, done) = (outcome.flows.len(), finished().count());
    println!("{hops} {seconds} {delivered} {memory} {flows} {done}");
}

/// The figures of the median of several runs, as `run` prints them.
fn measure(name: &str, repetitions: usize) -> Vec<f64> {
    let mut rows: Vec<Vec<f64>> = (0..repetitions)
        .map(|_| {
            let this = std::env::current_exe().expect("the benchmark has a path");
            let output =
                Command::new(this).args(["--one", name]).output().expect("it starts again");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
        })
        .collect();
    rows.sort_by(|a, b| a[1].total_cmp(&b[1]));
    rows.swap_remove(repetitions / 2)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name] = &arguments[..] {
        if flag == "--one" {
            return run(CASES.iter().find(|c| c.name == name).expect("a case of this benchmark"));
        }
    }
    println!("median of 3 runs on one core; web search at load 0.5, 0.1 s simulated");
    println!("case           packet-hops    cpu s  M hops/s  ns/hop  ms per MB done  peak MB  flows (done)");
    for case in
        CASES.iter().filter(|c| arguments.is_empty() || arguments.iter().any(|a| a == c.name))
    {
        let row = measure(case.name, 3);
        let (hops, seconds, megabytes) = (row[0], row[1], row[2] / 1e6);
        println!(
            "{:<14} {hops:>11} {seconds:>8.3} {:>9.2} {:>7.1} {:>15.3} {:>8.1}  {} ({})",
            case.name,
            hops / seconds / 1e6,
            seconds / hops * 1e9,
            seconds * 1e3 / megabytes,
            row[3],
            row[4],
            row[5]
        );
        if case.name == "k16-tcp" {
            extrapolate(seconds);
        }
    }
}

/// What the papers' study would cost: cost grows with load; this row is load 0.5 and 0.1 s of arrivals.
fn extrapolate(seconds: f64) {
    let all_loads: f64 = (1..=8).map(|load| seconds * 5.0 * f64::from(load) / 5.0).sum();
    let hours = all_loads * 10.0 * 5.0 / 3600.0;
    println!(
        "               8 loads x 10 seeds x 5 schemes x 0.5 s at k=16: {hours:.1} h on one core, \
         {:.1} h on two (the papers: over 900 machine-hours)",
        hours / 2.0
    );
}
