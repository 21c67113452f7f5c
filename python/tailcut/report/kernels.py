"""Runs over real kernels on the page: each with its verdict, and how far repeats and seeds are apart."""

from typing import Any

import polars as pl

from tailcut.lab import fabrics
from tailcut.report.figures.base import source, unit_for
from tailcut.report.study import Study, spell
from tailcut.results import spread as spreads


def on_page(study: Study) -> dict[str, Any]:
    """Returns the template's input: ``judged``, the verdicts' rows, and ``spread``, a table, empty without repeats."""
    return {"judged": verdicts(study), "spread": spread(study)}


def verdicts(study: Study) -> list[dict[str, Any]]:
    """A row for each run over kernels: which it is, whether the machine could carry it in time, and why not."""
    return [
        {
            "scheme": one.run["scheme"],
            "where": ", ".join(filter(None, [study.point(one.run["point"]), study.cell(one.run["point"])])),
            "seed": one.run["seed"],
            "repeat": one.repeat,
            "of": source(fabrics.backend(one.fabric)),
            "faithful": one.faithful,
            "reasons": "; ".join(one.about["unfaithful"]),
            "id": one.run["id"][:12] + one.id.removeprefix(one.run["id"]),
        }
        for one in study.lab.finished
    ]


def spread(study: Study) -> pl.DataFrame:
    """Standard deviations over repeats of one seed and over seeds, with readable headings."""
    apart = study.lab.spread
    if apart.height == 0:
        return apart
    rows = spreads.shown(apart)
    unit, size = unit_for(rows["value_us"])
    axes = [pl.col(axis.key).map_elements(spell, return_dtype=pl.String).alias(axis.name) for axis in study.axes]
    sources = pl.col("fabric").map_elements(lambda one: source(fabrics.backend(one)), return_dtype=pl.String)
    return rows.select(
        *axes,
        "scheme",
        sources.alias("from"),
        pl.col("what").alias("of"),
        (pl.col("value_us") / size).alias(f"mean ({unit})"),
        *(
            (pl.col(f"over_{what}_us") / of * by).alias(f"over {what} ({called})")
            for what in ("repeats", "seeds")
            for of, by, called in ((size, 1, unit), (pl.col("value_us"), 100, "%"))
        ),
        pl.col("n_runs").cast(pl.Int64).alias("runs"),
        pl.col("n_seeds").cast(pl.Int64).alias("seeds"),
    )
