"""Measures the simulator as WebAssembly: CPU time against the native build, first and warm, and its size.

Prints; asserts nothing. Where the playground has not been built, it says so and is done.
"""

import gzip
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tailcut import _core

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "target/playground/tailcut.wasm"
TURNS = 5
EXPERIMENT = """
title = "as WebAssembly"
[topology]
kind = "fat-tree"
k = {k}
propagation = "1us"
[transport]
kind = "tcp"
recovery = "newreno"
[traffic]
kind = "poisson"
load = 0.5
[horizon]
arrivals = "{arrivals}"
drain = "100ms"
[schemes.TCP]
[schemes.RepFlow]
replicate = {{ kind = "repflow" }}
[schemes.pFabric]
transport = {{ kind = "pfabric" }}
queue = {{ kind = "pfabric" }}
"""


def processor(run: Callable[[], object]) -> float:
    """Seconds of the processor that something takes in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def native(run: str) -> dict[str, float]:
    """Seconds that a run takes here, the second time, and its packet-hops."""
    _core.run(run)
    hops: list[float] = []
    seconds = processor(lambda: hops.append(_core.run(run)["counters"]["packet_hops"]))
    return {"warm": seconds, "hops": hops[0]}


def main() -> None:
    """Compare in turns."""
    if not MODULE.exists():
        print("playground: skipped, it has not been built: make playground")
        return
    size = MODULE.read_bytes()
    print(f"playground: {len(size):,} bytes, {len(gzip.compress(size, 9)):,} compressed")
    with tempfile.TemporaryDirectory() as place:
        for k, arrivals in ((4, "1s"), (8, "200ms")):
            file = Path(place) / "experiment.toml"
            file.write_text(EXPERIMENT.format(k=k, arrivals=arrivals))
            runs = [json.dumps(run) for run in json.loads(_core.load(str(file)))["runs"]]
            command = ["node", str(ROOT / "packages/playground/node.mjs"), "time", str(MODULE), str(file)]
            ratios: list[list[tuple[float, float, float]]] = [[] for _ in runs]
            for _ in range(TURNS):
                told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                for at, (here, there) in enumerate(zip(map(native, runs), told, strict=True)):
                    ratios[at].append(
                        (here["warm"] / there["warm"], here["warm"] / there["first"], here["hops"] / there["warm"])
                    )
            for run, measured in zip(runs, ratios, strict=True):
                warm, first, speed = (median(column) for column in zip(*measured, strict=True))
                scheme = json.loads(run)["scheme"]
                cold = f", {first:.2f} the first time" if run is runs[0] else ""
                print(f"  k = {k}, {scheme:8} {warm:.2f} of native speed{cold}; {speed / 1e6:.1f} M packet-hops/s")


if __name__ == "__main__":
    sys.exit(main())
