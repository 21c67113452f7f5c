"""The report's figures: each a pure function from a table to charts.

A new figure is one function in a module here and one line in ``KINDS``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from operator import attrgetter

import polars as pl

from tailcut.report import tables
from tailcut.report.figures import distribution, fct, jobs, network, segments, throughput
from tailcut.report.figures.base import Figure, Panel
from tailcut.report.study import Study
from tailcut.report.theme import Theme

__all__ = ["KINDS", "Data", "Figure", "Kind", "Panel", "draw"]


@dataclass(frozen=True)
class Data:
    """The tables of a study, computed once for the page and for the files; columns are those of ``tables``."""

    curves: pl.DataFrame
    distributions: pl.DataFrame
    round_trips: pl.DataFrame
    links: pl.DataFrame
    series: pl.DataFrame
    segments: pl.DataFrame
    throughput: pl.DataFrame

    @classmethod
    def of(cls, study: Study) -> "Data":
        """All tables of a study."""
        return cls(
            tables.curves(study),
            tables.distributions(study),
            tables.round_trips(study),
            tables.links(study),
            tables.series(study),
            tables.segments(study),
            tables.throughput(study),
        )

    def at(self, **labels: str) -> "Data":
        """The rows with these labels: ``cell=`` and ``point=``."""
        kept = [pl.col(name) == label for name, label in labels.items()]
        every = (getattr(self, field.name) for field in fields(self))
        return Data(*(t.filter(*kept) if t.height else t for t in every))


@dataclass(frozen=True)
class Kind:
    """How a kind of figure is made.

    Attributes:
        make: draws it.
        table: which table of ``Data`` it draws.
        per_point: true if it shows one point of the sweep, which the page lets the reader choose and a file repeats.
        shown_empty: true if the page says why it is empty, false if it then leaves it out.
    """

    make: Callable[[Study, pl.DataFrame, Theme], Figure]
    table: Callable[[Data], pl.DataFrame]
    per_point: bool = False
    shown_empty: bool = True


KINDS: tuple[Kind, ...] = (
    Kind(fct.completion, attrgetter("curves")),
    Kind(fct.gain, attrgetter("curves")),
    Kind(jobs.completion, attrgetter("curves"), shown_empty=False),
    Kind(distribution.cdf, attrgetter("distributions"), per_point=True),
    Kind(distribution.round_trips, attrgetter("round_trips"), per_point=True, shown_empty=False),
    Kind(fct.slowdown, attrgetter("curves")),
    Kind(fct.by_size, attrgetter("curves"), per_point=True),
    Kind(network.links, attrgetter("links"), per_point=True),
    Kind(throughput.spread, attrgetter("throughput"), per_point=True, shown_empty=False),
    Kind(segments.counts, attrgetter("segments"), per_point=True, shown_empty=False),
    Kind(fct.unfinished, attrgetter("curves")),
    Kind(network.series, attrgetter("series"), shown_empty=False),
)
"""Every figure in the order of the page."""


def draw(study: Study, data: Data, theme: Theme) -> Iterator[tuple[Kind, Figure]]:
    """Every figure of a study in the order of the page."""
    for kind in KINDS:
        yield kind, kind.make(study, kind.table(data), theme)
