//! NewReno: the kernel's `reno`, which every host has.

use tailcut_net::transport::tcp::congestion::CongestionSpec;

use super::{ControlOutcome, KernelControl, KernelSupport};

pub(super) struct KernelReno;

impl KernelControl for KernelReno {
    fn name(&self) -> &'static str {
        "reno"
    }
    fn needed_for(&self) -> &'static str {
        "every host, and transport.congestion = { kind = \"newreno\" }"
    }
    fn remedy(&self) -> &'static str {
        "Linux 6.15 or later, and a writable /proc"
    }
    fn is_required(&self) -> bool {
        true
    }
    fn check(&self, spec: &CongestionSpec, _: &KernelSupport) -> Option<ControlOutcome> {
        let CongestionSpec::Newreno(_) = spec else { return None };
        Some(ControlOutcome::done("route attribute congctl reno"))
    }
}
