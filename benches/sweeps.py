"""How large sweeps go: seconds and memory of the head against the number of runs, and what a cluster adds to each run.

Prints; asserts nothing. ``python benches/sweeps.py [head|engine|workers …]``; all three by default.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tailcut
from tailcut.cluster import connect
from tailcut.result import Result
from tailcut.results import Store

RUNS = (1_000, 10_000)
FLOWS = 10_000  # of each run: 100 million of 10,000 runs
ENGINE_RUNS = 400
WORKERS = (1, 2, 4)
EXPERIMENT = """
title = "many"
seeds = {seeds}
[topology]
kind = "star"
hosts = 4
[traffic]
kind = "poisson"
sizes = "10KB"
load = 0.5
[horizon]
arrivals = "{arrivals}"
drain = "1s"
[schemes.TCP]
[schemes.RepSYN]
like = "TCP"
replicate = {{ kind = "repsyn" }}
[sweep]
"traffic.load" = [0.3, 0.5]
[report]
baseline = "TCP"
"""


def experiment(directory: Path, runs: int, arrivals: str) -> tailcut.Experiment:
    """Returns an experiment of a number of runs, with arrivals for a given time."""
    file = directory / "many.toml"
    file.write_text(EXPERIMENT.format(seeds=runs // 4, arrivals=arrivals))
    return tailcut.load(file)


# --- the head -------------------------------------------------------------------------------------


def head(directory: Path) -> None:
    """Measures each command on finished results, each in its own process because of its memory."""
    print(f"results that are there; the load before was {os.getloadavg()[0]:.1f}")
    for runs in RUNS:
        place = directory / f"{runs}"
        place.mkdir()
        flows = filled(place, runs)
        print(f"  {runs:,} runs, {flows:,} flows:", flush=True)
        steps = ["plan", "first summary", "summary", "all there", "flows", "report"]
        for step in steps:
            command = [sys.executable, __file__, "step", step, str(place), str(runs)]
            told = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
            print(f"    {step:>13}: {told}", flush=True)


def filled(directory: Path, runs: int) -> int:
    """Every run has the tables of one that was made, for only sizes matter here. How many flows they have together."""
    one = tailcut.run(experiment(directory, 4, f"{FLOWS * 41}us"), out=directory / "one")
    source = one.directory / "runs" / one.finished_runs[-1]["id"]
    about = json.loads((source / "run.json").read_text())
    planned = experiment(directory, runs, "1ms")
    store = Store.create(directory / "results", planned.plan, planned.path)
    for run in planned.plan["runs"]:
        place = store.path(run["id"])
        place.mkdir()
        for file in source.iterdir():
            if file.name != "run.json":
                os.link(file, place / file.name)
        (place / "run.json").write_text(json.dumps({**about, "id": run["id"]}, indent=1))
    return runs * int(about["flows"])


def step(name: str, directory: Path, runs: int) -> None:
    """Does one command's work, and prints its seconds and the process's memory."""
    planned = experiment(directory, runs, "1ms")
    started, before = time.perf_counter(), time.process_time()
    if name == "plan":
        experiment(directory, runs, "1ms")
    elif name == "all there":
        tailcut.run(planned, out=directory / "results")
    elif name in ("first summary", "summary"):
        found = Result(Store(directory / "results"))
        found.summary()
        found.totals()
    elif name == "flows":
        import polars as pl

        found = Result(Store(directory / "results"))
        found.scan_flows().group_by("scheme").agg(pl.col("fct_ns").mean(), pl.len()).collect(engine="streaming")
    elif name == "report":
        Result(Store(directory / "results")).report(directory / "report.html")
    seconds, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    print(f"{seconds:.1f} s, {used.ru_utime + used.ru_stime - before:.1f} s busy, {used.ru_maxrss / 1024:.0f} MiB")


# --- the engine -----------------------------------------------------------------------------------


@contextmanager
def cluster(directory: Path, workers: int) -> Iterator[str]:
    """A scheduler and workers of one thread, each a process on loopback."""
    file = directory / "scheduler.json"
    file.unlink(missing_ok=True)
    dask = str(Path(sys.executable).with_name("dask"))
    local = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([dask, "scheduler", *local, "--port", "0", "--scheduler-file", str(file)], **quiet)]
    try:
        while not file.exists():
            time.sleep(0.05)
        for number in range(workers):
            own = ["--nthreads", "1", "--no-nanny", "--local-directory", str(directory / f"worker-{number}")]
            processes.append(subprocess.Popen([dask, "worker", *local, *own, "--scheduler-file", str(file)], **quiet))
        yield str(file)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def swept(directory: Path, planned: tailcut.Experiment, out: str, workers: int) -> tuple[float, float]:
    """Wall seconds, and processor seconds of this process, of a sweep on workers that are warm."""
    with cluster(directory, workers) as where, connect(where) as client:
        client.wait_for_workers(workers)
        warm = tailcut.load(planned.path or "", seeds=workers)
        tailcut.run(warm, out=directory / f"{out}-warm", executor=client)
        wall, cpu = time.perf_counter(), time.process_time()
        tailcut.run(planned, out=directory / out, executor=client)
        return time.perf_counter() - wall, time.process_time() - cpu


def engine(directory: Path) -> None:
    """Measures the head's work for each run on a cluster."""
    planned = experiment(directory, ENGINE_RUNS, "100us")
    _, shared = swept(directory, planned, "shared", 2)
    probe = Store.probe

    @contextmanager
    def unseen(store: Store) -> Iterator[tuple[str, str]]:
        with probe(store) as (name, _):
            yield name, "nobody sees this"

    Store.probe = unseen  # type: ignore[method-assign,assignment]
    _, returned = swept(directory, planned, "returned", 2)
    Store.probe = probe  # type: ignore[method-assign]
    alone = time.process_time()
    tailcut.run(planned, out=directory / "alone")
    alone = time.process_time() - alone
    print(f"processor time of the head per run, of {ENGINE_RUNS} runs, all else (plan, summary) included:")
    for name, seconds in (("local pool", alone), ("workers write", shared), ("runs come back", returned)):
        print(f"  {name:>14}: {1000 * seconds / ENGINE_RUNS:.2f} ms", flush=True)


def efficiency(directory: Path) -> None:
    """Runs of about a second on more and more workers, and on as many processes of the local pool."""
    planned = experiment(directory, 16, "20s")
    print(f"16 runs on {os.cpu_count()} cores, whose load before was {os.getloadavg()[0]:.1f}:")
    alone = 0.0
    for workers in WORKERS:
        wall, _ = swept(directory, planned, f"on-{workers}", workers)
        alone = alone or wall
        print(f"  {workers} workers: {wall:.1f} s, {alone / wall / workers:.0%} of {workers} times one", flush=True)
        wall = time.perf_counter()
        tailcut.run(planned, out=directory / f"local-{workers}", jobs=workers)
        print(f"  {workers} processes of the local pool: {time.perf_counter() - wall:.1f} s", flush=True)


PARTS: dict[str, Callable[[Path], None]] = {"head": head, "engine": engine, "workers": efficiency}


def main(arguments: Sequence[str]) -> None:
    """Run the parts that are named, or all."""
    if arguments[:1] == ["step"]:
        step(arguments[1], Path(arguments[2]), int(arguments[3]))
        return
    for part in arguments or PARTS:
        with tempfile.TemporaryDirectory(prefix="tailcut-bench-") as directory:
            PARTS[part](Path(directory))


if __name__ == "__main__":
    main(sys.argv[1:])
