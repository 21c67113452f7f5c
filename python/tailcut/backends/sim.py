"""The packet simulator: every run of the plan, in worker processes, into the store."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

import tailcut
from tailcut import _core
from tailcut.backends import Capture, Gap, Options, Progress, maker
from tailcut.plan import Plan, PlannedRun, canonical, label, unique_runs
from tailcut.results import disk_space, machine, tables
from tailcut.results.store import State, Store
from tailcut.results.thread_times import by_activity
from tailcut.traces import read_table
from tailcut.units import size

CAPTURE_FILE = "capture.pcapng"
"""The file of a run's captured packets, beside its tables."""


ONE_THREAD_EACH = "the workers of a cluster simulate each run on one thread: leave out --threads or --cluster"


@dataclass(frozen=True, slots=True)
class SimBackend:
    """Realises every field of a plan by simulating each packet."""

    name: ClassVar[str] = "sim"

    def check(self, plan: Plan, options: Options) -> list[Gap]:
        """A capture of what is not in the network, and threads of a cluster's workers."""
        if options.farm is not None and options.several_threads:
            return [Gap("--threads", ONE_THREAD_EACH, fatal=True)]
        if options.capture is None:
            return []
        spec = json.dumps(options.capture.spec)
        runs = {canonical(run["config"]["topology"]): run for run in plan["runs"]}
        try:
            for run in runs.values():
                _core.check_capture(json.dumps(run), spec)
        except ValueError as error:
            reason = re.sub(r" at line \d+ column \d+$", "", str(error))
            return [Gap("--capture", reason, fatal=True)]
        return []

    def run(self, plan: Plan, store: Store, progress: Progress, options: Options) -> None:
        """Make the runs that the store does not hold, longest first."""
        store.clear_leftovers()
        missing = []
        runs = unique_runs(plan)
        for run in runs.values():
            state = store.state(run["id"])
            captured = options.capture is None or (
                state is State.COMPLETE and options.capture.is_in(store.run_record(run["id"]))
            )
            if state is State.DAMAGED:
                progress.note(f"{label(run)}: {store.path(run['id'])} is damaged; the run is made again")
            elif state is State.COMPLETE and not captured:
                progress.note(f"{label(run)}: there is no such capture; the run is made again")
            if state is not State.COMPLETE or not captured:
                missing.append(run)
        missing.sort(key=lambda run: run["facts"]["expected_packet_hops"], reverse=True)
        hops = sum(run["facts"]["expected_packet_hops"] for run in missing)
        progress.begin(len(runs), len(runs) - len(missing), hops)
        _tell_of_room(missing, store, progress, options.capture)
        if missing:
            maker(store, progress, options).make(missing)
        for run in runs.values() if options.capture else ():
            tell_of_capture(label(run), run["id"], store, progress)


def _tell_of_room(runs: Sequence[PlannedRun], store: Store, progress: Progress, capture: Capture | None) -> None:
    """Say beforehand if the disk will be full before all runs are made."""
    needed = sum(disk_space.expected_bytes(run, capture.spec if capture else None) for run in runs)
    free = disk_space.free_bytes(store.directory)
    if free is not None and needed > free:
        progress.note(
            f"{store.directory}: the runs are expected to take about {size(needed)}, and {size(free)} are free;"
            " as many are made as there is room for"
        )


def tell_of_capture(name: str, run_id: str, store: Store, progress: Progress) -> None:
    """Say what is in the capture of a run, and where."""
    captured = store.run_record(run_id)["captured"]
    left_out = f"; {captured['left_out']:,} more did not fit" if captured["left_out"] else ""
    file = store.path(run_id) / CAPTURE_FILE
    progress.note(f"{name}: {captured['packets']:,} packets in {file}{left_out}")


def make(
    run: PlannedRun,
    store: Store,
    on_progress: Callable[[int, int, int], None] | None,
    capture: Capture | None = None,
    threads: int = 1,
    *,
    auto: bool = False,
) -> str | None:
    """Simulate one run in this process and store it, on so many threads. The caller has claimed it.

    With ``auto`` it is on as many of them as pay.

    Returns:
        Why one thread simulated it where more were asked for.
    """
    machine.forget_peak_memory()
    started = time.perf_counter()
    with nullcontext() if capture is None else store.scratch(run["id"]) as scratch:
        request = _capture_request(scratch, capture)
        made = _core.run(json.dumps(run), on_progress, request, read_table, threads, auto)
        wall_seconds = time.perf_counter() - started
        frames = {"flows": tables.frame(made["flows"]), "tiers": tables.frame(made["tiers"])}
        frames |= {name: tables.frame(columns) for name, columns in made["further"].items()}
        if made["series"]:
            frames["series"] = series_frame(made["series"])
        files: dict[str, bytes | Path] = {
            f"{name}.parquet": tables.encode(name, data, run) for name, data in frames.items()
        }
        if scratch is not None:
            files |= {path.name: path for path in sorted(scratch.iterdir())}
        store.put(run["id"], files, _about(run, made, frames, wall_seconds, capture))
    if on_progress is not None:  # short runs have told nothing before
        on_progress(1000 * made["counters"]["end_ns"], made["counters"]["packet_hops"], frames["flows"].height)
    return made["one_thread"]


def _capture_request(directory: Path | None, capture: Capture | None) -> str | None:
    if directory is None or capture is None:
        return None
    return json.dumps({"file": str(directory / CAPTURE_FILE), "spec": capture.spec})


def series_frame(series: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The table of time series that a run has given."""
    parts = [
        pl.DataFrame({"time_ns": one["time_ns"], "value": one["value"]}).select(
            pl.lit(one["name"]).alias("name"),
            "time_ns",
            "value",
            pl.lit(one["flow"], pl.UInt64).alias("flow"),
            pl.lit(one["copy"], pl.UInt8).alias("copy"),
        )
        for one in series
    ]
    return pl.concat(parts)


def _unfinished(jobs: Sequence[tuple[int, str]]) -> list[dict[str, Any]]:
    """Returns the jobs that had not ended with a run: code, number and a sentence on what waits for what."""
    return [{"code": "TC-R003", "job": number, "reason": reason} for number, reason in jobs]


def _about(
    run: PlannedRun,
    made: Mapping[str, Any],
    frames: dict[str, pl.DataFrame],
    wall_seconds: float,
    capture: Capture | None,
) -> dict[str, Any]:
    flows = frames["flows"]
    hops = made["counters"]["packet_hops"]
    return {
        "backend": SimBackend.name,
        "version": tailcut.__version__,
        "seed": run["seed"],
        "config": run["config"],
        "planned": run["facts"],
        "build": {"profile": _core.PROFILE, "compiler": _core.COMPILER},
        "machine": machine.describe(),
        "threads": made["threads"],
        **({"thread_seconds": by_activity(made["thread_times"])} if made["thread_times"] else {}),
        "wall_seconds": wall_seconds,
        "peak_memory_bytes": machine.peak_memory(),
        "packet_hops_per_second": hops / wall_seconds if wall_seconds > 0 else None,
        **made["counters"],
        **{name: int(value) if value.is_integer() else value for name, value in made["facts"].items()},
        "flows": flows.height,
        "unfinished_flows": int((~flows["finished"]).sum()),
        "truncated_series": [one["name"] for one in made["series"] if one["truncated"]],
        "capture": list(capture.points) if capture else [],
        "capture_bounds": capture.bounds if capture else {},
        "captured": made["captured"],
        **({"unfinished_jobs": _unfinished(made["unfinished_jobs"])} if made["unfinished_jobs"] else {}),
        "units": {
            name: {column: tables.UNITS[name].get(column, "") for column in data.columns}
            for name, data in frames.items()
        },
    }
