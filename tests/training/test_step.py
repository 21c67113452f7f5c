"""Training steps: counts against closed forms, rows against counts, and runs between their bounds."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import tailcut
from tailcut.cli import app
from tailcut.imports.job import COMPUTATION, JOIN_PROCESSOR, MESSAGE, Job
from tailcut.training import MODELS, Model, StepError, TensorTraffic, TrainingStep, model, write
from tailcut.training.files import LINK_BPS

GPT_13B = MODELS["gpt-13b"]
SMALL = Model(layers=2, hidden=512, vocabulary=1000, sequence=256)
SPLITS = [(4, 2, 1, False), (2, 4, 3, True), (1, 3, 2, False), (2, 5, 2, False)]


def longest_path_ns(job: Job) -> int:
    """Returns the time of a job whose messages take none."""
    ends = np.zeros(len(job), dtype=np.int64)
    for row, (begin, end) in enumerate(pairwise(job.first.tolist())):
        waits = job.waits[begin:end]
        assert (waits < row).all()
        start = int(ends[waits].max(initial=0))
        ends[row] = start + (job.amounts[row] if job.kinds[row] == COMPUTATION else 0)
    return int(ends.max())


def test_13_billion_parameters_on_128_ranks_have_the_published_sizes() -> None:
    counts = TrainingStep(model=GPT_13B, tensor=8, data=16).counts()
    assert GPT_13B.parameters == 12_858_204_160
    assert counts.hosts == 128
    assert counts.tensor_reduces == 160
    assert counts.tensor_reduce_bytes == 20_971_520
    assert counts.tensor_messages == 286_720
    assert counts.tensor_bytes == 751_619_276_800
    assert counts.bucket_bytes == (80_000_000,) * 40 + (14_551_040,)
    assert sum(counts.bucket_bytes) == 3_214_551_040
    assert counts.data_messages == 157_440
    assert counts.data_bytes == 771_492_249_600
    assert counts.messages == 444_160


@pytest.mark.parametrize(
    ("sequence", "parts_us", "without_ms", "with_ms"),
    [
        (2048, (460.18, 766.96, 958.70), 150.13, 199.22),
        (4096, (1073.74, 1533.92, 1917.40), 318.67, 422.98),
    ],
)
def test_computations_take_the_published_times(
    sequence: int, parts_us: tuple[float, ...], without_ms: float, with_ms: float
) -> None:
    longer = model("gpt-13b", sequence=sequence)
    step = TrainingStep(model=longer, tensor=8, data=16)
    assert [round(ns / 1000, 2) for ns in step.durations_ns()] == pytest.approx(parts_us, abs=0.01)
    assert step.counts().computation_ns / 1e6 == pytest.approx(without_ms, abs=0.01)
    again = TrainingStep(model=longer, tensor=8, data=16, recompute=True)
    assert again.counts().computation_ns / 1e6 == pytest.approx(with_ms, abs=0.01)
    assert (step.reduce_bytes * 2) // 4096 == 20 * sequence // 4


@pytest.mark.parametrize(
    ("tensor", "data", "micro_batches", "recompute", "traffic"),
    [
        *((*split, traffic) for split in SPLITS for traffic in TensorTraffic),
        (8, 1, 1, True, TensorTraffic.DIRECT),
        (8, 1, 1, True, TensorTraffic.RING),
    ],
)
def test_rows_are_as_many_as_closed_forms_say(
    *, tensor: int, data: int, micro_batches: int, recompute: bool, traffic: TensorTraffic
) -> None:
    step = TrainingStep(
        model=SMALL, tensor=tensor, data=data, micro_batches=micro_batches, recompute=recompute, traffic=traffic
    )
    counts, job = step.counts(), step.job()
    messages = job.kinds == MESSAGE
    in_group = messages & (job.one // tensor == job.other // tensor)
    across = messages & ~in_group
    assert (int(in_group.sum()), int(job.amounts[in_group].sum())) == (counts.tensor_messages, counts.tensor_bytes)
    assert (int(across.sum()), int(job.amounts[across].sum())) == (counts.data_messages, counts.data_bytes)
    assert (job.one[across] % tensor == job.other[across] % tensor).all()
    computes = ~messages & (job.other != JOIN_PROCESSOR)
    assert int(computes.sum()) == counts.computations
    assert not job.amounts[~messages & ~computes].any()
    inside = step.inside_ns() * counts.tensor_reduces if traffic is TensorTraffic.COMPUTATION else 0
    assert longest_path_ns(job) == counts.computation_ns + inside
    assert set(job.one.tolist()) == set(range(counts.hosts))


@pytest.mark.parametrize("traffic", TensorTraffic)
def test_what_follows_an_all_reduce_waits_for_every_rank(traffic: TensorTraffic) -> None:
    job = TrainingStep(model=SMALL, tensor=4, data=2, traffic=traffic).job()
    ranks: list[set[int]] = []  # of each row, the ranks whose first computation is behind it
    seen: dict[int, int] = {}
    second: dict[int, set[int]] = {}
    for row, (begin, end) in enumerate(pairwise(job.first.tolist())):
        behind: set[int] = set().union(*(ranks[wait] for wait in job.waits[begin:end]))
        rank = int(job.one[row])
        if job.kinds[row] == COMPUTATION and job.other[row] != JOIN_PROCESSOR:
            seen[rank] = seen.get(rank, 0) + 1
            if seen[rank] == 1:
                behind = behind | {rank}
            elif seen[rank] == 2:
                second[rank] = behind
        ranks.append(behind)
    assert second == {rank: set(range(rank // 4 * 4, rank // 4 * 4 + 4)) for rank in range(8)}


def test_buckets_begin_when_their_gradients_are_made() -> None:
    step = TrainingStep(model=GPT_13B, tensor=8, data=2, traffic=TensorTraffic.COMPUTATION)
    buckets = range(len(step.bucket_bytes()))
    behind = [step._filled_by(bucket) for bucket in buckets]  # noqa: SLF001 - the page states the rule
    # A layer has 39,329,920 gradients of a rank, a bucket 40,000,000; the embeddings come last.
    assert behind[:3] == [1, 2, 3]
    assert behind[-2:] == [40, 40]
    assert behind == sorted(behind)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ({"tensor": 7}, "TC-N002", "hidden = 512 cannot be split among tensor = 7 ranks"),
        ({"tensor": 0}, "TC-N002", "tensor = 0"),
        ({}, "TC-N002", "has no message"),
        ({"tensor": 8, "traffic": TensorTraffic.COMPUTATION}, "TC-N002", "has no message"),
        ({"tensor": 512, "data": 2048}, "TC-N002", "1,048,576 hosts"),
        ({"tensor": 512, "data": 4, "micro_batches": 1000}, "TC-N002", "of at most 20,000,000"),
    ],
)
def test_impossible_splits_are_refused(arguments: dict[str, int], code: str, says: str) -> None:
    with pytest.raises(StepError, match=says) as error:
        TrainingStep(model=SMALL, **arguments)  # type: ignore[arg-type]
    assert error.value.code == code
    assert error.value.hint


def test_sizes_that_nothing_can_hold_are_refused_at_once() -> None:
    with pytest.raises(StepError, match="messages, of at most"):
        TrainingStep(model=Model(layers=10**7, hidden=10**7), data=2)
    with pytest.raises(StepError, match="computations, of at most"):
        TrainingStep(model=SMALL, data=2, micro_batches=10**12)


def test_models_are_named_or_given() -> None:
    assert model("custom", layers=2, hidden=64) == Model(2, 64)
    assert model("llama-13b", sequence=2048).sequence == 2048
    assert model("gpt-3-175b").parameters == pytest.approx(175e9, rel=0.01)
    for name, sizes in MODELS.items():
        billions = float(name.rpartition("-")[2].removesuffix("b"))
        assert sizes.parameters / 1e9 == pytest.approx(billions, rel=0.06), name
    for name, says in (("gpt-13", "did you mean"), ("custom", "--layers"), ("x", "custom")):
        with pytest.raises(StepError) as error:
            model(name)
        assert error.value.code == "TC-N001"
        assert says in (error.value.hint or "")
    with pytest.raises(StepError, match="layers = 0"):
        model("gpt-13b", layers=0)


def test_new_writes_an_experiment_and_its_graph(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    size = ["--layers", "2", "--hidden", "512", "--sequence", "256", "--vocabulary", "1000"]
    asked = ["new", "--step", "custom", *size, "--tensor", "4", "--data", "2", str(path)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "8 hosts, 400 messages of" in result.stderr
    graph = pl.read_parquet(tmp_path / "mine.parquet")
    assert graph["src"].count() == 400
    counts = TrainingStep(model=SMALL, tensor=4, data=2).counts()
    plan = tailcut.load(path).plan
    assert len(plan["runs"]) == 1
    again = CliRunner().invoke(app, asked)
    assert again.exit_code == 2
    assert "TC-N003" in again.stderr
    assert counts.messages == 400


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tensor", "8"], "--tensor belongs to --step"),
        (["--micro-batches", "8"], "--micro-batches belongs to --step"),
        (["--step", "gpt-13b", "--list"], "leave --from and --list out"),
        (["--step", "gpt-13b", "--tensor-as", "tree"], "write one of direct, ring, computation"),
        (["--step", "gpt-31b"], "TC-N001"),
        (["--step", "gpt-13b", "--tensor", "3"], "TC-N002"),
        (["--step", "gpt-13b", "--data", "2", "--micro-batch", "100000"], "an experiment at most 86,400 s"),
        (
            ["--step", "gpt-3-175b", "--tensor", "2048", "--data", "2", "--tensor-as", "computation"],
            "tensor = 2048: a rack has at most 1,023 hosts",
        ),
    ],
)
def test_new_refuses_options_that_do_not_fit(tmp_path: Path, arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(app, ["new", str(tmp_path / "a.toml"), *arguments])
    assert result.exit_code == 2
    assert says in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "says"), [("a.parquet", "is the name of the graph"), (".", "exists already")])
def test_new_refuses_files_that_it_cannot_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["new", "--step", "gpt-13b", "--data", "2", name])
    assert result.exit_code == 2
    assert "TC-N003" in result.stderr
    assert says in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("traffic", TensorTraffic)
def test_a_step_takes_between_all_at_once_and_one_after_the_other(tmp_path: Path, traffic: TensorTraffic) -> None:
    step = TrainingStep(model=SMALL, tensor=4, data=2, traffic=traffic)
    write(step, tmp_path / "step.toml")
    result = tailcut.run(tmp_path / "step.toml", out=tmp_path / "results")
    counts = step.counts()
    took_ns = result.jobs["completion_ns"].item()
    inside = step.inside_ns() * counts.tensor_reduces if traffic is TensorTraffic.COMPUTATION else 0
    computed = counts.computation_ns + inside
    tensor, data = (8e9 * size / counts.hosts / LINK_BPS for size in (counts.tensor_bytes, counts.data_bytes))
    assert result.flows.height == counts.messages
    assert took_ns >= computed + tensor
    # Payload of 4096 B and 78 B of headers and framing; an acknowledgement a packet; 10 us of latency for a phase.
    phases = 2 * counts.tensor_reduces + len(counts.bucket_bytes) * 2
    assert took_ns <= computed + 1.05 * (tensor + data) + 10_000 * phases


def test_a_step_is_about_as_large_as_its_plan_says(tmp_path: Path) -> None:
    write(TrainingStep(model=SMALL, tensor=4, data=2), tmp_path / "step.toml")
    result = tailcut.run(tmp_path / "step.toml", out=tmp_path / "results")
    [planned] = result.plan["runs"]
    counted = result.runs["packet_hops"].item()
    assert planned["facts"]["expected_packet_hops"] == pytest.approx(counted, rel=0.1)


def test_a_rank_sends_one_message_of_its_data_group_at_a_time(tmp_path: Path) -> None:
    write(TrainingStep(model=SMALL, tensor=2, data=4), tmp_path / "step.toml")
    flows = tailcut.run(tmp_path / "step.toml", out=tmp_path / "results").flows
    across = flows.filter(pl.col("src") // 2 != pl.col("dst") // 2).sort("src", "start_ns")
    # A message is sent when its last packet, of at most 4096 B, is handed to the interface.
    sending_ns = (pl.col("bytes") - 4096) * 8e9 / LINK_BPS
    later = across.with_columns(sent=(pl.col("start_ns") + sending_ns).shift(1).over("src")).drop_nulls("sent")
    assert later.height == 8 * (across.height // 8 - 1) > 0
    assert (later["start_ns"] >= later["sent"]).all()


def test_a_step_is_cut_among_threads(tmp_path: Path) -> None:
    write(TrainingStep(model=SMALL, tensor=2, data=4), tmp_path / "step.toml")
    result = tailcut.run(tmp_path / "step.toml", out=tmp_path / "results", threads=2)
    [seconds] = result.thread_seconds
    assert len(seconds["work"]) == 2
