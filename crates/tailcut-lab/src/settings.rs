//! What a plan asks of the hosts, field by field: how this backend realises it, how it departs from it, or why it cannot.
//!
//! Every struct of the plan is taken apart by name, so that a field that is added to one does not compile here until it
//! is decided what becomes of it.

use std::path::Path;

use serde::Serialize;
use tailcut_engine::{Bytes, Time};
use tailcut_experiment::{no_tables, to_scenario, RunPlan};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::scenario::{Scenario, Scheme};
use tailcut_net::transport::tcp::reordering::ReorderingSpec;
use tailcut_net::transport::tcp::{Close, Imitation, Recovery, TcpSpec};
use tailcut_net::transport::TransportSpec;

use crate::congestion::{self, Dctcp};
use crate::fabrics::{self, Kind};
use crate::multipath;
use crate::programs;
use crate::replication::{self, Replication, MOST_NODES};
use crate::traffic;

/// What becomes of a field of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// As the plan says.
    Done,
    /// Nearly: the text says how it departs.
    Near,
    /// Not at all: the run is refused.
    Fatal,
}

/// A field of the plan, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The field, as `transport.initial_rto`.
    pub field: String,
    /// What becomes of it.
    pub answer: Answer,
    /// By what means, or why not.
    pub text: String,
}

/// How each host is set up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HostSettings {
    /// Bytes of the largest IP datagram.
    pub mtu: u64,
    /// Sysctls below `net.`, with `/` between the parts, and their values.
    pub sysctls: Vec<(&'static str, String)>,
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// The lab's own DCTCP, where it is to be that: it has a name once it is registered.
    pub dctcp: Option<Dctcp>,
    /// Attributes of the route to all other hosts.
    pub route: Vec<(&'static str, String)>,
    /// Whether senders close a connection after its last byte.
    pub closes: bool,
    /// Subflows of a connection, where it is Multipath TCP's.
    pub subflows: Option<u32>,
    /// How `repnet-bench` carries flows, where it does.
    pub repnet: Option<Replication>,
}

/// The answers for a run, and the hosts' settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// A field each.
    pub told: Vec<Told>,
    /// What the hosts are set to; what it says is meant only if nothing is fatal.
    pub hosts: HostSettings,
    /// Whether BPF programs can be loaded, or why not.
    #[serde(skip)]
    pub programs: Result<(), String>,
}

/// Beyond this many hosts a machine has no room for their processes.
pub const MOST_HOSTS: u32 = 256;

impl Checked {
    /// With no answer yet.
    pub(crate) fn new(programs: Result<(), String>) -> Checked {
        Checked { told: vec![], hosts: HostSettings::default(), programs }
    }
    fn say(&mut self, field: &str, answer: Answer, text: impl Into<String>) {
        self.told.push(Told { field: field.to_owned(), answer, text: text.into() });
    }
    pub(crate) fn done(&mut self, field: &str, text: impl Into<String>) {
        self.say(field, Answer::Done, text);
    }
    pub(crate) fn near(&mut self, field: &str, text: impl Into<String>) {
        self.say(field, Answer::Near, text);
    }
    pub(crate) fn fatal(&mut self, field: &str, text: impl Into<String>) {
        self.say(field, Answer::Fatal, text);
    }
    /// `done` if it holds, otherwise `fatal`.
    pub(crate) fn only(&mut self, holds: bool, field: &str, how: &str, why_not: impl Into<String>) {
        match holds {
            true => self.done(field, how),
            false => self.fatal(field, why_not),
        }
    }
    pub(crate) fn sysctl(&mut self, name: &'static str, value: impl ToString) {
        self.hosts.sysctls.retain(|(known, _)| *known != name);
        self.hosts.sysctls.push((name, value.to_string()));
    }
    fn route(&mut self, name: &'static str, value: impl ToString) {
        self.hosts.route.push((name, value.to_string()));
    }

    /// Whether a run of it can begin.
    pub fn is_possible(&self) -> bool {
        self.told.iter().all(|told| told.answer != Answer::Fatal)
    }
}

/// What becomes of every field of a run of a plan (an element of `runs`, as JSON). `by_repnet`: `repnet-bench` carries its flows.
/// `fabric`: the name of what lies between the hosts. `programs`: where BPF programs are, if they are compiled.
///
/// # Errors
/// When the text is no run of a plan, or there is no such fabric.
pub fn check_run(
    run_json: &str,
    by_repnet: bool,
    fabric: &str,
    programs: Option<&Path>,
) -> Result<Checked, String> {
    let plan: RunPlan = serde_json::from_str(run_json).map_err(|error| error.to_string())?;
    let mut checked = check(&scenario(&plan)?, by_repnet, fabrics::find(fabric)?, programs);
    let labels = &plan.config.labels;
    let asked = [
        (labels.segments, "measure.segments"),
        (labels.attribution, "measure.attribution"),
        (labels.instants.is_some(), "measure.fabric"),
    ];
    for (_, field) in asked.into_iter().filter(|(asked, _)| *asked) {
        checked.near(
            field,
            "not recorded: it follows the simulator's packets, which real hosts do not tell of",
        );
    }
    Ok(checked)
}

pub(crate) fn scenario(plan: &RunPlan) -> Result<Scenario, String> {
    to_scenario(plan, &no_tables).map_err(|error| error.to_string())
}

/// What becomes of every field of a run.
pub fn check(
    scenario: &Scenario,
    by_repnet: bool,
    fabric: &dyn Kind,
    programs: Option<&Path>,
) -> Checked {
    let mut checked = Checked::new(programs::available(programs));
    let hosts = scenario.graph.hosts;
    let most = if by_repnet { MOST_NODES } else { MOST_HOSTS };
    checked.only(
        hosts <= most,
        "topology",
        "a network namespace for each host, and the fabric's switches and links between them",
        format!("{hosts} hosts: the lab carries {most} at most"),
    );
    let Scheme { transport, queue: _, balance: _, replicate } = &scenario.scheme;
    let why_not = match transport {
        TransportSpec::Tcp(spec) => {
            tcp(&mut checked, spec);
            None
        }
        TransportSpec::Mptcp(spec) => {
            multipath::check(&mut checked, spec, by_repnet, fabric);
            None
        }
        TransportSpec::Mmptcp(_) => Some(
            "no kernel has MMPTCP: each packet of a flow's beginning would have a port of its own",
        ),
        TransportSpec::Pfabric(_) => Some("no kernel has pFabric's transport"),
        TransportSpec::Ndp(_) => Some("no kernel has NDP"),
        TransportSpec::Mixed(_) => {
            Some("the lab sets all hosts alike: one transport for all flows")
        }
    };
    if let Some(why_not) = why_not {
        checked.fatal("transport.kind", why_not);
    }
    fabric.check(&mut checked, scenario);
    replication::check(&mut checked, replicate, by_repnet, scenario.flows.len());
    traffic::check(&mut checked, scenario, by_repnet, fabric);
    checked
}

fn whole_ms(time: Time) -> Option<u64> {
    let ms = time.as_ns() / 1_000_000;
    (Time::from_ms(ms) == time).then_some(ms)
}

pub(crate) fn tcp(checked: &mut Checked, spec: &TcpSpec) {
    let TcpSpec {
        hosts: _,
        mss,
        initial_window,
        initial_ssthresh,
        receive_window,
        dupack_threshold,
        limited_transmit,
        recovery,
        reduction_base: _,
        reordering,
        congestion,
        ecn,
        min_rto,
        max_rto,
        initial_rto,
        clock_granularity: _,
        syn_retries,
        ack_every,
        delayed_ack_timeout: _,
        quick_acks,
        timestamps,
        timestamp_tick,
        mss_option,
        close,
        imitate,
    } = spec;
    let options = if *timestamps { 12 } else { 0 };
    checked.hosts.mtu = mss.0 + 40 + options;
    checked.only(
        (88..=65_000).contains(&mss.0),
        "transport.mss",
        "MTU of the hosts' interfaces",
        format!("an MTU of {} bytes: the kernel takes 128 to 65,535", checked.hosts.mtu),
    );
    windows(checked, *initial_window, *initial_ssthresh, *receive_window, mss.0);
    losses(checked, *recovery, *dupack_threshold, *limited_transmit, reordering);
    congestion::check(checked, congestion, congestion::offered);
    checked.sysctl("ipv4/tcp_ecn", u8::from(*ecn || spec.uses_ecn()));
    checked.done("transport.ecn", "sysctl tcp_ecn at both ends");
    timers(checked, *min_rto, *max_rto, *initial_rto, *syn_retries);
    match (ack_every, quick_acks) {
        (1, _) => {
            checked.route("quickack", 1);
            checked.done("transport.ack_every", "route attribute quickack: every segment is acknowledged at once");
        }
        (2, 16) => checked.near(
            "transport.ack_every",
            "the kernel's own: every second segment after 16 quick ones, by a delay that adapts",
        ),
        _ => checked.fatal(
            "transport.ack_every",
            "the kernel acknowledges the first segments of a connection at once and then delays by a time of its own \
             choice: write ack_every = 1",
        ),
    }
    checked.sysctl("ipv4/tcp_timestamps", u8::from(*timestamps));
    match *timestamps && *recovery == Recovery::SackPrr {
        false => checked.done("transport.timestamps", "sysctl tcp_timestamps"),
        true => checked.near(
            "transport.timestamps",
            "sysctl tcp_timestamps; SYNs are 4 bytes shorter than the plan's: the kernel puts what they say of SACK beside the time",
        ),
    }
    if *timestamps {
        checked.only(
            *timestamp_tick == Time::from_ms(1),
            "transport.timestamp_tick",
            "the kernel's clock of timestamps",
            format!(
                "the lab leaves the kernel's clock of timestamps at 1 ms, which is not {timestamp_tick}: write \"1ms\""
            ),
        );
    }
    if !mss_option {
        checked.near(
            "transport.mss_option",
            "the kernel always announces its MSS: 4 bytes more in each SYN",
        );
    }
    checked.hosts.closes = matches!(close, Close::Fin);
    checked.done(
        "transport.close",
        "senders shut a connection down after its last byte, or leave it open",
    );
    checked.only(
        *imitate == Imitation::NONE,
        "transport.imitate",
        "the kernel's TCP",
        "a kernel imitates no simulator",
    );
    let (probes, doubts) = match reordering {
        ReorderingSpec::Rack(rack) => (rack.tail_loss_probe, rack.f_rto),
        _ => (false, false),
    };
    for (name, value) in [
        ("ipv4/tcp_no_metrics_save", "1"),
        ("ipv4/tcp_autocorking", "0"),
        ("ipv4/tcp_early_retrans", if probes { "3" } else { "0" }),
        ("ipv4/tcp_frto", if doubts { "2" } else { "0" }),
        ("ipv4/tcp_comp_sack_nr", "0"),
        ("ipv4/tcp_moderate_rcvbuf", "0"),
        ("ipv4/tcp_syncookies", "0"),
        ("ipv4/tcp_max_syn_backlog", "4096"),
        ("core/somaxconn", "4096"),
        ("ipv4/tcp_wmem", "4096\t4194304\t4194304"),
    ] {
        checked.sysctl(name, value);
    }
}

fn windows(checked: &mut Checked, initial: Amount, ssthresh: Limit, receive: Bytes, mss: u64) {
    let segments = match initial {
        Amount::Packets(n) => u64::from(n),
        Amount::Bytes(bytes) => (bytes / mss).max(1),
    };
    checked.route("initcwnd", segments);
    checked.done(
        "transport.initial_window",
        format!("route attribute initcwnd: {segments} whole segments"),
    );
    checked.only(
        ssthresh == Limit::Unlimited,
        "transport.initial_ssthresh",
        "the kernel's own: arbitrarily high",
        "the kernel forgets a threshold where it saves no metrics: write initial_ssthresh = \"unlimited\"",
    );
    // SYNs say so in the simulator, too, whatever the window is.
    checked.sysctl("ipv4/tcp_window_scaling", 1);
    checked.sysctl("ipv4/tcp_rmem", format!("4096\t{0}\t{0}", (4 * receive.0).max(1 << 20)));
    checked.route("window", receive.0);
    checked.route("initrwnd", (receive.0 / mss).max(1));
    checked.only(
        (mss..=16_000_000).contains(&receive.0),
        "transport.receive_window",
        "route attributes window and initrwnd; no autotuning",
        "the kernel announces at least a segment and at most 16 MB here",
    );
}

fn losses(
    checked: &mut Checked,
    recovery: Recovery,
    dupacks: u32,
    limited_transmit: bool,
    reordering: &ReorderingSpec,
) {
    checked.sysctl("ipv4/tcp_sack", u8::from(recovery == Recovery::SackPrr));
    match recovery {
        Recovery::SackPrr => checked.near(
            "transport.recovery",
            "SACK with PRR, and RACK besides, which this kernel does not switch off (RFC 8985)",
        ),
        Recovery::Newreno => checked.near(
            "transport.recovery",
            "sysctl tcp_sack = 0: NewReno with the kernel's PRR in place of the inflated window",
        ),
    }
    checked.sysctl("ipv4/tcp_reordering", dupacks);
    checked.only(
        (1..=127).contains(&dupacks),
        "transport.dupack_threshold",
        "sysctl tcp_reordering; RACK adapts it",
        "the kernel takes 1 to 127",
    );
    checked.only(
        limited_transmit,
        "transport.limited_transmit",
        "as the kernel does",
        "the kernel always does",
    );
    checked.sysctl("ipv4/tcp_dsack", 1);
    match reordering {
        ReorderingSpec::None {} => {
            checked.near("transport.reordering", "the kernel undoes needless recoveries by DSACK")
        }
        ReorderingSpec::Rack(_) => checked.near(
            "transport.reordering",
            "RACK, with sysctl tcp_early_retrans for its probes and tcp_frto; the kernel also undoes by timestamps",
        ),
        _ => checked
            .near("transport.reordering", "the kernel has its own way: RACK, and undoing by DSACK"),
    }
}

fn timers(checked: &mut Checked, min: Time, max: Time, initial: Time, syn_retries: u32) {
    match whole_ms(min) {
        Some(ms) if ms > 0 => {
            checked.route("rto_min", format!("{ms}ms"));
            checked.near(
                "transport.min_rto",
                "route attribute rto_min, which bounds the deviation: a timeout is never below the smoothed round trip \
                 and rto_min together, in ticks of the kernel",
            );
        }
        _ => checked.fatal("transport.min_rto", "the kernel counts it in whole milliseconds"),
    }
    match whole_ms(max) {
        Some(ms) if (1_000..=120_000).contains(&ms) => {
            checked.sysctl("ipv4/tcp_rto_max_ms", ms);
            checked.done("transport.max_rto", "sysctl tcp_rto_max_ms");
        }
        _ => checked
            .fatal("transport.max_rto", "the kernel takes 1 s to 120 s, in whole milliseconds"),
    }
    checked.only(
        initial == Time::from_ms(1_000),
        "transport.initial_rto",
        "the kernel's own: 1 s",
        format!(
            "{initial}: the kernel's first timeout is 1 s, and nothing that needs no root sets it: write initial_rto = \
             \"1s\", in the experiment or as --set transport.initial_rto=1s"
        ),
    );
    checked.sysctl("ipv4/tcp_syn_retries", syn_retries);
    checked.sysctl("ipv4/tcp_syn_linear_timeouts", 0);
    checked.only(
        (1..=127).contains(&syn_retries),
        "transport.syn_retries",
        "sysctl tcp_syn_retries",
        "the kernel takes 1 to 127",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What hosts with these parameters of TCP are set to, and what is told of a field.
    fn set(parameters: serde_json::Value, field: &str) -> (HostSettings, Vec<Answer>) {
        let spec: TcpSpec = serde_json::from_value(parameters).expect("they are TCP's");
        let mut checked = Checked::new(Ok(()));
        tcp(&mut checked, &spec);
        let told = checked.told.iter().filter(|told| told.field == field);
        let answers = told.map(|told| told.answer).collect();
        (checked.hosts, answers)
    }

    fn sysctl<'a>(hosts: &'a HostSettings, name: &str) -> &'a str {
        let mut found = hosts.sysctls.iter().filter(|(known, _)| *known == name);
        &found.next().expect("it is set").1
    }

    #[test]
    fn probes_and_doubts_of_timeouts_are_the_kernels_where_the_plan_has_rack_with_them() {
        let switches = |reordering: serde_json::Value| {
            let parameters = json!({ "reordering": reordering, "initial_rto": "1s" });
            let (hosts, told) = set(parameters, "transport.reordering");
            assert_eq!(told, [Answer::Near]);
            ["ipv4/tcp_early_retrans", "ipv4/tcp_frto"]
                .map(|name| sysctl(&hosts, name).parse::<u8>().expect("it is a number"))
        };
        assert_eq!(switches(json!({ "kind": "none" })), [0, 0]);
        assert_eq!(switches(json!({ "kind": "rack" })), [3, 2]);
        assert_eq!(switches(json!({ "kind": "rack", "tail_loss_probe": false })), [0, 2]);
        assert_eq!(switches(json!({ "kind": "rack", "f_rto": false })), [3, 0]);
        assert_eq!(switches(json!({ "kind": "adaptive" })), [0, 0]);
    }

    #[test]
    fn dctcp_turns_on_what_marks_take() {
        let (hosts, _) = set(json!({ "congestion": { "kind": "dctcp" } }), "transport.ecn");
        assert_eq!(sysctl(&hosts, "ipv4/tcp_ecn"), "1");
    }

    #[test]
    fn timestamps_tick_as_the_kernels_by_default() {
        let ticks = |tick: &str| {
            set(json!({ "timestamps": true, "timestamp_tick": tick }), "transport.timestamp_tick").1
        };
        assert_eq!((ticks("1ms"), ticks("1us")), (vec![Answer::Done], vec![Answer::Fatal]));
    }

    #[test]
    fn acknowledgements_wait_where_the_plan_lets_them_as_the_kernel_does() {
        let acks = |parameters: serde_json::Value| {
            let (hosts, told) = set(parameters, "transport.ack_every");
            let at_once =
                hosts.route.iter().any(|(name, value)| *name == "quickack" && value == "1");
            (at_once, told)
        };
        assert_eq!(acks(json!({ "ack_every": 1 })), (true, vec![Answer::Done]));
        assert_eq!(acks(json!({ "ack_every": 2, "quick_acks": 16 })), (false, vec![Answer::Near]));
        for other in [json!({ "ack_every": 2, "quick_acks": 0 }), json!({ "ack_every": 3 })] {
            assert_eq!(acks(other), (false, vec![Answer::Fatal]));
        }
    }
}
