"""Benchmarks of the kernel lab, and made-up runs of it."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tailcut import _core

NOT_TOLD = "the kernel does not tell"
BENCHES = str(Path(__file__).parents[2] / "benches")

LAB = """
title = "a lab; echo \\"'$(touch elsewhere)"
seeds = 1

[topology]
kind = "leaf-spine"
racks = 2
hosts_per_rack = 2
spines = 2
rate = "20Mbps"

[queue]
limit = "50packets"

[transport]
kind = "tcp"
initial_rto = "1s"

[traffic]
kind = "poisson"
sizes = "20KB"
load = 0.2

[horizon]
arrivals = "400ms"
drain = "30s"

[schemes."T; 'C' P"]
"""
"""Four hosts and a few short flows: well under a second of real time."""


def bench(name: str) -> ModuleType:
    """Imports one of `benches`, which is not a package."""
    if BENCHES not in sys.path:
        sys.path.append(BENCHES)
    return importlib.import_module(name)


def measured(demand: dict[str, Any], slower: float = 1.5) -> dict[str, Any]:
    """Returns the measurements of a run in which each flow takes ``slower`` times its ideal time, without a kernel."""
    flows = [
        {
            "index": index,
            "connect_ns": 1,
            "fct_ns": int(slower * flow["ideal_ps"] / 1000),
            "fct_ack_ns": int(slower * flow["ideal_ack_ps"] / 1000),
            "data_packets": 1,
            "retransmissions": 0,
            "timeouts": 0,
            "needless_retransmissions": 0,
            "delivered_in_arrivals": flow["bytes"],
        }
        for index, flow in enumerate(demand["flows"])
    ]
    whole: dict[str, Any] = json.loads(
        json.dumps(
            {
                "flows": flows,
                "tiers": [],
                "end_ns": 10**9,
                "packet_hops": 1,
                "dropped": 0,
                "lost_on_links": 0,
                "unknown": {"fast_recoveries": NOT_TOLD, "recoveries_undone": NOT_TOLD},
            }
        )
    )
    return whole


def outcome(demand: dict[str, Any], found: dict[str, Any], **different: Any) -> dict[str, Any]:
    """Returns the answer of the lab's process about such a run: faithful, with measurements only."""
    plain: dict[str, Any] = {
        "measured": found,
        "unfaithful": [],
        "facts": {},
        "entered": {},
        **dict.fromkeys(("frames", "set_up_ns"), 1),
        **dict.fromkeys(("copied", "joined"), 0),
        "hosts": {"sysctls": [], "route": {}},
        "mtu": 1500,
        "awake": True,
        "in_memory": True,
        "goes_first": False,
        "fabric": "engine",
        **dict.fromkeys(("repnet", "captured", "switches")),
        "queues": {},
        "versions": {},
        "starts": [{"id": flow["id"], "late_ns": 0} for flow in demand["flows"]],
    }
    return plain | different


class Kernels:
    """Imitates kernels: each run takes a little longer than the one before, and the second is not faithful."""

    def __init__(self) -> None:
        self.runs = 0
        self.series: list[dict[str, Any]] = []
        self.programs: list[list[str] | None] = []

    def __call__(
        self,
        planned: str,
        _on_progress: Any,
        _limit: float | None,
        program: list[str] | None = None,
        capture: dict[str, Any] | None = None,
        fabric: str = "engine",
    ) -> dict[str, Any]:
        self.runs += 1
        if capture is not None:
            Path(capture["file"]).write_bytes(b"frames")
        self.programs.append(program)
        demand = json.loads(_core.demand(planned))
        unfaithful = ["processes waited for a CPU 90 % of the time (PSI cpu some)"] if self.runs == 2 else []
        return outcome(
            demand,
            {**measured(demand, 1.0 + self.runs), "series": self._series()},
            unfaithful=unfaithful,
            repnet=None if program is None else {"node": "v20.0.0", "bench": "0.1.0"},
            captured=None if capture is None else {"packets": 7, "left_out": 0},
            fabric=fabric,
            versions={"iproute2": "ip utility, iproute2-6.1.0"},
            starts=[{"id": flow["id"], "late_ns": 1000 * flow["id"]} for flow in demand["flows"]],
        )

    def _series(self) -> list[dict[str, Any]]:
        """Returns the series that are set, the first one truncated."""
        return [one | {"truncated": number == 0} for number, one in enumerate(self.series)]
