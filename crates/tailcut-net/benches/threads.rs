//! One run on several threads against one thread, and against as many independent runs side by side.
//!
//! The traffic of the benchmark `fabric`: web search at load 0.5, NewReno, ECMP. All times are wall
//! times: measure on an idle machine. `cargo bench -p tailcut-net --bench threads [-- K
//! MILLISECONDS THREADS ...]`.

#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tailcut_engine::Time;
use tailcut_net::ThreadTimes;
use tailcut_net::amount::Amount;
use tailcut_net::component::OneOrEach;
use tailcut_net::scenario::{Horizon, Scenario, Scheme};
use tailcut_net::topology::fat_tree::FatTree;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::traffic::poisson::Poisson;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::tcp::{Recovery, TcpSpec};

/// Measurements in turns, of which the median counts.
const TURNS: usize = 5;

fn scenario(k: u32, milliseconds: u64) -> Scenario {
    let no_files = |path: &str| -> std::io::Result<Vec<u8>> { panic!("reads no file: {path}") };
    let topology =
        FatTree { k, propagation: OneOrEach::One(Time::from_us(1)), ..FatTree::default() };
    let graph = topology.build().expect("k is even");
    let horizon = Horizon { arrivals: Time::from_ms(milliseconds), drain: Time::ZERO };
    let traffic = TrafficSpec::Poisson(Poisson { load: 0.5, ..Poisson::default() });
    let demand = traffic.generate(&graph, &horizon, 1, &no_files).expect("the traffic is valid");
    let tcp = TcpSpec {
        initial_window: Amount::Bytes(12_000),
        recovery: Recovery::Newreno,
        min_rto: Time::from_ms(10),
        ..TcpSpec::default()
    };
    Scenario {
        graph,
        host: Default::default(),
        switch: Default::default(),
        faults: Default::default(),
        scheme: Scheme { transport: TransportSpec::Tcp(tcp), ..Scheme::default() },
        flows: demand.flows,
        jobs: Default::default(),
        horizon,
        seed: 1,
        series: Default::default(),
        max_port_samples: 0,
    }
}

/// Time and memory of a run, as its process prints them.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// Wall seconds.
    seconds: f64,
    /// Peak resident memory.
    megabytes: f64,
    /// Parts of the threads' time at work, waiting for each other, and exchanging packets.
    parts: [f64; 3],
}

/// Simulates in this process, and prints a [`Measured`].
fn one(k: u32, milliseconds: u64, threads: usize) {
    let scenario = scenario(k, milliseconds);
    let began = Instant::now();
    let run = tailcut_net::simulate_on(threads, &scenario, &mut |_| ControlFlow::Continue(()));
    let run = run.expect("the scenario is valid");
    assert_eq!(run.threads, threads, "{:?}", run.reason);
    let seconds = began.elapsed().as_secs_f64();
    let sum = |part: fn(&ThreadTimes) -> Duration| run.times.iter().map(part).sum::<Duration>();
    let [work, waiting, exchange] =
        [sum(|times| times.work), sum(|times| times.waiting), sum(|times| times.exchange)];
    println!(
        "{seconds} {} {} {} {}",
        peak_megabytes(),
        work.as_secs_f64(),
        waiting.as_secs_f64(),
        exchange.as_secs_f64()
    );
}

/// Returns the peak resident memory of this process in megabytes.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: 0 kB");
    let kibibytes = line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) * 1024.0 / 1e6
}

fn start(fabric: &[String; 2], threads: usize) -> Child {
    let this = std::env::current_exe().expect("the benchmark has a path");
    let mut command = Command::new(this);
    command.arg("--one").args(fabric).arg(threads.to_string()).stdout(Stdio::piped());
    command.spawn().expect("it starts again")
}

/// Returns what a process has printed.
fn ended(child: Child) -> Measured {
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, megabytes, parts @ ..]: [f64; 5] = numbers.try_into().expect("five numbers");
    Measured { seconds, megabytes, parts }
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Runs on so many threads, and how much faster as many runs side by side were than one after the
/// other; by turns.
struct Row {
    threads: usize,
    together: Vec<Measured>,
    beside: Vec<f64>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let number = |text: &String| text.parse::<usize>().expect("a number");
    if let [flag, k, milliseconds, threads] = &arguments[..]
        && flag == "--one"
    {
        return one(number(k) as u32, number(milliseconds) as u64, number(threads));
    }
    let defaults = ["16", "100", "2"].map(String::from);
    let given = if arguments.len() < 3 { &defaults[..] } else { &arguments[..] };
    let [k, milliseconds, threads @ ..] = given else { unreachable!("there are three") };
    let fabric = [k.clone(), milliseconds.clone()];
    let row = |threads| Row { threads: number(threads), together: vec![], beside: vec![] };
    let mut rows: Vec<Row> = threads.iter().map(row).collect();
    let mut alone = vec![];
    for _ in 0..TURNS {
        let one = ended(start(&fabric, 1));
        alone.push(one);
        for row in &mut rows {
            row.together.push(ended(start(&fabric, row.threads)));
            let side: Vec<Child> = (0..row.threads).map(|_| start(&fabric, 1)).collect();
            let slowest = side.into_iter().map(|child| ended(child).seconds).fold(0.0, f64::max);
            row.beside.push(row.threads as f64 * one.seconds / slowest);
        }
    }
    let megabytes = |runs: &[Measured]| median(runs.iter().map(|run| run.megabytes));
    println!("k = {k}, {milliseconds} ms simulated, medians of {TURNS} turns\n");
    println!(
        "| threads | seconds | times as fast as one | as many runs side by side | share | MB | work, waiting, exchange |"
    );
    println!("|---|---|---|---|---|---|---|");
    let seconds = median(alone.iter().map(|run| run.seconds));
    println!("| 1 | {seconds:.2} | 1 | 1 | | {:.1} | |", megabytes(&alone));
    for Row { threads, together, beside } in rows {
        let turns = alone.iter().zip(&together);
        let fast = median(turns.map(|(one, many)| one.seconds / many.seconds));
        let most = median(beside.into_iter());
        let share = |part: usize| {
            median(together.iter().map(|run| run.parts[part] / run.parts.iter().sum::<f64>()))
        };
        let [work, waiting, exchange] = [0, 1, 2].map(|part| 100.0 * share(part));
        println!(
            "| {threads} | {:.2} | {fast:.2} | {most:.2} | {:.0} % | {:.1} | {work:.0}, {waiting:.0}, {exchange:.0} % |",
            median(together.iter().map(|run| run.seconds)),
            100.0 * fast / most,
            megabytes(&together)
        );
    }
}
