"""The papers' figures: each has a small variant that runs here, and whose page has the figure it is about."""

from pathlib import Path

import polars as pl
import pytest

import tailcut
from tailcut.report import tables
from tailcut.report.figures import Data, draw
from tailcut.report.study import Study
from tailcut.report.theme import theme_for

PAPERS = Path(__file__).parents[2] / "experiments" / "papers"
MODEL_ONLY = {f"repflow/fig{number}" for number in (4, 5, 6, 7)}
"""Figures of the queueing analysis, which needs no small variant."""
TOYS = ["tinyflow/fig1", "tinyflow/fig2"]
"""Experiments that are small as they are."""
EVERYWHERE = {"fct", "gain", "slowdown", "links"}
FURTHER = {
    "mmptcp/fig1": {"throughput", "segments"},
    "repnet/fig1": {"round-trips", "series"},
    "repnet/fig2": {"round-trips", "series"},
    "repnet/fig9": {"throughput"},
    "repnet/fig11": {"jobs"},
    "repflow/table1": {"jobs"},
    "rps/fig2": {"throughput", "segments"},
    "rps/fig3a": {"jobs"},
    "rps/fig3b": {"jobs", "series", "round-trips"},
    "rps/fig3c": {"jobs"},
    "rps/fig4": {"throughput", "segments", "series"},
    "rps/fig5": {"series"},
    "rps/fig6": {"series"},
    "rps/fig7a": {"series"},
    "rps/fig7b": {"throughput", "segments"},
    "rps/fig7c": {"jobs"},
    "tinyflow/fig2": {"series"},
}
"""The figures of the page that show what the paper's figure shows, beyond those that every page has."""
ENDLESS = {"rps/fig2", "rps/fig5", "rps/fig6", "rps/fig7a", "rps/fig7b", "tinyflow/fig2"}
"""Flows without an end, and so without completion times."""


def names() -> list[str]:
    found = (path.relative_to(PAPERS).with_suffix("").as_posix() for path in sorted(PAPERS.rglob("*.toml")))
    return [name for name in found if name not in MODEL_ONLY and name not in TOYS]


SMALL = [name.removesuffix("-small") for name in names() if name.endswith("-small")]


def test_every_figure_has_a_small_variant() -> None:
    assert sorted({name.removesuffix("-small") for name in names()}) == SMALL


@pytest.mark.parametrize("name", SMALL)
def test_a_small_variant_asks_the_same_question(name: str) -> None:
    full, small = (tailcut.load(PAPERS / f"{name}{suffix}.toml").plan for suffix in ("", "-small"))
    assert small["question"] == full["question"]
    assert small["title"].removesuffix(" (small)") == full["title"]
    assert small["schemes"] == full["schemes"]
    assert [axis["key"] for axis in small["sweep"]] == [axis["key"] for axis in full["sweep"]]
    traffic = [run["config"]["traffic"]["kind"] for run in (full["runs"][0], small["runs"][0])]
    assert traffic[0] == traffic[1]
    hops = [run["facts"]["expected_packet_hops"] for run in small["runs"]]
    assert max(hops) < 6e6, "a run takes half a second"
    assert sum(hops) < 40e6, "all of them take a few seconds"


@pytest.mark.parametrize("name", SMALL)
def test_a_run_at_the_papers_scale_takes_a_minute_or_two(name: str) -> None:
    plan = tailcut.load(PAPERS / f"{name}.toml", seeds=1).plan
    assert max(run["facts"]["estimated_seconds"] for run in plan["runs"]) < 150


@pytest.mark.parametrize("name", [*SMALL, *TOYS])
def test_a_small_variant_runs_and_its_page_has_the_figure(name: str, tmp_path: Path) -> None:
    file = f"{name}.toml" if name in TOYS else f"{name}-small.toml"
    result = tailcut.run(tailcut.load(PAPERS / file), out=tmp_path / "results", jobs=1)
    assert not result.missing_runs
    ends = ("delivered", "dropped", "lost_on_links", "in_flight")
    assert (result.runs["sent"] == sum(result.runs[end] for end in ends)).all()
    study = Study.of(result)
    theme = theme_for(study.schemes, study.baseline, interactive=True)
    drawn = {figure.name for _, figure in draw(study, Data.of(study), theme) if figure.panels}
    wanted = FURTHER.get(name, set()) | ({"links"} if name in ENDLESS else EVERYWHERE)
    if len(study.schemes) == 1:
        wanted -= {"gain"}
    assert wanted <= drawn


def test_round_trips_are_those_of_the_hosts_that_ping_and_of_no_other_flow(tmp_path: Path) -> None:
    result = tailcut.run(tailcut.load(PAPERS / "repnet" / "fig2-small.toml"), out=tmp_path / "results", jobs=1)
    table = tables.round_trips(Study.of(result))
    pings = result.flows.filter((pl.col("src") == 2) & (pl.col("dst") == 5))
    slow = {}
    for scheme in result.plan["schemes"]:
        rows, of_scheme = table.filter(scheme=scheme), pings.filter(scheme=scheme)
        assert rows["flows"].unique().to_list() == [of_scheme.height]
        assert rows["fct_us"].to_numpy().max() == of_scheme["connect_ns"].drop_nulls().to_numpy().max() / 1e3
        slow[scheme] = rows.filter(pl.col("fct_us") > 1_000).height / rows.height
    # A third of them meets the congested path, and a ninth of those with two copies.
    assert 0.2 < slow["TCP"] < 0.5
    assert slow["RepFlow"] < 0.2
