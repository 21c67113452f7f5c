//! Defaults of a connection's parameters: this project's, or an operating system's.

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use tailcut_engine::{Bytes, Time};

use super::congestion::CongestionSpec;
use super::deviations::Imitation;
use super::reordering::ReorderingSpec;
use super::spec::{Close, Paws, Recovery, ReductionBase, RtoVariation, TcpSpec, WindowGrowth};
use crate::amount::{Amount, Limit};
use crate::transport::entropy::EntropySpec;

/// Source of the defaults of parameters that are not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostDefaults {
    /// This page's defaults.
    #[default]
    Plain,
    /// Defaults of a current Linux: CUBIC with HyStart, RACK-TLP, minimum RTO 200 ms.
    ///
    /// Further: SACK, F-RTO, an initial window of 10 segments, delayed ACKs after 16 quick ones,
    /// timestamps, and a first RTO of 1 s.
    Linux,
}

impl HostDefaults {
    /// Every parameter.
    pub fn defaults(self) -> TcpSpec {
        match self {
            HostDefaults::Plain => TcpSpec::default(),
            HostDefaults::Linux => linux(),
        }
    }
}

/// `TCP_RTO_MIN` of Linux.
pub(super) const LINUX_MIN_RTO: Time = Time::from_ms(200);

/// The sysctls of Linux 6 and the constants of its `include/net/tcp.h`.
fn linux() -> TcpSpec {
    TcpSpec {
        hosts: HostDefaults::Linux,
        // 1,500 bytes without headers and timestamps.
        mss: Bytes(1448),
        initial_window: Amount::Packets(10),
        // tcp_rmem's largest, of which half is window.
        receive_window: Bytes(3_145_728),
        recovery: Recovery::SackPrr,
        reduction_base: ReductionBase::Window,
        window_growth: WindowGrowth::Delivered,
        reordering: ReorderingSpec::of(HostDefaults::Linux),
        congestion: CongestionSpec::for_hosts(HostDefaults::Linux),
        min_rto: LINUX_MIN_RTO,
        max_rto: Time::from_ms(120_000),
        initial_rto: Time::from_ms(1_000),
        // TCP_RTO_MIN bounds the variation from below: RTO = SRTT + max(200 ms, 4 RTTVAR).
        clock_granularity: LINUX_MIN_RTO,
        rto_variation: RtoVariation::Linux,
        syn_retries: 6,
        ack_every: 2,
        delayed_ack_timeout: Time::from_ms(40),
        quick_acks: 16,
        timestamps: true,
        ..TcpSpec::default()
    }
}

/// Parameters that came after there were plans: what says nothing of them is the same run as
/// before.
const LATER: [&str; 4] = ["quick_acks", "timestamp_tick", "rto_variation", "window_growth"];

/// The parameters as they are written, and what stands for those that are not.
macro_rules! written {
    ($($field:ident: $kind:ty,)*) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Written {
            #[serde(default)]
            hosts: HostDefaults,
            #[serde(default, deserialize_with = "some")]
            entropy: Option<EntropySpec>,
            #[serde(default, deserialize_with = "some")]
            first_data_rto: Option<Time>,
            #[serde(default)]
            paws: Paws,
            $(#[serde(default, deserialize_with = "some")] $field: Option<$kind>,)*
        }

        impl From<Written> for TcpSpec {
            fn from(written: Written) -> TcpSpec {
                let mut spec = written.hosts.defaults();
                spec.entropy = written.entropy;
                spec.first_data_rto = written.first_data_rto;
                spec.paws = written.paws;
                $(if let Some(value) = written.$field { spec.$field = value; })*
                spec
            }
        }

        /// Plans say every parameter but those of [`LATER`] that plain hosts have by default, and
        /// `entropy`, `first_data_rto` and `paws` where there is none.
        impl Serialize for TcpSpec {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let default = TcpSpec::default();
                let plain = self.hosts == default.hosts;
                let mut said = serializer.serialize_map(None)?;
                if !plain {
                    said.serialize_entry("hosts", &self.hosts)?;
                }
                $(
                    let name = stringify!($field);
                    if !(plain && LATER.contains(&name) && self.$field == default.$field) {
                        said.serialize_entry(name, &self.$field)?;
                    }
                )*
                if let Some(entropy) = &self.entropy {
                    said.serialize_entry("entropy", entropy)?;
                }
                if let Some(timeout) = &self.first_data_rto {
                    said.serialize_entry("first_data_rto", timeout)?;
                }
                if !self.paws.is_off() {
                    said.serialize_entry("paws", &self.paws)?;
                }
                said.end()
            }
        }
    };
}

/// Deserialises a value that is not null.
fn some<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

written! {
    mss: Bytes,
    initial_window: Amount,
    initial_ssthresh: Limit,
    receive_window: Bytes,
    dupack_threshold: u32,
    limited_transmit: bool,
    recovery: Recovery,
    reduction_base: ReductionBase,
    window_growth: WindowGrowth,
    reordering: ReorderingSpec,
    congestion: CongestionSpec,
    ecn: bool,
    min_rto: Time,
    max_rto: Time,
    initial_rto: Time,
    clock_granularity: Time,
    rto_variation: RtoVariation,
    syn_retries: u32,
    ack_every: u32,
    delayed_ack_timeout: Time,
    quick_acks: u32,
    timestamps: bool,
    timestamp_tick: Time,
    mss_option: bool,
    close: Close,
    imitate: Imitation,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json, to_value};

    fn spec(written: Value) -> TcpSpec {
        from_value(written).expect("it is TCP")
    }

    #[test]
    fn nothing_written_is_the_default() {
        assert_eq!(spec(json!({})), TcpSpec::default());
    }

    #[test]
    fn what_is_written_has_precedence_over_the_hosts_defaults() {
        let linux = spec(json!({ "hosts": "linux", "min_rto": "10ms" }));
        assert_eq!(linux, TcpSpec { min_rto: Time::from_ms(10), ..HostDefaults::Linux.defaults() });
        assert_eq!(linux.check(), Ok(()));
    }

    #[test]
    fn host_defaults_round_trip_through_json() {
        for hosts in [HostDefaults::Plain, HostDefaults::Linux] {
            let defaults = hosts.defaults();
            let said = to_value(&defaults).unwrap();
            assert_eq!(said.get("hosts").is_some(), hosts == HostDefaults::Linux);
            assert_eq!(spec(said), defaults);
        }
    }

    #[test]
    fn omits_later_fields_at_their_defaults() {
        let said = to_value(TcpSpec::default()).unwrap();
        assert!(LATER.iter().all(|later| said.get(later).is_none()));
        let fine = TcpSpec { timestamp_tick: Time::from_us(1), ..TcpSpec::default() };
        assert_eq!(spec(to_value(&fine).unwrap()), fine);
    }

    #[test]
    fn an_entropy_policy_is_said_where_there_is_one() {
        for hosts in ["plain", "linux"] {
            let plain = spec(json!({ "hosts": hosts }));
            assert_eq!(to_value(plain).unwrap().get("entropy"), None, "{hosts}");
            let reps = spec(json!({ "hosts": hosts, "entropy": { "kind": "reps" } }));
            assert_eq!(spec(to_value(&reps).unwrap()), reps);
        }
    }

    #[test]
    fn plans_say_the_first_data_timeout_only_where_it_is_written() {
        for hosts in ["plain", "linux"] {
            let default = spec(json!({ "hosts": hosts }));
            assert_eq!(to_value(default).unwrap().get("first_data_rto"), None, "{hosts}");
            let written = spec(json!({ "hosts": hosts, "first_data_rto": "1500ms" }));
            assert_eq!(written.first_data_rto, Some(Time::from_ms(1_500)));
            assert_eq!(spec(to_value(&written).unwrap()), written);
        }
    }

    #[test]
    fn plans_say_paws_only_where_it_is_on() {
        for hosts in ["plain", "linux"] {
            assert_eq!(to_value(spec(json!({ "hosts": hosts }))).unwrap().get("paws"), None);
            let on = spec(json!({ "hosts": hosts, "timestamps": true, "paws": "rfc-7323" }));
            assert_eq!((on.paws, on.check()), (Paws::Rfc7323, Ok(())));
            assert_eq!(spec(to_value(&on).unwrap()), on);
        }
    }

    #[test]
    fn writes_values_that_differ_from_the_hosts_defaults() {
        let hasty = TcpSpec { quick_acks: 0, ..HostDefaults::Linux.defaults() };
        assert_eq!(spec(to_value(&hasty).unwrap()), hasty);
    }

    /// Every parameter can be written: a list that is kept by hand.
    #[test]
    fn every_parameter_is_known() {
        // Where a later one has the same default for all hosts, plans of plain hosts say another.
        let fine = TcpSpec { timestamp_tick: Time::from_us(1), ..HostDefaults::Linux.defaults() };
        let linux = to_value(fine).unwrap();
        let mut plain = linux.clone();
        plain["hosts"] = json!("plain");
        let read = to_value(spec(plain)).unwrap();
        for (key, value) in linux.as_object().unwrap().iter().filter(|(key, _)| *key != "hosts") {
            assert_eq!(&read[key], value, "{key}");
        }
    }
}
