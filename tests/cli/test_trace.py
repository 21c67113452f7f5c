"""``tailcut run --trace``: what decides on one flow."""

from pathlib import Path

import pytest

from cli.conftest import Tailcut
from support import skipping
from tailcut import _core

FLOW = '{ id = 1, src = 0, dst = 2, bytes = "200KB" }'
FILE = f"""
title = "Two senders and a short queue"
topology = {{ kind = "star", hosts = 3 }}
traffic = {{ kind = "trace", flows = [{FLOW.replace("1", "17")}, {FLOW.replace("src = 0", "src = 1")}] }}
horizon = {{ arrivals = "1ms", drain = "2s" }}
queue = {{ kind = "drop-tail", limit = "4packets" }}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(FILE)
    return path


def test_a_build_without_trace_points_says_how_to_get_one(
    tailcut: Tailcut, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "TRACES", False)
    answer = tailcut("run", file, "--trace", "flow=17")
    assert answer.exit_code == 2
    assert "TC-X007" in answer.stderr
    assert "make build" in answer.stderr


def test_a_trace_prints_the_decisions_on_one_flow_and_stores_nothing(tailcut: Tailcut, file: Path) -> None:
    if not _core.TRACES:
        skipping.missing("trace points: this build is for speed", "make build")
    answer = tailcut("run", file, "--trace", "flow=17")
    assert answer.exit_code == 0, answer.output
    lines = answer.stdout.splitlines()
    assert all(" flow 17: " in line for line in lines)
    for decision in ("refused: ", "dropped at s0>h2", "window changes", "timer fires"):
        assert any(decision in line for line in lines), decision
    assert not Path("results").exists()


@pytest.mark.parametrize("asked", ["17", "host=1", "flow=one"])
def test_a_trace_is_of_flows_by_number(tailcut: Tailcut, file: Path, asked: str) -> None:
    answer = tailcut("run", file, "--trace", asked)
    assert answer.exit_code == 2
    assert "flow=17" in answer.stderr
