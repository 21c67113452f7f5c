"""The papers' figures: each has a small variant that runs here, and whose page has the figure it is about."""

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tailcut
from support import experiments
from tailcut import _core
from tailcut.report import tables
from tailcut.report.figures import Data, draw
from tailcut.report.study import Study
from tailcut.report.theme import theme_for

PAPERS = Path(__file__).parents[2] / "experiments" / "papers"
MODEL_ONLY = {f"repflow/fig{number}" for number in (4, 5, 6, 7)}
"""Figures of the queueing analysis, which needs no small variant."""
TOYS = ["tinyflow/fig1", "tinyflow/fig2"]
"""Experiments that are small as they are."""
EVERYWHERE = {"fct", "change", "slowdown", "links"}
FURTHER = {
    "mmptcp/fig1": {"throughput", "segments"},
    "repnet/fig1": {"round-trips", "series"},
    "repnet/fig2": {"round-trips", "series"},
    "repnet/fig9": {"throughput"},
    "repnet/fig11": {"jobs"},
    "repflow/table1": {"jobs"},
    "rps/fig2": {"throughput", "segments"},
    "rps/fig2-larger": {"throughput", "segments"},
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
ENDLESS = {"rps/fig2", "rps/fig2-larger", "rps/fig5", "rps/fig6", "rps/fig7a", "rps/fig7b", "tinyflow/fig2"}
"""Flows without an end, and so without completion times."""
QUICK = {
    "repflow/fig13", "repflow/fig14", "repflow/table1", "repnet/fig5-alpha", "repnet/fig7", "repnet/fig9",
    "rps/fig2", "rps/fig2-larger", "rps/fig3b", "rps/fig4", "rps/fig5", "rps/fig6", "rps/fig7a", "tinyflow/fig1",
    "tinyflow/fig2",
}  # fmt: skip
"""Figures of which a run at the paper's scale takes a second or two."""
LOADS = {
    **dict.fromkeys([f"repflow/fig{n}" for n in range(8, 15)] + ["repflow/table3", "repflow/timeouts"], "host-links"),
    **dict.fromkeys([f"tinyflow/{name}" for name in ("fig3", "fig4", "table2", "timeouts")], "host-links"),
    **dict.fromkeys([f"repnet/fig{n}" for n in (5, "5-alpha", 6, 7, 8, 9)], "bisection"),
    **dict.fromkeys(["repnet/fig1", "repnet/fig12", "rps/fig3b", "rps/fig3c", "rps/fig4"], "host-links"),
}
"""The capacity that a paper's load is a fraction of, for figures with a load."""


def names() -> list[str]:
    found = (path.relative_to(PAPERS).with_suffix("").as_posix() for path in experiments.shipped("papers"))
    return [name for name in found if name not in MODEL_ONLY and name not in TOYS]


SMALL = sorted(name for name in names() if "small" in tomllib.loads((PAPERS / f"{name}.toml").read_text("utf-8")))


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, tailcut.Result]:
    """A figure's name, and all runs of its small variant, which are made once for all tests of them."""
    name: str = request.param
    experiment = tailcut.load(PAPERS / f"{name}.toml", small=name not in TOYS)
    return name, tailcut.run(experiment, out=tmp_path_factory.mktemp("papers") / "results", jobs=1)


def small_variants_of(*figures: str) -> pytest.MarkDecorator:
    """Gives a test the runs of these figures' small variants."""
    return pytest.mark.parametrize("made", figures, indirect=True, scope="module")


def test_every_figure_has_a_small_variant() -> None:
    assert sorted(names()) == SMALL


@pytest.mark.parametrize("name", SMALL)
def test_a_small_variant_asks_the_same_question(name: str) -> None:
    full, small = (tailcut.load(PAPERS / f"{name}.toml", small=small).plan for small in (False, True))
    assert small["question"] == full["question"]
    assert small["title"].removesuffix(" (small)") == full["title"]
    assert small["schemes"] == full["schemes"]
    assert [axis["key"] for axis in small["sweep"]] == [axis["key"] for axis in full["sweep"]]
    traffic = [run["config"]["traffic"]["kind"] for run in (full["runs"][0], small["runs"][0])]
    assert traffic[0] == traffic[1]
    hops = [run["facts"]["expected_packet_hops"] for run in small["runs"]]
    assert max(hops) < 6e6, "a run takes half a second"
    assert sum(hops) < 40e6, "all of them take a few seconds"


def failures(name: str, *, small: bool) -> set[str]:
    """Returns the faults of an experiment's runs with failures, as JSON."""
    faults = [run["config"]["faults"] for run in tailcut.load(PAPERS / f"{name}.toml", small=small).plan["runs"]]
    return {json.dumps(one) for one in faults if one["active"] and one["incidents"]}


@small_variants_of("rps/fig6", "rps/fig7a", "rps/fig7b", "rps/fig7c")
def test_a_link_that_is_down_all_along_is_down_before_anything_is_sent(made: tuple[str, tailcut.Result]) -> None:
    """A SYN that is lost to it would be sent again after 3 s, when most of the run is over."""
    name, result = made
    assert failures(name, small=False) == failures(name, small=True) != set()
    assert result.runs["lost_on_links"].to_list() == [0] * len(result.plan["runs"])


def test_the_hosts_of_mmptcp_repeat_a_syn_after_three_seconds() -> None:
    """`ConnTimeout` of the authors' model (ns-3's default), whatever its constructors say."""
    for small in (False, True):
        runs = tailcut.load(PAPERS / "mmptcp" / "fig1.toml", small=small).plan["runs"]
        transports = [run["config"]["scheme"]["transport"] for run in runs]
        assert {transport.get("tcp", transport)["initial_rto"] for transport in transports} == {"3s"}


@pytest.mark.parametrize("figure", ["fig3", "fig4", "table2"])
def test_the_hosts_of_tinyflow_are_not_tuned(figure: str) -> None:
    """Section IV-A: "TCP NewReno is used without any tuning", of NS-3.10, which sends one segment at first."""
    untuned = {"recovery": "newreno", "min_rto": "200ms", "initial_rto": "3s", "initial_window": "1packets"}
    for small in (False, True):
        runs = tailcut.load(PAPERS / "tinyflow" / f"{figure}.toml", small=small).plan["runs"]
        hosts = [run["config"]["scheme"]["transport"] for run in runs]
        assert [one for one in hosts if {key: one[key] for key in untuned} != untuned] == []


@pytest.mark.parametrize("figure", ["table1", "fig13", "fig14"])
def test_the_hosts_that_repflow_emulates_run_newreno(figure: str) -> None:
    """RepFlow, section VI: "on top of TCP-New Reno in Mininet 2.0.0 on a Ubuntu 12.10", where CUBIC is the default."""
    for small in (False, True):
        runs = tailcut.load(PAPERS / "repflow" / f"{figure}.toml", small=small).plan["runs"]
        assert {run["config"]["scheme"]["transport"]["congestion"]["kind"] for run in runs} == {"newreno"}


def connections(transport: dict[str, Any]) -> list[dict[str, Any]]:
    """The TCPs of a transport that is named."""
    return {"tcp": [transport], "mptcp": [transport.get("tcp", {})], "mmptcp": [transport.get("tcp", {})]}.get(
        transport.get("kind", ""), []
    )


@pytest.mark.parametrize("path", experiments.shipped("papers"), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_named_transport_states_its_loss_recovery(path: Path) -> None:
    """The hosts of the papers are what they were, whatever the simulator's default is."""
    file = tomllib.loads(path.read_text("utf-8"))
    named = [file["transport"], *(scheme.get("transport", {}) for scheme in file["schemes"].values())]
    tcps = [tcp for transport in named for tcp in connections(transport)]
    assert tcps
    assert all("recovery" in tcp for tcp in tcps)


@pytest.mark.parametrize("name", SMALL)
def test_a_run_at_the_papers_scale_takes_a_minute_or_two(name: str) -> None:
    plan = tailcut.load(PAPERS / f"{name}.toml", seeds=1).plan
    assert max(run["facts"]["estimated_seconds"] for run in plan["runs"]) < 150


def at_scale(name: str) -> Any:
    """A figure as a case of the next test, of `make soak` alone if its run takes long."""
    return name if name in QUICK else pytest.param(name, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])


@pytest.mark.parametrize("name", [at_scale(name) for name in SMALL + TOYS])
def test_a_run_at_the_papers_scale_is_as_large_as_planned(name: str) -> None:
    plan = tailcut.load(PAPERS / f"{name}.toml", seeds=1).plan
    run = min(plan["runs"], key=lambda run: run["facts"]["expected_packet_hops"])
    made = _core.run(json.dumps(run), lambda *_: None)
    assert made["counters"]["sent"] == sum(
        made["counters"][end] for end in ("delivered", "dropped", "lost_on_links", "in_flight")
    )
    # Flows without an end are planned at the rate of their hosts' links, of which paths in common
    # leave a part.
    least = 0.3 if name in ENDLESS | {"mmptcp/fig1", "repnet/fig2"} else 0.9
    # One ACK is planned for two segments; those out of order, most where all is sprayed, are
    # acknowledged one by one.
    most = 4 / 3 if name == "rps/fig7c" else 1.1
    assert least < made["counters"]["packet_hops"] / run["facts"]["expected_packet_hops"] < most


def says(study: Study, caption: str, name: str) -> None:
    """The caption of completion times has the paper's clock, and its load if there is one."""
    assert study.clock == "receiver"
    assert "from the SYN handed to the NIC to the last in-order byte at the receiving application" in caption
    fractions = {"host-links": "of the capacity of all host links", "bisection": "of the capacity between the halves"}
    found = {kind for kind, words in fractions.items() if words in caption}
    assert found == ({LOADS[name]} if name in LOADS else set())


@small_variants_of(*SMALL, *TOYS)
def test_a_small_variant_runs_and_its_page_has_the_figure(made: tuple[str, tailcut.Result]) -> None:
    name, result = made
    assert not result.missing_runs
    ends = ("delivered", "dropped", "lost_on_links", "in_flight")
    assert (result.runs["sent"] == sum(result.runs[end] for end in ends)).all()
    study = Study.of(result)
    theme = theme_for(study.schemes, study.baseline, interactive=True)
    figures = {figure.name: figure for _, figure in draw(study, Data.of(study), theme) if figure.panels}
    drawn = set(figures)
    wanted = FURTHER.get(name, set()) | ({"links"} if name in ENDLESS else EVERYWHERE)
    if len(study.schemes) == 1:
        wanted -= {"change"}
    assert wanted <= drawn
    if "fct" in drawn:
        says(study, figures["fct"].caption, name)
    if "slowdown" in drawn:
        says(study, figures["slowdown"].caption, name)
        assert "divided by the best possible FCT of that flow" in figures["slowdown"].caption
        finished = Data.of(study).curves.filter(pl.col("n_unfinished") == 0)
        # Spraying over slow cores is faster than a flow that has one of them to itself.
        assert name == "rps/fig7c" or (finished["normalised"].drop_nulls() >= 1).all()


@small_variants_of("repnet/fig2")
def test_round_trips_are_those_of_the_hosts_that_ping_and_of_no_other_flow(made: tuple[str, tailcut.Result]) -> None:
    _, result = made
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
