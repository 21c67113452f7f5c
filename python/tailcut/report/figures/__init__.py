"""The report's figures: each a pure function from a table to charts.

A new figure is one function in a module here and one line in ``KINDS``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from operator import attrgetter

import polars as pl

from tailcut.report import attribution as parts
from tailcut.report import tables
from tailcut.report.figures import (
    against,
    attribution,
    distribution,
    fct,
    jobs,
    network,
    segments,
    series,
    throughput,
    tradeoff,
)
from tailcut.report.figures.base import Figure, Panel
from tailcut.report.study import Study
from tailcut.report.theme import Theme

__all__ = ["KINDS", "Data", "Figure", "FigureKind", "Panel", "draw"]


@dataclass(frozen=True)
class Data:
    """The tables of a study, computed once for the page and for the files; columns are those of ``tables``."""

    curves: pl.DataFrame
    changes: pl.DataFrame
    distributions: pl.DataFrame
    round_trips: pl.DataFrame
    links: pl.DataFrame
    series: pl.DataFrame
    segments: pl.DataFrame
    throughput: pl.DataFrame
    against: pl.DataFrame
    attribution: pl.DataFrame

    @classmethod
    def of(cls, study: Study) -> "Data":
        """All tables of a study."""
        curves = tables.curves(study)
        return cls(
            curves,
            tables.changes(study, curves),
            tables.distributions(study),
            tables.round_trips(study),
            tables.links(study),
            tables.series(study),
            tables.segments(study),
            tables.throughput(study),
            tables.against(study),
            parts.table(study),
        )

    @classmethod
    def of_summary(cls, study: Study) -> "Data":
        """Returns the summary alone; the tables that need the runs are empty."""
        return cls(tables.curves(study), *(pl.DataFrame() for _ in fields(cls)[1:]))

    def at(self, **labels: str) -> "Data":
        """The rows with these labels: ``cell=`` and ``point=``."""
        kept = [pl.col(name) == label for name, label in labels.items()]
        every = (getattr(self, field.name) for field in fields(self))
        return Data(*(t.filter(*kept) if t.height else t for t in every))


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure and its maker.

    Attributes:
        make: draws it.
        table: which table of ``Data`` it draws.
        per_point: true if it shows one point of the sweep, which the page lets the reader choose and a file repeats.
        shown_empty: true if the page says why it is empty, false if it then leaves it out.
        leads: whether it comes before all others, given what it draws.
    """

    make: Callable[[Study, pl.DataFrame, Theme], Figure]
    table: Callable[[Data], pl.DataFrame]
    per_point: bool = False
    shown_empty: bool = True
    leads: Callable[[pl.DataFrame], bool] = lambda _: False


KINDS: tuple[FigureKind, ...] = (
    FigureKind(tradeoff.glance, attrgetter("changes"), per_point=True, shown_empty=False, leads=lambda _: True),
    FigureKind(jobs.completion, attrgetter("curves"), shown_empty=False, leads=jobs.are_the_question),
    FigureKind(fct.completion, attrgetter("curves")),
    FigureKind(fct.change, attrgetter("curves")),
    FigureKind(against.kernels, attrgetter("against"), per_point=True, shown_empty=False),
    FigureKind(attribution.tail, attrgetter("attribution"), per_point=True, shown_empty=False),
    FigureKind(distribution.cdf, attrgetter("distributions"), per_point=True),
    FigureKind(distribution.round_trips, attrgetter("round_trips"), per_point=True, shown_empty=False),
    FigureKind(fct.slowdown, attrgetter("curves")),
    FigureKind(fct.by_size, attrgetter("curves"), per_point=True),
    FigureKind(throughput.spread, attrgetter("throughput"), per_point=True, shown_empty=False),
    FigureKind(series.over_time, attrgetter("series"), shown_empty=False),
    FigureKind(segments.counts, attrgetter("segments"), per_point=True, shown_empty=False),
    FigureKind(network.links, attrgetter("links"), per_point=True),
    FigureKind(fct.unfinished, attrgetter("curves")),
)
"""Every figure; the page has them in this order after those that lead."""


def draw(study: Study, data: Data, theme: Theme) -> Iterator[tuple[FigureKind, Figure]]:
    """Every figure of a study in the order of the page."""
    for kind in sorted(KINDS, key=lambda kind: not kind.leads(kind.table(data))):
        yield kind, kind.make(study, kind.table(data), theme)
