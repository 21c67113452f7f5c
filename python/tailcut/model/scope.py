"""Parts of an experiment that RepFlow's analysis can answer, and its input from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tailcut import _core
from tailcut.backends import Gap
from tailcut.errors import checking_experiments
from tailcut.model.predict import ModelInput
from tailcut.model.sizes import FlowSizes
from tailcut.plan import FileUse
from tailcut.units import amount_bytes, rate_bps

Config = Mapping[str, Any]

HEADERS = 40
"""Bytes of an IPv4 and a TCP header without options."""
TIMESTAMPS = 12
"""Bytes of the timestamp option, padded (RFC 7323)."""
MULTIPATH = ("fat-tree", "leaf-spine", "parallel-paths", "node-link")


def cells_out_of_scope(config: Config) -> list[Gap]:
    """Why the analysis has no answer for a run; empty if it has one."""
    gaps: list[Gap] = []

    def gap(where: str, reason: str) -> None:
        gaps.append(Gap(where, reason))

    scheme, traffic = config["scheme"], config["traffic"]
    if scheme["transport"]["kind"] != "tcp":
        gap("transport.kind", f"the analysis is of TCP, not of {scheme['transport']['kind']}")
    elif scheme["transport"]["congestion"]["kind"] == "dctcp":
        gap(
            "transport.congestion.kind",
            "in the analysis windows grow to the largest, and DCTCP's shrink with the marks",
        )
    if scheme["queue"]["kind"] != "drop-tail":
        gap("queue.kind", f"the analysis has first-come-first-served queues, and nothing of {scheme['queue']['kind']}")
    if scheme["balance"]["kind"] != "ecmp":
        gap("balance.kind", f"the analysis keeps a flow on its path, which {scheme['balance']['kind']} does not")
    if traffic["kind"] != "poisson" or traffic.get("gaps", "exponential") != "exponential":
        gap("traffic.kind", "the analysis needs flows that arrive as a Poisson process with a given load")
    elif _table_source(traffic["sizes"]) is None:
        gap("traffic.sizes", "the analysis needs flow sizes from a table, all alike or uniform")
    if traffic.get("fan_in", 1) > 1:
        gap("traffic.fan_in", "in the analysis each flow comes alone, and those that join are not in its load")
    if traffic.get("except"):
        gap("traffic.except", "where some hosts are silent, paths are not equally loaded")
    if config["faults"]["active"] and config["faults"]["incidents"]:
        gap(
            "faults.incidents",
            "the analysis has a healthy network: a failure changes the load of paths and loses packets",
        )
    if not _plan_load_is_path_load(config):
        reason = "the links of a path are not equally loaded here, and the analysis has one queue per path"
        gap("traffic.load_of", f"{reason}; set traffic.load_of to bisection to give the bottleneck's load")
    gaps += _replication_out_of_scope(config)
    return gaps


def _replication_out_of_scope(config: Config) -> list[Gap]:
    replicate = config["scheme"]["replicate"]
    if replicate["kind"] == "none":
        return []
    if replicate["kind"] != "repflow":
        label = {"repsyn": "RepSYN"}.get(replicate["kind"], replicate["kind"])
        return [Gap("replicate.kind", f"the analysis says nothing of {label}")]
    gaps = []
    if config["topology"]["kind"] not in MULTIPATH:
        gaps.append(Gap("topology.kind", "both copies would take the one path, and the analysis has them take two"))
    if replicate["copies"] != 2:
        gaps.append(Gap("replicate.copies", "the analysis is of two copies"))
    if amount_bytes(replicate["threshold"]) != amount_bytes(config["labels"]["short"]):
        gaps.append(Gap("replicate.threshold", "in the analysis the short flows are the replicated ones"))
    if not _is_zero(replicate["copy_delay"]):
        gaps.append(Gap("replicate.copy_delay", "in the analysis both copies start at once"))
    return gaps


def simplifications(config: Config) -> list[Gap]:
    """Returns the simplifications under which the analysis answers a run."""
    gaps = [
        Gap("topology.propagation", "the analysis has no propagation, handshake or round trips"),
        Gap("transport", "the analysis knows of TCP its initial window, segment size and largest window"),
    ]
    if config["scheme"]["queue"].get("limit") != "unlimited":
        gaps.append(Gap("queue.limit", "the analysis has infinite queues: no loss, no timeout"))
    if config["switch"].get("pfc") is not None:
        gaps.append(Gap("switch.pfc", "the analysis has queues that nothing holds back"))
    if config["switch"]["shared_buffer"] != "unlimited":
        gaps.append(Gap("switch.shared_buffer", "the analysis has infinite queues that share nothing"))
    if config["host"]["nic_queue"] != "unlimited":
        gaps.append(Gap("host.nic_queue", "the analysis has no queue in hosts, and loses nothing there"))
    if not _is_zero(config["host"]["jitter"]):
        gaps.append(Gap("host.jitter", "the analysis has hosts that hold nothing back"))
    gaps.append(
        Gap("horizon", "the analysis is of the steady state: no empty network to begin with, no unfinished flows")
    )
    return gaps + _not_measured(config)


def _not_measured(config: Config) -> list[Gap]:
    """Measurements that need packets, which the analysis has none of."""
    labels, series = config["labels"], config["series"]
    wanted = {f"measure.{name}": labels[name] for name in ("segments", "throughput")}
    wanted["measure.attribution"] = labels.get("attribution", False)
    wanted["measure.fabric"] = labels.get("instants")
    wanted |= {f"series.{name}": series[name] for name in ("flows", "links", "differentials")}
    return [Gap(key, "the analysis has no packets to measure") for key, asked in wanted.items() if asked]


def fit(config: Config, files: Sequence[FileUse], short_byte_share: float | str) -> ModelInput:
    """The parameters of the analysis, from those of a run that is in its scope.

    Args:
        config: of the run.
        files: those that the configuration names, with where they are.
        short_byte_share: epsilon, or ``workload`` for that of the flow-size table.
    """
    tcp, traffic = config["scheme"]["transport"], config["traffic"]
    mss = amount_bytes(tcp["mss"])
    sizes = FlowSizes.from_bytes(*_table(traffic["sizes"], files), mss)
    short_limit = amount_bytes(config["labels"]["short"]) / mss
    own_share = short_byte_share == "workload"
    return ModelInput(
        load=float(traffic["load"]),
        sizes=sizes,
        replicated=config["scheme"]["replicate"]["kind"] == "repflow",
        short_byte_share=sizes.short_byte_share(short_limit) if own_share else float(short_byte_share),
        short_limit=short_limit,
        initial_window=amount_bytes(tcp["initial_window"], packet=mss) / mss,
        max_window=amount_bytes(tcp["receive_window"]) / mss,
    )


def packet_bytes(config: Config) -> int:
    """A full packet on the wire."""
    tcp = config["scheme"]["transport"]
    headers = HEADERS + (TIMESTAMPS if tcp["timestamps"] else 0)
    return amount_bytes(tcp["mss"]) + headers + amount_bytes(config["host"]["framing_overhead"])


def host_rate(config: Config) -> int | None:
    """The rate of the hosts' links in bit/s; none where a topology gives none for all."""
    rate = config["topology"].get("rate")
    if isinstance(rate, Mapping):
        rate = rate.get("host")
    return None if rate is None else rate_bps(rate)


def _plan_load_is_path_load(config: Config) -> bool:
    """True if each link of a path carries the load that the plan states."""
    topology, traffic = config["topology"], config["traffic"]
    if traffic.get("load_of", "host-links") == "bisection" or topology["kind"] == "star":
        return True
    if isinstance(topology.get("rate"), Mapping):
        return False
    if topology["kind"] == "fat-tree":
        return bool(topology["oversubscription"] == 1)
    if topology["kind"] == "leaf-spine":
        return bool(topology["hosts_per_rack"] == topology["spines"])
    if topology["kind"] == "parallel-paths":
        return bool(topology["hosts_per_side"] == topology["paths"] and not topology["path_rates"])
    return False


def _is_zero(quantity: str) -> bool:
    return float(quantity.rstrip("abcdefghijklmnopqrstuvwxyz")) == 0.0


def _table_source(sizes: object) -> str | None:
    """Returns the source of a table of sizes: its kind; None if the analysis has no table for it."""
    if isinstance(sizes, str):
        if sizes == "endless":
            return None
        return "fixed" if sizes[0].isdigit() else "builtin"
    if isinstance(sizes, Mapping) and sizes["kind"] in ("file", "uniform"):
        return str(sizes["kind"])
    return None


def _table(sizes: Any, files: Sequence[FileUse]) -> tuple[Sequence[float], Sequence[float]]:
    """Sizes in bytes and cumulative probabilities."""
    source = _table_source(sizes)
    if source == "fixed":
        return [amount_bytes(sizes)], [1.0]
    if source == "uniform":
        return [amount_bytes(sizes["min"]), amount_bytes(sizes["max"])], [0.0, 1.0]
    if source == "builtin":
        return _points(sizes, "bytes")
    path = next(file["resolved"] for file in files if file["path"] == sizes["file"])
    unit = sizes["unit"]
    if unit == "packets":
        unit = f"packets of {amount_bytes(sizes['packet_size'])}"
    return _points(path, unit)


def _points(name_or_path: str, unit: str) -> tuple[list[float], list[float]]:
    with checking_experiments():
        sizes, probabilities = _core.workload(name_or_path, unit)
    return sizes.astype(float).tolist(), probabilities.tolist()
