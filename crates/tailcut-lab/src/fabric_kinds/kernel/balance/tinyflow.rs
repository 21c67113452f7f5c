//! TinyFlow at the edge, by a BPF program (`bpf/tinyflow.c`).

#[cfg(target_os = "linux")]
use tailcut_engine::RandomStream;
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::tinyflow::{Detect, Reroute, TinyFlow as Spec};
#[cfg(target_os = "linux")]
use tailcut_net::scenario::Scenario;
#[cfg(target_os = "linux")]
use tailcut_net::topology::SwitchId;

use super::{KernelBalancer, PathSelector, check_program};
use crate::answers::RunCheck;
#[cfg(target_os = "linux")]
use crate::fabric_kinds::kernel::switch_programs::{ProgramSpec, settings};

/// The most samples of a flow that the program keeps.
const MAX_SAMPLES: u32 = 8;
/// The number of skips to draw from: a power of two.
#[cfg(target_os = "linux")]
const SKIPS: u32 = 1_024;

pub(super) struct KernelTinyFlow;

impl KernelBalancer for KernelTinyFlow {
    fn implements(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::TinyFlow(_))
    }
    fn check(&self, checked: &mut RunCheck, spec: &BalanceSpec) {
        let BalanceSpec::TinyFlow(spec) = spec else { return };
        checked.done_or_fatal(
            spec.detect != Detect::HostMarked,
            "balance.detect",
            "a program on each edge switch counts the bytes that hosts send",
            "kernel hosts do not mark elephants: choose another balance.detect, or use \
             --lab-fabric engine",
        );
        checked.done_or_fatal(
            spec.reroute == Reroute::Egress,
            "balance.reroute",
            "the edge switch draws a new egress port",
            "kernel switches do not rewrite ports: write reroute = \"egress\", or use --lab-fabric \
             engine",
        );
        checked.done_or_fatal(
            spec.samples <= MAX_SAMPLES,
            "balance.samples",
            "the program stores the times of a flow's latest samples",
            format!("{} samples: the program stores at most {MAX_SAMPLES}", spec.samples),
        );
        check_program(
            checked,
            "a BPF program at edge switches: sampling gaps and paths use the kernel's random \
             numbers, polls are timed from boot, mice follow the kernel's hash; false and missed \
             elephants are not counted",
        );
    }
    fn selector(&self) -> PathSelector {
        PathSelector::Program
    }
    #[cfg(target_os = "linux")]
    fn program(&self, scenario: &Scenario, switch: SwitchId) -> Option<ProgramSpec> {
        let BalanceSpec::TinyFlow(spec) = &scenario.scheme.balance else { return None };
        let framing = scenario.host.framing_overhead.0 as u32;
        let stream = RandomStream::new(scenario.seed, u64::from(switch.0), "samples of kernels");
        Some(program(spec, framing, scenario.graph.hosts, stream))
    }
    #[cfg(target_os = "linux")]
    fn is_at_edge_only(&self) -> bool {
        true
    }
}

#[cfg(target_os = "linux")]
fn program(spec: &Spec, framing: u32, hosts: u32, mut stream: RandomStream) -> ProgramSpec {
    let Spec {
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
    ProgramSpec {
        name: "tinyflow",
        settings: settings(&long, &short),
        empty: vec![],
        filled: vec![("skips", skips), ("samplers", begin)],
    }
}

/// Returns equally likely numbers with this mean: the midpoints of equal parts of an exponential
/// distribution.
#[cfg(target_os = "linux")]
fn quantiles(mean: u64) -> Vec<u64> {
    let middle = |part: u32| (f64::from(part) + 0.5) / f64::from(SKIPS);
    let all = || (0..SKIPS).map(|part| -(-middle(part)).ln_1p());
    let cut = all().sum::<f64>() / f64::from(SKIPS);
    all().map(|skip| (mean as f64 * skip / cut).round().max(1.0) as u64).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn skips_are_exponential_with_the_mean_of_the_plan() {
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
    fn there_is_one_sampler_per_host_or_one_per_switch() {
        let made = |detect| {
            let spec = Spec { detect, ..Spec::default() };
            let wanted = program(&spec, 38, 6, RandomStream::new(1, 0, "samples of kernels"));
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
