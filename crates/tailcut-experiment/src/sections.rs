//! The sections of an experiment file: each is a struct with its parameters, and one entry in the list below.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::faults::FaultsSpec;
use tailcut_net::host::HostSpec;
use tailcut_net::queue::QueueSpec;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::{Horizon, Scheme, SeriesSpec};
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::TopologySpec;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::transport::TransportSpec;

use crate::config::{SectionOutcome, TableOptions};
use crate::file::{MeasureSpec, ReportSpec, Seeds, Sweep};
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
        /// An experiment: one question, asked of one network and workload under several schemes.
        #[derive(JsonSchema)]
        #[schemars(deny_unknown_fields)]
        #[allow(dead_code, reason = "the fields are read by schemars; files are read span by span")]
        pub struct ExperimentFile {
            /// What the experiment shows, in a line. Heads the report.
            title: String,
            /// The question it answers, in a paragraph. Shown in the report.
            #[schemars(default)]
            question: String,
            /// Repetitions: a number n for seeds 1 to n, or a list of seeds.
            #[schemars(default)]
            seeds: Seeds,
            $($(#[$about_built])* $built: $Built,)*
            $($(#[$about_run])* #[schemars(default)] $run: $Run,)*
            $($(#[$about_scheme])* #[schemars(default)] $scheme: $Scheme,)*
            $($(#[$about_once])* #[schemars(default)] $once: $Once,)*
            /// The schemes to compare, by name, in the order of the report. Each changes the sections above by key.
            #[schemars(default)]
            schemes: BTreeMap<String, SchemeOverride>,
            /// Values to run through: dotted key of any value, and the list of its values. Several keys make a cross product.
            #[schemars(default)]
            sweep: Sweep,
            /// What the report shows.
            #[schemars(default)]
            report: ReportSpec,
        }

        /// What a scheme changes.
        #[derive(JsonSchema)]
        #[schemars(deny_unknown_fields)]
        #[allow(dead_code, reason = "the fields are read by schemars; files are read span by span")]
        pub struct SchemeOverride {
            /// The scheme whose changes this one starts from.
            #[schemars(default)]
            like: String,
            $(
                #[doc = concat!("Changes to `[", stringify!($scheme), "]`. Another `kind` starts from that kind's defaults.")]
                #[schemars(default)]
                $scheme: Partial<$Scheme>,
            )*
        }

        /// Everything that decides the tables of a run, but for its seed.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Config {
            $($(#[$about_built])* pub $built: $Built,)*
            $($(#[$about_run])* pub $run: $Run,)*
            /// What the schemes vary.
            pub scheme: Scheme,
            /// How flows are labelled in the flow table.
            pub labels: TableOptions,
        }

        impl Config {
            /// Checks each section by itself. A network and its traffic are checked when they are built.
            pub(crate) fn check_each(&self) -> Vec<SectionOutcome> {
                vec![
                    $((stringify!($run), self.$run.check()),)*
                    $((stringify!($scheme), self.scheme.$scheme.check()),)*
                ]
            }
        }

        /// The sections, in the order in which they are described.
        pub const SECTIONS: &[&str] = &[
            $(stringify!($built),)* $(stringify!($run),)* $(stringify!($scheme),)* $(stringify!($once),)*
        ];

        /// Those that make up the configuration of a run.
        pub const RUN_SECTIONS: &[&str] =
            &[$(stringify!($built),)* $(stringify!($run),)* $(stringify!($scheme),)*];

        /// Those of them that must be written.
        pub const REQUIRED_SECTIONS: &[&str] = &[$(stringify!($built),)*];

        /// Those of them that a scheme may change.
        pub const SCHEME_SECTIONS: &[&str] = &[$(stringify!($scheme),)*];

        /// Lets every section that is a choice of kinds leave out its default kind.
        pub(crate) fn default_kinds(definitions: &mut Map<String, Json>) {
            $(default_kind::<$Built>(definitions);)*
            $(default_kind::<$Run>(definitions);)*
            $(default_kind::<$Scheme>(definitions);)*
            $(default_kind::<$Once>(definitions);)*
        }
    };
}

// What a run is built from must be written; the other sections of a run are checked by themselves. A scheme's are fields
// of `Scheme`, too. What concerns the experiment as a whole decides nothing in a run.
sections! {
    built {
        /// The network.
        topology: TopologySpec,
        /// Which flows start when.
        traffic: TrafficSpec,
    }
    run {
        /// The hosts' interfaces, and what frames cost on the wire.
        host: HostSpec,
        /// The switches' memory.
        switch: SwitchSpec,
        /// What fails when, and how soon routing knows.
        faults: FaultsSpec,
        /// When the run ends.
        horizon: Horizon,
        /// Time series to record. Off unless flows or links are named.
        series: SeriesSpec,
    }
    scheme {
        /// The queue of every switch port.
        queue: QueueSpec,
        /// How switches choose among equal-cost paths.
        balance: BalanceSpec,
        /// The transport that carries every flow.
        transport: TransportSpec,
        /// How flows are replicated.
        replicate: ReplicateSpec,
    }
    once {
        /// What is measured, and how it is counted.
        measure: MeasureSpec,
        /// What the queueing analysis is told.
        model: ModelSpec,
        /// What the kernel lab is told.
        lab: LabSpec,
    }
}

/// The schema states the default of every key; that of `[schemes]` is that there are none.
impl Serialize for SchemeOverride {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde::ser::SerializeMap::end(serializer.serialize_map(Some(0))?)
    }
}

/// Whether `key` is the section of a run.
pub fn is_run_section(key: &str) -> bool {
    RUN_SECTIONS.contains(&key)
}

/// Whether `key` is a section that a scheme may change.
pub fn is_scheme_section(key: &str) -> bool {
    SCHEME_SECTIONS.contains(&key)
}
