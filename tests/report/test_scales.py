"""Scales of figures: what they hold, and what is clipped with an arrow and its value."""

import altair as alt
import polars as pl
import pytest

from tailcut.report.figures import base, lines


def of_names(values: list[float], low: float | None = None) -> pl.DataFrame:
    """Rows of as many schemes, with intervals from ``low`` up."""
    return pl.DataFrame(
        {
            "scheme": [f"scheme {i}" for i in range(len(values))],
            "value": values,
            "low": [low] * len(values),
            "high": [None if low is None else 2 * value for value in values],
            "said": [f"{value} ms" for value in values],
        },
        schema_overrides={"low": pl.Float64, "high": pl.Float64},
    )


def test_one_outlier_of_many_schemes_does_not_flatten_the_others() -> None:
    values = [1.0 + i / 33 for i in range(33)]
    scale = base.scale_of(of_names([*values, 500.0]))
    assert scale.domain == base.scale_of(of_names(values)).domain
    rows = lines.placed(of_names([*values, 500.0]), scale)
    assert rows["at"][-1] == scale.domain[1]
    assert rows["beyond"].to_list() == [None] * 33 + ["↑ 500.0 ms"]


def test_an_outlier_among_changes_is_clipped_at_the_top() -> None:
    scale = base.scale_of(of_names([-30.0, -10.0, 5.0, 8.0, 2611.0]), signed=True)
    assert scale.domain[1] < 100


def test_large_values_are_no_outliers_if_there_are_many() -> None:
    values = [1.0] * 20 + [500.0] * 13
    assert base.scale_of(of_names(values)).domain[1] > 500


def test_few_schemes_are_drawn_whole() -> None:
    assert base.scale_of(of_names([1.0, 2.0, 3.0, 200.0])).domain[1] > 200


@pytest.mark.parametrize("low", [-5.0, 0.0, 1e-300])
def test_a_whisker_on_a_logarithmic_axis_begins_at_its_lower_edge(low: float) -> None:
    scale = base.scale_of(of_names([1.0, 100.0], low))
    assert scale.log
    chart = lines.whiskers(alt.Chart(of_names([1.0, 100.0], low)), scale, "ms").to_dict()
    calculated = [step["calculate"] for step in chart["transform"] if "calculate" in step]
    assert calculated == [f"max(datum.low, {scale.domain[0]})", f"min(datum.high, {scale.domain[1]})"]
