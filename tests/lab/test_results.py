"""Runs of the lab beside those of the simulator; what they measured is made up here, and no kernel is asked."""

import io
import json
import platform
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

import tailcut
from support.lab import Kernels
from tailcut import cli
from tailcut.api import Silent
from tailcut.backends import backend
from tailcut.lab import process, repnet
from tailcut.report import tables
from tailcut.report.study import Study
from tailcut.results import Store, upkeep
from tailcut.terminal.progress import Lines


def test_simulated_runs_and_those_of_kernels_lie_beside_each_other(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    wanted = tailcut.load(experiment)
    simulated = tailcut.run(wanted, out=tmp_path / "results")
    both = tailcut.run(wanted, on="lab", out=tmp_path / "results")
    assert kernels.runs == 1
    assert both.flows.equals(simulated.flows)
    same = ["scheme", "seed", "id", "src", "dst", "bytes", "start_ns", "ideal_fct_ns", "class", "hops"]
    assert both.lab.flows.select(same).equals(both.flows.select(same))
    assert both.lab.flows["fast_recoveries"].null_count() == both.lab.flows.height
    assert both.lab.flows["start_late_ns"].to_list() == [1000 * flow for flow in both.lab.flows["id"]]
    rows = both.summary()
    assert rows["backend"].unique(maintain_order=True).to_list() == ["sim", "lab"]
    mean = rows.filter(backend="lab", grouping="all", statistic="mean").row(0, named=True)
    assert mean["normalised"] == pytest.approx(2.0, rel=1e-6)
    again = tailcut.run(wanted, on="lab", out=tmp_path / "results")
    assert kernels.runs == 1, "what is there is not made again"
    assert again.summary().equals(rows)
    assert Path(*again.report()[:1]).exists()


def test_jobs_and_series_of_kernels_are_read_as_those_of_the_simulator_and_drawn_with_them(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    poisson = 'kind = "poisson"\nsizes = "20KB"\nload = 0.2'
    experiment.write_text(experiment.read_text().replace(poisson, 'kind = "transfers"\nbytes = "40KB"\nsizes = "20KB"'))
    chosen = {"series.flows": "[0]", "series.links": '["h0>s0"]', "series.interval": '"5ms"'}
    wanted = tailcut.load(experiment, set=chosen)
    tailcut.run(wanted, out=tmp_path / "results")
    kernels.series = [
        {"name": "flow 0 cwnd_bytes", "times_ns": [5_000_000, 10_000_000], "values": [14_600.0, 16_060.0]},
        {"name": "link h0>s0 queue_packets", "times_ns": [5_000_000], "values": [3.0]},
    ]
    both = tailcut.run(wanted, on=tailcut.Lab(repeat=2), out=tmp_path / "results")
    assert both.lab.jobs.columns == [*both.jobs.columns[:2], "repeat", "fabric", "faithful", *both.jobs.columns[2:]]
    assert both.lab.jobs.filter(repeat=1)["id"].to_list() == both.jobs["id"].to_list()
    assert both.lab.jobs["faithful"].unique(maintain_order=True).to_list() == [True, False]
    first = both.lab.series.filter(repeat=1)
    assert first.select("name", "time_ns", "value").rows()[1] == ("flow 0 cwnd_bytes", 10_000_000, 16_060.0)
    assert both.lab.series.schema.items() >= both.series.schema.items()
    assert set(both.lab.tiers["repeat"]) == set()
    about = json.loads(next((tmp_path / "results/runs").glob("*-lab-1/run.json")).read_text())
    assert about["truncated_series"] == ["flow 0 cwnd_bytes"]
    drawn = tables.series(Study.of(both))
    assert drawn.filter(backend="lab", name="link h0>s0 queue_packets").select("ms", "value").rows() == [(5.0, 3.0)]
    assert drawn.filter(backend="sim")["name"].n_unique() == 4
    page = both.report()[0].read_text()
    assert "flow 0: congestion window" in page


def test_a_capture_lies_beside_the_tables_of_runs_that_are_made_with_it(
    experiment: Path, tmp_path: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(Silent, "note", lambda _self, message: said.append(message))
    wanted, out = tailcut.load(experiment), tmp_path / "results"
    tailcut.run(wanted, on="lab", out=out)
    # Another run's frames would not be those of the tables that are there.
    for _ in range(2):
        tailcut.run(wanted, on=tailcut.Lab(repeat=2), out=out, capture=["host:0"])
        assert kernels.runs == 2
        assert [path.read_bytes() for path in out.glob("runs/*-lab-2/capture.pcapng")] == [b"frames"]
    assert not list(out.glob("runs/*-lab-1/capture.pcapng"))
    assert sum("made without this capture" in message for message in said) == 2
    assert sum("7 packets in " in message for message in said) == 1
    about = json.loads(next(out.glob("runs/*-lab-2/run.json")).read_text())
    assert (about["capture"], about["captured"]) == (["host:0"], {"packets": 7, "left_out": 0})


def test_repeats_are_averaged_and_unfaithful_runs_are_kept_and_left_out(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    result = tailcut.run(tailcut.load(experiment), on=tailcut.Lab(repeat=3), out=tmp_path / "results")
    assert kernels.runs == 3
    runs = result.lab.runs
    assert runs.select("repeat", "faithful").rows() == [(1, True), (2, False), (3, True)]
    assert runs["unfaithful"].to_list()[1] == ["processes waited for a CPU 90 % of the time (PSI cpu some)"]
    mean = result.summary().filter(backend="lab", grouping="all", statistic="mean").row(0, named=True)
    assert mean["normalised"] == pytest.approx((2.0 + 4.0) / 2, rel=1e-6)
    assert result.summary()["backend"].unique().to_list() == ["lab"]
    spread = result.lab.per_repeat.filter(grouping="all", statistic="mean")["normalised"]
    assert spread.to_list() == pytest.approx([2.0, 4.0], rel=1e-6)
    assert result.lab.flows.filter(~pl.col("faithful"))["repeat"].unique().to_list() == [2]


def test_cells_without_a_faithful_run_state_the_reason(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    kernels.runs = 1
    result = tailcut.run(tailcut.load(experiment), on="lab", out=tmp_path / "results")
    rows = result.summary().filter(backend="lab")
    assert rows["value_us"].null_count() == rows.height
    assert rows["reason"].unique().to_list() == ["no faithful run of this cell is there"]


def command(*arguments: object) -> str:
    """Returns the output of a command on a wide terminal."""
    with pytest.MonkeyPatch.context() as wide:
        wide.setattr(cli.out, "width", 200)
        return CliRunner().invoke(cli.app, [str(argument) for argument in arguments]).stdout


def counted_in(experiment: Path, out: Path) -> tailcut.Result:
    """Three runs of one seed, twice, three and four times as slow as alone; the second is not faithful."""
    tailcut.run(tailcut.load(experiment), on=tailcut.Lab(repeat=3), out=out)
    return tailcut.open_results(out, with_unfaithful=True)


def test_with_unfaithful_counts_unfaithful_runs_and_marks_them(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    result = counted_in(experiment, tmp_path / "results")
    mean = result.summary().filter(backend="lab", grouping="all", statistic="mean").row(0, named=True)
    assert mean["normalised"] == pytest.approx((2.0 + 3.0 + 4.0) / 3, rel=1e-6)
    assert mean["reason"].startswith("1 of 3 runs that are counted in are not faithful")
    assert result.lab.per_repeat["repeat"].unique().to_list() == [1, 2, 3]
    left_out = tailcut.open_results(tmp_path / "results").summary()
    assert not any("faithful" in (reason or "") for reason in left_out["reason"])
    tailcut.run(tailcut.load(experiment), on="lab", out=tmp_path / "results")
    asked = tailcut.open_results(tmp_path / "results", with_unfaithful=True)
    assert asked.summary().equals(result.summary())


@pytest.mark.parametrize("option", [[], ["--with-unfaithful"]])
def test_a_summary_ends_in_the_verdicts_and_marks_numbers_with_unfaithful_runs(
    experiment: Path, tmp_path: Path, kernels: Kernels, option: list[str]
) -> None:
    counted_in(experiment, tmp_path / "results")
    shown = command("summary", tmp_path / "results", *option)
    assert "Runs over real kernels: 2 of 3 faithful" in shown
    second = next(line for line in shown.splitlines() if "processes waited" in line)
    assert "not faithful" in second
    assert ("[1] 1 of 3 runs that are counted in are not faithful" in shown) == bool(option)
    assert ("excluded above; --with-unfaithful includes them" in shown) == (not option)


@pytest.mark.parametrize(("made_before", "options", "code"), [(0, [], 0), (1, [], 3), (1, ["--with-unfaithful"], 0)])
def test_a_lab_command_without_a_faithful_run_has_its_own_exit_code(
    experiment: Path, tmp_path: Path, kernels: Kernels, made_before: int, options: list[str], code: int
) -> None:
    kernels.runs = made_before
    asked = ["run", str(experiment), "--on", "lab", "--out", str(tmp_path / "results"), *options]
    done = CliRunner().invoke(cli.app, asked)
    assert (done.exit_code, "--repeat 2 makes each once more" in done.stderr) == (code, code == 3)


@pytest.mark.parametrize(
    ("made_before", "until", "options", "code", "hint"),
    [
        (0, 1, [], 130, None),
        (1, 2, [], 4, "1 of 1 runs have no faithful repeat: the same command with --repeat 2"),
        (1, 2, ["--with-unfaithful"], 130, None),
        (1, 3, [], 130, "1 of 2 runs have no faithful repeat"),
        (5, 5, [], 4, None),
    ],
)
def test_an_interrupted_lab_command_without_a_faithful_run_has_its_own_exit_code(
    experiment: Path,
    tmp_path: Path,
    kernels: Kernels,
    monkeypatch: pytest.MonkeyPatch,
    made_before: int,
    until: int,
    options: list[str],
    code: int,
    hint: str | None,
) -> None:
    kernels.runs = made_before

    def interrupted(*arguments: Any, **named: Any) -> dict[str, Any]:
        if kernels.runs == until:
            raise KeyboardInterrupt
        return kernels(*arguments, **named)

    monkeypatch.setattr(process, "run", interrupted)
    asked = ["run", str(experiment), "--on", "lab", "--seeds", "3", "--out", str(tmp_path / "results"), *options]
    done = CliRunner().invoke(cli.app, asked)
    assert done.exit_code == code
    assert "Interrupted." in done.stderr
    assert ("--repeat" in done.stderr) == (hint is not None)
    assert hint is None or hint in done.stderr


def test_an_interrupted_lab_command_continues_and_names_the_command_for_unfaithful_runs(
    experiment: Path, tmp_path: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.runs = 1

    def interrupted(*arguments: Any, **named: Any) -> dict[str, Any]:
        if kernels.runs == 2:
            raise KeyboardInterrupt
        return kernels(*arguments, **named)

    asked = ["run", str(experiment), "--on", "lab", "--seeds", "2", "--out", str(tmp_path / "results")]
    with monkeypatch.context() as during:
        during.setattr(process, "run", interrupted)
        assert CliRunner().invoke(cli.app, asked).exit_code == 4
    again = CliRunner().invoke(cli.app, asked)
    assert (again.exit_code, kernels.runs) == (0, 3)
    assert "1 of 2 runs have no faithful repeat: the same command with --repeat 2" in again.stderr
    repeated = CliRunner().invoke(cli.app, [*asked, "--repeat", "2"])
    assert (repeated.exit_code, kernels.runs) == (0, 5)
    assert "--repeat" not in repeated.stderr


def test_a_run_over_kernels_ends_in_the_verdicts(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    shown = command("run", experiment, "--on", "lab", "--repeat", 2, "--out", tmp_path / "results")
    assert "Runs over real kernels: 1 of 2 faithful" in shown


def test_the_page_has_the_verdicts_and_says_whether_unfaithful_runs_are_counted(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    result = counted_in(experiment, tmp_path / "results")
    page = result.report()[0].read_text()
    assert '<section id="kernels">' in page
    assert page.count("<strong>not faithful</strong>") == 1
    assert f"system {platform.system()} {platform.release()}" in page.partition("How it was made</h2>")[2]
    assert "processes waited for a CPU 90\N{NO-BREAK SPACE}% of the time" in page
    assert "included on request" in page
    assert "1 of 3 runs that are counted in are not faithful" in page
    left_out = tailcut.open_results(tmp_path / "results").report()[0].read_text()
    assert "left out of all figures" in left_out
    assert "counted in are not faithful" not in left_out


def test_spreads_over_repeats_and_over_seeds_are_separate(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    # Seeds 1 and 2, then again: seed 1 takes 2 and 4 times the ideal, seed 2 has one faithful run.
    result = tailcut.run(tailcut.load(experiment, seeds=2), on=tailcut.Lab(repeat=2), out=tmp_path / "results")
    runs = result.lab.per_repeat.filter(grouping="class", statistic="mean", **{"class": "short"})
    times = {(row["seed"], row["repeat"]): row["value_us"] for row in runs.iter_rows(named=True)}
    assert set(times) == {(1, 1), (1, 2), (2, 2)}
    row = result.lab.spread.filter(grouping="class", statistic="mean", **{"class": "short"}).row(0, named=True)
    first = (times[1, 1] + times[1, 2]) / 2
    assert row["over_repeats_us"] == pytest.approx(abs(times[1, 1] - times[1, 2]) / 2**0.5)
    assert row["over_seeds_us"] == pytest.approx(abs(first - times[2, 2]) / 2**0.5)
    assert (row["n_runs"], row["n_repeated"], row["n_seeds"]) == (3, 1, 2)
    page = result.report()[0].read_text()
    assert "Spread over repeats and over seeds" in page
    shown = command("summary", tmp_path / "results")
    assert "standard deviation over repeats of one seed, and over seeds" in shown


def test_without_repeats_the_spread_over_repeats_is_empty(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    result = tailcut.run(tailcut.load(experiment), on="lab", out=tmp_path / "results")
    assert result.lab.spread["over_repeats_us"].null_count() == result.lab.spread.height > 0
    assert "Spread over repeats and" not in result.report()[0].read_text()
    assert "over repeats" not in command("summary", tmp_path / "results")


def test_a_failed_lab_run_is_reported_and_the_others_are_made(
    experiment: Path, tmp_path: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(planned: str, on_progress: Any, limit: float | None, *_: Any, **__: Any) -> dict[str, Any]:
        if json.loads(planned)["seed"] == 1:
            raise process.LabError("flow 3, host 1: its receiver: byte 4096 is not the one that was sent")
        return kernels(planned, on_progress, limit)

    monkeypatch.setattr(process, "run", run)
    with pytest.raises(tailcut.RunError, match="byte 4096") as failed:
        tailcut.run(tailcut.load(experiment, seeds=2), on="lab", out=tmp_path / "results")
    assert failed.value.code == "TC-R001"
    assert tailcut.open_results(tmp_path / "results").lab.runs["seed"].to_list() == [2]


def test_a_run_that_another_command_is_making_is_waited_for_and_not_made_again(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    wanted = tailcut.load(experiment)
    elsewhere = tailcut.run(wanted, on="lab", out=tmp_path / "elsewhere")
    (made,) = elsewhere.lab.finished
    store = Store.create(tmp_path / "results", wanted.plan, wanted.path)
    other = ExitStack()

    class ElsewhereMaker(Lines):
        def note(self, message: str) -> None:
            super().note(message)
            if message.endswith("another process is making it"):
                shutil.copytree(elsewhere.directory / "runs" / made.id, store.path(made.id))
                other.close()

    said = io.StringIO()
    with other:
        other.enter_context(store.claim(made.id))
        tailcut.run(
            wanted, on="lab", out=store.directory, progress=ElsewhereMaker(Console(file=said, width=200), lambda: 0.0)
        )
    assert kernels.runs == 1
    assert "T; 'C' P, seed 1: another process is making it\n[1/1] T; 'C' P, seed 1" in said.getvalue()


def test_baselines_of_replication_run_over_the_same_program(
    experiment: Path, tmp_path: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repnet, "program", lambda: ["node", "main.js"])
    sockets = tailcut.run(tailcut.load(experiment), on="lab", out=tmp_path / "results")
    assert sockets.lab.runs["id"].to_list() == [f"{sockets.plan['runs'][0]['id']}-lab-1"]
    experiment.write_text(experiment.read_text() + '[schemes.RepFlow]\nreplicate = { kind = "repflow" }\n')
    compared = tailcut.run(tailcut.load(experiment), on="lab", out=tmp_path / "results")
    # What sockets have carried is no baseline for what repnet carries, and stays what it was.
    assert kernels.programs == [None, ["node", "main.js"], ["node", "main.js"]]
    names = compared.lab.runs["id"].to_list()
    assert len(names) == 2
    assert all(name.endswith("-lab-repnet-1") for name in names)
    store = Store.open(tmp_path / "results")
    assert len(store.runs()) == 3
    assert upkeep.unreferenced_runs(store) == []


def test_prune_and_merge_attribute_lab_runs_to_their_plan(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    wanted = tailcut.load(experiment)
    for name in ("a", "b"):
        tailcut.run(wanted, on=tailcut.Lab(repeat=1 if name == "a" else 3), out=tmp_path / name)
    into, other = Store.open(tmp_path / "a"), Store.open(tmp_path / "b")
    assert upkeep.unreferenced_runs(other) == []
    # The first repeat is in both with other tables: kernels are not deterministic, and no machine
    # is broken.
    merged = upkeep.merge(into, other)
    assert (merged.there, len(merged.taken), merged.damaged) == ([], 3, [])
    tailcut.run(tailcut.load(experiment, set={"traffic.load": "0.3"}), out=tmp_path / "a")
    assert upkeep.unreferenced_runs(into) == []
    assert len(upkeep.unreferenced_runs(into, by_last=True)) == 4
    assert kernels.runs == 4


def test_the_lab_backend_is_called_lab_and_makes_one_repeat() -> None:
    assert tailcut.Lab.name == "lab"
    assert backend("lab") == tailcut.Lab(repeat=1)
