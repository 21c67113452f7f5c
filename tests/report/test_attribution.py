"""Attribution of the tail on the page: the table, the figure and the sentence."""

from pathlib import Path

import polars as pl
import pytest

from support import synthetic
from tailcut.report import attribution, page
from tailcut.report.attribution import PARTS, SLICES
from tailcut.report.figures import Data, draw
from tailcut.report.study import Study
from tailcut.report.theme import theme_for
from tailcut.results.tables import PARTS as parts_of_flows  # noqa: N811 - beside the groups of the same name

COLUMNS = [column for _, columns in PARTS.values() for column in columns]
SHAPE = synthetic.Shape(schemes=("TCP", "RepFlow"), sweep=(("traffic.load", (0.2, 0.6)),), seeds=(1, 2), flows=3000)


def attributed(study: Study) -> Study:
    """Adds parts to a study's flows: 50 us of propagation, the rest timers under TCP, else half timers, half queues."""
    for run in study.runs:
        share = 1.0 if run.planned["scheme"] == "TCP" else 0.5
        rest = pl.col("fct_ns") - 50_000
        timers = (rest * share).cast(pl.Int64)
        parts: dict[str, pl.Expr] = dict.fromkeys(COLUMNS, pl.when(pl.col("finished")).then(pl.lit(0, pl.Int64)))
        parts |= {"propagation": pl.lit(50_000, pl.Int64), "timeout": timers, "queue_up3_others": rest - timers}
        path = run.directory / "flows.parquet"
        flows = pl.read_parquet(path)
        flows.with_columns(
            **{f"part_{name}_ns": pl.when(pl.col("finished")).then(part) for name, part in parts.items()}
        ).write_parquet(path)
    return study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return attributed(Study.of(synthetic.build(tmp_path_factory.mktemp("store"), SHAPE)))


def test_every_part_of_the_flow_table_is_in_one_group() -> None:
    assert sorted(f"part_{column}_ns" for column in COLUMNS) == sorted(parts_of_flows)


def test_every_slice_adds_up_to_its_mean_completion_time(study: Study) -> None:
    table = attribution.table(study)
    assert set(table["slice"]) == set(SLICES) - {"slowest 0.1 %"}, "of 3,600 short flows 0.1 % are fewer than ten"
    sums = table.group_by("scheme", "point", "slice", maintain_order=True).agg(
        us=pl.col("us").sum(), share=pl.col("share").sum(), fct=pl.col("fct_us").first(), flows=pl.col("flows").first()
    )
    assert sums.height == 2 * 2 * 2
    assert (sums["us"] - sums["fct"]).abs().max() < 1e-6  # type: ignore[operator]
    assert (sums["share"] - 100).abs().max() < 1e-9  # type: ignore[operator]
    short = pl.concat([pl.read_parquet(run.directory / "flows.parquet") for run in study.runs[:2]])
    short = short.filter(pl.col("class") == "short").sort("fct_ns", descending=True)
    slowest = short.head(-(-short.height // 100))
    row = sums.filter(scheme="TCP", point="0.2", slice="slowest 1 %").row(0, named=True)
    assert row["flows"] == slowest.height
    assert row["fct"] == pytest.approx(slowest["fct_ns"].mean() / 1e3)  # type: ignore[operator]


def test_the_sentence_is_about_the_largest_part_of_the_baselines_tail(study: Study) -> None:
    table = attribution.table(study)
    said = attribution.sentence(study, table)
    shares = {
        row["scheme"]: f"{row['share']:.0f} %"
        for row in table.filter(part="timers", slice="slowest 1 %", point="0.6").iter_rows(named=True)
    }
    assert said == (
        f"TCP's slowest 1 % of short flows at load 0.6 spend {shares['TCP']} of their time waiting for timers;"
        f" RepFlow's {shares['RepFlow']}."
    )
    assert int(shares["TCP"][:-2]) > 90 > int(shares["RepFlow"][:-2])


def test_the_figure_and_the_sentence_are_on_the_page(study: Study) -> None:
    theme = theme_for(study.schemes, study.baseline, interactive=True)
    data = Data.of(study)
    figure = next(figure for _, figure in draw(study, data, theme) if figure.name == "attribution")
    assert [panel.name for panel in figure.panels] == ["attribution-time", "attribution-share", "attribution-gone"]
    html = page.render(study, data, theme)
    assert "What the tail is made of" in html
    assert "of their time waiting for timers" in html.replace("\N{NO-BREAK SPACE}", " ")


def test_without_attribution_the_page_says_nothing_of_it(tmp_path: Path) -> None:
    plain = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=(), seeds=(1,), flows=100)))
    assert attribution.table(plain).is_empty()
    assert attribution.sentence(plain, attribution.table(plain)) == ""
    theme = theme_for(plain.schemes, plain.baseline, interactive=True)
    assert "What the tail is made of" not in page.render(plain, Data.of(plain), theme)
