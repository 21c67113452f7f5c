//! The sections of an experiment file: each is a struct of parameters, and one entry in the list
//! below.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::faults::FaultsSpec;
use tailcut_net::host::HostSpec;
use tailcut_net::interface::InterfaceSpec;
use tailcut_net::queue::QueueSpec;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::{Horizon, Scheme, SeriesSpec};
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::TopologySpec;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::transport::TransportSpec;

use crate::config::{SectionOutcome, TableOptions};
use crate::file::{MeasureSpec, Medium, ReportSpec, Seeds, Small, Sweep};
use crate::lab::LabSpec;
use crate::model::ModelSpec;
use crate::schema::{Partial, default_kind};

macro_rules! sections {
    (
        built { $($(#[$about_built:meta])* $built:ident: $Built:ty,)* }
        run { $($(#[$about_run:meta])* $run:ident: $Run:ty,)* }
        scheme { $($(#[$about_scheme:meta])* $scheme:ident: $Scheme:ty,)* }
        once { $($(#[$about_once:meta])* $once:ident: $Once:ty,)* }
    ) => {
        /// An experiment: one question, answered for one network and workload under several
        /// schemes.
        #[derive(JsonSchema)]
        #[schemars(deny_unknown_fields)]
        #[allow(dead_code, reason = "the fields are read by schemars; files are read span by span")]
        pub struct ExperimentFile {
            /// A title of one line, which heads the report.
            title: String,
            /// The question that the experiment answers, in one paragraph. The report shows it.
            #[schemars(default)]
            question: String,
            /// The seeds of repetitions: a number n for seeds 1 to n, or a list of seeds.
            #[schemars(default)]
            seeds: Seeds,
            $($(#[$about_built])* $built: $Built,)*
            $($(#[$about_run])* #[schemars(default)] $run: $Run,)*
            $($(#[$about_scheme])* #[schemars(default)] $scheme: $Scheme,)*
            $($(#[$about_once])* #[schemars(default)] $once: $Once,)*
            /// The schemes to compare, by name, in the order of the report. Each changes keys of
            /// the sections above.
            #[schemars(default)]
            schemes: BTreeMap<String, SchemeOverride>,
            /// The values to sweep over: a dotted key and the list of its values. Several keys give
            /// all combinations.
            #[schemars(default)]
            sweep: Sweep,
            /// Options of the report.
            #[schemars(default)]
            report: ReportSpec,
            /// Changes under `--small`, for a run in seconds: dotted key of any value, and the value. A list takes the place
            /// of a swept key's values.
            #[schemars(default)]
            small: Small,
            /// Changes under `--medium`, for a figure in about a minute: as `small`, and `about`, a text that says
            /// what is left out (`"8 pods, 4 of 8 loads, 3 seeds"`). It becomes part of the title.
            #[schemars(default)]
            medium: Medium,
        }

        /// The changes of a scheme to the sections of the file.
        #[derive(JsonSchema)]
        #[schemars(deny_unknown_fields)]
        #[allow(dead_code, reason = "the fields are read by schemars; files are read span by span")]
        pub struct SchemeOverride {
            /// The scheme whose changes this one inherits.
            #[schemars(default)]
            like: String,
            $(
                #[doc = concat!("Changes to `[", stringify!($scheme), "]`. Another `kind` starts from that kind's defaults.")]
                #[schemars(default)]
                $scheme: Partial<$Scheme>,
            )*
        }

        /// Everything but the seed that decides the tables of a run.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Config {
            $($(#[$about_built])* pub $built: $Built,)*
            $($(#[$about_run])* pub $run: $Run,)*
            /// The sections that schemes may change.
            pub scheme: Scheme,
            /// The options of `[measure]` that change the tables.
            pub labels: TableOptions,
        }

        impl Config {
            /// Checks each section by itself. Network and traffic are checked when they are built.
            pub(crate) fn check_each(&self) -> Vec<SectionOutcome> {
                vec![
                    $((stringify!($run), self.$run.check()),)*
                    $((stringify!($scheme), self.scheme.$scheme.check()),)*
                ]
            }
        }

        /// The sections, in the order of the documentation.
        pub const SECTIONS: &[&str] = &[
            $(stringify!($built),)* $(stringify!($run),)* $(stringify!($scheme),)* $(stringify!($once),)*
        ];

        /// The sections that make up the configuration of a run.
        pub const RUN_SECTIONS: &[&str] =
            &[$(stringify!($built),)* $(stringify!($run),)* $(stringify!($scheme),)*];

        /// The sections of a run that the file must contain.
        pub const REQUIRED_SECTIONS: &[&str] = &[$(stringify!($built),)*];

        /// The sections of a run that a scheme may change.
        pub const SCHEME_SECTIONS: &[&str] = &[$(stringify!($scheme),)*];

        /// Makes `kind` optional in every section that is a union of kinds with a default.
        pub(crate) fn default_kinds(definitions: &mut Map<String, Json>) {
            $(default_kind::<$Built>(definitions);)*
            $(default_kind::<$Run>(definitions);)*
            $(default_kind::<$Scheme>(definitions);)*
            $(default_kind::<$Once>(definitions);)*
        }
    };
}

// `built`: required, checked when the run is built. `run`: checked by themselves. `scheme`: the
// same, as fields of `Scheme`. `once`: about the experiment as a whole, not part of a run.
sections! {
    built {
        /// The network: hosts, switches and links.
        topology: TopologySpec,
        /// The flows: their hosts, sizes and start times.
        traffic: TrafficSpec,
    }
    run {
        /// The hosts' network interfaces, and the overhead of a frame on the wire.
        host: HostSpec,
        /// The switches: shared buffers and flow control.
        switch: SwitchSpec,
        /// Failures of links and switches, and when routing learns of them.
        faults: FaultsSpec,
        /// How long flows arrive, and when the run ends.
        horizon: Horizon,
        /// Time series to record. None is recorded unless flows or links are named.
        series: SeriesSpec,
    }
    scheme {
        /// The queue of every switch port.
        queue: QueueSpec,
        /// The balancer: how switches choose among equal-cost paths.
        balance: BalanceSpec,
        /// The transport that carries every flow.
        transport: TransportSpec,
        /// Replication of flows over several connections.
        replicate: ReplicateSpec,
        /// The choice of the interface by which a host with several sends a packet.
        interface: InterfaceSpec,
    }
    once {
        /// What is measured and how it is counted.
        measure: MeasureSpec,
        /// Options of the queueing analysis (`--on model`).
        model: ModelSpec,
        /// Options of the kernel lab (`--on lab`).
        lab: LabSpec,
    }
}

/// The schema states the default of every key: `[schemes]` is empty by default.
impl Serialize for SchemeOverride {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde::ser::SerializeMap::end(serializer.serialize_map(Some(0))?)
    }
}

/// Returns whether `key` is a section of a run.
pub fn is_run_section(key: &str) -> bool {
    RUN_SECTIONS.contains(&key)
}

/// Returns whether `key` is a section that a scheme may change.
pub fn is_scheme_section(key: &str) -> bool {
    SCHEME_SECTIONS.contains(&key)
}
