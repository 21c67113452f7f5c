"""RepFlow's queueing analysis as a backend: no runs, the summary straight from the equations."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import polars as pl

from tailcut.backends import Gap, Options, Progress
from tailcut.model import ModelInput, Statistic, predict
from tailcut.model.scope import cells_out_of_scope, fit, host_rate, packet_bytes, simplifications
from tailcut.plan import Plan, PlannedRun
from tailcut.results import Store, summary_schema
from tailcut.results.statistics import STATISTICS
from tailcut.results.summary import cells, point_columns, size_groups

ONLY_MEAN_AND_P99 = "the analysis gives the mean and the 99th percentile only"
ONLY_CLASSES = "the analysis tells short flows from long ones and no finer groups"
NO_JOINT_P99 = "the analysis gives the 99th percentile of short and of long flows, not of all together"
NO_HOST_RATE = "the hosts' links have different rates, so that a packet has no single transmission time"


@dataclass(frozen=True, slots=True)
class ModelBackend:
    """Fills the summary with what the analysis says, and the reason where it says nothing."""

    name: ClassVar[str] = "model"

    def check(self, plan: Plan, options: Options) -> list[Gap]:
        """The cells that stay empty, and what of the plan the analysis simplifies away."""
        gaps: dict[tuple[str, str], Gap] = {}
        for run in plan["runs"]:
            for gap in [*cells_out_of_scope(run["config"]), *simplifications(run["config"])]:
                gaps.setdefault((gap.where, gap.reason), gap)
        if options.farm is not None:
            gaps["cluster", ""] = Gap("--cluster", "the analysis makes no runs: leave out --cluster", fatal=True)
        if options.capture:
            gaps["capture", ""] = Gap("--capture", "the analysis has no packets to capture", fatal=True)
        if options.several_threads:
            gaps["threads", ""] = Gap("--threads", "the analysis simulates nothing: leave out --threads", fatal=True)
        return [*gaps.values(), Gap("statistic=p50,p99_9", ONLY_MEAN_AND_P99)]

    def run(self, plan: Plan, store: Store, progress: Progress, options: Options) -> None:
        """Evaluate the equations at every point of the plan; a matter of milliseconds, and nothing is drawn."""
        del options
        progress.begin(0, 0, 0)
        store.put_summary(self.name, summary(plan), plan)


def summary(plan: Plan) -> pl.DataFrame:
    """The model's rows of the summary table, in the order of the simulator's."""
    first_of = {(run["scheme"], json.dumps(run["point"])): run for run in reversed(plan["runs"])}
    answers = {
        (scheme, json.dumps(point)): _answers(first_of[scheme, json.dumps(point)], plan)
        for scheme, point in cells(plan["runs"])
    }
    rows = []
    for scheme, point in cells(plan["runs"]):
        baseline = answers.get((plan["baseline"], json.dumps(point)), {})
        for place, answer in answers[scheme, json.dumps(point)].items():
            row: dict[str, Any] = {"backend": ModelBackend.name, "scheme": scheme, **point_columns(plan, point)}
            row |= dict(zip(("grouping", "class", "statistic"), place, strict=True)) | answer
            if scheme != plan["baseline"]:
                row["change"] = _change(answer, baseline.get(place, {}))
            row |= {"lower_bound": False, "normalised_lower_bound": False}
            rows.append(row | {"n_flows": 0, "n_unfinished": 0, "n_seeds": 0})
    return pl.DataFrame(rows, schema=summary_schema(plan))


def _change(answer: Mapping[str, Any], baseline: Mapping[str, Any]) -> float | None:
    """The change of the normalised FCT, which is what the paper's figures compare; below zero is faster."""
    ours, theirs = answer.get("normalised"), baseline.get("normalised")
    return None if ours is None or theirs is None else ours / theirs - 1.0


Place = tuple[str, str, str]


def _answers(run: PlannedRun, plan: Plan) -> dict[Place, dict[str, Any]]:
    """Returns the analysis' answer for each class and statistic of a run: numbers, or a reason."""
    found = _classes(run, plan)
    return {place: found.get(place) or {"reason": _reason(place)} for place in _places(run["config"])}


def _places(config: Mapping[str, Any]) -> Iterator[Place]:
    for grouping, name in [("all", "all"), ("class", "short"), ("class", "long")]:
        yield from ((grouping, name, statistic) for statistic in STATISTICS)
    for name in size_groups(config["labels"]["size_groups"]):
        yield from (("size_group", name, statistic) for statistic in STATISTICS)


def _reason(place: Place) -> str:
    grouping, _, statistic = place
    if statistic not in ("mean", "p99"):
        return ONLY_MEAN_AND_P99
    return ONLY_CLASSES if grouping == "size_group" else NO_JOINT_P99


def _classes(run: PlannedRun, plan: Plan) -> dict[Place, dict[str, Any]]:
    """The cells that the analysis answers, or would answer for another plan."""
    concerned = [("class", "short"), ("class", "long")]
    out_of_scope = cells_out_of_scope(run["config"])
    if out_of_scope:
        reason = {"reason": "; ".join(gap.reason for gap in out_of_scope)}
        places = [*((g, c, s) for g, c in concerned for s in ("mean", "p99")), ("all", "all", "mean")]
        return dict.fromkeys(places, reason)
    share = plan["model"]["short_byte_share"]
    given = _fitted(json.dumps(run["config"]), json.dumps(run["files"]), share)
    packet_us = _packet_us(run)
    statistics = predict(given)
    found: dict[Place, dict[str, Any]] = {("class", s.size_class, s.name): _cell(s, packet_us) for s in statistics}
    found["all", "all", "mean"] = _mean_of_all(given, statistics, packet_us)
    return found


@cache
def _fitted(config: str, files: str, short_byte_share: float | str) -> ModelInput:
    return fit(json.loads(config), json.loads(files), short_byte_share)


def _packet_us(run: PlannedRun) -> float | None:
    """Returns the transmission time of a full packet at a host's link, in us; None if hosts' links differ."""
    rate = host_rate(run["config"])
    return None if rate is None else packet_bytes(run["config"]) * 8e6 / rate


def _cell(statistic: Statistic, packet_us: float | None) -> dict[str, Any]:
    if statistic.normalised_fct is None or statistic.fct is None:
        return {"reason": statistic.reason}
    return _numbers(statistic.normalised_fct, statistic.fct, packet_us)


def _numbers(normalised: float, packet_times: float, packet_us: float | None) -> dict[str, Any]:
    if packet_us is None:
        return {"normalised": normalised, "reason": NO_HOST_RATE}
    return {"normalised": normalised, "value_us": packet_times * packet_us}


def _mean_of_all(given: ModelInput, statistics: list[Statistic], packet_us: float | None) -> dict[str, Any]:
    """The mean over all flows: those of short and long flows, weighted by how many there are."""
    share_short = given.sizes.cdf(given.short_limit)
    normalised = fct = 0.0
    for statistic in statistics:
        weight = share_short if statistic.size_class == "short" else 1.0 - share_short
        if statistic.name != "mean" or weight == 0.0:
            continue
        if statistic.normalised_fct is None or statistic.fct is None:
            return {"reason": statistic.reason}
        normalised += weight * statistic.normalised_fct
        fct += weight * statistic.fct
    return _numbers(normalised, fct, packet_us)
