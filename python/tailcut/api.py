"""The Python interface: load an experiment, run it, look at what comes out."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tailcut import _core, plan
from tailcut.backends import FATAL_HINT, Backend, Capture, Options, Progress, Threads, backend
from tailcut.diagnosis import together
from tailcut.document import as_toml, toml_value
from tailcut.errors import BackendError, checking_experiments
from tailcut.lab import fabrics
from tailcut.plan import Plan
from tailcut.results import disk_space
from tailcut.results.location import default_directory
from tailcut.traces import prepare, read_table

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from distributed import Client

    from tailcut.backends.farm import Farm
    from tailcut.result import Result


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment, checked and resolved.

    Attributes:
        path: the file; none for one that ``loads`` made.
        plan: every run of it with every default explicit.
    """

    path: Path | None
    plan: Plan

    @property
    def name(self) -> str:
        """The file's name without its suffix, or the name that ``loads`` was given."""
        return self.plan["source_file"] if self.path is None else plan.name(self.plan)

    @property
    def directory(self) -> Path:
        """The default directory of its results: ``results/`` and the file's path or the name."""
        if self.path is None:
            return Path("results", self.name)
        home = default_directory(self.path)
        return home.with_name(plan.name(self.plan, home.name))

    def __repr__(self) -> str:
        return f"<Experiment {self.name!r}: {len(self.plan['runs'])} runs>"


def load(
    path: str | Path,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as on the command line
    seeds: int | None = None,
    *,
    small: bool = False,
    medium: bool = False,
) -> Experiment:
    """Read an experiment file.

    Args:
        path: the TOML file.
        set: values to use instead of those in the file, by dotted key: numbers, booleans, lists and dictionaries
            (``{"traffic.load": 0.3}``), or text as after ``--set`` (``{"topology.rate": "10Gbps"}``).
        seeds: use the seeds 1 to this number.
        small: apply the file's table ``[small]`` first, which makes it a run of seconds.
        medium: apply its table ``[medium]`` first, which makes it a run of about a minute.

    Raises:
        ExperimentError: the file or an override says something that cannot be run; says where and what to do.
        BackendError: TC-B004: the lab has no such fabric as ``lab.fabric`` names.
        TypeError: an override that TOML has no word for.
    """
    overrides, variant = _overrides(set, seeds), _variant(small=small, medium=medium)
    with checking_experiments():
        try:
            text = Path(path).read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            # Says why.
            return Experiment(Path(path), json.loads(_core.load(str(path), overrides, read_table, variant)))
        name = os.fsencode(path).decode(errors="replace")  # a folder's name need be no UTF-8
        found = _planned(text, name, Path(path).parent, overrides, variant)
    fabrics.resolve_fabric(found)
    return Experiment(Path(path), found)


def loads(
    experiment: str | Mapping[str, Any],
    *,
    name: str | None = None,
    directory: str | Path = ".",
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as on the command line
    seeds: int | None = None,
    small: bool = False,
    medium: bool = False,
) -> Experiment:
    """Read an experiment that is not in a file.

    Args:
        experiment: the text of an experiment file, or the dictionary that it would be.
        name: what it is called; its results go to ``results/<name>``. By default its title in small letters with
            hyphens.
        directory: where the files are that it names.
        set: as for ``load``.
        seeds: as for ``load``.
        small: as for ``load``.
        medium: as for ``load``.

    Raises:
        ExperimentError: it says something that cannot be run; says where and what to do.
        TypeError: the dictionary or an override holds what TOML has no word for.
        ValueError: the name is none that a directory can have.
    """
    if name is not None and (Path(name).name != name or name in ("", "..")):
        raise ValueError(f"{name!r} cannot be the name of a directory")
    variant = _variant(small=small, medium=medium)
    text = experiment if isinstance(experiment, str) else as_toml(experiment)
    with checking_experiments():
        found = _planned(text, name or "experiment", Path(directory), _overrides(set, seeds), variant)
    fabrics.resolve_fabric(found)
    found["source_file"] = name or "-".join(re.findall(r"\w+", found["title"].lower())) or "experiment"
    return Experiment(None, found)


def _variant(*, small: bool, medium: bool) -> str | None:
    if small and medium:
        raise ValueError("small and medium are two variants: ask for one of them")
    return "small" if small else "medium" if medium else None


def _planned(text: str, name: str, directory: Path, overrides: list[tuple[str, str]], variant: str | None) -> Plan:
    """The plan of an experiment, with its traces as they are read, and with what was replaced in the file."""
    prepared = prepare(text, name, directory, overrides)
    if prepared is None:
        found: Plan = json.loads(_core.loads(name, text, str(directory), overrides, read_table, variant))
    else:
        try:
            made = _core.loads(name, prepared.text, str(directory), prepared.overrides, read_table, variant)
        except _core.ExperimentError as error:
            raise prepared.retold(error) from None
        if prepared.errors:
            raise together([entry for error in prepared.errors for entry in error.errors])
        found = prepared.restored(json.loads(made))
    if variant is not None:
        found = cast("Plan", {**found, variant: True})
    return {**found, "overrides": dict(overrides)} if overrides else found


def _overrides(given: Mapping[str, Any] | None, seeds: int | None) -> list[tuple[str, str]]:
    written = {key: value if isinstance(value, str) else toml_value(value, key) for key, value in (given or {}).items()}
    return [*written.items(), *([("seeds", str(seeds))] if seeds is not None else [])]


def run(
    experiment: Experiment | str | Path,
    *,
    on: str | Backend = "sim",
    out: str | Path | None = None,
    jobs: int | None = None,
    threads: Threads = 1,
    capture: Capture | Sequence[str] = (),
    executor: "Executor | Client | None" = None,
    limit_seconds: float | None = None,
    progress: Progress | None = None,
    fail_fast: bool = False,
) -> "Result":
    """Make the runs that are not there yet.

    Args:
        experiment: what ``load`` or ``loads`` gave, or the path of an experiment file.
        on: the backend: ``sim``, ``model`` or ``lab``, or one with options of its own, such as
            ``Lab(repeat=3, fabric="kernel")``.
        out: the directory of results. By default it is ``results/`` and the file's path below the working directory,
            without suffix and without a leading ``experiments/``: ``experiments/papers/rps/fig7b.toml`` goes to
            ``results/papers/rps/fig7b``. A file from elsewhere goes to ``results/`` and its name.
        jobs: runs at a time, by default as many as there are cores for their threads.
        threads: threads that simulate a run, with the same results; a run that one thread must simulate says why.
            With ``"auto"`` the last runs get idle cores, as far as these make them quicker.
        capture: hosts (``"host:0"``) and links (``"link:h0>s0"``) whose packets are written as pcapng beside the
            run's tables; a `Capture` also bounds the files.
        executor: who makes the runs: a Dask client (``distributed.Client``), or any executor in the manner of
            `concurrent.futures`. By default worker processes of this machine.
        limit_seconds: how long a run may take; one that takes longer has failed.
        progress: told how far it is. By default a notebook shows a bar and everything else nothing; ``Silent()`` of
            this module shows nothing anywhere.
        fail_fast: end at the first run that fails instead of making the others.

    Raises:
        ExperimentError: the file at that path says something that cannot be run.
        BackendError: there is no such backend, or it cannot realise the experiment at all.
        StoreError: ``out`` holds something else: other files, another experiment's results, another version's.
        ClusterError: the executor's workers cannot be reached or cannot make the runs.
        ValueError: fewer than one job or thread, or a word for threads that is not ``auto``.
        RunError: some runs failed; the others are kept. Its ``tracebacks`` say where in the code.
        KeyboardInterrupt: interrupted; finished runs are kept and the same call goes on from there.
    """
    from tailcut.result import Result
    from tailcut.results import Store

    for name, number in (("jobs", jobs), ("threads", threads)):
        if isinstance(number, str) and (name, number) != ("threads", "auto"):
            raise ValueError(f"{name}={number!r}: give a number{', or auto' if name == 'threads' else ''}")
        if isinstance(number, int) and number < 1:
            raise ValueError(f"{name}={number}: give at least 1, or leave it out")
    if isinstance(experiment, str | Path):
        experiment = load(experiment)
    chosen = backend(on) if isinstance(on, str) else on
    if not isinstance(capture, Capture):
        capture = Capture(tuple(capture))
    options = Options(
        jobs=jobs,
        threads=threads,
        capture=capture if capture.points else None,
        limit_seconds=limit_seconds,
        fail_fast=fail_fast,
        farm=None if executor is None else _farm(executor),
    )
    gaps = chosen.check(experiment.plan, options)
    fatal = [gap for gap in gaps if gap.fatal]
    if fatal:
        reasons = "\n".join(f"  {gap.where}: {gap.reason}" for gap in fatal)
        raise BackendError(
            "TC-B002",
            f"the backend {chosen.name!r} cannot realise this experiment:\n{reasons}",
            FATAL_HINT,
        )
    store = Store.create(Path(out) if out is not None else experiment.directory, experiment.plan, experiment.path)
    progress = progress or _usual_progress()
    for gap in gaps:
        progress.note(f"{gap.where}: {gap.reason}")
    chosen.run(experiment.plan, store, progress, options)
    result = Result(store, experiment.plan)
    if store.plan() == experiment.plan:  # otherwise somebody asks something else here meanwhile, and writes that
        _write_summary(result, progress)
    return result


def _usual_progress() -> Progress:
    from tailcut.terminal.notebook import Notebook, display_of_notebook

    display = display_of_notebook()
    return Silent() if display is None else Notebook(display)


def _write_summary(result: "Result", progress: Progress) -> None:
    """Write what can be computed again at any time; a full disk is no reason to withhold it from the caller."""
    try:
        result.write_summary()
    except OSError as error:
        if not disk_space.is_full(error):
            raise
        progress.note(f"{result.directory}: there is no room for summary.parquet; the runs are there")


def _farm(executor: "Executor | Client") -> "Farm":
    from concurrent.futures import Executor

    if isinstance(executor, Executor):
        from tailcut.backends.farm import ExecutorFarm

        return ExecutorFarm(executor)
    from tailcut.cluster import DaskFarm

    return DaskFarm(executor)


class Silent(Progress):
    """Says nothing."""

    def begin(self, runs: int, done: int, expected_packet_hops: int) -> None:
        """Say nothing."""

    def started(self, run_id: str, label: str, horizon_ps: int, expected_packet_hops: int) -> None:
        """Say nothing."""

    def advanced(self, run_id: str, now_ps: int, packet_hops: int) -> None:
        """Say nothing."""

    def finished(self, run_id: str) -> None:
        """Say nothing."""

    def failed(self, run_id: str, reason: str) -> None:
        """Say nothing."""

    def note(self, message: str) -> None:
        """Say nothing."""
