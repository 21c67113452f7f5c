"""The sentences on top of the page follow the numbers, whichever way they point."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from support import synthetic
from tailcut.report import tables, words
from tailcut.report.study import Study
from tailcut.results import bounds


def rows(
    *changes: tuple[float, float | None, float | None],
    statistic: str = "p99",
    name: str = "short",
    bound: str | None = None,
    note: str | None = None,
) -> pl.DataFrame:
    """Summary rows of RepFlow at the loads 0.1, 0.2 …, one per (change, low, high) in %; a note takes the star."""
    return pl.DataFrame(
        [
            {
                "backend": "sim", "scheme": "RepFlow", "grouping": "class", "class": name, "statistic": statistic,
                "cell": "", "point": f"0.{i + 1}", "change": change, "change_ci_low": low, "change_ci_high": high,
                "n_seeds": 5, "change_seeds": 5, "value_us": 100.0, "change_bound": bound, "change_note": note,
                "significant": (
                    note is None and low is not None and high is not None and not low < 0 < high
                    and bounds.is_certain(change, bound)
                ),
            }
            for i, (change, low, high) in enumerate(changes)
        ],
        schema_overrides={
            "change_ci_low": pl.Float64, "change_ci_high": pl.Float64, "change_bound": pl.String,
            "change_note": pl.String,
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    shape = synthetic.Shape(schemes=("TCP", "RepFlow"), sweep=(("traffic.load", (0.1, 0.2)),), seeds=(1, 2), flows=50)
    return Study.of(synthetic.build(tmp_path_factory.mktemp("store"), shape))


def headline(study: Study, table: pl.DataFrame) -> str:
    return words.headline(study, table)


def test_a_gain_at_every_point_is_stated_with_its_interval_and_its_smallest_value(study: Study) -> None:
    said = headline(study, rows((-30.0, -40.0, -20.0), (-52.0, -56.0, -48.0)))
    assert said == (
        "RepFlow cuts the 99th percentile of short flows' completion times by 52 % (95 % interval 48 to 56 %) at load"
        " 0.2, and by at least 30 % at every other point of the sweep."
    )


def test_a_gain_states_at_how_many_points_its_interval_excludes_zero(study: Study) -> None:
    said = headline(study, rows((-10.0, -25.0, 5.0), (-52.0, -56.0, -48.0)))
    assert said.endswith("; the change is clear at 1 of 2 points of the sweep.")


def test_no_gain_is_called_no_clear_effect(study: Study) -> None:
    said = headline(study, rows((-10.0, -25.0, 5.0), (3.0, -3.0, 9.0)))
    assert said == (
        "RepFlow shows no clear effect on the 99th percentile of short flows' completion times: changes between +3 %"
        " and −10 % against TCP, and every interval holds zero."
    )


def test_a_clear_mean_is_added_when_the_tail_shows_no_clear_effect(study: Study) -> None:
    table = pl.concat([rows((-10.0, -25.0, 5.0)), rows((-20.0, -25.0, -15.0), statistic="mean")])
    assert headline(study, table).endswith("Their mean falls by 20 % (95 % interval 15 to 25 %) at load 0.1.")


def test_a_loss_is_called_a_loss(study: Study) -> None:
    said = headline(study, rows((30.0, 20.0, 40.0), (8.0, 4.0, 12.0)))
    assert said.startswith("RepFlow lengthens the 99th percentile")
    assert "by 30 % (95 % interval 20 to 40 %) at load 0.1" in said


def test_a_gain_of_almost_100_percent_is_not_rounded_to_100(study: Study) -> None:
    assert "by 99.9 % (no interval" in headline(study, rows((-99.998, None, None)))
    assert words.change(-99.998) == "−99.9 %"


def test_gains_and_losses_are_both_stated(study: Study) -> None:
    said = headline(study, rows((-30.0, -40.0, -20.0), (8.0, 4.0, 12.0)))
    assert "cuts" in said
    assert "by 30 %" in said
    assert "lengthens it by 8 %" in said


def test_a_change_equal_in_all_seeds_is_stated_as_having_no_interval(study: Study) -> None:
    assert "by 30 % (no interval)" in headline(study, rows((-30.0, None, None)))


def test_one_seed_shows_no_clear_effect(study: Study) -> None:
    table = rows((-30.0, None, None)).with_columns(change_seeds=pl.lit(1))
    assert headline(study, table) == (
        "RepFlow changes the 99th percentile of short flows' completion times by −30 % against TCP; one seed does not"
        " tell it from chance."
    )


def test_a_change_without_a_star_states_what_it_lacks(study: Study) -> None:
    lacking = rows((-30.0, -50.0, -10.0), note="over 3 of 4 seeds; no star: that takes five seeds")
    assert headline(study, lacking).endswith(
        "by −30 % (95 % interval −50 % to −10 %) against TCP; no star: that takes five seeds."
    )
    several = pl.concat([lacking, rows((-20.0, -40.0, -5.0), note="no star: that takes five seeds")])
    assert "by −30 % to −20 % against TCP" in headline(study, several)


def test_without_an_interval_one_percent_is_no_clear_effect(study: Study) -> None:
    assert "too little to call a difference" in headline(study, rows((-1.0, None, None)))


def test_a_gain_over_a_lower_bound_is_at_least_that(study: Study) -> None:
    assert " by at least 30 % (95 %" in headline(study, rows((-30.0, -40.0, -20.0), bound="at most"))


def test_the_loss_of_a_lower_bound_is_at_least_that(study: Study) -> None:
    assert " by at least 30 % (no interval" in headline(study, rows((30.0, None, None), bound="at least"))


@pytest.mark.parametrize(("change", "bound"), [(-30.0, "at least"), (30.0, "at most"), (-30.0, "roughly")])
def test_a_change_whose_sign_unfinished_flows_leave_open_is_no_clear_effect(
    study: Study, change: float, bound: str
) -> None:
    said = headline(study, rows((change, change - 10, change + 10), bound=bound))
    assert said.startswith("RepFlow shows no clear effect")
    assert said.endswith("and unfinished flows leave open which way it goes.")


def test_a_gain_states_at_how_many_points_unfinished_flows_leave_its_sign_open(study: Study) -> None:
    table = rows((-30.0, -40.0, -20.0), (-40.0, -50.0, -30.0), (-1.0, -5.0, 3.0))
    rough = pl.Series("change_bound", [None, "roughly", None])
    table = table.with_columns(rough, significant=pl.col("significant") & rough.is_null())
    assert headline(study, table).endswith(
        "is clear at 1 of 3 points of the sweep, and unfinished flows leave open which way it goes at 1."
    )


def test_the_changes_below_a_headline_carry_their_bounds(study: Study) -> None:
    table = pl.concat([rows((-30.0, -40.0, -20.0)), rows((-20.0, -25.0, -15.0), statistic="mean", bound="at most")])
    assert words.verdicts(study, table)[0].detail == "mean of short flows ≤ −20 %"


def test_a_single_scheme_is_described_without_a_comparison(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(schemes=("TCP",), sweep=(), seeds=(1,), flows=50)))
    said = headline(of, tables.curves(of))
    assert said.startswith("The 99th percentile of short flows' completion times under TCP is ")
    assert "against" not in said


def of_tcp(**columns: object) -> pl.DataFrame:
    """A summary row of TCP alone, with other values in some columns."""
    row = rows((0.0, None, None)).with_columns(scheme=pl.lit("TCP"), point=pl.lit(""), lower_bound=pl.lit(value=False))
    empty = row.with_columns(
        pl.lit(None, pl.Float64).alias(name) for name in ("change", "change_ci_low", "change_ci_high")
    )
    return empty.with_columns(pl.lit(value).alias(name) for name, value in columns.items())


def alone(study: Study, *rows: pl.DataFrame) -> str:
    """The headline of a study whose backends are those of the rows."""
    table = pl.concat(rows)
    return words.headline(replace(study, summary=table), table)


TAIL = "The 99th percentile of short flows' completion times under TCP is"


def test_a_single_scheme_of_two_backends_is_described_by_the_first(study: Study) -> None:
    plan: Any = {**study.plan, "schemes": ["TCP"]}
    of = replace(study, plan=plan)
    assert alone(of, of_tcp(), of_tcp(backend="model", value_us=50.0)) == f"{TAIL} 100 µs."
    assert alone(of, of_tcp(backend="model")) == f"{TAIL} 100 µs according to the model."


def test_only_a_single_scheme_with_results_is_reported_as_such(study: Study) -> None:
    assert alone(study, of_tcp()) == f"{TAIL} 100 µs; no other scheme has results to compare it with."
    assert alone(study, of_tcp(), of_tcp(scheme="RepFlow")) == f"{TAIL} 100 µs."


def test_a_lower_bound_is_described_as_one(study: Study) -> None:
    assert f"{TAIL} at least 100 µs" in alone(study, of_tcp(lower_bound=True))


def test_the_strongest_gain_makes_the_headline(study: Study) -> None:
    plan: Any = copy.deepcopy(study.plan)
    plan["schemes"] = ["TCP", "RepSYN", "RepFlow"]
    of = Study(plan, study.runs, study.summary, study.totals, study.lab)
    weaker = rows((-20.0, -25.0, -15.0)).with_columns(scheme=pl.lit("RepSYN"))
    assert headline(of, pl.concat([weaker, rows((-30.0, -40.0, -20.0))])).startswith("RepFlow cuts")


def test_jobs_are_described_if_the_traffic_has_jobs(study: Study) -> None:
    jobs = rows((-20.0, -25.0, -15.0), statistic="mean", name="shuffle").with_columns(grouping=pl.lit("job"))
    said = headline(study, pl.concat([rows((-30.0, -40.0, -20.0)), jobs]))
    assert said.startswith("RepFlow cuts the mean completion time of shuffles by 20 %")


def test_long_flows_are_described_if_there_are_no_short_ones(study: Study) -> None:
    said = headline(study, rows((-20.0, -25.0, -15.0), statistic="mean", name="long"))
    assert said.startswith("RepFlow cuts the mean of long flows' completion times by 20 %")


def test_throughput_is_described_if_no_flow_ends(study: Study) -> None:
    speeds = pl.DataFrame(
        {"scheme": ["TCP", "TCP", "RepFlow"], "cell": "", "point": "0.2", "ideal_mean": [50.0, 50.0, 90.0]}
    )
    said = words.headline(study, rows((-1.0, None, None)).clear(), speeds)
    assert said.endswith("at load 0.2 on average: 90 % under RepFlow, 50 % under TCP.")


# --- cautions -------------------------------------------------------------------------------------


def test_runs_that_are_missing_are_counted(tmp_path: Path) -> None:
    of = Study.of(
        synthetic.build(tmp_path, synthetic.Shape(seeds=(1, 2, 3), flows=20), keep=lambda run: run["seed"] < 3)
    )
    said = words.cautions(of, tables.curves(of))
    assert said[0].startswith("12 of 36 runs are missing")


def test_unfinished_flows_are_reported_where_they_are_most(tmp_path: Path) -> None:
    of = Study.of(
        synthetic.build(tmp_path, synthetic.Shape(sweep=(), seeds=(1, 2, 3, 4, 5), flows=900, unfinished=0.5))
    )
    said = words.cautions(of, tables.curves(of))
    assert len(said) == 1
    assert "flows had not finished when their runs ended; they enter with the time they had been running" in said[0]
    assert "% of long flows under" in said[0]


def test_a_tail_of_fewer_than_100_jobs_is_a_caution(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=(), seeds=(1, 2, 3, 4, 5), flows=900)))
    flows = of.summary.filter(pl.col("grouping") == "class", pl.col("class") == "short")
    queries = flows.with_columns(grouping=pl.lit("job"), n_flows=pl.lit(60, pl.UInt64), **{"class": pl.lit("query")})
    said = words.cautions(of, tables.curves(replace(of, summary=pl.concat([of.summary, queries]))))
    assert [text.partition(",")[0] for text in said] == ["Where there are fewer than 100 queries"]


@pytest.mark.parametrize(
    ("seeds", "told"), [((1,), "one seed"), ((1, 2), "Two seeds"), ((1, 2, 3), "five seeds"), ((1, 2, 3, 4, 5), None)]
)
def test_few_seeds_are_a_caution(tmp_path: Path, seeds: tuple[int, ...], told: str | None) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=(), seeds=seeds, flows=900)))
    said = " ".join(words.cautions(of, tables.curves(of)))
    assert (told in said) if told else said == ""
