"""From a path's load and a workload to the model's answer: mean and 99th percentile FCT, short and long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tailcut.model import equations
from tailcut.model.sizes import FlowSizes

PAPER_SHORT_BYTE_SHARE = 0.05
"""The epsilon of the paper's figures 4 to 7.

The paper reads the web-search workload's "95 % of the bytes are from flows larger than 1 MB" as larger than
S_L; with the flow-size table itself the share of flows up to S_L is 1 %.
"""

SizeClass = Literal["short", "long"]
StatisticName = Literal["mean", "p99"]


@dataclass(frozen=True)
class ModelInput:
    """The analysis' input from an experiment.

    Attributes:
        load: rho, the load of a path without replication, in [0, 1).
        sizes: the flow-size distribution, in packets.
        replicated: true if every short flow is sent twice (RepFlow).
        short_byte_share: epsilon, the share of all bytes from short flows.
        short_limit: S_L, the largest short flow, in packets; 100 KB in packets of 1,460 B, 68 in Table II.
        initial_window: k, in packets.
        max_window: M, in packets; 64 KB in packets of 1,460 B, 44 in Table II.
    """

    load: float
    sizes: FlowSizes
    replicated: bool
    short_byte_share: float
    short_limit: float = 100_000 / 1460
    initial_window: float = 12.0
    max_window: float = 64_000 / 1460


@dataclass(frozen=True)
class Statistic:
    """An answer, or the reason why there is none.

    Attributes:
        size_class: short or long flows.
        name: mean or p99.
        normalised_fct: the paper's statistic: FCT over the best possible FCT, averaged over the sizes of the class.
            None with a `reason`.
        fct: the same answer as a time, in packet transmission times: each size's transmission and queueing,
            averaged over the sizes of the class. None with a `reason`.
        reason: None with an answer.
    """

    size_class: SizeClass
    name: StatisticName
    normalised_fct: float | None = None
    fct: float | None = None
    reason: str | None = None


def predict(given: ModelInput) -> list[Statistic]:
    """Mean and p99 of short and long flows: equations 5, 7, 11, 13; under RepFlow 6, 8, 12, 14."""
    added_share = given.short_byte_share if given.replicated else 0.0
    queue_load = equations.replicated_load(given.load, added_share)
    share_short = given.sizes.cdf(given.short_limit)
    empty: dict[SizeClass, str | None] = {
        "short": None if share_short > 0.0 else "the workload has no short flows",
        "long": None if share_short < 1.0 else "the workload has no long flows",
    }
    overload = None
    if queue_load >= 1.0:
        overload = f"each path's load is {queue_load:.3g}: at 1 or more the queue grows without bound"
    answers: list[Statistic] = []
    for (size_class, name), normalised in _normalised(given).items():
        reason = overload or empty[size_class]
        if reason is None:
            fct = _time(given, size_class, name)
            answers.append(Statistic(size_class, name, normalised_fct=normalised(), fct=fct))
        else:
            answers.append(Statistic(size_class, name, reason=reason))
    return answers


def _normalised(given: ModelInput) -> dict[tuple[SizeClass, StatisticName], Callable[[], float]]:
    """The equation that answers each statistic of `given`."""
    load, share = given.load, given.short_byte_share
    short = (given.sizes, given.short_limit, given.initial_window, given.max_window)
    long = (given.sizes, given.short_limit, given.max_window)
    if given.replicated:
        return {
            ("short", "mean"): lambda: equations.mean_short_fct_repflow(load, share, *short),
            ("short", "p99"): lambda: equations.p99_short_fct_repflow(load, share, *short),
            ("long", "mean"): lambda: equations.mean_long_fct_repflow(load, share),
            ("long", "p99"): lambda: equations.p99_long_fct_repflow(load, share, *long),
        }
    return {
        ("short", "mean"): lambda: equations.mean_short_fct_tcp(load, *short),
        ("short", "p99"): lambda: equations.p99_short_fct_tcp(load, *short),
        ("long", "mean"): lambda: equations.mean_long_fct_tcp(load),
        ("long", "p99"): lambda: equations.p99_long_fct_tcp(load, *long),
    }


def _time(given: ModelInput, size_class: SizeClass, name: StatisticName) -> float:
    """A statistic as a time: the average over the class of a size times its normalised FCT."""
    share = given.short_byte_share
    of_size: Callable[[float, float, float], float]
    if size_class == "short":
        load = equations.effective_load(given.load, share) if given.replicated else given.load
        of_size = equations.short_flow_fct if name == "mean" else equations.short_flow_p99_fct
        window, above, up_to = given.initial_window, 0.0, given.short_limit
    else:
        load = equations.replicated_load(given.load, share) if given.replicated else given.load
        of_size = equations.long_flow_fct if name == "mean" else equations.long_flow_p99_fct
        window, above, up_to = given.max_window, given.short_limit, float("inf")
    wait = equations.mean_wait(load, given.max_window)
    total = given.sizes.partial_expectation(lambda x: x * of_size(x, wait, window), above, up_to)
    return total / given.sizes.partial_expectation(lambda _: 1.0, above, up_to)
