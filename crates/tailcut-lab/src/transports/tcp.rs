//! Check of the plan's TCP, parameter by parameter: sysctls of each namespace, and attributes of
//! the hosts' routes.

use tailcut_engine::{Bytes, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::tcp::reordering::ReorderingSpec;
use tailcut_net::transport::tcp::{
    Close, Imitation, Paws, Recovery, ReductionBase, RtoVariation, TcpSpec, WindowGrowth,
};

use super::KernelTransport;
use crate::answers::{FabricFacts, RunCheck};
use crate::congestion;

/// The kernel's TCP.
pub(super) struct KernelTcp;

impl KernelTransport for KernelTcp {
    fn name(&self) -> &'static str {
        "tcp"
    }
    fn check(
        &self,
        checked: &mut RunCheck,
        spec: &TransportSpec,
        _by_repnet: bool,
        _fabric: FabricFacts,
    ) -> bool {
        let TransportSpec::Tcp(spec) = spec else { return false };
        checked.done("transport.kind", "the kernel's TCP");
        check_tcp(checked, spec);
        true
    }
}

/// The number of ACKs that the kernel sends at once before it delays them (`TCP_MAX_QUICKACKS` in
/// include/net/tcp.h).
const QUICK_ACKS: u32 = 16;

const FIRST_DATA: &str = "the kernel takes its first sample from the handshake: remove \
                          transport.first_data_rto";

fn whole_ms(time: Time) -> Option<u64> {
    let ms = time.as_ns() / 1_000_000;
    (Time::from_ms(ms) == time).then_some(ms)
}

/// Checks the parameters of TCP, which other transports share.
pub(super) fn check_tcp(checked: &mut RunCheck, spec: &TcpSpec) {
    let TcpSpec {
        hosts: _,
        mss,
        initial_window,
        initial_ssthresh,
        receive_window,
        dupack_threshold,
        limited_transmit,
        recovery,
        reduction_base,
        window_growth,
        reordering,
        congestion,
        ecn,
        min_rto,
        max_rto,
        initial_rto,
        first_data_rto,
        clock_granularity,
        rto_variation,
        syn_retries,
        ack_every,
        delayed_ack_timeout,
        quick_acks,
        timestamps,
        timestamp_tick,
        paws,
        mss_option,
        close,
        imitate,
        entropy,
    } = spec;
    checked.done("transport.hosts", "sets the defaults of the other transport parameters");
    let options = if *timestamps { 12 } else { 0 };
    checked.hosts.mtu = mss.0 + 40 + options;
    checked.done_or_fatal(
        (88..=65_000).contains(&mss.0),
        "transport.mss",
        "MTU of the hosts' interfaces",
        format!("an MTU of {} bytes: the kernel accepts 128 to 65,535", checked.hosts.mtu),
    );
    windows(checked, *initial_window, *initial_ssthresh, *receive_window, mss.0);
    losses(checked, *recovery, *dupack_threshold, *limited_transmit, reordering);
    reduction(checked, *recovery, *reduction_base);
    growth(checked, *window_growth);
    congestion::check(checked, congestion, congestion::is_available);
    checked.sysctl("ipv4/tcp_ecn", u8::from(*ecn || spec.uses_ecn()));
    checked.done("transport.ecn", "sysctl tcp_ecn at both ends");
    timers(checked, *min_rto, *max_rto, *initial_rto, *syn_retries);
    checked.done_or_fatal(
        first_data_rto.is_none(),
        "transport.first_data_rto",
        "the kernel takes its first sample from the handshake",
        FIRST_DATA,
    );
    granularity(checked, *clock_granularity, *min_rto);
    variation(checked, *rto_variation);
    acknowledgements(checked, *ack_every, *quick_acks, *delayed_ack_timeout);
    checked.sysctl("ipv4/tcp_timestamps", u8::from(*timestamps));
    match (*timestamps, *recovery) {
        (false, _) => checked.done("transport.timestamps", "sysctl tcp_timestamps"),
        (true, recovery) => checked.near("transport.timestamps", timestamps_text(recovery)),
    }
    checked.done_or_fatal(
        !*timestamps || *timestamp_tick == Time::from_ms(1),
        "transport.timestamp_tick",
        if *timestamps { "the kernel's timestamp clock" } else { "applies to timestamps only" },
        format!(
            "{timestamp_tick}: the kernel's timestamps tick at 1 ms; write timestamp_tick = \
             \"1ms\""
        ),
    );
    match (*timestamps, *paws) {
        (false, _) => checked.done("transport.paws", "applies to timestamps only"),
        (true, Paws::Linux) => {
            checked.near("transport.paws", "kernels answer ACKs that they discard, too")
        }
        (true, _) => checked.near("transport.paws", "kernels always discard old timestamps"),
    }
    match mss_option {
        true => checked.done("transport.mss_option", "the kernel always announces its MSS"),
        false => checked.near(
            "transport.mss_option",
            "the kernel always announces its MSS: 4 bytes more in each SYN",
        ),
    }
    checked.hosts.closes = matches!(close, Close::Fin);
    checked.done(
        "transport.close",
        "senders close a connection after its last byte, or leave it open",
    );
    checked.done_or_fatal(
        *imitate == Imitation::NONE,
        "transport.imitate",
        "the kernel's TCP",
        "kernels cannot imitate ns-3's departures from the RFCs: remove transport.imitate",
    );
    checked.done_or_fatal(
        entropy.is_none(),
        "transport.entropy",
        "all packets of a connection leave from one port",
        "the kernel sends all packets of a connection from one port, and its PLB needs IPv6: \
         remove transport.entropy",
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

fn acknowledgements(checked: &mut RunCheck, ack_every: u32, quick_acks: u32, delay: Time) {
    match (ack_every, quick_acks) {
        (1, _) => {
            checked.route("quickack", 1);
            for field in
                ["transport.ack_every", "transport.quick_acks", "transport.delayed_ack_timeout"]
            {
                checked
                    .done(field, "route attribute quickack: every segment is acknowledged at once");
            }
            return;
        }
        (2, QUICK_ACKS) => checked.near(
            "transport.ack_every",
            "the kernel acknowledges the first 16 segments at once, then every second one, with a \
             delay that adapts",
        ),
        _ => checked.fatal(
            "transport.ack_every",
            "the kernel acknowledges the first segments of a connection at once and then with its \
             own delay: write ack_every = 1",
        ),
    }
    checked.done_or_near(
        quick_acks == QUICK_ACKS,
        "transport.quick_acks",
        "the kernel's default",
        format!("the kernel's default instead: {QUICK_ACKS}"),
    );
    checked.near(
        "transport.delayed_ack_timeout",
        format!(
            "the kernel's delay instead of {delay}: 40 ms to 200 ms, adapted to the arrival of \
             packets"
        ),
    );
}

fn windows(checked: &mut RunCheck, initial: Amount, ssthresh: Limit, receive: Bytes, mss: u64) {
    let segments = match initial {
        Amount::Packets(n) => u64::from(n),
        Amount::Bytes(bytes) => (bytes / mss).max(1),
    };
    checked.route("initcwnd", segments);
    checked.done(
        "transport.initial_window",
        format!("route attribute initcwnd: {segments} whole segments"),
    );
    checked.done_or_fatal(
        ssthresh == Limit::Unlimited,
        "transport.initial_ssthresh",
        "unlimited, which is the kernel's default",
        "with tcp_no_metrics_save the kernel ignores a route's ssthresh: write initial_ssthresh = \
         \"unlimited\"",
    );
    // The simulator's SYNs carry the option, too, for any window.
    checked.sysctl("ipv4/tcp_window_scaling", 1);
    checked.sysctl("ipv4/tcp_rmem", format!("4096\t{0}\t{0}", (4 * receive.0).max(1 << 20)));
    checked.route("window", receive.0);
    checked.route("initrwnd", (receive.0 / mss).max(1));
    checked.done_or_fatal(
        (mss..=16_000_000).contains(&receive.0),
        "transport.receive_window",
        "route attributes window and initrwnd; no autotuning",
        "the lab's hosts announce at least a segment and at most 16 MB",
    );
}

fn losses(
    checked: &mut RunCheck,
    recovery: Recovery,
    dupacks: u32,
    limited_transmit: bool,
    reordering: &ReorderingSpec,
) {
    checked.sysctl("ipv4/tcp_sack", u8::from(recovery == Recovery::SackPrr));
    match recovery {
        Recovery::SackPrr => checked.near(
            "transport.recovery",
            "SACK with PRR, plus RACK (RFC 8985), which this kernel cannot switch off",
        ),
        Recovery::Newreno => checked.near(
            "transport.recovery",
            "sysctl tcp_sack = 0: NewReno with the kernel's PRR instead of window inflation",
        ),
    }
    checked.sysctl("ipv4/tcp_reordering", dupacks);
    checked.done_or_fatal(
        (1..=127).contains(&dupacks),
        "transport.dupack_threshold",
        "sysctl tcp_reordering, which RACK adapts",
        "the kernel accepts 1 to 127",
    );
    checked.done_or_fatal(
        limited_transmit,
        "transport.limited_transmit",
        "as the kernel does",
        "the kernel always uses it: write limited_transmit = true",
    );
    checked.sysctl("ipv4/tcp_dsack", 1);
    match reordering {
        ReorderingSpec::None {} => checked.near(
            "transport.reordering",
            "the kernel undoes needless recoveries when it \
                                                  receives a DSACK",
        ),
        ReorderingSpec::Rack(_) => checked.near(
            "transport.reordering",
            "RACK, with sysctls tcp_early_retrans for its probes and tcp_frto; the kernel also \
             undoes recoveries by timestamps",
        ),
        _ => checked.near(
            "transport.reordering",
            "the kernel uses RACK, and undoes needless recoveries \
                                           when it receives a DSACK",
        ),
    }
}

/// Returns how the kernel's use of timestamps differs from the simulator's.
fn timestamps_text(recovery: Recovery) -> String {
    let old = "sysctl tcp_timestamps; receivers also drop reordered segments whose timestamp PAWS \
               considers old";
    match recovery {
        Recovery::SackPrr => format!(
            "{old}; SYNs are 4 bytes shorter than planned: the kernel packs SACK-permitted into \
             the timestamp option's padding"
        ),
        Recovery::Newreno => old.to_owned(),
    }
}

/// Checks the base of reductions: every congestion control of the kernel computes its threshold
/// from the window (`tcp_init_cwnd_reduction`).
fn reduction(checked: &mut RunCheck, recovery: Recovery, base: ReductionBase) {
    const FIELD: &str = "transport.reduction_base";
    match (recovery, base) {
        (Recovery::Newreno, _) => checked.done(FIELD, "applies to recovery = \"sack-prr\" only"),
        (_, ReductionBase::Window) => checked.done(FIELD, "as the kernel does"),
        (_, ReductionBase::FlightSize) => checked.near(
            FIELD,
            "the kernel reduces from its congestion window, not from the flight size, which is \
             smaller when the application or the receive window limits it",
        ),
        (_, ReductionBase::Pipe) => checked.near(
            FIELD,
            "the kernel reduces from its congestion window, not from its estimate of data in \
             flight (pipe): the more reordering, the smaller its reductions",
        ),
    }
}

/// Checks the growth of windows: the kernel's grow by newly delivered data (`tcp_cong_control`),
/// without SACK, too.
fn growth(checked: &mut RunCheck, growth: WindowGrowth) {
    checked.done_or_near(
        growth == WindowGrowth::Delivered,
        "transport.window_growth",
        "as the kernel does",
        "the kernel grows its window by newly delivered data per ACK, so faster than the plan \
         where ACKs are reordered or cover several segments",
    );
}

/// Checks the clock granularity. The kernel's timeout is the smoothed round trip plus four
/// deviations, of which `rto_min` is the lower bound (`tcp_rtt_estimator`).
fn granularity(checked: &mut RunCheck, granularity: Time, min: Time) {
    checked.done_or_near(
        granularity <= min,
        "transport.clock_granularity",
        "min_rto is the lower bound of the same term, and is not smaller",
        format!(
            "the kernel has no clock granularity: four deviations are bounded below by \
                 min_rto, which is less than {granularity}"
        ),
    );
}

fn variation(checked: &mut RunCheck, variation: RtoVariation) {
    checked.done_or_near(
        variation == RtoVariation::Linux,
        "transport.rto_variation",
        "as the kernel does",
        "the kernel uses the largest RTT deviation within each window of data",
    );
}

fn timers(checked: &mut RunCheck, min: Time, max: Time, initial: Time, syn_retries: u32) {
    match whole_ms(min) {
        Some(ms) if ms > 0 => {
            checked.route("rto_min", format!("{ms}ms"));
            checked.near(
                "transport.min_rto",
                "route attribute rto_min, the lower bound of the deviation term: a timeout is at \
                 least the smoothed round trip plus rto_min, in kernel ticks",
            );
        }
        _ => checked.fatal(
            "transport.min_rto",
            "the kernel takes whole milliseconds, at least 1 \
                                                 ms",
        ),
    }
    match whole_ms(max) {
        Some(ms) if (1_000..=120_000).contains(&ms) => {
            checked.sysctl("ipv4/tcp_rto_max_ms", ms);
            checked.done("transport.max_rto", "sysctl tcp_rto_max_ms");
        }
        _ => checked
            .fatal("transport.max_rto", "the kernel accepts 1 s to 120 s, in whole milliseconds"),
    }
    checked.done_or_fatal(
        initial == Time::from_ms(1_000),
        "transport.initial_rto",
        "the kernel's default of 1 s",
        format!(
            "{initial} cannot be set without root; the kernel's first timeout is 1 s: write \
             initial_rto = \"1s\", or use --set transport.initial_rto=1s"
        ),
    );
    checked.sysctl("ipv4/tcp_syn_retries", syn_retries);
    checked.sysctl("ipv4/tcp_syn_linear_timeouts", 0);
    checked.done_or_fatal(
        (1..=127).contains(&syn_retries),
        "transport.syn_retries",
        "sysctl tcp_syn_retries",
        "the kernel accepts 1 to 127",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::Realisation;
    use crate::host_settings::HostSettings;
    use serde_json::json;

    /// Returns the settings of hosts with these TCP parameters, and the outcomes of a field.
    fn set(parameters: serde_json::Value, field: &str) -> (HostSettings, Vec<Realisation>) {
        let spec: TcpSpec = serde_json::from_value(parameters).expect("they are TCP's");
        let mut checked = RunCheck::new(Ok(()));
        check_tcp(&mut checked, &spec);
        let told = checked.outcomes.iter().filter(|told| told.field == field);
        let answers = told.map(|told| told.realisation).collect();
        (checked.hosts, answers)
    }

    fn sysctl<'a>(hosts: &'a HostSettings, name: &str) -> &'a str {
        let mut found = hosts.sysctls.iter().filter(|(known, _)| *known == name);
        &found.next().expect("it is set").1
    }

    #[test]
    fn rack_turns_on_tail_loss_probes_and_f_rto() {
        let switches = |reordering: serde_json::Value| {
            let parameters = json!({ "reordering": reordering, "initial_rto": "1s" });
            let (hosts, told) = set(parameters, "transport.reordering");
            assert_eq!(told, [Realisation::Near]);
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
    fn dctcp_turns_on_ecn() {
        let (hosts, _) = set(json!({ "congestion": { "kind": "dctcp" } }), "transport.ecn");
        assert_eq!(sysctl(&hosts, "ipv4/tcp_ecn"), "1");
    }

    #[test]
    fn only_the_kernels_timestamp_tick_of_1_ms_is_possible() {
        let ticks = |tick: &str| {
            set(json!({ "timestamps": true, "timestamp_tick": tick }), "transport.timestamp_tick").1
        };
        assert_eq!(
            (ticks("1ms"), ticks("1us")),
            (vec![Realisation::Done], vec![Realisation::Fatal])
        );
    }

    #[test]
    fn timestamps_are_near_because_of_paws() {
        for recovery in ["sack-prr", "newreno"] {
            let told = |timestamps: bool| {
                let parameters = json!({ "timestamps": timestamps, "recovery": recovery });
                set(parameters, "transport.timestamps").1
            };
            assert_eq!(
                (told(false), told(true)),
                (vec![Realisation::Done], vec![Realisation::Near])
            );
        }
    }

    #[test]
    fn delayed_acks_are_possible_with_the_kernels_parameters_only() {
        let acks = |parameters: serde_json::Value| {
            let (hosts, told) = set(parameters, "transport.ack_every");
            let at_once =
                hosts.route.iter().any(|(name, value)| *name == "quickack" && value == "1");
            (at_once, told)
        };
        assert_eq!(acks(json!({ "ack_every": 1 })), (true, vec![Realisation::Done]));
        assert_eq!(
            acks(json!({ "ack_every": 2, "quick_acks": 16 })),
            (false, vec![Realisation::Near])
        );
        for other in [json!({ "ack_every": 2, "quick_acks": 0 }), json!({ "ack_every": 3 })] {
            assert_eq!(acks(other), (false, vec![Realisation::Fatal]));
        }
    }
}
