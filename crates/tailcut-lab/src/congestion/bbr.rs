//! BBR: the kernel's, where it is loaded.

use tailcut_net::transport::tcp::congestion::CongestionSpec;
use tailcut_net::transport::tcp::congestion::bbr::BbrSpec;

use super::{ControlOutcome, KernelControl, KernelSupport};

pub(super) struct KernelBbr;

impl KernelControl for KernelBbr {
    fn name(&self) -> &'static str {
        "bbr"
    }
    fn needed_for(&self) -> &'static str {
        "transport.congestion = { kind = \"bbr\" }"
    }
    fn remedy(&self) -> &'static str {
        "Linux 6.15 or later with CONFIG_TCP_CONG_BBR, or `modprobe tcp_bbr` as root, once; runs \
         then need no root"
    }
    fn check(&self, spec: &CongestionSpec, here: &KernelSupport) -> Option<ControlOutcome> {
        let CongestionSpec::Bbr(spec) = spec else { return None };
        if *spec != BbrSpec::default() {
            return Some(ControlOutcome::fatal(
                "the kernel's bbr has no parameters: keep the defaults",
            ));
        }
        Some(match here.offered {
            true => ControlOutcome::near(
                "route attribute congctl bbr (version 1, as planned); it sends bursts of two or \
                 more segments, allows three bursts beyond the BDP, measures time in kernel ticks \
                 and picks its own phase of the gain cycle",
            ),
            false => ControlOutcome::fatal(
                "this kernel has not loaded bbr: run `modprobe tcp_bbr` as root, once, on a kernel \
                 with CONFIG_TCP_CONG_BBR; runs then need no root",
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::checked;
    use super::super::tests::told;
    use crate::answers::Realisation;

    #[test]
    fn bbr_needs_the_kernel_module_and_default_parameters() {
        let plain = json!({ "kind": "bbr" });
        assert_eq!(checked(&plain, true, false).hosts.congestion, "bbr");
        assert_eq!(told(&plain, true, false).realisation, Realisation::Near);
        let missing = told(&plain, false, true);
        assert_eq!(
            (missing.realisation, missing.text.contains("modprobe tcp_bbr")),
            (Realisation::Fatal, true)
        );
        let other = told(&json!({ "kind": "bbr", "cwnd_gain": 3.0 }), true, true);
        assert_eq!(
            (other.realisation, other.text.contains("no parameters")),
            (Realisation::Fatal, true)
        );
    }
}
