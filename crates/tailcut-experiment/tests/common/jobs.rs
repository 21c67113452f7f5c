//! Jobs on a small fabric, for estimates of their runs.

/// Ultra Ethernet's transport.
pub const UET: &str = "transport = { kind = \"uet\" }\nqueue = { kind = \"trimming\" }";

/// Jobs, each with its `[traffic]` section.
pub const JOBS: [(&str, &str); 7] = [
    ("chains", "kind = \"graph\"\nfile = \"chains.csv\""),
    (
        "ring, repeated",
        "kind = \"collective\"\noperation = \"all-reduce\"\nbytes = \"16MB\"\nslices = 4\nrepeat = 5\ncompute = \"200us\"",
    ),
    (
        "halving-doubling, two jobs",
        "kind = \"collective\"\noperation = \"all-reduce\"\nalgorithm = \"halving-doubling\"\nbytes = \"8MB\"\njobs = 2\nrepeat = 20",
    ),
    (
        "double tree",
        "kind = \"collective\"\noperation = \"all-reduce\"\nalgorithm = \"double-tree\"\nbytes = \"20MB\"\nslices = 24",
    ),
    (
        "all-to-all",
        "kind = \"collective\"\noperation = \"all-to-all\"\nalgorithm = \"direct\"\nbytes = \"8MB\"\nrepeat = 4",
    ),
    ("shuffle", "kind = \"shuffle\"\nmappers = 8\nreducers = 8\nbytes = \"64MB\""),
    (
        "a ring beside requests",
        "kind = \"mix\"\nparts = [{ kind = \"collective\", operation = \"all-reduce\", bytes = \"8MB\", repeat = 3 }, { kind = \"poisson\", load = 0.2, sizes = \"20KB\" }]",
    ),
];

/// Returns an experiment with this traffic and one scheme.
pub fn with_job(traffic: &str, scheme: &str) -> String {
    format!(
        r#"title = "jobs"
[topology]
kind = "leaf-spine"
racks = 4
hosts_per_rack = 4
spines = 4
rate = "100Gbps"
[horizon]
arrivals = "1ms"
drain = "1s"
[traffic]
{traffic}
[schemes.one]
{scheme}
"#
    )
}
