"""How long the kernel lab takes to set up, and how much its fabric carries: until no run of three is faithful.

Prints; asserts nothing. Says something of an idle machine only. Where there is no lab, it says why and is done.
Flows start within 100 ms: sixteen hosts that are all due in one instant start one after the other, 30 us apart on two
processors, and one hiccup among so few is more than one in a hundred, whatever the fabric does.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from lab_accept import quantile_us

import tailcut
from tailcut.lab import doctor, fabrics, process

RATES_MBPS = (10, 20, 50, 100, 200, 500)
MILLISECONDS = 2_000
SHORT_MS = 200
"""How long a run is of which only the set-up counts."""
TIMES = 5
TRIES = 3
"""Runs per rate: of twelve flows a single late start is more than one in a hundred, so one run is a matter of luck."""
TOPOLOGIES = {
    "star, 2 hosts": 'kind = "star"\nhosts = 2',
    "leaf-spine, 12 hosts": 'kind = "leaf-spine"\nracks = 2\nhosts_per_rack = 6\nspines = 3',
    "fat-tree, 16 hosts": 'kind = "fat-tree"\nk = 4',
}
EXPERIMENT = """
title = "as much as goes"
[topology]
{topology}
rate = "{rate}Mbps"
[queue]
limit = "100packets"
[transport]
initial_rto = "1s"
[traffic]
kind = "permutation"
sizes = "100MB"
jitter = "100ms"
[horizon]
arrivals = "{milliseconds}ms"
drain = "0s"
[schemes.TCP]
"""


def carried(
    directory: Path, topology: str, rate: int, milliseconds: int = MILLISECONDS, fabric: str = fabrics.ENGINE
) -> dict[str, Any]:
    """A run in which every host sends one long flow and receives one."""
    path = directory / "much.toml"
    path.write_text(EXPERIMENT.format(topology=topology, rate=rate, milliseconds=milliseconds))
    (run,) = tailcut.load(path, seeds=1).plan["runs"]
    return process.run(json.dumps(run), lambda _now, _over: None, 60, fabric=fabric)


def set_up(directory: Path) -> None:
    """How long hosts and either fabric take until they are ready: the shortest and the longest of a few times."""
    print("| topology | fabric | set up, ms, shortest | longest |")
    print("|---|---|---:|---:|")
    for name, topology in TOPOLOGIES.items():
        for fabric in fabrics.FABRICS:
            runs = [carried(directory, topology, RATES_MBPS[0], SHORT_MS, fabric) for _ in range(TIMES)]
            took = sorted(done["set_up_ns"] / 1e6 for done in runs)
            print(f"| {name} | {fabric} | {took[0]:.0f} | {took[-1]:.0f} |", flush=True)
    print()


def main() -> None:
    obstacle = doctor.obstacle(doctor.findings())
    if obstacle is not None:
        print(f"the kernel lab: not measured: {obstacle}")
        return
    with tempfile.TemporaryDirectory() as directory:
        set_up(Path(directory))
    print(f"| topology | rate | frames/s | handed over late, p50, p99, us | waiting | faithful of {TRIES} | why not |")
    print("|---|---:|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as directory:
        for name, topology in TOPOLOGIES.items():
            for rate in RATES_MBPS:
                runs = [carried(Path(directory), topology, rate) for _ in range(TRIES)]
                # The one whose frames were handed over in the middle of the three.
                done = sorted(runs, key=lambda done: quantile_us(done["facts"]["released"], 0.99))[TRIES // 2]
                facts = done["facts"]
                released = ", ".join(str(quantile_us(facts["released"], share)) for share in (0.5, 0.99))
                frames = f"{done['frames'] / (done['measured']['end_ns'] / 1e9):,.0f}"
                waiting = "–" if facts["pressure"] is None else f"{100 * facts['pressure']:.0f} %"
                reasons = "; ".join(reason for done in runs for reason in done["unfaithful"]) or "–"
                faithful = sum(not done["unfaithful"] for done in runs)
                print(
                    f"| {name} | {rate} Mbps | {frames} | {released} | {waiting} | {faithful} | {reasons} |", flush=True
                )
                if faithful == 0:
                    break


if __name__ == "__main__":
    main()
