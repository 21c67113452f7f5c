"""Makes the runs that claims need and are not there, and fills the scorecard from all that are."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import tailcut
from tailcut import _core, shipped
from tailcut.api import Experiment
from tailcut.backends import Progress
from tailcut.claims import evaluate
from tailcut.claims.document import AUTHORS, STATED, Claim, Paper, Reading
from tailcut.claims.scorecard import Row
from tailcut.errors import ClaimsError
from tailcut.plan import Plan, PlannedRun, unique_runs
from tailcut.results import State, Store, StoredResult, lab_runs, machine

NAME = "claims"
"""The name of the one experiment of the directory: runs of all claims lie together, so that none is made twice."""
BESIDE_PACKETS_SECONDS = 0.5
"""Time of a run of a claim beside its packets: to read, to write, and attribution (695 runs of `today`)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The claims that one experiment answers under one reading.

    Attributes:
        experiment: as below ``experiments/``.
        reading: the settings.
        backend: who answers.
        claims: them.
        plan: the experiment's whole plan.
        runs: the runs that the claims need.
    """

    experiment: str
    reading: Reading
    backend: str
    claims: tuple[Claim, ...]
    plan: Plan
    runs: tuple[PlannedRun, ...]


def batches(
    papers: Sequence[Paper],
    claims: Sequence[Claim],
    backend: str = "sim",
    readings: Sequence[str] = (STATED,),
    *,
    small: bool = False,
    seeds: int | None = None,
) -> list[Batch]:
    """Returns the batches of runs that claims need, by experiment.

    Args:
        papers: whose readings the claims name.
        claims: those that a backend cannot answer are left out.
        backend: who answers.
        readings: under which readings; all of them if empty.
        small: whether to take the experiments' small variants, where there are some.
        seeds: use the seeds 1 to this number, where the experiment's are too many or too few.

    Raises:
        ClaimsError: TC-K003: an experiment has not what a claim is of.
        ExperimentError: a reading sets what the experiment cannot have.
    """
    known = {paper.name: paper.readings for paper in papers}
    asked = [
        (claim.experiment, reading, claim)
        for claim in claims
        if claim.experiment is not None and backend in claim.backends
        for reading in claim.readings
        if not readings or reading in readings
    ]
    asked.sort(key=lambda one: (str(one[0]), one[1] != STATED, one[1]))
    found = []
    for (experiment, reading), group in groupby(asked, key=lambda one: (one[0], one[1])):
        of_group = tuple(claim for _, _, claim in group)
        setting = known[of_group[0].paper][reading]
        plan = _plan(str(experiment), setting, seeds, small=small and has_small(str(experiment)))
        if small:
            of_group = tuple(_fitted(claim, plan) for claim in of_group)
        runs = tuple(evaluate.runs_needed(of_group, plan))
        found.append(Batch(str(experiment), setting, backend, of_group, plan, runs))
    return found


def texts() -> dict[str, str]:
    """Every experiment that comes with Tailcut, by its name."""
    return dict(_core.shipped()[0])


def has_small(experiment: str) -> bool:
    """Whether an experiment has a small variant."""
    return "small" in tomllib.loads(texts().get(experiment, ""))


def _plan(experiment: str, reading: Reading, seeds: int | None, *, small: bool) -> Plan:
    known = texts()
    if experiment not in known:
        raise ClaimsError("TC-K003", shipped.unknown(experiment, known), "correct its claims.toml")
    home = Path("experiments") / Path(experiment).parent
    settings = dict(reading.overrides)
    plan = tailcut.loads(known[experiment], name=NAME, directory=home, set=settings, seeds=seeds, small=small).plan
    named: Any = {**plan, "overrides": {"experiment": experiment, **plan.get("overrides", {})}}
    return cast("Plan", named)


def _fitted(claim: Claim, plan: Plan) -> Claim:
    """Returns a claim restricted to the points of a small variant: its own points among them, or else all."""
    axes = {axis["key"]: axis["values"] for axis in plan["sweep"]}
    at = {
        key: tuple(value for value in values if value in axes[key]) or tuple(axes[key])
        for key, values in claim.at.items()
        if key in axes
    }
    target = claim.target if len(claim.target) == 1 else claim.target[-1:]
    return replace(claim, at=at, target=target)


def missing(batch: Batch, directory: Path) -> list[PlannedRun]:
    """The runs of a batch that are not in a directory yet, each once."""
    store = Store(directory)
    if batch.backend in evaluate.WITHOUT_RUNS:
        return []
    once = unique_runs(cast("Plan", {**batch.plan, "runs": [*batch.runs]}))
    if batch.backend == "lab":
        there = {one.run["id"] for one in lab_runs.of_plan(store, [*once.values()])}
        return [run for run_id, run in once.items() if run_id not in there]
    return [run for run_id, run in once.items() if store.state(run_id) is not State.COMPLETE]


def expected_seconds(every: Sequence[Batch], directory: Path) -> float:
    """How long the missing runs of all batches are expected to take on this machine, each made once."""
    once = {run["id"]: run for batch in every for run in missing(batch, directory)}
    total: float = sum(BESIDE_PACKETS_SECONDS + run["facts"]["estimated_seconds"] for run in once.values())
    return total / max(1, min(machine.cores(), len(once) or 1))


def carry_out(batch: Batch, directory: Path, progress: Progress | None = None, **options: Any) -> Iterator[Row]:
    """Make the missing runs of a batch, and give the rows of its claims.

    Args:
        batch: what to make.
        directory: where all runs of claims are kept.
        progress: as for `tailcut.run`.
        options: further arguments of `tailcut.run`: ``jobs``, ``executor``, ``limit_seconds``.

    Raises:
        RunError: some runs failed; the others are kept.
        KeyboardInterrupt: interrupted; finished runs are kept, and the same call goes on from there.
    """
    if batch.backend == AUTHORS:
        yield from rows(batch, None)
        return
    asked = cast("Plan", {**batch.plan, "runs": [*batch.runs]})
    result = tailcut.run(
        Experiment(None, asked), on=batch.backend, out=directory, progress=progress or tailcut.api.Silent(), **options
    )
    yield from rows(batch, result)


def rows(batch: Batch, result: StoredResult | None) -> Iterator[Row]:
    """Returns the scorecard rows of a batch's claims from the finished runs."""
    answers = _answers(batch, result)
    small = batch.plan.get("small", False)
    for claim in batch.claims:
        yield evaluate.row(claim, batch.plan, answers, batch.reading.name, batch.backend, small=small)


def _answers(batch: Batch, result: StoredResult | None) -> evaluate.Answers:
    if result is None:
        folder = Path("experiments", batch.experiment).parent / AUTHORS
        if not folder.is_dir():
            raise ClaimsError(
                "TC-K005", f"the authors' own numbers are not at {folder}", "run it in a checkout, which alone has them"
            )
        return evaluate.OfAuthors(folder)
    if batch.backend == "model":
        return evaluate.OfModel(result.summary())
    return evaluate.OfRuns(result, batch.backend)
