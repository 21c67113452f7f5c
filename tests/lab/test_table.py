"""The table of `make lab-table` from made-up measurements; no kernel is needed."""

import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.lab import bench, measured, outcome
from tailcut import _core
from tailcut.lab import process

TWO = '[schemes.Spraying]\nbalance = { kind = "spray" }\n'


class Kernels:
    """Stands for real ones: flows take longer than they do alone, and the runs at ``bad`` are not faithful."""

    def __init__(self, bad: set[int]) -> None:
        self.runs = 0
        self.bad = bad

    def __call__(self, planned: str, *_: Any, **__: Any) -> dict[str, Any]:
        self.runs += 1
        demand = json.loads(_core.demand(planned))
        unfaithful = [f"it was 0.{self.runs} ms late"] if self.runs in self.bad else []
        return outcome(demand, measured(demand, 1.5), unfaithful=unfaithful)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, experiment: Path) -> ModuleType:
    module = bench("lab_table")
    place = tmp_path / "experiments/lab/tiny.toml"
    place.parent.mkdir(parents=True)
    place.write_text(experiment.read_text() + TWO)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def work(table: ModuleType, directory: Path, verdicts: list[dict[str, Any]]) -> Any:
    directory.mkdir(exist_ok=True)
    return table.Work(directory, time.monotonic() + 600, verdicts)


def test_runs_that_were_not_faithful_are_made_once_more_and_counted(
    table: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = Kernels({2})
    monkeypatch.setattr(process, "run", kernels)
    at_work = work(table, tmp_path / "made", [])
    at_work.carry("tiny", 1)
    assert [bool(one["unfaithful"]) for one in at_work.verdicts] == [False, True, False]
    at_work.carry("tiny", 1)
    assert kernels.runs == 3, "what is there is not made again"
    noted = (tmp_path / "made" / table.VERDICTS).read_text().splitlines()
    assert [json.loads(line) for line in noted] == at_work.verdicts
    text = "\n".join(table.counts(at_work.verdicts))
    assert text.startswith("2 of 3 runs over kernels were faithful.")
    assert "| tiny | 3 | 2 |" in text
    assert "how often: it was … ms late: 1." in text


def test_reasons_that_differ_in_numbers_only_are_one(table: ModuleType) -> None:
    runs = [{"unfaithful": ["in 3 of 9 windows"]}, {"unfaithful": ["early", "in 12 of 80 windows"]}, {"unfaithful": []}]
    assert table.reasons(runs) == ["in … of … windows: 2", "early: 1"]


def test_a_row_covers_the_seeds_with_faithful_runs_of_scheme_and_baseline(
    table: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "run", Kernels({2, 3}))
    at_work = work(table, tmp_path / "made", [])
    at_work.carry("tiny", 1)
    result = table.tailcut.open_results(tmp_path / "made/tiny")
    assert [row.scheme for row in table.rows("tiny", result)] == ["T; 'C' P"]
    at_work.carry("tiny", 2)
    first, second = table.rows("tiny", at_work.made("tiny", 2))
    assert (first.seeds, first.scheme, second.scheme) == (2, "T; 'C' P", "Spraying")
    real = table.tailcut.open_results(tmp_path / "made/tiny").lab.flows.filter(scheme="Spraying")["fct_ns"]
    assert second.real.mean_ms == pytest.approx(real.mean() / 1e6)
    assert second.real.flows == second.simulated.flows == len(real)
    assert second.real.p99_ms == pytest.approx(real.max() / 1e6)


def test_a_table_has_every_seed_that_is_there_also_when_time_was_up_at_an_earlier_one(
    table: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "run", Kernels(set()))
    at_work = work(table, tmp_path / "made", [])
    for seeds in (1, 2, 1):
        at_work.carry("tiny", seeds)
    assert {row.seeds for row in table.rows("tiny", at_work.made("tiny", 2))} == {2}


def test_deviations_beyond_the_bounds_are_reported(table: ModuleType) -> None:
    def side(mean: float, p99: float) -> Any:
        return table.Side([mean, mean * 1.1], mean, p99, 0, 100)

    first = table.Row("one", "TCP", 2, side(10, 100), side(10.9, 119), None)
    assert table.beyond(first) == []
    second = table.Row("one", "RepFlow", 2, side(8, 50), side(9, 50), first)
    assert table.beyond(second) == ["mean +12 %", "change of the 99th percentile -8 points"]
    text = table.report([[first, second]], [])
    assert "| one | TCP | 2 | 100 | 10.0 | 10.9 | +9 % ± 0 | 100 | 119 | +19 % | 0 | 0 |" in text
    assert "| one | RepFlow | -20 % | -17 % | +3 | -50 % | -58 % | -8 |" in text
    assert "1 of 2 schemes" in text
    page = f"before\n{table.BEGIN}\nold\n{table.END}\nafter"
    assert table.into_page(page, text, table.BEGIN, table.END).startswith(f"before\n{table.BEGIN}\n| experiment")
