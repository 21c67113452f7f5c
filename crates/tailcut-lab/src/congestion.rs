//! Which of the kernel's congestion controls a plan's is.

use std::fs;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::path::Path;

use serde::Serialize;
use tailcut_net::transport::tcp::congestion::bbr::BbrSpec;
use tailcut_net::transport::tcp::congestion::cubic::CubicSpec;
use tailcut_net::transport::tcp::congestion::dctcp::DctcpSpec;
use tailcut_net::transport::tcp::congestion::hystart::HystartSpec;
use tailcut_net::transport::tcp::congestion::CongestionSpec;

#[cfg(target_os = "linux")]
use crate::programs;
use crate::settings::Checked;
#[cfg(target_os = "linux")]
use crate::sys::bpf::Object;
#[cfg(target_os = "linux")]
use crate::sys::unlike_others;

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
        CongestionSpec::Newreno(_) => {
            checked.hosts.congestion = "reno".to_owned();
            checked.done("transport.congestion", "route attribute congctl reno");
        }
        CongestionSpec::Cubic(spec)
            if *spec == CubicSpec { hystart: spec.hystart, ..CubicSpec::default() } =>
        {
            checked.hosts.congestion = "cubic".to_owned();
            match spec.hystart {
                HystartSpec::Linux => {
                    checked.done("transport.congestion", "route attribute congctl cubic");
                }
                HystartSpec::Rfc9406 | HystartSpec::None => checked.near(
                    "transport.congestion",
                    "route attribute congctl cubic, which leaves slow start as hystart = \"linux\" does, not as the plan's",
                ),
            }
        }
        CongestionSpec::Cubic(_) => checked.fatal(
            "transport.congestion",
            "the kernel's cubic has parameters of the whole machine: only the defaults can be had",
        ),
        CongestionSpec::Bbr(spec) if *spec != BbrSpec::default() => checked.fatal(
            "transport.congestion",
            "the kernel's bbr has no parameters: only the defaults can be had",
        ),
        CongestionSpec::Bbr(_) if offered("bbr") => {
            checked.hosts.congestion = "bbr".to_owned();
            checked.near(
                "transport.congestion",
                "route attribute congctl bbr, which is version 1, too; it hands over two segments or more at once, allows for three times as many beyond \
                 the BDP, counts its windows of time in ticks of its clock, and draws by itself where its cycle begins",
            );
        }
        CongestionSpec::Bbr(_) => checked.fatal(
            "transport.congestion",
            "this kernel has no bbr loaded: run `modprobe tcp_bbr` as root, once, on a kernel with CONFIG_TCP_CONG_BBR; runs themselves then need no root",
        ),
        CongestionSpec::Dctcp(spec) if *spec == DctcpSpec::default() && offered("dctcp") => {
            checked.hosts.congestion = "dctcp".to_owned();
            checked.near(
                "transport.congestion",
                "route attribute congctl dctcp, with ECN; marks are those of the plan's queue, and what is lost halves the window as reno's",
            );
        }
        CongestionSpec::Dctcp(spec) => match checked.programs.clone() {
            Ok(()) => {
                checked.hosts.dctcp = Some(Dctcp::new(spec));
                checked.near(
                    "transport.congestion",
                    "a BPF program for route attribute congctl, with ECN and the plan's parameters; marks are those of the plan's queue, windows are whole \
                     segments, and what is lost halves them as reno's",
                );
            }
            Err(why) => checked.fatal(
                "transport.congestion",
                format!(
                    "{why}; or run `modprobe tcp_dctcp` as root, once, on a kernel with CONFIG_TCP_CONG_DCTCP, which has the default parameters: \
                     runs themselves then need no root"
                ),
            ),
        },
        _ => checked.fatal("transport.congestion", "no kernel has this congestion control"),
    }
    let name = checked.hosts.dctcp.map_or(&*checked.hosts.congestion, |_| "dctcp");
    if !name.is_empty() {
        checked.needs(format!("hosts with {name}"), "transport.congestion");
    }
}

/// Parameters of the program that is DCTCP, as its `struct settings` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dctcp {
    /// The weight of the latest window, in parts of 2^16.
    g: u32,
    /// The estimate of a new connection, in parts of 2^20.
    initial_alpha: u32,
}

impl Dctcp {
    /// Those of a plan.
    pub fn new(spec: &DctcpSpec) -> Dctcp {
        let parts = |share: f64, bits: u32| (share * f64::from(1_u32 << bits)).round() as u32;
        Dctcp { g: parts(spec.g, 16).max(1), initial_alpha: parts(spec.initial_alpha, 20) }
    }

    /// Registers the program, for as long as what this gives is kept by any process, under a name that nobody else has. Only the
    /// machine's root may do so. `directory` is where programs are, once they are compiled.
    ///
    /// # Errors
    /// Why it cannot be had.
    #[cfg(target_os = "linux")]
    pub fn register(self, directory: Option<&Path>) -> Result<(String, OwnedFd), String> {
        /// What the source has for a name: as many letters as there may be.
        const NAME: &[u8] = b"tailcut-by-name";
        let mut bytes = programs::compiled(directory, "dctcp")?;
        let name = format!("tailcut{:08x}", unlike_others().map_err(|error| error.to_string())?);
        let place = bytes.windows(NAME.len()).position(|there| there == NAME);
        let place =
            place.ok_or("the BPF program dctcp has another name: run `make lab-bpf` again")?;
        bytes[place..][..NAME.len()].copy_from_slice(name.as_bytes());
        let registered = || {
            let object = Object::load(&bytes, &[], Some("dctcp"))?;
            let told = [self.g, self.initial_alpha].map(u32::to_ne_bytes).concat();
            object.map("settings")?.set(&0_u32.to_ne_bytes(), &told)?;
            object.register("dctcp")
        };
        let kept = registered().map_err(|error| format!("the BPF program dctcp: {error}"))?;
        Ok((name, kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Answer, Told};
    use serde_json::json;

    /// What becomes of a plan's DCTCP or BBR, where the kernel has one or not, and where programs can be loaded or not.
    fn control(spec: &serde_json::Value, there: bool, programs: bool) -> (Checked, Told) {
        let spec: CongestionSpec = serde_json::from_value(spec.clone()).expect("it is one");
        let programs = programs.then_some(()).ok_or_else(|| "nothing is compiled".to_owned());
        let mut checked = Checked::new(programs);
        check(&mut checked, &spec, |name| there && ["dctcp", "bbr"].contains(&name));
        let told = checked.told.remove(0);
        (checked, told)
    }

    #[test]
    fn cubic_is_the_plans_where_slow_start_ends_as_in_linux() {
        let answer = |spec| control(&spec, false, false).1.answer;
        for (hystart, wanted) in
            [("linux", Answer::Done), ("rfc-9406", Answer::Near), ("none", Answer::Near)]
        {
            assert_eq!(answer(json!({ "kind": "cubic", "hystart": hystart })), wanted);
        }
        let other = json!({ "kind": "cubic", "hystart": "linux", "beta": 0.5 });
        assert_eq!(answer(other), Answer::Fatal);
    }

    #[test]
    fn dctcp_is_the_kernels_where_that_has_it_loaded() {
        let plain = json!({ "kind": "dctcp" });
        for programs in [false, true] {
            let (checked, told) = control(&plain, true, programs);
            assert_eq!((checked.hosts.congestion.as_str(), told.answer), ("dctcp", Answer::Near));
            assert_eq!(checked.hosts.dctcp, None);
        }
        let (_, told) = control(&plain, false, false);
        assert_eq!(told.answer, Answer::Fatal);
        assert!(told.text.contains("nothing is compiled"), "{}", told.text);
        assert!(told.text.contains("modprobe tcp_dctcp"), "{}", told.text);
    }

    #[test]
    fn what_hosts_are_set_to_is_needed_of_the_kernel() {
        let needs = |spec: serde_json::Value| -> Vec<String> {
            control(&spec, false, true).0.needs.into_iter().map(|need| need.offer).collect()
        };
        assert_eq!(needs(json!({ "kind": "newreno" })), ["hosts with reno"]);
        assert_eq!(needs(json!({ "kind": "cubic" })), ["hosts with cubic"]);
        assert_eq!(needs(json!({ "kind": "dctcp" })), ["hosts with dctcp"]);
        assert!(needs(json!({ "kind": "cubic", "beta": 0.5 })).is_empty());
    }

    #[test]
    fn bbr_is_the_kernels_where_that_has_it_loaded_and_has_no_parameters() {
        let plain = json!({ "kind": "bbr" });
        let (checked, told) = control(&plain, true, false);
        assert_eq!((checked.hosts.congestion.as_str(), told.answer), ("bbr", Answer::Near));
        let (_, told) = control(&plain, false, true);
        assert_eq!((told.answer, told.text.contains("modprobe tcp_bbr")), (Answer::Fatal, true));
        let (_, told) = control(&json!({ "kind": "bbr", "cwnd_gain": 3.0 }), true, true);
        assert_eq!((told.answer, told.text.contains("no parameters")), (Answer::Fatal, true));
    }

    #[test]
    fn dctcp_is_a_program_where_the_kernel_has_none_or_not_with_these_parameters() {
        let own = |spec: serde_json::Value, there| control(&spec, there, true).0.hosts.dctcp;
        let whole = 1 << 20;
        let usual = Dctcp { g: 1 << 12, initial_alpha: whole };
        assert_eq!(own(json!({ "kind": "dctcp" }), false), Some(usual));
        let quick = json!({ "kind": "dctcp", "g": 0.5, "initial_alpha": 0.25 });
        let wanted = Dctcp { g: 1 << 15, initial_alpha: whole / 4 };
        assert_eq!(own(quick.clone(), true), Some(wanted));
        assert_eq!(control(&quick, true, false).1.answer, Answer::Fatal);
    }
}
