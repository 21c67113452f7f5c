"""Computes a claim's numbers and verdict from the finished runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from tailcut import _core
from tailcut.claims import metrics, verdict
from tailcut.claims.document import AUTHORS, Claim, Compare, Measure
from tailcut.claims.metrics import Made, Part, Runs
from tailcut.claims.scorecard import Point, Row
from tailcut.claims.verdict import Number, Verdict
from tailcut.errors import ClaimsError
from tailcut.plan import Plan, PlannedRun, Value, canonical
from tailcut.results import StoredResult

WITHOUT_RUNS = ("model", AUTHORS)
"""Backends that answer without runs."""
BY_MODEL = ("mean", "p99")
"""The statistics that the queueing analysis gives."""


class Answers:
    """A backend's numbers of schemes at points; by default it has none, and makes no runs."""

    def number(self, claim: Claim, point: Mapping[str, Value]) -> Number | None:
        """Returns the number of a claim at a point; None where there is none."""
        del claim, point
        return None

    def contrast(self, claim: Claim, first: Mapping[str, Value], last: Mapping[str, Value]) -> Number | None:
        """Returns the change of a claim at one point less that at another; None where there is none."""
        del claim, first, last
        return None

    def runs_of(self, claim: Claim, points: Sequence[Mapping[str, Value]]) -> list[str]:
        """Returns the runs that a claim's numbers are of."""
        del claim, points
        return []


def needed(claim: Claim, plan: Plan) -> list[tuple[str, Mapping[str, Value]]]:
    """The schemes and points that a claim's numbers are of, each once."""
    compare = claim.compare
    if compare is None:
        return []
    cells = []
    for point in points_of(claim, plan):
        cells += [(compare.scheme, point), (compare.against, {**point, **compare.against_at})]
    return [*{canonical([scheme, point]): (scheme, point) for scheme, point in cells}.values()]


def runs_needed(claims: Iterable[Claim], plan: Plan) -> list[PlannedRun]:
    """The runs of a plan that claims need, in plan order."""
    cells = {canonical([scheme, point]) for claim in claims for scheme, point in needed(claim, plan)}
    return [run for run in plan["runs"] if canonical([run["scheme"], run["point"]]) in cells]


def points_of(claim: Claim, plan: Plan) -> list[Mapping[str, Value]]:
    """The points of a plan at which a claim must hold, in plan order.

    Raises:
        ClaimsError: TC-K003: the plan has no such scheme, axis or value.
    """
    axes = {axis["key"]: axis["values"] for axis in plan["sweep"]}
    compare = claim.compare
    assert compare is not None, claim.id  # noqa: S101 - claims that can be shown have one
    for key, values in [*claim.at.items(), *((key, (value,)) for key, value in compare.against_at.items())]:
        missing = [value for value in values if value not in axes.get(key, [])]
        if missing:
            raise _mismatch(claim, f"the experiment is not swept over {key} = {missing[0]!r}")
    unknown = [scheme for scheme in (compare.scheme, compare.against) if scheme not in plan["schemes"]]
    if unknown:
        raise _mismatch(claim, f"the experiment has no scheme {unknown[0]!r}")
    points = {canonical(run["point"]): run["point"] for run in plan["runs"]}
    of_claim: list[Mapping[str, Value]] = [
        point for point in points.values() if all(point[key] in claim.at[key] for key in claim.at)
    ]
    if len(claim.target) not in (1, len(of_claim)):
        raise _mismatch(claim, f"it has {len(claim.target)} values for {len(of_claim)} points")
    return of_claim


def _mismatch(claim: Claim, why: str) -> ClaimsError:
    return ClaimsError("TC-K003", f"{claim.id} does not fit {claim.experiment}: {why}", "correct its claims.toml")


def direction(claim: Claim, row: Row, *, decided: bool = False) -> str:
    """Returns ``less`` or ``more``: the side of no change on which most points of a row lie.

    Args:
        claim: the row's claim.
        row: it.
        decided: counts only points whose interval has no change outside, and wants all of these on one side.

    Returns:
        An empty string for values, and where the points have no side.
    """
    if claim.compare is None or claim.compare.kind == "value":
        return ""
    none = 1.0 if claim.compare.kind == "ratio" else 0.0
    numbers = [point.number for point in row.points if point.number is not None]
    bounds = [(number.low, number.high) if decided else (number.value, number.value) for number in numbers]
    less = sum(high is not None and high < none for _, high in bounds)
    more = sum(low is not None and low > none for low, _ in bounds)
    if decided and less and more:
        return ""
    return "less" if less > more else "more" if more > less else ""


class OfRuns(Answers):
    """The numbers of a backend that makes runs: the simulator, or the lab."""

    def __init__(self, result: StoredResult, backend: str) -> None:
        self._measure = result.plan["measure"]
        self._ids: dict[str, dict[int, str]] = {}
        self._made: dict[str, dict[int, Made]] = {}
        self._parts: dict[str, dict[int, Part]] = {}
        found = (
            [(one.run, one.id) for one in result.lab.counted]
            if backend == "lab"
            else [(run, run["id"]) for run in result.finished_runs]
        )
        for run, run_id in found:
            place = canonical([run["scheme"], run["point"]])
            self._made.setdefault(place, {})[run["seed"]] = Made(result.path(run_id), result.end_ns(run_id))
            self._ids.setdefault(place, {})[run["seed"]] = run_id

    def _of(self, measure: Measure, scheme: str, point: Mapping[str, Value], quickest_of: int) -> Mapping[int, Part]:
        place = canonical([scheme, point])
        measure = replace(measure, population=replace(measure.population, quickest_of=quickest_of))
        name = f"{place} {measure}"
        if name not in self._parts:
            runs: Runs = self._made.get(place, {})
            self._parts[name] = metrics.parts(runs, measure, self._measure)
        return self._parts[name]

    def _sides(
        self, measure: Measure, compare: Compare, point: Mapping[str, Value]
    ) -> tuple[Mapping[int, Part], Mapping[int, Part]]:
        """What a scheme is compared with at a point, and the scheme."""
        other = {**point, **compare.against_at}
        return (
            self._of(measure, compare.against, other, compare.against_quickest_of),
            self._of(measure, compare.scheme, point, compare.quickest_of),
        )

    def number(self, claim: Claim, point: Mapping[str, Value]) -> Number | None:
        """The number of a claim at a point; None where there is none."""
        compare, measure = claim.compare, claim.measure
        if compare is None or measure is None:
            return None
        base, ours = self._sides(measure, compare, point)
        if not ours:
            return None
        if compare.kind == "value":
            return metrics.value(ours, measure)
        found = metrics.change(base, ours, measure) if base else None
        return found if found is None or compare.kind != "ratio" else _as_ratio(found)

    def contrast(self, claim: Claim, first: Mapping[str, Value], last: Mapping[str, Value]) -> Number | None:
        """The change of a claim at one point less that at another."""
        compare, measure = claim.compare, claim.measure
        if compare is None or measure is None:
            return None
        return metrics.contrast(self._sides(measure, compare, first), self._sides(measure, compare, last), measure)

    def runs_of(self, claim: Claim, points: Sequence[Mapping[str, Value]]) -> list[str]:
        """The runs that a claim's numbers are of."""
        compare = claim.compare
        if compare is None:
            return []
        places = [canonical([compare.scheme, point]) for point in points]
        if compare.kind != "value":
            places += [canonical([compare.against, {**point, **compare.against_at}]) for point in points]
        return sorted({run_id for place in places for run_id in self._ids.get(place, {}).values()})


class OfModel(Answers):
    """The numbers of the queueing analysis: means and 99th percentiles of slowdowns, exact."""

    def __init__(self, summary: pl.DataFrame) -> None:
        self._rows = summary.filter(backend="model")

    def _one(self, claim: Claim, scheme: str, point: Mapping[str, Value]) -> float | None:
        measure = claim.measure
        if measure is None or measure.metric != "slowdown" or measure.statistic not in BY_MODEL:
            return None
        axes = {key: float(value) if isinstance(value, int) else value for key, value in point.items()}
        rows = self._rows.filter(scheme=scheme, statistic=measure.statistic, **axes)
        rows = rows.filter(pl.col("class") == measure.population.size)
        return rows["normalised"][0] if rows.height else None

    def number(self, claim: Claim, point: Mapping[str, Value]) -> Number | None:
        """The number of a claim at a point; None where there is none."""
        compare = claim.compare
        if compare is None:
            return None
        ours = self._one(claim, compare.scheme, point)
        if ours is None or compare.kind == "value":
            return None if ours is None else Number(ours, exact=True)
        base = self._one(claim, compare.against, {**point, **compare.against_at})
        if base is None:
            return None
        return Number(ours / base - (0 if compare.kind == "ratio" else 1), exact=True)


class OfAuthors(Answers):
    """The authors' own numbers, as they released them: one draw, so that they have no interval."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def number(self, claim: Claim, point: Mapping[str, Value]) -> Number | None:
        """The number of a claim at a point; None where they released none of it."""
        compare, measure, authors = claim.compare, claim.measure, claim.authors
        if compare is None or measure is None or authors is None:
            return None
        axis = next(iter(claim.at), None)
        place = [*claim.at[axis]].index(point[axis]) if axis is not None and len(authors.scheme) > 1 else 0
        ours = {1: metrics.of_authors(self._folder / f"{authors.scheme[place]}.dat")}
        if compare.kind == "value":
            found = metrics.value(ours, measure)
        else:
            base = {1: metrics.of_authors(self._folder / f"{authors.against[place]}.dat")}
            found = metrics.change(base, ours, measure)
        return None if found is None else Number(found.value, exact=True, beyond=found.beyond)


def _as_ratio(change: Number) -> Number:
    low, high = (None if end is None else end + 1 for end in (change.low, change.high))
    return Number(change.value + 1, low, high, change.exact, change.beyond)


def row(claim: Claim, plan: Plan, answers: Answers, reading: str, backend: str, *, small: bool = False) -> Row:
    """Returns a claim's row of the scorecard from the finished runs.

    Raises:
        ClaimsError: TC-K003: the plan has not what the claim is of.
    """
    of_claim = points_of(claim, plan)
    compare = claim.compare
    if compare is not None and compare.kind == "contrast":
        first, last = of_claim[0], of_claim[-1]
        found = answers.contrast(claim, first, last)
        points = [_point(first, found, claim.target[0])]
    else:
        targets = claim.target if len(claim.target) > 1 else claim.target * len(of_claim)
        points = [
            _point(point, answers.number(claim, point), target) for point, target in zip(of_claim, targets, strict=True)
        ]
    judged = verdict.over_points([point.verdict for point in points], most=claim.most)
    seeds = sorted({run["seed"] for run in runs_needed([claim], plan)}) if backend not in WITHOUT_RUNS else []
    runs = answers.runs_of(claim, of_claim)
    return Row(
        claim.id, reading, backend, tuple(points), judged, _core.RESULTS, tuple(seeds), tuple(runs), small
    )  # fmt: skip


def _point(at: Mapping[str, Value], number: Number | None, target: verdict.Target) -> Point:
    return Point(at, number, Verdict.UNDECIDED if number is None else verdict.judge(number, target))
