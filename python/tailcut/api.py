"""The Python interface: load an experiment, run it, look at what comes out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailcut import _core, plan
from tailcut.backends import Capture, Options, Progress, backend
from tailcut.errors import BackendError
from tailcut.plan import Plan
from tailcut.results import Result, Store


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment file, checked and resolved.

    Attributes:
        path: the file.
        plan: every run of it with every default explicit.
    """

    path: Path
    plan: Plan

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return plan.name(self.plan)

    def __repr__(self) -> str:
        return f"<Experiment {self.name!r}: {len(self.plan['runs'])} runs>"


def load(
    path: str | Path,
    set: Mapping[str, str] | None = None,  # noqa: A002 - as on the command line
    seeds: int | None = None,
) -> Experiment:
    """Read an experiment file.

    Args:
        path: the TOML file.
        set: values to use instead of those in the file: dotted key, and the value as TOML would have it
            (``{"traffic.load": "0.3"}``).
        seeds: use the seeds 1 to this number.

    Raises:
        ExperimentError: the file or an override says something that cannot be run; says where and what to do.
    """
    overrides = list((set or {}).items())
    if seeds is not None:
        overrides.append(("seeds", str(seeds)))
    return Experiment(Path(path), json.loads(_core.load(str(path), overrides)))


def run(
    experiment: Experiment,
    *,
    on: str = "sim",
    out: str | Path | None = None,
    jobs: int | None = None,
    capture: Capture | Sequence[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Make the runs that are not there yet.

    Args:
        experiment: what ``load`` gave.
        on: the backend, ``sim`` or ``model``.
        out: the directory of results, by default ``results/<name of the experiment>``.
        jobs: runs at a time, by default one per core.
        capture: hosts (``"host:0"``) and links (``"link:h0>s0"``) whose packets are written as pcapng beside the
            run's tables; a `Capture` also bounds the files.
        progress: told how far it is; silent by default.

    Raises:
        BackendError: there is no such backend, or it cannot realise the experiment at all.
        StoreError: ``out`` holds something else.
        RunError: some runs failed; the others are kept.
        KeyboardInterrupt: interrupted; finished runs are kept and the same call goes on from there.
    """
    chosen = backend(on)
    if not isinstance(capture, Capture):
        capture = Capture(tuple(capture))
    options = Options(jobs=jobs, capture=capture if capture.points else None)
    gaps = chosen.check(experiment.plan, options)
    fatal = [gap for gap in gaps if gap.fatal]
    if fatal:
        reasons = "\n".join(f"  {gap.where}: {gap.reason}" for gap in fatal)
        raise BackendError(
            "TC-B002",
            f"the backend {on!r} cannot realise this experiment:\n{reasons}",
            "change what is named, or choose another backend with --on",
        )
    store = Store.create(Path(out) if out is not None else Path("results") / experiment.name, experiment.plan)
    progress = progress or Silent()
    for gap in gaps:
        progress.note(f"{gap.where}: {gap.reason}")
    chosen.run(experiment.plan, store, progress, options)
    result = Result(store)
    result.write_summary()
    return result


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
