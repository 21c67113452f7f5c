import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

import tailcut
from support import experiments
from tailcut import _core


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tailcut.Result:
    directory = tmp_path_factory.mktemp("api")
    return tailcut.run(tailcut.load(experiments.tiny(directory)), out=directory / "results")


def long_run(directory: Path) -> str:
    """Returns a run, as JSON, that takes far longer than any test waits."""
    path = experiments.tiny(directory)
    overrides = {"traffic.sizes": '"web-search"', "traffic.load": "0.8", "horizon.arrivals": '"60s"', "topology.k": "8"}
    return json.dumps(tailcut.load(path, set=overrides, seeds=1).plan["runs"][0])


def test_an_experiment_is_a_name_and_a_plan(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path), seeds=3)
    assert experiment.name == "tiny"
    assert len(experiment.plan["runs"]) == 2 * 3


def test_an_experiment_error_has_code_place_and_hint_as_fields(tmp_path: Path) -> None:
    path = experiments.tiny(tmp_path, "[host]\nnic_queu = 'unlimited'\n")
    with pytest.raises(tailcut.ExperimentError) as caught:
        tailcut.load(path)
    error = caught.value
    assert error.code.startswith("TC-E")
    assert (error.file, error.line, error.column, error.key) == (str(path), 27, 1, "host.nic_queu")
    assert "nic_queue" in str(error.hint)


def test_flows_are_a_frame_with_a_row_per_flow_of_every_run(result: tailcut.Result) -> None:
    flows = result.flows
    assert isinstance(flows, pl.DataFrame)
    assert flows.select("scheme", "seed").unique().height == 4
    assert flows.height == sum(run["facts"]["flows"] for run in result.plan["runs"])
    assert flows["finished"].all()
    assert (flows["fct_ns"] >= flows["ideal_fct_ns"]).all()


@pytest.mark.parametrize("clock", ["receiver", "sender"])
def test_nothing_is_faster_than_the_best_possible(tmp_path: Path, clock: str) -> None:
    """Nearly empty and fast, with a last segment that is short: where flows come nearest to their ideal times."""
    path = tmp_path / "best.toml"
    path.write_text(f"""
title = "Slowdowns"
seeds = 2
[topology]
kind = "fat-tree"
k = 4
rate = "10Gbps"
[traffic]
kind = "poisson"
load = 0.02
[horizon]
arrivals = "5ms"
drain = "1s"
[measure]
clock = "{clock}"
[schemes.TCP]
[schemes.RepFlow]
replicate = {{ kind = "repflow" }}
[schemes.MPTCP]
transport = {{ kind = "mptcp" }}
[schemes.MMPTCP]
transport = {{ kind = "mmptcp" }}
[schemes.pFabric]
transport = {{ kind = "pfabric" }}
queue = {{ kind = "pfabric" }}
[sweep]
"traffic.sizes" = ["1KB", "12KB", "100KB"]
""")
    result = tailcut.run(tailcut.load(path), out=tmp_path / "results")
    assert result.flows.filter("finished").height > 1000
    assert (result.flows["fct_ns"] >= result.flows["ideal_fct_ns"]).all()
    assert (result.flows["fct_ack_ns"] >= result.flows["ideal_fct_ack_ns"]).all()
    for slowdown in (result.flows["normalised_fct"], result.summary()["normalised"]):
        assert slowdown.count() > 0
        assert (slowdown.drop_nulls() >= 1).all()


def test_flow_columns_are_the_documented_ones_with_their_types(result: tailcut.Result) -> None:
    path = next((result.directory / "runs").glob("*/flows.parquet"))
    assert dict(pl.read_parquet_schema(path)) == {
        "id": pl.UInt64,
        "src": pl.UInt32,
        "dst": pl.UInt32,
        "bytes": pl.UInt64,
        "start_ns": pl.Int64,
        "connect_ns": pl.Int64,
        "fct_ns": pl.Int64,
        "fct_ack_ns": pl.Int64,
        "ideal_fct_ns": pl.Int64,
        "ideal_fct_ack_ns": pl.Int64,
        "normalised_fct": pl.Float64,
        "class": pl.String,
        "size_group": pl.String,
        "data_packets": pl.UInt64,
        "retransmissions": pl.UInt64,
        "timeouts": pl.UInt32,
        "fast_recoveries": pl.UInt32,
        "recoveries_undone": pl.UInt32,
        "needless_retransmissions": pl.UInt64,
        "most_duplicate_acks": pl.UInt64,
        "reordering_extent": pl.UInt64,
        "copies": pl.UInt8,
        "winner": pl.UInt8,
        "shared_hops": pl.UInt8,
        "hops": pl.UInt8,
        "finished": pl.Boolean,
    }


def test_every_column_has_a_unit_in_the_run_record(result: tailcut.Result) -> None:
    for path in (result.directory / "runs").glob("*/run.json"):
        about = json.loads(path.read_text())
        for name, units in about["units"].items():
            columns = pl.read_parquet_schema(path.parent / f"{name}.parquet")
            assert units.keys() == columns.keys()
            assert all(units.values())


def test_the_run_record_names_plan_machine_and_speed(result: tailcut.Result) -> None:
    about = json.loads(next((result.directory / "runs").glob("*/run.json")).read_text())
    assert about["backend"] == "sim"
    assert about["version"] == tailcut.__version__
    assert about["machine"].keys() >= {"cpu", "cores", "system"}
    for number in ("wall_seconds", "peak_memory_bytes", "events", "packet_hops", "packet_hops_per_second", "end_ns"):
        assert about[number] > 0
    assert about["sent"] == about["delivered"] + about["dropped"] + about["in_flight"]
    assert about["unfinished_flows"] == 0


def test_tiers_and_runs_are_frames_too(result: tailcut.Result) -> None:
    assert result.tiers.height > 0
    assert result.runs["offered_load"].is_between(0, 1).all()


def test_replicated_flows_have_copies_and_a_winner(result: tailcut.Result) -> None:
    copies = result.flows.group_by("scheme").agg(pl.col("copies").unique()).sort("scheme")
    assert copies.rows() == [("RepFlow", [2]), ("TCP", [1])]
    winners = result.flows.filter(pl.col("scheme") == "RepFlow")["winner"]
    assert set(winners) == {0, 1}


def test_a_run_releases_the_interpreter_lock(tmp_path: Path) -> None:
    """The other thread stops the run: it can only do so if it gets to work meanwhile."""
    enough = threading.Event()

    def work() -> None:
        for _ in range(1000):
            os.getpid()
        enough.set()

    class EnoughError(Exception):
        pass

    def on_progress(*_: int) -> None:
        if not worker.ident:
            worker.start()
        if enough.is_set():
            raise EnoughError

    worker = threading.Thread(target=work)
    with pytest.raises(EnoughError):
        _core.run(long_run(tmp_path), on_progress)
    worker.join()


def test_without_the_interpreter_lock_a_run_without_callback_lets_other_threads_work(tmp_path: Path) -> None:
    """The run takes its thread alone; this one finds it still at work and interrupts the process' main thread."""
    run = long_run(tmp_path)
    code = (
        "import os, signal, sys, threading\n"
        "from tailcut import _core\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    _core.run(sys.stdin.read())\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=run, capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted\n"


def test_an_exception_of_the_progress_callback_stops_the_run_and_reaches_the_caller(tmp_path: Path) -> None:
    def on_progress(now_ps: int, packet_hops: int, finished_flows: int) -> None:
        assert 0 < now_ps < 61 * 10**12
        assert packet_hops > 0
        assert finished_flows >= 0
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        _core.run(long_run(tmp_path), on_progress)


def test_a_script_without_a_main_guard_can_run_experiments(tmp_path: Path) -> None:
    experiments.tiny(tmp_path)
    script = tmp_path / "script.py"
    script.write_text("import tailcut\nprint(tailcut.run(tailcut.load('tiny.toml')).flows.height)\n")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0


def test_control_c_in_a_script_raises_keyboard_interrupt(tmp_path: Path) -> None:
    experiments.tiny(tmp_path)
    script = (
        "import os, tailcut\n"
        "class Loud(tailcut.api.Silent):\n"
        # In one piece: the signal may come while the second run is told of.
        "    def started(self, *_): os.write(1, b'started\\n')\n"
        "longer = {'horizon.arrivals': '\"60s\"', 'traffic.sizes': '\"web-search\"'}\n"
        "experiment = tailcut.load('tiny.toml', set=longer)\n"
        "try:\n    tailcut.run(experiment, progress=Loud())\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    assert (process.returncode, rest.splitlines()[-1]) == (0, "interrupted")


def test_a_result_keeps_its_plan_when_the_directory_gets_another(tmp_path: Path) -> None:
    experiment = experiments.tiny(tmp_path)
    first = tailcut.run(tailcut.load(experiment, seeds=1), out=tmp_path / "results")
    second = tailcut.run(tailcut.load(experiment, seeds=2), out=tmp_path / "results")
    assert (len(first.plan["runs"]), len(second.plan["runs"])) == (2, 4)
    assert first.summary()["n_seeds"].max() == 1
    assert tailcut.open_results(tmp_path / "results").plan == second.plan


class AskingMeanwhile(tailcut.api.Silent):
    """Lets another command ask something else in the same directory while the first one works."""

    def __init__(self, experiment: Path, out: Path) -> None:
        self.ask = [(experiment, out)]

    def finished(self, run_id: str) -> None:
        while self.ask:
            experiment, out = self.ask.pop()
            tailcut.run(tailcut.load(experiment, seeds=2), out=out)


def test_a_second_command_in_a_directory_does_not_change_the_result_of_the_first(tmp_path: Path) -> None:
    experiment, out = experiments.tiny(tmp_path), tmp_path / "results"
    first = tailcut.run(tailcut.load(experiment, seeds=1), out=out, progress=AskingMeanwhile(experiment, out))
    assert {run["seed"] for run in first.plan["runs"]} == {1}
    assert first.summary()["n_seeds"].max() == 1
    assert pl.read_parquet(out / "summary.parquet")["n_seeds"].max() == 2, "that of the plan on disk"


def test_rows_of_the_model_survive_a_run_with_other_overrides(tmp_path: Path) -> None:
    experiment, out = experiments.tiny(tmp_path), tmp_path / "results"
    first = tailcut.run(tailcut.load(experiment), on="model", out=out)
    before = first.summary()
    tailcut.run(tailcut.load(experiment, set={"traffic.load": "0.6"}), on="model", out=out)
    assert first.summary().equals(before)


def test_write_report_writes_to_the_given_path(result: tailcut.Result, tmp_path: Path) -> None:
    page, *_ = result.report(tmp_path / "page.html")
    assert page == tmp_path / "page.html"
    assert page.exists()


def test_the_package_is_typed() -> None:
    assert (Path(tailcut.__file__).parent / "py.typed").exists()
