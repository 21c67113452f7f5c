"""Calibration: the rate that this machine carries in a short run of the lab, against the demand of a plan."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tailcut
from tailcut.lab import process
from tailcut.lab.process import LabError
from tailcut.units import count

HOSTS = 4
MOST_SECONDS = 20.0
IN_TIME = 0.5
"""The share of its largest load that a machine is taken to carry on time.

At half load, waiting takes about as long as being served.
"""

MACHINE = "this machine"
BY_SOCKETS = "sockets"
BY_REPNET = "repnet-bench"


@dataclass(frozen=True, slots=True)
class Calibration:
    """The rates that the machine carried.

    Attributes:
        carrier: what carried the flows, `BY_SOCKETS` or `BY_REPNET`.
        frames: frames a second, of hosts, fabric and carrier together.
        fabric_frames: frames for each second in which the fabric's process had a processor; none where no process
            carries frames.
    """

    carrier: str
    frames: float
    fabric_frames: float | None


def calibrate(fabric: str, program: Sequence[str] | None, limit_seconds: float | None = MOST_SECONDS) -> Calibration:
    """Let four hosts around one switch move 8 MB over links that are faster than any machine.

    Args:
        fabric: what lies between them, a name of `tailcut.lab.fabrics`.
        program: how `repnet-bench` is started, if it is to carry the flows.
        limit_seconds: how long it may take; none for any time.

    Raises:
        LabError: it could not be done; says why.
    """
    run = _run(replicates=program is not None)
    done = process.run(json.dumps(run), lambda _now, _over: None, limit_seconds, program, fabric=fabric)
    frames, worked_ns = done["frames"], done["worked_ns"]
    return Calibration(
        BY_SOCKETS if program is None else BY_REPNET,
        frames * 1e9 / done["measured"]["end_ns"],
        frames * 1e9 / worked_ns if worked_ns else None,
    )


def _run(*, replicates: bool) -> dict[str, Any]:
    """Each host moves flows of 100 KB, which `repnet-bench` sends twice, one after the other."""
    experiment = tailcut.loads(
        {
            "title": "How much this machine carries",
            "seeds": 1,
            "topology": {"kind": "star", "hosts": HOSTS, "rate": "10Gbps"},
            "queue": {"limit": "unlimited"},
            "transport": {"kind": "tcp", "initial_rto": "1s"},
            "traffic": {"kind": "transfers", "clients_per_host": 2, "bytes": "1MB", "sizes": "100KB"},
            "replicate": {"kind": "repflow" if replicates else "none"},
            "horizon": {"arrivals": "1s", "drain": "19s"},
            "schemes": {"TCP": {}},
        }
    )
    run: dict[str, Any] = dict(experiment.plan["runs"][0])
    return run


@dataclass(frozen=True, slots=True)
class Load:
    """The demand of a plan, against the rates that this machine carries.

    Attributes:
        busiest: frames a second that hosts send in the busiest 50 ms, at the most.
        rate_bps: the rate of the plan's links, if it says one for all.
        carried: what a calibration gave.
    """

    busiest: float
    rate_bps: int | None
    carried: Calibration

    @property
    def times(self) -> float:
        """The factor by which the plan's rates could grow before they are too much for this machine."""
        most = min(self.carried.frames, self.carried.fabric_frames or self.carried.frames)
        return IN_TIME * most / max(self.busiest, 1.0)

    @property
    def largest_rate(self) -> str | None:
        """The rate of links that would be just enough for this machine, about, as a plan spells it."""
        return None if self.rate_bps is None else f"{float(f'{self.rate_bps * self.times / 1e6:.2g}'):g}Mbps"

    def answer(self) -> dict[str, str]:
        """Returns a row for the table of the plan's fields."""
        carried = self.carried
        alone = "" if carried.fabric_frames is None else f" (the fabric alone {count(carried.fabric_frames)})"
        up_to = f"{self.times:.2g} times the plan's rates"
        if self.largest_rate is not None:
            up_to = f'topology.rate = "{self.largest_rate}"'
        text = (
            f"the plan peaks at {count(self.busiest)} frames/s at the most; this machine carried"
            f" {count(carried.frames)} frames/s{alone} with {carried.carrier} in a short test, and half of that is"
            f" safe: up to about {up_to}"
        )
        return {"field": MACHINE, "answer": "done" if self.times >= 1 else "near", "text": text}

    def told(self) -> dict[str, Any]:
        """Returns the calibration as JSON."""
        return {
            "busiest_frames_per_second": self.busiest,
            "carrier": self.carried.carrier,
            "carried_frames_per_second": self.carried.frames,
            "fabric_frames_per_second": self.carried.fabric_frames,
            "times_the_rates": self.times,
            "largest_rate": self.largest_rate,
        }


def unknown(error: LabError) -> dict[str, str]:
    """Returns the row for a calibration that failed."""
    return {"field": MACHINE, "answer": "near", "text": f"how much this machine carries could not be measured: {error}"}
