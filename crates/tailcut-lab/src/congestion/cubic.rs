//! CUBIC: the kernel's.

use tailcut_net::transport::tcp::congestion::CongestionSpec;
use tailcut_net::transport::tcp::congestion::cubic::CubicSpec;
use tailcut_net::transport::tcp::congestion::hystart::HystartSpec;

use super::{ControlOutcome, KernelControl, KernelSupport};

pub(super) struct KernelCubic;

impl KernelControl for KernelCubic {
    fn name(&self) -> &'static str {
        "cubic"
    }
    fn needed_for(&self) -> &'static str {
        "transport.congestion = { kind = \"cubic\" }"
    }
    fn remedy(&self) -> &'static str {
        "Linux 6.15 or later with CONFIG_TCP_CONG_CUBIC, or `modprobe tcp_cubic`"
    }
    fn check(&self, spec: &CongestionSpec, _: &KernelSupport) -> Option<ControlOutcome> {
        let CongestionSpec::Cubic(spec) = spec else { return None };
        if *spec != (CubicSpec { hystart: spec.hystart, ..CubicSpec::default() }) {
            return Some(ControlOutcome::fatal(
                "the kernel sets cubic's parameters for the whole machine, not per run: keep the \
                 defaults",
            ));
        }
        Some(match spec.hystart {
            HystartSpec::Linux => ControlOutcome::done("route attribute congctl cubic"),
            HystartSpec::Rfc9406 | HystartSpec::None => ControlOutcome::near(
                "route attribute congctl cubic, which always leaves slow start as hystart = \
                 \"linux\" does",
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::told;
    use crate::answers::Realisation;

    #[test]
    fn cubic_is_exact_with_hystart_of_linux_only() {
        let answer = |spec| told(&spec, false, false).realisation;
        for (hystart, wanted) in [
            ("linux", Realisation::Done),
            ("rfc-9406", Realisation::Near),
            ("none", Realisation::Near),
        ] {
            assert_eq!(answer(json!({ "kind": "cubic", "hystart": hystart })), wanted);
        }
        let other = json!({ "kind": "cubic", "hystart": "linux", "beta": 0.5 });
        assert_eq!(answer(other), Realisation::Fatal);
    }
}
