//! Capabilities of this kernel and system, probed by use: each is tried once, in temporary
//! namespaces.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use serde::{Deserialize, Serialize};

use crate::addressing::INTERFACE;
use crate::bpf_programs::compiled;
use crate::congestion::{self, CONTROLS, is_available};
use crate::fabric::lateness::Lateness;
use crate::host_settings::HostSettings;
use crate::hosts::setup;
use crate::sys::bpf::BpfObject;
use crate::sys::packet_ring::{FrameDirections, PacketRing};
use crate::sys::realtime::{self, Rank};
use crate::sys::sysctl::set_sysctls;
use crate::sys::{latency, monotonic_ns, process};
use crate::tools::Tool;
use crate::transports::TRANSPORTS;
use crate::verdict;

/// The number of timers that are awaited, and the length of each.
const TIMERS: usize = 600;
const TIMER: Duration = Duration::from_millis(1);

/// A capability of the kernel or the system, as probed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// The name of the capability.
    pub name: String,
    /// Whether it is available.
    pub offered: bool,
    /// What was found, or the reason why it is not available.
    pub found: String,
}

fn offer(name: &str, tried: io::Result<String>) -> Capability {
    let (offered, found) = match tried {
        Ok(found) => (true, found),
        Err(error) => (false, error.to_string()),
    };
    Capability { name: name.to_owned(), offered, found }
}

/// Probes all capabilities. `programs` is the directory of compiled BPF programs, if there is one.
/// This process must have one thread, and can do nothing else afterwards.
///
/// `timers`: whether to measure the machine's timers, too, which takes most of a second and affects
/// no run.
pub fn probe(programs: Option<&Path>, timers: bool) -> Vec<Capability> {
    let loaded = load_flowlet(programs);
    // The lab's own congestion controls stay registered until everything is probed.
    let own = CONTROLS.map(|control| control.program().map(|one| one.register(programs)));
    let struct_ops = match own.iter().flatten().next() {
        Some(Err(why)) => Err(io::Error::other(why.clone())),
        _ => Ok("registered".to_owned()),
    };
    // The congestion controls of hosts, by the names under which they are registered.
    let mut names = vec![];
    for (control, own) in CONTROLS.iter().zip(&own) {
        names.push(match own {
            Some(own) if !is_available(control.name()) => {
                own.as_ref().map(|(name, _)| name.as_str())
            }
            _ => Ok(control.name()),
        });
    }
    let awake = latency::disable_cpu_sleep().map(|_| "idle CPUs poll during a run".to_owned());
    let in_memory = latency::lock_files(&[]).map(|_| "programs are locked in memory".to_owned());
    let first =
        realtime::start_priority_helper().map(|()| "SCHED_FIFO, priorities 1 and 2".to_owned());
    let timers = timers.then(lateness_of_timers);
    let entered = process::unshare_namespaces().map(|()| "entered".to_owned());
    let mut offers = vec![offer("namespaces", entered)];
    if offers[0].offered {
        match probe_in_child(loaded, &names) {
            Ok(further) => offers.extend(further),
            Err(error) => offers.push(offer("supervisor", Err(error))),
        }
    }
    let pressure = fs::read_to_string("/proc/pressure/cpu").map(|_| "read".to_owned());
    offers.push(offer("BPF struct_ops", struct_ops));
    offers.push(offer("cpu pressure", pressure));
    offers.push(offer("awake processors", awake));
    offers.push(offer("programs in memory", in_memory));
    offers.push(offer("processors first", first));
    offers.extend(timers.map(|found| offer("timers", found)));
    offers
}

/// Measures whether this process wakes in time, with real-time priority if permitted. Frames and
/// flows of a run cannot be more punctual.
fn lateness_of_timers() -> io::Result<String> {
    latency::minimise_timer_slack();
    latency::raise_priority(process::id(), Rank::Fabric)?;
    let late: Lateness = (0..TIMERS)
        .map(|_| {
            let due_ns = monotonic_ns() + TIMER.as_nanos() as u64;
            thread::sleep(TIMER);
            monotonic_ns() - due_ns
        })
        .collect();
    let late_ns = late.quantile_ns(0.99);
    let found = format!("one timer in a hundred is {:.2} ms late", late_ns as f64 / 1e6);
    match late_ns > verdict::MAX_RELEASE_NS {
        true => Err(io::Error::other(found)),
        false => Ok(found),
    }
}

/// Loads the BPF program of switches that remember flows.
fn load_flowlet(programs: Option<&Path>) -> io::Result<BpfObject> {
    let bytes = compiled(programs, "flowlet").map_err(io::Error::other)?;
    BpfObject::load(&bytes, &[], None)
}

/// Probes what PID 1 of the namespaces can do.
fn probe_in_child(
    loaded: io::Result<BpfObject>,
    names: &[Result<&str, &String>],
) -> io::Result<Vec<Capability>> {
    let (mut ours, mut theirs) = process::channel()?;
    match process::fork()? {
        process::Forked::Child => {
            drop(ours);
            process::make_mounts_private();
            let found = serde_json::to_vec(&probe_inside(loaded, names)).unwrap_or_default();
            let _ = theirs.write_all(&found);
            process::exit(0);
        }
        process::Forked::Parent(child) => {
            drop(theirs);
            let mut found = vec![];
            ours.read_to_end(&mut found)?;
            process::wait(child)?;
            Ok(serde_json::from_slice(&found)?)
        }
    }
}

/// Probes capabilities inside the namespaces. `names`: the kernel's name of each congestion
/// control, or why there is none.
fn probe_inside(loaded: io::Result<BpfObject>, names: &[Result<&str, &String>]) -> Vec<Capability> {
    let pair = format!("link add e0 type veth peer name {INTERFACE}\nlink set e0 up\n");
    let mut offers = vec![
        offer("iproute2", Tool::Ip.version()),
        offer("veth", Tool::Ip.run_batch(&pair).map(|()| "made".to_owned())),
        offer(
            "packet ring",
            PacketRing::new(FrameDirections::Incoming, 1_500, 64).map(|_| "TPACKET_V2".to_owned()),
        ),
    ];
    offers.extend(queues());
    offers.extend(switches());
    let attached = loaded.and_then(|program| {
        program.attach("choose", process::interface_index("e0")?)?;
        Ok("loaded and attached".to_owned())
    });
    offers.push(offer("BPF programs", attached));
    for one in TRANSPORTS {
        offers.extend(one.capability().map(|row| offer(&row.name, one.probe())));
    }
    for (number, (control, found)) in CONTROLS.into_iter().zip(names).enumerate() {
        let row = congestion::capability(control).name;
        let congestion = match found {
            Ok(congestion) => *congestion,
            Err(why) => {
                offers.push(offer(&row, Err(io::Error::other((*why).clone()))));
                continue;
            }
        };
        // From the second control on, everything but the route is set up already.
        let settings = HostSettings {
            mtu: 1_500,
            congestion: congestion.to_owned(),
            route: [
                ("initcwnd", "10"),
                ("initrwnd", "10"),
                ("window", "64000"),
                ("rto_min", "10ms"),
                ("quickack", "1"),
            ]
            .map(|(name, value)| (name, value.to_owned()))
            .to_vec(),
            sysctls: [
                ("ipv4/tcp_rto_max_ms", "60000"),
                ("ipv4/tcp_syn_linear_timeouts", "0"),
                ("ipv4/tcp_comp_sack_nr", "0"),
                ("ipv4/tcp_no_metrics_save", "1"),
            ]
            .map(|(name, value)| (name, value.to_owned()))
            .to_vec(),
            closes: true,
            ..HostSettings::default()
        };
        if number > 0 {
            let again = format!("address flush dev {INTERFACE}\nroute flush dev {INTERFACE}\n");
            let _ = Tool::Ip.run_batch(&again);
        }
        let own = if control.name() == congestion { "" } else { "as a BPF program, " };
        let done = setup::set_up(0, &settings).map(|_| format!("{own}set and read back"));
        offers.push(offer(&row, done));
    }
    offers
}

/// Probes queues beyond those of every run with kernel switches; each is set on an interface and
/// removed.
fn queues() -> [Capability; 3] {
    let kinds = [
        ("netem", "rate 8000000bit limit 100"),
        ("red", "limit 60000 min 5000 max 15000 avpkt 1000 burst 9 bandwidth 8000000bit"),
        ("fq", "limit 100"),
    ];
    kinds.map(|(kind, parameters)| {
        let lines = format!("qdisc add dev e0 root {kind} {parameters}\nqdisc del dev e0 root\n");
        offer(kind, Tool::Tc.run_batch(&lines).map(|()| "set".to_owned()))
    })
}

/// Probes the needs of kernel switches.
fn switches() -> [Capability; 3] {
    let queue = "qdisc add dev e0 root handle 1: tbf rate 8000000bit burst 1600b overhead 24 limit 9000b\n\
                 qdisc add dev e0 parent 1:1 handle 2: pfifo limit 9\n";
    let mark = "table ip tried {\nchain choice {\ntype filter hook prerouting priority mangle\n\
                meta mark set numgen random mod 2 offset 1\nmeta mark set numgen inc mod 2 offset 1\n}\n}\n";
    let rule = "rule add priority 1 fwmark 1 lookup 101\n";
    let seed = [
        ("ipv4/fib_multipath_hash_policy", "3"),
        ("ipv4/fib_multipath_hash_fields", "55"),
        ("ipv4/fib_multipath_hash_seed", "7"),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    let marked = Tool::Nft.run_batch(mark).and_then(|()| Tool::Ip.run_batch(rule));
    [
        offer("tbf", Tool::Tc.run_batch(queue).map(|()| "with a pfifo".to_owned())),
        offer("nft numgen", marked.map(|()| "with a rule for its marks".to_owned())),
        offer("hash seeds", set_sysctls(&seed).map(|_| "set and read back".to_owned())),
    ]
}
