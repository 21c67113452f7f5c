"""Derived statistics equal freshly computed ones, and never stem from other tables."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from support import made_up
from tailcut.errors import StoreError
from tailcut.plan import Plan
from tailcut.result import Result
from tailcut.results import Store, samples

PLAN = made_up.plan()


def filled(directory: Path, plan: Plan = PLAN, runs: int | None = None) -> Store:
    store = Store.create(directory, plan)
    for number, run in enumerate(plan["runs"][:runs]):
        jobs = made_up.jobs("query", [900 + number, 1_000]) if number % 2 else None
        made_up.put(store, run, made_up.flows([100.0 + number, 200.0, None], [20_000, 30_000, 5_000_000]), jobs=jobs)
    return store


def answers(store: Store, plan: Plan = PLAN) -> list[pl.DataFrame]:
    result = Result(store, plan)
    return [result.per_seed, result.summary(), result.totals()]


def same(one: list[pl.DataFrame], other: list[pl.DataFrame]) -> None:
    for left, right in zip(one, other, strict=True):
        assert_frame_equal(left, right, check_exact=True)


def no_reading(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The flow tables that are read from now on."""
    read: list[str] = []
    of_flows = samples.of_flows

    def noted(flows: pl.DataFrame, measure: dict[str, str], end_ns: int) -> pl.DataFrame:
        read.append("flows")
        return of_flows(flows, measure, end_ns)

    monkeypatch.setattr(samples, "of_flows", noted)
    return read


def test_cached_statistics_equal_computed_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path / "results")
    first = answers(store)
    read = no_reading(monkeypatch)
    same(answers(store), first)
    assert read == []
    shutil.rmtree(store.directory / "derived")
    same(answers(store), first)
    assert len(read) == len(PLAN["runs"])


def test_only_new_runs_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path / "results", runs=5)
    answers(store)
    filled(tmp_path / "results")
    read = no_reading(monkeypatch)
    whole = answers(store)
    assert len(read) == 3
    same(whole, answers(filled(tmp_path / "other")))


def test_changed_tables_or_measure_settings_are_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path / "results")
    answers(store)
    (run, *_) = PLAN["runs"]
    store.remove_run(run["id"])
    made_up.put(store, run, made_up.flows([700.0]))
    read = no_reading(monkeypatch)
    assert answers(store)[0].filter(statistic="mean", grouping="all")["value_us"][0] == 700.0
    assert len(read) == 1
    excluded = made_up.plan(unfinished="exclude")
    same(answers(store, excluded), answers(store, excluded))
    assert len(read) == 1 + len(PLAN["runs"])


@pytest.mark.parametrize(
    "of_a_power_cut", [lambda whole: b"", lambda whole: bytes(len(whole)), lambda whole: whole[:-9]]
)
def test_a_file_that_is_damaged_is_computed_anew(of_a_power_cut: Callable[[bytes], bytes], tmp_path: Path) -> None:
    store = filled(tmp_path / "results")
    first = answers(store)
    for path in (store.directory / "derived").iterdir():
        path.write_bytes(of_a_power_cut(path.read_bytes()))
    same(answers(store), first)
    same(answers(store), first)


def test_derived_files_are_written_without_waiting_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path / "results")
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("a summary writes a file for each run"))
    answers(store)
    assert list((store.directory / "derived").iterdir())


def test_in_a_read_only_directory_statistics_are_computed_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(store: Store, path: Path, content: bytes) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Store, "put_derived", refused)
    store = filled(tmp_path / "results")
    same(answers(store), answers(store))
    assert not (store.directory / "derived").exists()


def test_schemes_that_are_the_same_share_a_run_and_have_their_flows_each(tmp_path: Path) -> None:
    plan = made_up.plan(sweep=[])
    for run, of in zip(plan["runs"][2:], plan["runs"][:2], strict=True):
        run["id"] = of["id"]
    store = filled(tmp_path / "results", plan, runs=2)
    result = Result(store, plan)
    assert_frame_equal(result.scan_flows().collect(), result.flows)
    assert (
        result.per_seed.partition_by("scheme")[0]
        .drop("scheme")
        .equals(result.per_seed.partition_by("scheme")[1].drop("scheme"))
    )


def test_flows_that_do_not_fit_into_memory_are_refused_and_can_be_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Result(filled(tmp_path / "results"), PLAN)
    rows = result.scan_flows().collect()
    monkeypatch.setattr("tailcut.results.machine.available_memory", lambda: 100 * rows.height)
    with pytest.raises(StoreError, match=f"^{rows.height} flows take about 0.0 GB, and 0.0 GB are free$") as refused:
        result.flows  # noqa: B018
    assert refused.value.code == "TC-S013"
    monkeypatch.setattr("tailcut.results.machine.available_memory", lambda: 10_000 * rows.height)
    assert_frame_equal(result.flows, rows)
