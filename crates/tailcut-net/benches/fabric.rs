//! Speed and memory of the simulator on fat-trees: what a user's run costs.
//!
//! Web search at load 0.5 on links of 1 Gbps and 1 us, 100-packet drop-tail ports, an ACK per
//! packet, 12 KB initial window, min RTO 10 ms, ECMP: 0.1 s of arrivals and 0.1 s simulated. Each
//! run has its own process, so its peak memory is that of one run. `cargo bench -p tailcut-net
//! --bench fabric [-- [--check] CASE ...]`.

use std::ops::ControlFlow;
use std::process::{Command, ExitCode};

use tailcut_engine::{Bytes, Time};
use tailcut_net::amount::Amount;
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::spray::Spray;
use tailcut_net::component::OneOrEach;
use tailcut_net::faults::FaultsSpec;
use tailcut_net::host::HostSpec;
use tailcut_net::measure::attribution::Attribution;
use tailcut_net::measure::paths::FlowPaths;
use tailcut_net::measure::records::{FlowRecord, Outcome};
use tailcut_net::queue::QueueSpec;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::{Horizon, Scenario, Scheme, SeriesSpec};
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::traffic::demand::Jobs;
use tailcut_net::traffic::poisson::Poisson;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::entropy::EntropySpec;
use tailcut_net::transport::tcp::{CongestionSpec, Recovery, ReorderingSpec, TcpSpec};
use tailcut_net::transport::uet::UetSpec;

const HELP: &str = "\
cargo bench -p tailcut-net --bench fabric [-- [--check] CASE ...]

Prints a row for each case, for all of them when none is named. With --check it fails when a scheme at k = 16 takes more
processor time per packet-hop than it may: 1.5 times plain TCP's, with queues that decide the order at departure (pFabric,
NDP, Ultra Ethernet, deficit round robin) and where links are paused 2.5 times, with CONGA 2 times, with BBR and where completion times
are attributed 1.75 times; no bound is set to watching the fabric. It fails as well when a packet-hop of plain TCP takes more than 1.6 times as long at k = 16 as at k = 4. What is beyond that is measured again
first, five times in turns with what it is held against, and the median of the five ratios counts.";

/// Returns the most processor time per packet-hop of a scheme, in multiples of plain TCP's.
fn most_times_tcp(case: &Case) -> f64 {
    let Scheme { queue, balance, .. } = (case.scheme)();
    match (queue, balance) {
        _ if case.name.ends_with(ATTRIBUTED) => 1.75,
        _ if case.name.ends_with(WATCHED) => f64::INFINITY,
        (QueueSpec::Pfabric(_) | QueueSpec::Trimming(_) | QueueSpec::Drr(_), _) => 2.5,
        _ if case.name.ends_with(PAUSED) => 2.5,
        // CONGA keeps a rate for every link, and reads and writes a packet's metric at every
        // switch.
        (_, BalanceSpec::Conga(_)) => 2.0,
        _ if is_bbr(case) => 1.75,
        _ => 1.5,
    }
}

/// Returns whether a case uses BBR, which samples the rate at every acknowledgement and sets a
/// timer for every segment.
fn is_bbr(case: &Case) -> bool {
    let TransportSpec::Tcp(spec) = (case.scheme)().transport else { return false };
    matches!(spec.congestion, CongestionSpec::Bbr(_))
}

/// The suffix of cases with attribution of completion times.
const ATTRIBUTED: &str = "-attribution";
/// The suffix of cases that sample every port at the default number of instants and record the
/// links of flows.
const WATCHED: &str = "-watched";
const INSTANTS: u32 = 400;
/// The suffix of cases with flow control by pause frames.
const PAUSED: &str = "-pfc";

/// The longest time per packet-hop of plain TCP at k = 16, in multiples of that at k = 4.
const MOST_GROWTH: f64 = 1.6;

/// A row of the table: its name, the fabric's k, the simulated milliseconds of arrivals, and the
/// scheme.
struct Case {
    name: &'static str,
    k: u32,
    milliseconds: u64,
    scheme: fn() -> Scheme,
}

fn tcp() -> Scheme {
    let spec = TcpSpec {
        initial_window: Amount::Bytes(12_000),
        recovery: Recovery::Newreno,
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

fn adaptive() -> Scheme {
    with(|spec| {
        spec.recovery = Recovery::SackPrr;
        spec.reordering = ReorderingSpec::Adaptive(Default::default());
    })
}

fn repflow_dctcp() -> Scheme {
    Scheme { replicate: ReplicateSpec::Repflow(Default::default()), ..dctcp() }
}

fn spray() -> Scheme {
    Scheme { balance: BalanceSpec::Spray(Spray {}), ..tcp() }
}

fn spray_adaptive() -> Scheme {
    Scheme { balance: BalanceSpec::Spray(Spray {}), ..adaptive() }
}

fn flowlet() -> Scheme {
    Scheme { balance: BalanceSpec::Flowlet(Default::default()), ..tcp() }
}

fn conga() -> Scheme {
    Scheme { balance: BalanceSpec::Conga(Default::default()), ..tcp() }
}

fn tinyflow() -> Scheme {
    Scheme { balance: BalanceSpec::TinyFlow(Default::default()), ..tcp() }
}

fn pfabric() -> Scheme {
    Scheme {
        transport: TransportSpec::Pfabric(Default::default()),
        queue: QueueSpec::Pfabric(Default::default()),
        ..Scheme::default()
    }
}

fn ndp() -> Scheme {
    Scheme {
        transport: TransportSpec::Ndp(Default::default()),
        queue: QueueSpec::Trimming(Default::default()),
        balance: BalanceSpec::Spray(Spray {}),
        ..Scheme::default()
    }
}

fn uet() -> Scheme {
    let transport = TransportSpec::Uet(UetSpec { mss: Bytes(1460), ..UetSpec::default() });
    Scheme { transport, queue: QueueSpec::Trimming(Default::default()), ..Scheme::default() }
}

fn reps() -> Scheme {
    with(|spec| {
        spec.recovery = Recovery::SackPrr;
        spec.reordering = ReorderingSpec::Rack(Default::default());
        spec.entropy = Some(EntropySpec::Reps(Default::default()));
    })
}

fn plb() -> Scheme {
    let mut scheme = dctcp();
    if let TransportSpec::Tcp(spec) = &mut scheme.transport {
        spec.entropy = Some(EntropySpec::Plb(Default::default()));
    }
    scheme
}

fn swift() -> Scheme {
    with(|spec| spec.congestion = CongestionSpec::Swift(Default::default()))
}

fn bbr() -> Scheme {
    with(|spec| {
        spec.recovery = Recovery::SackPrr;
        spec.congestion = CongestionSpec::Bbr(Default::default());
    })
}

fn drill() -> Scheme {
    Scheme { balance: BalanceSpec::Drill(Default::default()), ..tcp() }
}

fn drr() -> Scheme {
    Scheme { queue: QueueSpec::Drr(Default::default()), ..tcp() }
}

fn hedge() -> Scheme {
    Scheme { replicate: ReplicateSpec::Hedge(Default::default()), ..tcp() }
}

fn mptcp() -> Scheme {
    Scheme { transport: TransportSpec::Mptcp(Default::default()), ..Scheme::default() }
}

fn mmptcp() -> Scheme {
    Scheme { transport: TransportSpec::Mmptcp(Default::default()), ..Scheme::default() }
}

const CASES: &[Case] = &[
    // Ten times as long as the others: 0.1 s would take only 14 ms, and scatter from 30 to 48 ns
    // per packet-hop.
    Case { name: SMALL, k: 4, milliseconds: 1000, scheme: tcp },
    Case { name: "k8-tcp", k: 8, milliseconds: 100, scheme: tcp },
    Case { name: "k64-tcp", k: 64, milliseconds: 1, scheme: tcp },
    Case { name: "k82-tcp", k: 82, milliseconds: 1, scheme: tcp },
    Case { name: PLAIN, k: 16, milliseconds: 100, scheme: tcp },
    Case { name: "k16-tcp-attribution", k: 16, milliseconds: 100, scheme: tcp },
    Case { name: "k16-tcp-watched", k: 16, milliseconds: 100, scheme: tcp },
    Case { name: "k16-repflow", k: 16, milliseconds: 100, scheme: repflow },
    Case { name: "k16-repsyn", k: 16, milliseconds: 100, scheme: repsyn },
    Case { name: "k16-sack", k: 16, milliseconds: 100, scheme: sack },
    Case { name: "k16-cubic", k: 16, milliseconds: 100, scheme: cubic },
    Case { name: "k16-dctcp", k: 16, milliseconds: 100, scheme: dctcp },
    Case { name: "k16-repflow-dctcp", k: 16, milliseconds: 100, scheme: repflow_dctcp },
    Case { name: "k16-spray", k: 16, milliseconds: 100, scheme: spray },
    Case { name: "k16-spray-adaptive", k: 16, milliseconds: 100, scheme: spray_adaptive },
    Case { name: "k16-spray-attribution", k: 16, milliseconds: 100, scheme: spray },
    Case { name: "k16-flowlet", k: 16, milliseconds: 100, scheme: flowlet },
    Case { name: "k16-conga", k: 16, milliseconds: 100, scheme: conga },
    Case { name: "k16-tinyflow", k: 16, milliseconds: 100, scheme: tinyflow },
    Case { name: "k16-pfabric", k: 16, milliseconds: 100, scheme: pfabric },
    Case { name: "k16-ndp", k: 16, milliseconds: 100, scheme: ndp },
    Case { name: "k16-uet", k: 16, milliseconds: 100, scheme: uet },
    Case { name: "k16-reps", k: 16, milliseconds: 100, scheme: reps },
    Case { name: "k16-plb", k: 16, milliseconds: 100, scheme: plb },
    Case { name: "k16-swift", k: 16, milliseconds: 100, scheme: swift },
    Case { name: "k16-bbr", k: 16, milliseconds: 100, scheme: bbr },
    Case { name: "k16-drill", k: 16, milliseconds: 100, scheme: drill },
    Case { name: "k16-drr", k: 16, milliseconds: 100, scheme: drr },
    Case { name: "k16-pfc", k: 16, milliseconds: 100, scheme: tcp },
    Case { name: "k16-hedge", k: 16, milliseconds: 100, scheme: hedge },
    Case { name: "k16-mptcp", k: 16, milliseconds: 100, scheme: mptcp },
    Case { name: "k16-mmptcp", k: 16, milliseconds: 100, scheme: mmptcp },
];

fn scenario(case: &Case) -> Scenario {
    let no_files = |path: &str| -> std::io::Result<Vec<u8>> { panic!("reads no file: {path}") };
    let propagation = OneOrEach::One(Time::from_us(1));
    let topology = FatTree { k: case.k, propagation, ..FatTree::default() };
    let graph = topology.build().expect("k is even");
    let horizon = Horizon { arrivals: Time::from_ms(case.milliseconds), drain: Time::ZERO };
    let traffic = TrafficSpec::Poisson(Poisson { load: 0.5, ..Poisson::default() });
    let demand = traffic.generate(&graph, &horizon, 1, &no_files).expect("the traffic is valid");
    let flows = demand.flows;
    Scenario {
        faults: FaultsSpec::default(),
        switch: SwitchSpec {
            pfc: case.name.ends_with(PAUSED).then(Default::default),
            ..SwitchSpec::default()
        },
        graph,
        host: HostSpec::default(),
        scheme: (case.scheme)(),
        flows,
        horizon,
        seed: 1,
        jobs: Jobs::default(),
        series: SeriesSpec::default(),
        max_port_samples: if case.name.ends_with(WATCHED) { INSTANTS } else { 0 },
    }
}

/// Returns the peak resident memory of this process in megabytes.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: 0 kB");
    let kibibytes = line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) * 1024.0 / 1e6
}

/// Returns the largest number of live flows: started, with the last byte not yet acknowledged.
fn most_live(flows: &[FlowRecord]) -> usize {
    let mut changes: Vec<(Time, i32)> = flows.iter().map(|f| (f.flow.start, 1)).collect();
    changes.extend(flows.iter().filter_map(|f| Some((f.flow.start + f.fct_ack?, -1))));
    changes.sort_unstable();
    let live = changes.iter().scan(0, |live, (_, change)| {
        *live += change;
        Some(*live)
    });
    live.max().unwrap_or(0) as usize
}

/// Returns the processor time of this process in seconds. Unlike wall time it is meaningful on a
/// busy machine; on an idle one both are equal.
fn processor_seconds() -> f64 {
    let text =
        std::fs::read_to_string("/proc/self/schedstat").expect("Linux accounts for processes");
    let nanoseconds: f64 =
        text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    nanoseconds * 1e-9
}

/// Runs one case and prints its figures for the parent process.
fn run(case: &Case) {
    let scenario = scenario(case);
    let start = processor_seconds();
    let outcome = simulated(case, &scenario);
    let seconds = processor_seconds() - start;
    let finished = || outcome.flows.iter().filter(|f| f.fct.is_some());
    let delivered: u64 = finished().map(|f| f.flow.bytes).sum();
    let (hops, memory) = (outcome.counters.packet_hops, peak_megabytes());
    let (flows, done) = (outcome.flows.len(), finished().count());
    let live = most_live(&outcome.flows);
    println!("{hops} {seconds} {delivered} {memory} {flows} {done} {live}");
}

/// Prints the memory of a process that has everything of a case but simulated flows, and the number
/// of flows in its list.
fn run_idle(case: &Case) {
    let mut scenario = scenario(case);
    let flows = std::mem::take(&mut scenario.flows);
    simulated(case, &scenario);
    println!("{} {}", peak_megabytes(), flows.len());
}

fn simulated(case: &Case, scenario: &Scenario) -> Outcome {
    let watch = &mut |_: &_| ControlFlow::Continue(());
    let outcome = if case.name.ends_with(ATTRIBUTED) {
        let observer = Attribution::new(&scenario.graph);
        tailcut_net::simulate_watched(scenario, observer, watch).map(|run| run.0)
    } else if case.name.ends_with(WATCHED) {
        tailcut_net::simulate_watched(scenario, FlowPaths::default(), watch).map(|run| run.0)
    } else {
        tailcut_net::simulate(scenario, watch)
    };
    outcome.expect("the scenario is valid")
}

/// Runs this program for a case in a process of its own, and returns the numbers that it prints.
fn figures(mode: &str, name: &str) -> Vec<f64> {
    let this = std::env::current_exe().expect("the benchmark has a path");
    let output = Command::new(this).args([mode, name]).output().expect("it starts again");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

/// Returns the figures of the run of median processor time, as `run` prints them.
fn measure(name: &str, repetitions: usize) -> Vec<f64> {
    let mut rows: Vec<Vec<f64>> = (0..repetitions).map(|_| figures("--one", name)).collect();
    rows.sort_by(|a, b| a[1].total_cmp(&b[1]));
    rows.swap_remove(repetitions / 2)
}

/// Returns the processor seconds per packet-hop of one run.
fn per_hop(name: &str) -> f64 {
    let row = figures("--one", name);
    row[1] / row[0]
}

/// Returns the time per packet-hop of one case over another's: the median of five ratios of runs in
/// turn.
fn ratio_in_turns(name: &str, other: &str) -> f64 {
    let mut ratios: Vec<f64> = (0..5).map(|_| per_hop(name) / per_hop(other)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[2]
}

const PLAIN: &str = "k16-tcp";
const SMALL: &str = "k4-tcp";

/// A ratio of two cases' times per packet-hop that exceeded its limit.
struct Beyond {
    name: &'static str,
    other: &'static str,
    most: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name] = &arguments[..] {
        let case = || CASES.iter().find(|c| c.name == name).expect("a case of this benchmark");
        match flag.as_str() {
            "--one" => run(case()),
            "--idle" => run_idle(case()),
            _ => return table(&arguments),
        }
        return ExitCode::SUCCESS;
    }
    table(&arguments)
}

fn table(arguments: &[String]) -> ExitCode {
    let (flags, names): (Vec<_>, Vec<_>) = arguments.iter().partition(|a| a.starts_with('-'));
    let unknown = names.iter().find(|name| !CASES.iter().any(|case| case.name == **name));
    if let Some(wrong) = flags.iter().find(|flag| **flag != "--check").or(unknown) {
        let cases: Vec<_> = CASES.iter().map(|case| case.name).collect();
        println!("{HELP}\n\nCases: {}", cases.join(", "));
        return if *wrong == "--help" { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    println!(
        "median of 3 runs on one core; web search at load 0.5, 0.1 s simulated (1 s at k = 4, 1 ms at k = 64 and 82)"
    );
    println!(
        "case                packet-hops    cpu s  M hops/s  ns/hop  times TCP  ms per MB done  peak MB  KB per live flow  \
         flows (done)"
    );
    // The time per packet-hop of plain TCP at k = 16 and at k = 4.
    let (mut plain, mut small) = (None, None);
    let mut beyond = vec![];
    // A check compares schemes with plain TCP, so it runs plain TCP too.
    let wanted = |case: &&Case| {
        names.is_empty()
            || names.iter().any(|name| *name == case.name)
            || (!flags.is_empty() && [PLAIN, SMALL].contains(&case.name))
    };
    for case in CASES.iter().filter(wanted) {
        let row = measure(case.name, 3);
        let (hops, seconds, megabytes) = (row[0], row[1], row[2] / 1e6);
        let kilobytes_per_flow = (row[3] - figures("--idle", case.name)[0]) * 1e3 / row[6];
        let times_tcp = plain.filter(|_| case.k == 16).map(|tcp: f64| seconds / hops / tcp);
        println!(
            "{:<19} {hops:>11} {seconds:>8.3} {:>9.2} {:>7.1} {:>9} {:>15.3} {:>8.1} {:>17.2}  {} ({})",
            case.name,
            hops / seconds / 1e6,
            seconds / hops * 1e9,
            times_tcp.map_or("-".to_owned(), |times| format!("{times:.2}")),
            seconds * 1e3 / megabytes,
            row[3],
            kilobytes_per_flow,
            row[4],
            row[5]
        );
        if times_tcp.is_some_and(|times| times > most_times_tcp(case)) {
            beyond.push(Beyond { name: case.name, other: PLAIN, most: most_times_tcp(case) });
        }
        if case.name == SMALL {
            small = Some(seconds / hops);
        }
        if case.name == PLAIN {
            plain = Some(seconds / hops);
            extrapolate(seconds);
            if let Some(growth) = small.map(|small: f64| seconds / hops / small) {
                println!("               {growth:.2} times k = 4's time per packet-hop");
                if growth > MOST_GROWTH {
                    beyond.push(Beyond { name: PLAIN, other: SMALL, most: MOST_GROWTH });
                }
            }
        }
    }
    match flags.is_empty() {
        true => ExitCode::SUCCESS,
        false => check(&beyond),
    }
}

/// Measures each ratio that exceeded its limit again, and fails if one still does.
fn check(beyond: &[Beyond]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for Beyond { name, other, most } in beyond {
        let times = ratio_in_turns(name, other);
        let verdict = if times > *most { "too much" } else { "within it" };
        println!(
            "{name}: {times:.2} times {other} in turns, of {most} that it may take: {verdict}"
        );
        if times > *most {
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Prints an estimate of the papers' study. Cost grows with load; this row has load 0.5 and 0.1 s
/// of arrivals.
fn extrapolate(seconds: f64) {
    let all_loads: f64 = (1..=8).map(|load| seconds * 5.0 * f64::from(load) / 5.0).sum();
    let hours = all_loads * 10.0 * 5.0 / 3600.0;
    println!(
        "               8 loads x 10 seeds x 5 schemes x 0.5 s at k=16: {hours:.1} h on one core, \
         {:.1} h on two (the papers: over 900 machine-hours)",
        hours / 2.0
    );
}
