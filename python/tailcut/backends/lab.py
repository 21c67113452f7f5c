"""Real kernels: every run of the plan with a network namespace per host, one after the other, into the store."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

import tailcut
from tailcut import _core
from tailcut.backends import Gap, Options, Progress, tell_started
from tailcut.backends.failures import Failures
from tailcut.backends.sim import CAPTURE_FILE, SimBackend, series_frame, tell_of_capture
from tailcut.errors import BackendError
from tailcut.lab import calibration, doctor, process, programs, repnet
from tailcut.lab.fabrics import ENGINE, resolve_fabric
from tailcut.plan import Plan, PlannedRun, canonical, label, unique_runs
from tailcut.results import disk_space, lab_runs, machine, tables
from tailcut.results.store import State, Store
from tailcut.traces import read_table
from tailcut.units import rate_bps

NO_CLUSTER = "the lab needs this machine's own kernel and processors: leave out --cluster"
NO_THREADS = "the lab simulates nothing, and its kernels use every core: leave out --threads"
NO_LINKS = "the lab captures what hosts send and receive, and no links: frames do not cross these one by one"
NOT_CAPTURED = "it was made without this capture, and no run is the same again: --repeat makes further ones"
ABOUT = (
    "facts",
    "entered",
    "frames",
    "copied",
    "joined",
    "hosts",
    "mtu",
    "set_up_ns",
    "awake",
    "in_memory",
    "goes_first",
    "repnet",
    "fabric",
    "switches",
    "queues",
    "versions",
)
"""Parts of the outcome that go into run.json."""
NO_PARQUET = "the lab does not read flows from Parquet files: write the trace as CSV"


@dataclass(frozen=True, slots=True)
class Lab:
    """Realises a plan over real TCP stacks, joined by the simulator's fabric in real time.

    Attributes:
        repeat: how often each run is made; kernels give other results each time.
        fabric: what lies between the hosts: ``engine``, the simulator's fabric in real time, or ``kernel``, with a
            network namespace for each switch; by default what the experiment says (``lab.fabric``). Runs over each are
            kept apart.

    Raises:
        BackendError: TC-B003: ``repeat`` is below 1.
    """

    name: ClassVar[str] = "lab"
    repeat: int = 1
    fabric: str | None = None

    def __post_init__(self) -> None:
        if self.repeat < 1:
            raise BackendError("TC-B003", f"repeat = {self.repeat}: must be at least 1")

    def check(self, plan: Plan, options: Options) -> list[Gap]:
        """Returns the fields of the plan that hosts with a real kernel realise otherwise, or not at all."""
        gaps = [
            Gap(one["field"], one["text"], one["answer"] == "fatal")
            for one in field_outcomes(plan, resolve_fabric(plan, self.fabric))
            if one["answer"] != "done"
        ]
        if options.farm is not None:
            gaps.append(Gap("--cluster", NO_CLUSTER, fatal=True))
        if options.several_threads:
            gaps.append(Gap("--threads", NO_THREADS, fatal=True))
        if options.capture is not None:
            gaps += SimBackend().check(plan, options)
            if any(">" in point for point in options.capture.points):
                gaps.append(Gap("--capture", NO_LINKS, fatal=True))
        return gaps

    def run(self, plan: Plan, store: Store, progress: Progress, options: Options) -> None:
        """Make the runs that the store does not hold, one at a time: each needs the machine to itself."""
        store.clear_leftovers()
        by_repnet = lab_runs.by_repnet(plan["runs"])
        program = repnet.program() if by_repnet else None
        fabric = resolve_fabric(plan, self.fabric)
        wanted = [
            LabRunRequest(
                run,
                lab_runs.identifier(run["id"], repeat, repnet=by_repnet, fabric=fabric),
                label(run) if self.repeat == 1 else f"{label(run)}, repeat {repeat}",
            )
            for repeat in range(1, self.repeat + 1)
            for run in unique_runs(plan).values()
        ]
        there = {one.id for one in wanted if store.state(one.id) is State.COMPLETE}
        missing = [one for one in wanted if one.id not in there]
        capture = options.capture
        if capture is not None:
            for one in wanted:
                if one.id in there and not capture.is_in(store.run_record(one.id)):
                    progress.note(f"{one.name}: {NOT_CAPTURED}")
        hops = sum(one.run["facts"]["expected_packet_hops"] for one in missing)
        progress.begin(len(wanted), len(wanted) - len(missing), hops)
        failures = Failures(store, progress, capture)
        for one in missing:
            if not failures.has_room([one.run]):
                break
            with _claimed(one, store, progress):
                tell_started(progress, one.run)
                if store.state(one.id) is State.COMPLETE:  # somebody else has made it meanwhile
                    progress.finished(one.run["id"])
                else:
                    _make(one, program, RunContext(store, progress, options, fabric, failures))
            if failures.disk_full_reason or (failures.has_failed and options.fail_fast):
                break
        failures.raise_if_any(len(missing))


def field_outcomes(plan: Plan, fabric: str) -> list[dict[str, str]]:
    """`fields`, and what of the plan cannot be had on this machine, which is asked.

    Whether a run can begin, `tailcut check` and `tailcut run` both know from here.
    """
    runs = checked(plan, fabric)
    needs = dict.fromkeys((need["offer"], need["field"]) for one in runs for need in one["needs"])
    refused = doctor.refusals(doctor.findings(), needs)
    return _told(runs) + [{"field": field, "answer": "fatal", "text": why} for field, why in refused]


def fields(plan: Plan, fabric: str = ENGINE) -> list[dict[str, str]]:
    """Every field of the plan, whether it is ``done``, ``near`` or ``fatal``, and how or why; each answer once.

    Of this machine only those things are asked that decide how a field is realised: congestion controls and BPF.
    """
    return _told(checked(plan, fabric))


def measure_load(plan: Plan, fabric: str) -> calibration.Load:
    """Returns the load that the plan puts on this machine, and the calibration by a short run of the lab.

    Raises:
        LabError: that run failed; says why.
    """
    program = repnet.program() if lab_runs.by_repnet(plan["runs"]) else None
    rates = {str(run["config"]["topology"].get("rate")) for run in plan["runs"]}
    rate = rates.pop() if len(rates) == 1 else ""
    return calibration.Load(
        busiest=max(one["busiest"] for one in checked(plan, fabric)),
        rate_bps=rate_bps(rate) if rate.endswith("bps") else None,
        carried=calibration.calibrate(fabric, program),
    )


def _told(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    told: dict[tuple[str, str], dict[str, str]] = {}
    for one in runs:
        for answer in one["told"]:
            told.setdefault((answer["field"], answer["text"]), answer)
    return list(told.values())


def checked(plan: Plan, fabric: str) -> list[dict[str, Any]]:
    """Returns `tailcut._core.lab_check`'s answer for each different configuration.

    That is what is ``told`` of its fields, what each ``needs`` (``offer``, ``field``), and ``busiest``: frames a
    second, at the most, that its hosts send in the busiest 50 ms.
    """
    by_repnet = lab_runs.by_repnet(plan["runs"])
    configurations = {canonical(run["config"]): run for run in reversed(plan["runs"])}
    return [_checked(run, by_repnet=by_repnet, fabric=fabric) for run in configurations.values()]


def _checked(run: PlannedRun, *, by_repnet: bool, fabric: str) -> dict[str, Any]:
    if any(file["path"].endswith(".parquet") for file in run["files"]):
        return {"told": [{"field": "traffic.file", "answer": "fatal", "text": NO_PARQUET}], "needs": []}
    answer: dict[str, Any] = json.loads(_core.lab_check(json.dumps(run), by_repnet, fabric, programs.directory()))
    return answer


@dataclass(frozen=True, slots=True)
class LabRunRequest:
    """A run of the lab that is asked for: of which planned run, its identifier in the store, and what it is called."""

    run: PlannedRun
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class RunContext:
    """The store of a run, its observer, and the way to make it."""

    store: Store
    progress: Progress
    options: Options
    fabric: str
    failures: Failures


def starts_frame(starts: Sequence[Mapping[str, int]]) -> pl.DataFrame:
    """The table of how late flows started, of what the lab's process tells of each."""
    rows = [(one["id"], one["late_ns"]) for one in starts]
    return pl.DataFrame(rows, schema=tables.schema("starts"), orient="row")


@contextmanager
def _claimed(wanted: LabRunRequest, store: Store, progress: Progress) -> Iterator[None]:
    """Take a run on, once whoever is making it has ended; that is told, as it may take long."""
    with ExitStack() as taken:
        if not taken.enter_context(store.claim(wanted.id)):
            progress.note(f"{wanted.name}: another process is making it")
            taken.enter_context(store.claim(wanted.id, wait=True))
        yield


def _make(wanted: LabRunRequest, program: list[str] | None, into: RunContext) -> None:
    run = wanted.run
    hops = run["facts"]["expected_packet_hops"]
    flows = max(1, run["facts"]["flows"])

    def on_progress(now_ns: int, over: int) -> None:
        into.progress.advanced(run["id"], 1000 * now_ns, hops * over // flows)

    capture = into.options.capture
    with nullcontext() if capture is None else into.store.scratch(wanted.id) as scratch:
        captured: dict[str, Any] = {}
        if capture is not None and scratch is not None:
            captured["capture"] = {"file": str(scratch / CAPTURE_FILE), "spec": capture.spec}
        began = time.perf_counter()
        try:
            done = process.run(
                json.dumps(run),
                on_progress,
                into.options.limit_seconds,
                program,
                fabric=into.fabric,
                **captured,
            )
        except process.LabError as error:
            into.failures.fail(run, str(error), name=wanted.name)
            return
        more = {path.name: path for path in sorted(scratch.iterdir())} if scratch is not None else {}
        try:
            _put(wanted, into, done, time.perf_counter() - began, more)
        except OSError as error:
            if not disk_space.is_full(error):
                raise
            into.failures.fail(run, f"{into.store.directory}: {error.strerror}", name=wanted.name)
            into.failures.was_full(wanted.name)
            return
    if capture is not None:
        tell_of_capture(wanted.name, wanted.id, into.store, into.progress)
    if done["unfaithful"]:
        into.progress.note(f"{wanted.name}: not faithful: {'; '.join(done['unfaithful'])}")
    into.progress.finished(run["id"])


def _put(
    wanted: LabRunRequest, into: RunContext, done: Mapping[str, Any], wall_seconds: float, more: Mapping[str, Path]
) -> None:
    run = wanted.run
    capture = into.options.capture
    made = _core.tabulate(json.dumps(run), json.dumps(done["measured"]), read_table)
    frames = {"flows": tables.frame(made["flows"]), "tiers": tables.frame(made["tiers"])}
    frames |= {name: tables.frame(columns) for name, columns in made["further"].items()}
    if made["series"]:
        frames["series"] = series_frame(made["series"])
    frames["starts"] = starts_frame(done["starts"])
    about = {
        "backend": Lab.name,
        "of": run["id"],
        "version": tailcut.__version__,
        "seed": run["seed"],
        "config": run["config"],
        "planned": run["facts"],
        "machine": machine.describe(),
        "wall_seconds": wall_seconds,
        "end_ns": made["counters"]["end_ns"],
        "packet_hops": made["counters"]["packet_hops"],
        "dropped": made["counters"]["dropped"],
        "lost_on_links": made["counters"]["lost_on_links"],
        **{name: int(value) if value.is_integer() else value for name, value in made["facts"].items()},
        "flows": frames["flows"].height,
        "truncated_series": [one["name"] for one in made["series"] if one["truncated"]],
        "faithful": not done["unfaithful"],
        "unfaithful": done["unfaithful"],
        "lab": {**{name: done[name] for name in ABOUT}, "unknown": done["measured"]["unknown"]},
        "capture": list(capture.points) if capture else [],
        "capture_bounds": capture.bounds if capture else {},
        "captured": done["captured"],
        "fields": _checked(run, by_repnet=done["repnet"] is not None, fabric=done["fabric"])["told"],
        "units": {
            name: {column: tables.UNITS[name].get(column, "") for column in data.columns}
            for name, data in frames.items()
        },
    }
    files = {f"{name}.parquet": tables.encode(name, data, run) for name, data in frames.items()}
    into.store.put(wanted.id, {**files, **more}, about)
