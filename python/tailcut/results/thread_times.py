"""Shares of the time of a run's threads, from ``thread_seconds`` of ``run.json``."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

ThreadSeconds: TypeAlias = Mapping[str, Sequence[float]]
"""Of each thread the seconds at work, waiting for others, and exchanging packets with them."""


class ThreadShares(NamedTuple):
    """Parts of the time of threads, in percent: together 100."""

    work: float
    waiting: float
    exchange: float


def by_activity(times: Sequence[Sequence[float]]) -> ThreadSeconds:
    """Returns the times of threads as ``run.json`` has them, from a row for each thread."""
    return {name: list(column) for name, column in zip(ThreadShares._fields, zip(*times, strict=True), strict=True)}


def shares(runs: Sequence[ThreadSeconds]) -> ThreadShares:
    """Returns what part of the time of all threads of these runs, of which there is one at least, went where."""
    sums = [sum(sum(run[name]) for run in runs) for name in ThreadShares._fields]
    whole = sum(sums) or 1.0
    return ThreadShares(*(100 * one / whole for one in sums))


def waiting_of_each(run: ThreadSeconds) -> list[float]:
    """Returns the percentage of its time that each thread of a run waited."""
    rows = zip(*(run[name] for name in ThreadShares._fields), strict=True)
    return [shares([by_activity([row])]).waiting for row in rows]


def sentence(runs: Sequence[ThreadSeconds]) -> str:
    """Returns where the threads of these runs spent their time, in a sentence; there is one run at least."""
    numbers = sorted({len(run["work"]) for run in runs})
    many = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    each = f" in each of {len(runs)} runs" if len(runs) > 1 else ""
    found = shares(runs)
    return (
        f"{many} threads{each}: {found.work:.0f} % of their time at work, {found.waiting:.0f} % waiting for each other,"
        f" {found.exchange:.0f} % exchanging packets."
    )
