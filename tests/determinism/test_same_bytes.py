"""The same plan and seed give the same bytes, whoever makes the run and beside whatever else."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailcut
from support import experiments, workers
from tailcut.api import Silent
from tailcut.result import Result
from tailcut.results.tables import to_parquet

BUSY = """
[queue]
limit = "20packets"

[series]
flows = [0, 1]
interval = "50us"

[sweep]
"traffic.sizes" = ["web-search", "50KB"]
"""


class NotesLog(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)


def tables(result: Result) -> dict[str, bytes]:
    runs = result.directory / "runs"
    return {str(path.relative_to(runs)): path.read_bytes() for path in sorted(runs.glob("*/*.parquet"))}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> tailcut.Experiment:
    return tailcut.load(experiments.tiny(tmp_path_factory.mktemp("experiment"), BUSY))


@pytest.fixture(scope="module")
def made(experiment: tailcut.Experiment, tmp_path_factory: pytest.TempPathFactory) -> Result:
    with workers.in_processes():
        return tailcut.run(experiment, out=tmp_path_factory.mktemp("results") / "one", jobs=1)


@pytest.fixture(scope="module")
def again(experiment: tailcut.Experiment, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The same by two workers."""
    with workers.in_processes():
        return tailcut.run(experiment, out=tmp_path_factory.mktemp("results") / "two", jobs=2)


def test_one_worker_and_two_write_the_same_bytes(made: Result, again: Result) -> None:
    assert tables(again) == tables(made)
    assert len(tables(made)) == 8 * 3


def test_one_worker_and_two_write_the_same_summary(made: Result, again: Result) -> None:
    assert (again.directory / "summary.parquet").read_bytes() == (made.directory / "summary.parquet").read_bytes()


def test_one_thread_and_three_write_the_same_bytes(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with workers.in_processes():
        one, three = (tailcut.run(experiment, out=tmp_path / str(n), jobs=1, threads=n) for n in (1, 3))
    assert tables(three) == tables(one)
    records = [json.loads(path.read_bytes()) for path in three.directory.glob("runs/*/run.json")]
    assert [record["threads"] for record in records] == [3] * len(experiment.plan["runs"])
    for record in records:
        times = record["thread_seconds"]
        assert {name: len(seconds) for name, seconds in times.items()} == {"work": 3, "waiting": 3, "exchange": 3}
        assert all(0 < sum(thread) < record["wall_seconds"] for thread in zip(*times.values(), strict=True))
    assert not one.thread_seconds


def test_a_run_that_one_thread_must_simulate_says_why(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path, BUSY), seeds=1)
    heard = NotesLog()
    with workers.in_processes():
        tailcut.run(experiment, out=tmp_path / "results", jobs=1, threads=2, progress=heard)
    reasons = {note.partition(": ")[2] for note in heard.notes}
    assert reasons == {"on one thread, since series are sampled"}


def test_less_than_one_job_is_refused(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with pytest.raises(ValueError, match="jobs=0: give at least 1"):
        tailcut.run(experiment, out=tmp_path / "results", jobs=0)


def test_less_than_one_thread_is_refused(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with pytest.raises(ValueError, match="threads=0: give at least 1"):
        tailcut.run(experiment, out=tmp_path / "results", threads=0)


@pytest.mark.parametrize("backend", ["model", "lab"])
def test_only_the_simulator_has_threads(backend: str, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with pytest.raises(tailcut.BackendError, match=r"(?s)--threads.*leave out --threads"):
        tailcut.run(experiment, on=backend, out=tmp_path / "results", threads=2)


def test_all_schemes_see_the_same_flows(made: Result) -> None:
    asked = ["traffic.sizes", "seed", "id", "src", "dst", "bytes", "start_ns"]
    flows = made.flows
    tcp, repflow = (flows.filter(pl.col("scheme") == scheme).select(asked) for scheme in ("TCP", "RepFlow"))
    assert tcp.equals(repflow)
    assert tcp.height > 0


def test_other_seeds_give_other_flows(made: Result) -> None:
    first, second = (made.flows.filter(pl.col("seed") == seed) for seed in (1, 2))
    assert not first.select("src", "start_ns").equals(second.select("src", "start_ns"))


def test_series_change_no_flow(made: Result, tmp_path: Path) -> None:
    watched = made.flows
    path = experiments.tiny(tmp_path, BUSY.replace("flows = [0, 1]", ""))
    unwatched = tailcut.run(tailcut.load(path), out=tmp_path / "results").flows
    assert unwatched.equals(watched)
    assert made.series.height > 0


@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=3))),
    st.integers(1, 5),
)
def test_equal_tables_are_written_as_equal_bytes_whatever_built_them(
    rows: list[tuple[int, float, str]], chunks: int
) -> None:
    schema = {"integer": pl.Int64, "float": pl.Float64, "text": pl.String}
    whole = pl.DataFrame(rows, schema=schema, orient="row")
    size = -(-max(1, len(rows)) // chunks)
    parts = [pl.DataFrame(rows[i : i + size], schema=schema, orient="row") for i in range(0, max(1, len(rows)), size)]
    assert to_parquet(pl.concat(parts, rechunk=False), {"a": "b"}) == to_parquet(whole, {"a": "b"})
