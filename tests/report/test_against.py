"""The simulator against real kernels on the page: the figure, the sentence and the note, whichever way they differ."""

from dataclasses import replace

import polars as pl
import pytest

from support import synthetic
from tailcut.report import page, tables, words
from tailcut.report.figures import Data, draw
from tailcut.report.study import Study
from tailcut.report.theme import theme_for


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Study:
    shape = synthetic.Shape(schemes=("TCP", "RepFlow"), sweep=(("traffic.load", (0.1, 0.2)),), seeds=(1, 2), flows=200)
    return Study.of(synthetic.build(tmp_path_factory.mktemp("store"), shape))


def over_kernels(study: Study, longer: dict[tuple[str, str], float], runs: int = 0, unfaithful: int = 0) -> Study:
    """The same study with rows of real kernels, longer by so much in each class and statistic, and alike elsewhere."""
    factor = pl.lit(1.0)
    for (name, statistic), by in longer.items():
        here = (pl.col("class") == name) & (pl.col("statistic") == statistic)
        factor = pl.when(here).then(pl.lit(by)).otherwise(factor)
    lab = study.summary.with_columns(
        pl.col("value_us") * factor, backend=pl.lit("lab"), lower_bound=pl.lit(value=False)
    )
    own = study.summary.with_columns(lower_bound=pl.lit(value=False))
    return replace(study, summary=pl.concat([own, lab]), over_kernels=runs, unfaithful=unfaithful)


def test_every_class_and_statistic_is_held_against_the_simulator(simulated: Study) -> None:
    study = over_kernels(simulated, {("short", "p99"): 1.5, ("long", "mean"): 0.9})
    table = tables.against(tables.curves(study))
    of = {(row["class"], row["statistic"]): row for row in table.filter(scheme="RepFlow", point="0.2").to_dicts()}
    assert {key: row["said"] for key, row in of.items()} == {
        ("short", "mean"): "±0 %", ("short", "p99"): "+50 %", ("long", "mean"): "−10 %", ("long", "p99"): "±0 %",
    }  # fmt: skip
    assert table.height == 2 * 2 * 4
    theme = theme_for(study.schemes, study.baseline, interactive=True)
    figures = {figure.name: figure for _, figure in draw(study, Data.of(study), theme)}
    assert [panel.name for panel in figures["against"].panels] == ["against-kernels"]
    assert "+50 %" in figures["against"].data["change"].to_list()
    said = words.agreement(table)
    assert said == (
        "Real kernels differ from the simulator by ±0 % in the mean of short flows, +50 % in their 99th percentile,"
        " −10 % in the mean of long flows."
    )
    html = page.render(study, Data.of(study), theme)
    assert "Real kernels differ from the simulator" in html
    assert "against-kernels" in html


def test_without_runs_over_kernels_the_page_says_nothing_of_them(simulated: Study) -> None:
    assert tables.against(tables.curves(simulated)).height == 0
    assert words.agreement(pl.DataFrame()) == ""
    theme = theme_for(simulated.schemes, simulated.baseline, interactive=True)
    html = page.render(simulated, Data.of(simulated), theme)
    assert "Real kernels differ" not in html
    assert "not faithful" not in html
    assert "No faithful run" not in html


def test_a_bound_is_not_held_against_anything(simulated: Study) -> None:
    study = over_kernels(simulated, {})
    bounds = study.summary.with_columns(lower_bound=pl.col("backend") == "lab")
    assert tables.against(tables.curves(replace(study, summary=bounds))).height == 0


@pytest.mark.parametrize(
    ("unfaithful", "said"), [(1, "1 of 4 runs over real kernels is"), (3, "3 of 4 runs over real kernels are")]
)
def test_unfaithful_runs_are_told_of(simulated: Study, unfaithful: int, said: str) -> None:
    study = over_kernels(simulated, {}, runs=4, unfaithful=unfaithful)
    assert any(said in one for one in words.cautions(study, tables.curves(study)))
    faithful = over_kernels(simulated, {}, runs=4)
    assert not any("faithful" in one for one in words.cautions(faithful, tables.curves(faithful)))
