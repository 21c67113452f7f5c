//! One run on several threads against one thread, and against as many independent runs side by side.
//!
//! The traffic of the benchmark `fabric`: web search at load 0.5, NewReno, ECMP. All times are wall
//! times: measure on an idle machine. `cargo bench -p tailcut-net --bench threads [-- K
//! MILLISECONDS THREADS ...]`.

#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tailcut_engine::Time;
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

/// Simulates in this process, and prints the wall seconds and the peak memory in megabytes.
fn one(k: u32, milliseconds: u64, threads: usize) {
    let scenario = scenario(k, milliseconds);
    let began = Instant::now();
    let run = tailcut_net::simulate_on(threads, &scenario, &mut |_| ControlFlow::Continue(()));
    let run = run.expect("the scenario is valid");
    assert_eq!(run.threads, threads, "{:?}", run.reason);
    println!("{} {}", began.elapsed().as_secs_f64(), peak_megabytes());
}

/// Returns the peak resident memory of this process in megabytes.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: 0 kB");
    let kibibytes = line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) * 1024.0 / 1e6
}

fn start(arguments: &[String]) -> Child {
    let this = std::env::current_exe().expect("the benchmark has a path");
    let mut command = Command::new(this);
    command.arg("--one").args(arguments).stdout(Stdio::piped());
    command.spawn().expect("it starts again")
}

/// Returns the seconds and megabytes that a process has printed.
fn ended(child: Child) -> [f64; 2] {
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().expect("it prints two numbers")
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
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
    println!("k = {k}, {milliseconds} ms simulated, medians of {TURNS} turns\n");
    println!("threads  seconds  times as fast  as many runs side by side  share  MB");
    for threads in threads {
        let many = number(threads);
        let (mut alone, mut together, mut beside, mut memory) = (vec![], vec![], vec![], vec![]);
        for _ in 0..TURNS {
            let on = |threads: &str| [k.clone(), milliseconds.clone(), threads.to_owned()];
            let [seconds, _] = ended(start(&on("1")));
            alone.push(seconds);
            let [on_threads, megabytes] = ended(start(&on(threads)));
            together.push(seconds / on_threads);
            memory.push(megabytes);
            let side: Vec<Child> = (0..many).map(|_| start(&on("1"))).collect();
            let slowest = side.into_iter().map(|child| ended(child)[0]).fold(0.0, f64::max);
            beside.push(many as f64 * seconds / slowest);
        }
        let (fast, most) = (median(together), median(beside));
        println!(
            "{many:>7}  {:>7.2}  {fast:>13.2}  {most:>25.2}  {:>4.0}%  {:.1}",
            median(alone) / fast,
            100.0 * fast / most,
            median(memory)
        );
    }
}
