"""The figures as files for a paper: SVG and PNG, drawn by vl-convert without a browser and without the network."""

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert

from tailcut.report import fabric_sheet
from tailcut.report.fabric_samples import FabricSamples
from tailcut.report.figures import KINDS, Data, Figure
from tailcut.report.figures.base import Chart
from tailcut.report.study import Study
from tailcut.report.theme import Theme

VEGA_LITE = "6.1"
"""Vega-Lite 6.4, for which Altair writes, shows texts in the tooltip of the nearest mark as undefined; 6.1 does not."""
PIXELS_PER_INCH = 192
SHOWN_POINTS = 3


class DrawingPool:
    """The tables that charts draw, each once however many charts draw it."""

    def __init__(self, prefix: str = "") -> None:
        self.tables: dict[str, pl.DataFrame] = {}
        self._prefix = prefix

    def name(self, table: pl.DataFrame) -> str:
        """The name of a table; a table equal to an earlier one has that one's."""
        known = (name for name, other in self.tables.items() if other.equals(table))
        name = next(known, f"{self._prefix}table-{len(self.tables)}")
        self.tables[name] = table
        return name


def specification(chart: Chart, pool: DrawingPool) -> dict[str, Any]:
    """A chart as Vega-Lite JSON, with its tables put into ``pool`` and referred to by name."""

    def refer(table: Any) -> dict[str, str]:
        return {"name": pool.name(table)}

    alt.data_transformers.register("tailcut", refer)
    with alt.data_transformers.enable("tailcut"):
        # That charts keep the schema is tested; to ask it each time takes a seventh of what a page
        # takes.
        spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)
    return spec


def points_shown(points: Sequence[str]) -> list[str]:
    """Returns the points of a sweep that a file shows: all if they are few, else first, middle and last."""
    if len(points) <= SHOWN_POINTS:
        return list(points)
    return [points[0], points[len(points) // 2], points[-1]]


def sheets(study: Study, data: Data, theme: Theme) -> Iterator[tuple[Figure, dict[str, Any]]]:
    """Yields every figure with data and its specification; variants that the page offers as a choice are stacked."""
    for kind in KINDS:
        drawn: list[tuple[str, Figure]] = []
        for cell in study.cells:
            for point in points_shown(study.points) if kind.per_point else [None]:
                table = kind.table(data.at(cell=cell) if point is None else data.at(cell=cell, point=point))
                figure = kind.make(study, table, theme)
                at = f"{study.x.name} {point}" if study.x and point is not None else ""
                if figure.panels:
                    drawn.append((", ".join(filter(None, [at, cell])), figure))
        if drawn:
            yield drawn[0][1], _stacked(drawn, theme, columns=4 if kind.per_point else 2)


def _stacked(drawn: Sequence[tuple[str, Figure]], theme: Theme, columns: int) -> dict[str, Any]:
    """Figures one above the other, each with its panels ``columns`` abreast under a heading."""
    first = drawn[0][1]
    pool = DrawingPool()
    rows = []
    for heading, figure in drawn:
        charts = []
        for panel in figure.panels:
            spec = specification(panel.chart, pool)
            schema = spec.pop("$schema")
            charts.append({"title": panel.title, **spec})
        title = {"title": {"text": heading, "fontSize": 15, "offset": 14}} if heading else {}
        rows.append({**title, "concat": charts, "columns": columns, "spacing": 26})
    return {
        "$schema": schema,
        "description": f"{first.title}. {first.caption}",
        "vconcat": rows,
        "spacing": 34,
        "config": theme.config(),
        "datasets": {name: table.to_dicts() for name, table in pool.tables.items()},
    }


def renumbered(svg: str) -> str:
    """The drawing with its clip paths numbered from 1; Vega counts on from the drawing before."""
    numbers: dict[str, str] = {}
    return re.sub(r"(?<=[\"#])clip\d+\b", lambda found: numbers.setdefault(found[0], f"clip{len(numbers) + 1}"), svg)


def svg(spec: dict[str, Any]) -> str:
    """A sheet drawn."""
    return renumbered(vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[]))


def write(study: Study, data: Data, theme: Theme, directory: Path) -> list[Path]:
    """Writes ``<figure>.svg`` and ``.png`` for every figure that has something to draw, and ``captions.md``.

    Those that were written there before and have nothing to draw any more are removed: they are of other results.

    Returns:
        The files, in the order of the page.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written, captions = [], []
    drawn = (
        (figure.name, f"{figure.title}. {figure.caption}", svg(spec)) for figure, spec in sheets(study, data, theme)
    )
    samples = FabricSamples.whole(study)
    fabric = (
        []
        if samples is None
        else [(fabric_sheet.NAME, fabric_sheet.caption(samples), fabric_sheet.svg(samples, theme))]
    )
    for name, caption, drawing in itertools.chain(drawn, fabric):
        png = vl_convert.svg_to_png(drawing, ppi=PIXELS_PER_INCH)
        captions.append(f"## {name}\n\n{caption}\n")
        for suffix, content in ((".svg", drawing.encode()), (".png", png)):
            path = directory / f"{name}{suffix}"
            path.write_bytes(content)
            written.append(path)
    told = directory / "captions.md"
    before = re.findall(r"^## ([\w-]+)$", told.read_text("utf-8"), re.MULTILINE) if told.is_file() else []
    for path in (directory / f"{name}{suffix}" for name in before for suffix in (".svg", ".png")):
        if path not in written:
            path.unlink(missing_ok=True)
    told.write_text("\n".join([f"# {study.plan['title']}\n", *captions]), "utf-8")
    return written
