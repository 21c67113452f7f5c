//! DCTCP: the kernel's, if it is loaded and the plan has its parameters, otherwise a BPF program
//! (`bpf/dctcp.c`).

use tailcut_net::transport::tcp::congestion::CongestionSpec;
use tailcut_net::transport::tcp::congestion::dctcp::DctcpSpec;

use super::{ControlOutcome, KernelControl, KernelSupport};
use crate::congestion::program::CongestionProgram;

pub(super) struct KernelDctcp;

/// Returns the BPF program with the plan's parameters: the weight of the latest window in units of
/// 2^-16, and the initial estimate in units of 2^-20.
fn program(spec: &DctcpSpec) -> CongestionProgram {
    let parts = |share: f64, bits: u32| (share * f64::from(1_u32 << bits)).round() as u32;
    CongestionProgram {
        name: "dctcp",
        settings: vec![parts(spec.g, 16).max(1), parts(spec.initial_alpha, 20)],
    }
}

impl KernelControl for KernelDctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }
    fn needed_for(&self) -> &'static str {
        "transport.congestion = { kind = \"dctcp\" }"
    }
    fn remedy(&self) -> &'static str {
        "everything that BPF programs need, plus Linux 6.4 or later with CONFIG_DEBUG_INFO_BTF; or \
         a kernel with CONFIG_TCP_CONG_DCTCP, and `modprobe tcp_dctcp` as root, once; runs then \
         need no root"
    }
    fn program(&self) -> Option<CongestionProgram> {
        Some(program(&DctcpSpec::default()))
    }
    fn check(&self, spec: &CongestionSpec, here: &KernelSupport) -> Option<ControlOutcome> {
        let CongestionSpec::Dctcp(spec) = spec else { return None };
        if spec.grows_under_echoes {
            return Some(ControlOutcome::fatal(
                "the kernel's windows do not grow while congestion is echoed: remove \
                 grows_under_echoes",
            ));
        }
        if *spec == DctcpSpec::default() && here.offered {
            return Some(ControlOutcome::near(
                "route attribute congctl dctcp, with ECN; the plan's queue sets the marks, and a \
                 loss halves the window, as with reno",
            ));
        }
        Some(match &here.programs {
            Ok(()) => ControlOutcome::near(
                "route attribute congctl with a BPF program, with ECN and the plan's parameters; \
                 the plan's queue sets the marks, windows are whole segments, and a loss halves \
                 them, as with reno",
            )
            .by(program(spec)),
            Err(why) => ControlOutcome::fatal(format!(
                "{why}; or run `modprobe tcp_dctcp` as root, once, on a kernel with \
                 CONFIG_TCP_CONG_DCTCP, which has the default parameters; runs then need no root"
            )),
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
    fn default_dctcp_uses_the_kernel_module_where_it_is_loaded() {
        let plain = json!({ "kind": "dctcp" });
        for programs in [false, true] {
            let hosts = checked(&plain, true, programs).hosts;
            assert_eq!((hosts.congestion.as_str(), hosts.program), ("dctcp", None));
            assert_eq!(told(&plain, true, programs).realisation, Realisation::Near);
        }
        let missing = told(&plain, false, false);
        assert_eq!(missing.realisation, Realisation::Fatal);
        assert!(missing.text.contains("nothing is compiled"), "{}", missing.text);
        assert!(missing.text.contains("modprobe tcp_dctcp"), "{}", missing.text);
    }

    #[test]
    fn growing_under_echoes_is_fatal() {
        let grows = json!({ "kind": "dctcp", "grows_under_echoes": true });
        assert_eq!(told(&grows, true, true).realisation, Realisation::Fatal);
    }

    #[test]
    fn dctcp_uses_the_bpf_program_without_the_module_or_with_other_parameters() {
        let own = |spec: serde_json::Value, there| {
            checked(&spec, there, true).hosts.program.map(|program| program.settings)
        };
        let whole = 1 << 20;
        assert_eq!(own(json!({ "kind": "dctcp" }), false), Some(vec![1 << 12, whole]));
        let quick = json!({ "kind": "dctcp", "g": 0.5, "initial_alpha": 0.25 });
        assert_eq!(own(quick.clone(), true), Some(vec![1 << 15, whole / 4]));
        assert_eq!(told(&quick, true, false).realisation, Realisation::Fatal);
    }
}
