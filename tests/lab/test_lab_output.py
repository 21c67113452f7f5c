"""Lab runs on the page, in the summary and on the terminal; the runs are made up."""

import errno
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import tailcut
from support.lab import Kernels
from tailcut import cli
from tailcut.lab import process
from tailcut.report import tables, words
from tailcut.report.study import Study
from tailcut.results import Store


def said(*arguments: object) -> str:
    """Returns what a command prints on stdout and stderr of a wide terminal."""
    with pytest.MonkeyPatch.context() as wide:
        for console in (cli.out, cli.err):
            wide.setattr(console, "width", 200)
        return CliRunner().invoke(cli.app, [str(argument) for argument in arguments]).output


def test_a_page_of_runs_over_kernels_alone_says_whose_numbers_they_are(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    result = tailcut.run(tailcut.load(experiment), on="lab", out=tmp_path / "results")
    page = result.report()[0].read_text()
    assert "Nothing has been simulated here: all numbers are real kernels" in page
    assert "queueing model" not in page
    assert "Flow completion time (FCT) runs from the SYN" in page


def test_where_no_run_is_faithful_the_page_has_the_verdicts(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    kernels.runs = 1
    result = tailcut.run(tailcut.load(experiment), on="lab", out=tmp_path / "results")
    page = result.report()[0].read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "No number is shown: 1 of 1 runs over real kernels is not faithful" in page
    assert page.count("<strong>not faithful</strong>") == 1
    assert "processes waited" in page


def test_kernels_and_simulator_are_compared_over_their_common_seeds(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    three = tailcut.load(experiment, seeds=3)
    tailcut.run(three, out=tmp_path / "results")
    # Seed 2 is not faithful.
    result = tailcut.run(three, on="lab", out=tmp_path / "results")
    mean = pl.col("statistic") == "mean", pl.col("class") == "short", pl.col("grouping") == "class"
    short = pl.col("class") == "short"
    simulated, real = (
        flows.select(pl.col("fct_ns").mean() / 1000).item()
        for flows in (
            result.flows.filter(short, pl.col("seed").is_in([1, 3])),
            result.lab.flows.filter(short, pl.col("faithful")),
        )
    )
    (row,) = result.lab.against.filter(pl.col("statistic") == "mean", pl.col("class") == "short").to_dicts()
    assert row["n_seeds"] == 2
    assert (row["simulated_us"], row["real_us"]) == (pytest.approx(simulated), pytest.approx(real))
    assert row["simulated_us"] != pytest.approx(result.per_seed.filter(*mean)["value_us"].mean())
    assert words.agreement(tables.against(Study.of(result))).endswith(", over 2 seeds that both have.")


def test_time_series_are_of_a_seed_that_all_have(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    kernels.series = [{"name": "flow 0 cwnd_bytes", "times_ns": [5_000_000], "values": [14_600.0]}]
    kernels.runs = 1  # seed 1 is not faithful
    two = tailcut.load(experiment, seeds=2, set={"series.flows": "[0]", "series.interval": '"5ms"'})
    tailcut.run(two, out=tmp_path / "results")
    drawn = tables.series(Study.of(tailcut.run(two, on="lab", out=tmp_path / "results")))
    assert drawn["seed"].unique().to_list() == [2]
    assert drawn["backend"].unique(maintain_order=True).to_list() == ["sim", "lab"]


def test_a_change_against_an_unfaithful_baseline_is_marked_and_never_written_down(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    experiment.write_text(experiment.read_text() + '[schemes.other]\nqueue = { limit = "40packets" }\n')
    kernels.runs = 1  # the baseline's run is not faithful
    wanted = tailcut.load(experiment)
    tailcut.run(wanted, on="lab", out=tmp_path / "results")
    result = tailcut.open_results(tmp_path / "results", with_unfaithful=True)
    row = result.summary().filter(scheme="other", grouping="all", statistic="mean").row(0, named=True)
    assert row["change"] is not None
    assert row["reason"].startswith("1 of 2 runs that are counted in are not faithful")
    written = pl.read_parquet(tmp_path / "results/summary.parquet")
    assert written.filter(scheme="other")["change"].null_count() == written.filter(scheme="other").height
    assert not any("counted in" in (reason or "") for reason in written["reason"])


def test_flows_of_repeats_are_counted_once(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    wanted = tailcut.load(experiment)
    simulated = tailcut.run(wanted, out=tmp_path / "results").summary()
    both = tailcut.run(wanted, on=tailcut.Lab(repeat=3), out=tmp_path / "results").summary()
    assert both.filter(backend="lab")["n_flows"].to_list() == simulated["n_flows"].to_list()


def test_a_percentile_that_is_the_slowest_flow_is_called_so(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    result = tailcut.run(tailcut.load(experiment), on=tailcut.Lab(repeat=3), out=tmp_path / "results")
    assert 0 < result.summary().filter(grouping="all")["n_flows"].max() < 100  # type: ignore[operator]
    assert "p99 of fewer than 100 flows is the slowest flow." in said("summary", tmp_path / "results")
    assert "Where there are fewer than 100 short flows" in result.report()[0].read_text()


@pytest.mark.parametrize("fabric", ["engine", "kernel"])
def test_results_of_the_lab_alone_are_complete(experiment: Path, tmp_path: Path, kernels: Kernels, fabric: str) -> None:
    shown = said("run", experiment, "--on", "lab", "--lab-fabric", fabric, "--out", tmp_path / "results")
    assert "1 of 1 faithful" in shown
    assert "missing" not in shown


def test_an_interrupt_reports_how_many_lab_runs_are_kept(
    experiment: Path, tmp_path: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*arguments: Any, **more: Any) -> dict[str, Any]:
        if kernels.runs == 2:
            raise KeyboardInterrupt
        return kernels(*arguments, **more)

    monkeypatch.setattr(process, "run", run)
    shown = said("run", experiment, "--on", "lab", "--repeat", 3, "--out", tmp_path / "results")
    assert "Interrupted. 2 of 3 runs are kept" in shown


def test_a_repeat_that_fails_is_named(experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> dict[str, Any]:
        raise process.LabError("no")

    monkeypatch.setattr(process, "run", run)
    with pytest.raises(tailcut.RunError) as failed:
        tailcut.run(tailcut.load(experiment), on=tailcut.Lab(repeat=2), out=tmp_path / "results")
    first, *others = str(failed.value).splitlines()
    assert first.endswith("2 of 2 runs failed:")
    assert [line.rpartition(", ")[2] for line in others] == ["repeat 1: no", "repeat 2: no"]


def test_a_full_disk_ends_the_lab_and_earlier_failures_are_reported(
    experiment: Path, tmp_path: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(planned: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        if kernels.runs == 0:
            kernels.runs += 1
            raise process.LabError("no")
        return kernels(planned, *arguments, **more)

    def put(_store: Store, _run_id: str, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(Store, "put", put)
    with pytest.raises(tailcut.RunError) as failed:
        tailcut.run(tailcut.load(experiment), on=tailcut.Lab(repeat=3), out=tmp_path / "results")
    assert failed.value.code == "TC-R002"
    first, _, *others = str(failed.value).splitlines()
    assert "the disk filled up while writing" in first
    assert first.endswith("seed 1, repeat 2")
    assert [line.rpartition(", ")[2] for line in others[:1]] == ["repeat 1: no"]
    assert kernels.runs == 2, "nothing more is begun"


def test_modules_of_the_users_directory_are_not_taken_for_pythons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError('not that one')\n")
    monkeypatch.chdir(tmp_path)
    assert process.probe(timers=False)


def test_a_worker_that_exits_within_its_last_line_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = """import sys; sys.stdin.readline(); sys.stdout.write('{"done": {"frames": 1')"""
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", cut))
    with pytest.raises(process.LabError, match="ended before the run did"):
        process.run("{}", lambda _now, _over: None, None)
