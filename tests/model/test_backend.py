"""The queueing analysis as a backend: which cells of the summary it fills, and what it says of the others."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest

import tailcut
from support import experiments
from tailcut.api import Silent
from tailcut.backends import Options
from tailcut.backends.model import ModelBackend, summary
from tailcut.plan import Plan
from tailcut.results import summary_schema

PAPER = Path(__file__).parents[2] / "experiments" / "papers" / "repflow"
FULL_SECTIONS = """
[topology]
kind = "fat-tree"
k = 4

[transport]
kind = "tcp"
initial_window = "12packets"

[traffic]
kind = "poisson"
sizes = "web-search"
load = 0.5

[horizon]
arrivals = "1ms"

[schemes.TCP]

[schemes.RepFlow]
like = "TCP"
replicate = { kind = "repflow" }
"""

Planner = Callable[..., Plan]


@pytest.fixture
def plan(tmp_path: Path) -> Planner:
    """Plans an experiment from a text, with replacements."""

    def make(text: str = FULL_SECTIONS, *replacements: tuple[str, str]) -> Plan:
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "experiment.toml"
        file.write_text('title = "test"\n' + text)
        return tailcut.load(file).plan

    return make


def cell(rows: pl.DataFrame, scheme: str, size_class: str, statistic: str) -> dict[str, object]:
    found = rows.filter(scheme=scheme, statistic=statistic).filter(pl.col("class") == size_class)
    assert found.height == 1
    return found.row(0, named=True)


def changes(rows: pl.DataFrame, size_class: str, statistic: str) -> list[int]:
    chosen = rows.filter(scheme="RepFlow", statistic=statistic).filter(pl.col("class") == size_class)
    return [round(100 * change) for change in chosen.sort("traffic.load")["change"]]


def test_where_all_flows_are_short_the_cells_of_long_ones_are_empty_with_the_reason(plan: Planner) -> None:
    rows = summary(plan(FULL_SECTIONS + '[measure]\nshort = "2MB"\n', ("web-search", "storage"), ("repflow", "none")))
    assert cell(rows, "TCP", "short", "p99")["value_us"] is not None
    assert cell(rows, "TCP", "long", "p99")["reason"] == "the workload has no long flows"
    of_all = rows.filter(scheme="TCP", grouping="all", statistic="mean")["value_us"].to_list()
    assert of_all == [cell(rows, "TCP", "short", "mean")["value_us"]]


def test_figure_4_from_its_experiment_file() -> None:
    rows = summary(tailcut.load(PAPER / "fig4.toml").plan)
    assert changes(rows, "short", "mean") == [-14, -24, -31, -35, -38, -40, -39, -35]


def test_figure_6_from_its_experiment_file() -> None:
    rows = summary(tailcut.load(PAPER / "fig6.toml").plan)
    assert changes(rows, "short", "p99") == [-42, -54, -58, -57, -55, -52, -47, -39]


def test_figure_5_from_its_experiment_file() -> None:
    rows = summary(tailcut.load(PAPER / "fig5.toml").plan)
    assert changes(rows, "long", "mean") == [0, 1, 1, 2, 4, 6, 10, 21]


def test_figure_7_from_its_experiment_file() -> None:
    rows = summary(tailcut.load(PAPER / "fig7.toml").plan)
    assert changes(rows, "long", "p99") == [0, 1, 2, 3, 4, 7, 12, 23]


def test_the_workloads_own_epsilon_is_the_default_and_cuts_more(plan: Planner) -> None:
    own = cell(summary(plan()), "RepFlow", "short", "mean")["change"]
    given = plan(FULL_SECTIONS + "\n[model]\nshort_byte_share = 0.05\n")
    papers = cell(summary(given), "RepFlow", "short", "mean")["change"]
    assert (own, papers) == (pytest.approx(-0.408, abs=1e-3), pytest.approx(-0.384, abs=1e-3))


def test_the_table_has_the_columns_and_cells_of_every_backend(plan: Planner) -> None:
    made = plan(FULL_SECTIONS + '\n[sweep]\n"traffic.load" = [0.2, 0.4]\n')
    rows = summary(made)
    assert dict(rows.schema) == summary_schema(made)
    groups = rows.filter(pl.col("grouping") == "size_group")["class"].unique(maintain_order=True).to_list()
    assert groups == ["(0,10KB]", "(10KB,100KB]", "(100KB,1MB]", "(1MB,10MB]", ">10MB"]
    assert rows.height == 2 * 2 * (3 + len(groups)) * 4


def test_every_cell_has_a_number_or_a_reason(plan: Planner) -> None:
    rows = summary(plan())
    empty = rows.filter(pl.col("value_us").is_null() | pl.col("normalised").is_null())
    assert empty.height > 0
    assert empty["reason"].null_count() == 0
    assert rows.filter(pl.col("value_us").is_not_null())["reason"].null_count() == rows.height - empty.height


@pytest.mark.parametrize("statistic", ["p50", "p99_9"])
def test_percentiles_that_the_analysis_does_not_give_are_empty(plan: Planner, statistic: str) -> None:
    found = cell(summary(plan()), "TCP", "short", statistic)
    assert found["value_us"] is None
    assert found["reason"] == "the analysis gives the mean and the 99th percentile only"


def test_the_mean_of_all_flows_weighs_the_classes_by_their_numbers(plan: Planner) -> None:
    rows = summary(plan())
    short, long, everything = (cell(rows, "TCP", name, "mean")["normalised"] for name in ("short", "long", "all"))
    # 54.4 % of web search's flows are of up to 100 KB.
    assert isinstance(short, float)
    assert isinstance(long, float)
    assert everything == pytest.approx(0.5436 * short + 0.4564 * long, rel=1e-3)
    assert cell(rows, "TCP", "all", "p99")["value_us"] is None


def test_times_are_those_of_full_packets_at_the_hosts_rate(plan: Planner) -> None:
    one_size = ('"web-search"', '"14600B"')
    found = cell(summary(plan(FULL_SECTIONS, one_size)), "TCP", "short", "mean")
    # Ten packets of 1,460 B and 78 B of headers and framing at 1 Gbps, as often as normalised says.
    assert isinstance(found["normalised"], float)
    assert found["value_us"] == pytest.approx(10 * 1538 * 8e-3 * found["normalised"])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('kind = "repflow"', 'kind = "repsyn"', "says nothing of RepSYN"),
        ('kind = "repflow"', 'kind = "repflow", copies = 3', "two copies"),
        ('kind = "repflow"', 'kind = "repflow", threshold = "50KB"', "short flows are the replicated ones"),
        ('kind = "repflow"', 'kind = "repflow", copy_delay = "1ms"', "both copies start at once"),
        ("k = 4", "k = 4\noversubscription = 4", "not equally loaded"),
        ('kind = "poisson"\nsizes = "web-search"\nload = 0.5', 'kind = "permutation"\nsizes = "1MB"', "Poisson"),
        ('"web-search"', '{ kind = "exponential", mean = "1MB" }', "flow sizes from a table"),
        ('kind = "fat-tree"\nk = 4', 'kind = "star"\nhosts = 4', "both copies would take the one path"),
        ("load = 0.5", "load = 0.5\nfan_in = 3", "each flow comes alone"),
        ("load = 0.5", "load = 0.5\nexcept = [3]", "some hosts are silent"),
        (
            "[traffic]",
            '[queue]\nkind = "red"\n\n[traffic]',
            "first-come-first-served queues, and nothing of red",
        ),
        (
            '[transport]\nkind = "tcp"',
            '[queue]\nkind = "ecn"\n\n[transport]\nkind = "tcp"\ncongestion = { kind = "dctcp" }',
            "DCTCP's shrink with the marks",
        ),
        (
            "[traffic]",
            '[faults]\nincidents = [{ kind = "link-down", link = "edge0>agg0", at = "0s" }]\n\n[traffic]',
            "a healthy network",
        ),
    ],
)
def test_configurations_beyond_the_analysis_leave_cells_empty_with_the_reason(
    plan: Planner, old: str, new: str, reason: str
) -> None:
    made = plan(FULL_SECTIONS, (old, new))
    found = cell(summary(made), "RepFlow", "short", "mean")
    assert found["value_us"] is None
    assert found["normalised"] is None
    assert reason in str(found["reason"])
    assert any(reason in gap.reason and not gap.fatal for gap in ModelBackend().check(made, tailcut_options()))


def test_a_scheme_beyond_the_analysis_does_not_take_the_others_with_it(plan: Planner) -> None:
    rows = summary(plan(FULL_SECTIONS, ('kind = "repflow"', 'kind = "repsyn"')))
    assert cell(rows, "TCP", "short", "mean")["value_us"] is not None


def test_an_oversubscribed_fabric_is_answered_by_the_load_of_its_bottleneck(plan: Planner) -> None:
    oversubscribed = ("k = 4", "k = 4\noversubscription = 4")
    bisection = ("load = 0.5", 'load = 0.5\nload_of = "bisection"')
    found = cell(summary(plan(FULL_SECTIONS, oversubscribed, bisection)), "TCP", "long", "mean")
    assert found["normalised"] == pytest.approx(1.5)


def test_a_load_that_the_copies_push_over_one_is_empty_for_repflow_alone(plan: Planner) -> None:
    made = plan(FULL_SECTIONS + "\n[model]\nshort_byte_share = 0.05\n", ("load = 0.5", "load = 0.96"))
    rows = summary(made)
    assert cell(rows, "TCP", "short", "mean")["value_us"] is not None
    found = cell(rows, "RepFlow", "short", "mean")
    assert found["value_us"] is None
    assert "grows without bound" in str(found["reason"])


def test_what_the_analysis_simplifies_is_said_beforehand(plan: Planner) -> None:
    gaps = {gap.where: gap.reason for gap in ModelBackend().check(plan(), tailcut_options())}
    assert gaps["queue.limit"] == "the analysis has infinite queues: no loss, no timeout"
    assert "topology.propagation" in gaps


def test_disabled_faults_do_not_concern_the_model(plan: Planner) -> None:
    incident = '{ kind = "link-down", link = "edge0>agg0", at = "0s" }'
    made = plan(FULL_SECTIONS + f"\n[faults]\nactive = false\nincidents = [{incident}]\n")
    assert cell(summary(made), "TCP", "short", "mean")["value_us"] is not None


@pytest.mark.parametrize(
    ("section", "where", "reason"),
    [
        ('[switch]\nshared_buffer = "4MB"', "switch.shared_buffer", "queues that share nothing"),
        ('[host]\nnic_queue = "100packets"', "host.nic_queue", "no queue in hosts"),
        ("[measure]\nsegments = true", "measure.segments", "no packets to measure"),
        ("[measure]\nthroughput = true", "measure.throughput", "no packets to measure"),
        ('[series]\nlinks = ["h0>s0"]', "series.links", "no packets to measure"),
        ('[series]\ndifferentials = ["h0>h15"]', "series.differentials", "no packets to measure"),
    ],
)
def test_features_that_the_analysis_lacks_are_named_beforehand(
    plan: Planner, section: str, where: str, reason: str
) -> None:
    plain = {gap.where for gap in ModelBackend().check(plan(), tailcut_options())}
    made = plan(FULL_SECTIONS + f"\n{section}\n")
    gaps = {gap.where: gap for gap in ModelBackend().check(made, tailcut_options())}
    assert gaps.keys() - plain == {where}
    assert reason in gaps[where].reason
    assert not gaps[where].fatal
    assert cell(summary(made), "TCP", "short", "mean")["value_us"] is not None


def test_the_model_runs_through_the_same_call_as_the_simulator(tmp_path: Path, plan: Planner) -> None:
    plan()
    result = tailcut.run(tailcut.load(tmp_path / "experiment.toml"), on="model", out=tmp_path / "out")
    rows = result.summary()
    assert cell(rows.filter(backend="model"), "RepFlow", "short", "p99")["value_us"] is not None


def test_running_the_model_reports_what_it_leaves_out(tmp_path: Path, plan: Planner) -> None:
    class Heard(Silent):
        notes: ClassVar[list[str]] = []

        def note(self, message: str) -> None:
            self.notes.append(message)

    plan(FULL_SECTIONS + '\n[switch]\nshared_buffer = "4MB"\n')
    tailcut.run(tailcut.load(tmp_path / "experiment.toml"), on="model", out=tmp_path / "out", progress=Heard())
    assert "switch.shared_buffer: the analysis has infinite queues that share nothing" in Heard.notes


def tailcut_options() -> Options:
    return Options()


def test_a_cluster_is_refused_as_there_are_no_runs(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(tailcut.BackendError, match="--cluster") as refused:
        tailcut.run(tailcut.load(experiments.tiny(tmp_path)), on="model", executor=pool, out=tmp_path / "results")
    assert refused.value.code == "TC-B002"
