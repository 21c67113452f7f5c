"""Jobs in the summary: completion times by kind, and what becomes of those that did not end."""

import polars as pl
import pytest

from tailcut.results import summary

JOBS = pl.DataFrame(
    {
        "id": [0, 1, 2, 3],
        "kind": ["query", "query", "query", "sort"],
        "start_ns": [0, 1_000, 2_000, 0],
        "completion_ns": [10_000, 30_000, None, 7_000],
        "flows": [8, 8, 8, 20],
        "bytes": [100, 100, 100, 900],
        "finished": [True, True, False, True],
    },
    schema_overrides={"flows": pl.UInt32, "bytes": pl.UInt64, "id": pl.UInt64},
)


def statistics(unfinished: object, kind: str) -> dict[str, dict[str, float]]:
    rows = summary.of_jobs(JOBS, {"unfinished": unfinished}, end_ns=102_000)
    of_kind = rows.filter(pl.col("grouping") == "job", pl.col("class") == kind)
    return {row["statistic"]: row for row in of_kind.iter_rows(named=True)}


def test_jobs_are_summarised_by_kind() -> None:
    sort = statistics("censored", "sort")
    assert sort["mean"]["value_us"] == 7
    assert (sort["mean"]["n_flows"], sort["mean"]["n_unfinished"]) == (1, 0)
    assert sort["mean"]["normalised"] is None, "a job has no ideal"


@pytest.mark.parametrize(("unfinished", "mean"), [("censored", (10 + 30 + 100) / 3), ("exclude", 20)])
def test_unfinished_jobs_enter_by_the_plans_rule(unfinished: str, mean: float) -> None:
    query = statistics(unfinished, "query")
    assert query["mean"]["value_us"] == pytest.approx(mean)
    assert query["mean"]["lower_bound"] == (unfinished == "censored")
    assert (query["mean"]["n_flows"], query["mean"]["n_unfinished"]) == (3, 1)
    assert query["p50"]["value_us"] == (30 if unfinished == "censored" else 10)


def test_jobs_that_finish_after_the_given_time_of_the_run_are_left_out() -> None:
    query = statistics({"by": "20us"}, "query")["mean"]
    assert (query["value_us"], query["lower_bound"]) == (10, False)
    assert (query["n_flows"], query["n_unfinished"]) == (3, 2)
