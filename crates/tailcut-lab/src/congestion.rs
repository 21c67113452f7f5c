//! Which of the kernel's congestion controls a plan's is.

use std::fs;

use tailcut_net::transport::tcp::congestion::cubic::CubicSpec;
use tailcut_net::transport::tcp::congestion::dctcp::DctcpSpec;
use tailcut_net::transport::tcp::congestion::CongestionSpec;

use crate::settings::Checked;

/// Whether the kernel has a congestion control loaded, by its name.
pub(crate) fn offered(name: &str) -> bool {
    let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    there.is_ok_and(|there| there.split_whitespace().any(|one| one == name))
}

/// What becomes of the plan's; `offered` says what this kernel has.
pub(crate) fn check(
    checked: &mut Checked,
    congestion: &CongestionSpec,
    offered: impl Fn(&str) -> bool,
) {
    match congestion {
        CongestionSpec::Newreno {} => {
            checked.hosts.congestion = "reno";
            checked.done("transport.congestion", "route attribute congctl reno");
        }
        CongestionSpec::Cubic(spec) if *spec == CubicSpec::default() => {
            checked.hosts.congestion = "cubic";
            checked.near(
                "transport.congestion",
                "route attribute congctl cubic, which leaves slow start by HyStart of 2008, not by HyStart++",
            );
        }
        CongestionSpec::Cubic(_) => checked.fatal(
            "transport.congestion",
            "the kernel's cubic has parameters of the whole machine: only the defaults can be had",
        ),
        CongestionSpec::Swift(_) => {
            checked.fatal("transport.congestion", "Swift is no part of the kernel");
        }
        CongestionSpec::Dctcp(spec) if *spec != DctcpSpec::default() => checked.fatal(
            "transport.congestion",
            "the kernel's dctcp has parameters of the whole machine: only the defaults can be had",
        ),
        CongestionSpec::Dctcp(_) if offered("dctcp") => {
            checked.hosts.congestion = "dctcp";
            checked.near(
                "transport.congestion",
                "route attribute congctl dctcp, with ECN; marks are those of the plan's queue, and what is lost halves the window as reno's",
            );
        }
        CongestionSpec::Dctcp(_) => checked.fatal(
            "transport.congestion",
            "this kernel has no dctcp, and a namespace cannot load it: run `modprobe tcp_dctcp` as root, once, on a kernel with \
             CONFIG_TCP_CONG_DCTCP; runs themselves then need no root",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Answer;
    use serde_json::json;

    #[test]
    fn dctcp_is_had_where_the_kernel_has_it_loaded() {
        let control = |spec: serde_json::Value, there: bool| {
            let spec: CongestionSpec = serde_json::from_value(spec).expect("it is one");
            let mut checked = Checked::new(Ok(()));
            check(&mut checked, &spec, |name| there && name == "dctcp");
            let told = checked.told.remove(0);
            (checked.hosts.congestion, told.answer, told.text)
        };
        let (name, answer, _) = control(json!({ "kind": "dctcp" }), true);
        assert_eq!((name, answer), ("dctcp", Answer::Near));
        let (_, answer, text) = control(json!({ "kind": "dctcp" }), false);
        assert_eq!(answer, Answer::Fatal);
        assert!(text.contains("modprobe tcp_dctcp"), "{text}");
        assert_eq!(control(json!({ "kind": "dctcp", "g": 0.5 }), true).1, Answer::Fatal);
    }
}
