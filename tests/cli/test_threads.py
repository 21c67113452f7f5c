"""``tailcut run --threads``: what it says, and that it ends where threads outnumber cores."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import skipping

from .conftest import Tailcut

ONE_SEED = ("--seeds", "1", "--set", "horizon.arrivals=1ms", "--jobs", "1")


def tables(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.glob("runs/*/*.parquet"))}


def test_the_last_lines_say_where_threads_spent_their_time(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("run", tiny, *ONE_SEED, "--threads", 2)
    assert result.exit_code == 0
    said, empty, where = result.stderr.splitlines()[-3:]
    expected = r"2 threads in each of 2 runs: (\d+) % of their time at work, (\d+) % waiting for each other, (\d+) %.*"
    found = re.fullmatch(expected, said)
    assert found is not None, said
    assert 98 <= sum(map(int, found.groups())) <= 102
    assert (empty, where.partition(" ")[0]) == ("", "Results")


def test_runs_on_one_thread_say_nothing_of_threads(tailcut: Tailcut, tiny: Path) -> None:
    assert "thread" not in tailcut("run", tiny, *ONE_SEED).stderr


def test_auto_leaves_small_runs_on_one_thread(tailcut: Tailcut, tiny: Path) -> None:
    result = tailcut("run", tiny, *ONE_SEED, "--threads", "auto")
    assert result.exit_code == 0
    assert "thread" not in result.stderr


@pytest.mark.parametrize("asked", ["0", "-1", "two", "1.5"])
def test_threads_are_a_number_from_1_or_auto(tailcut: Tailcut, tiny: Path, asked: str) -> None:
    result = tailcut("run", tiny, *ONE_SEED, "--threads", asked)
    assert result.exit_code == 2
    assert f"'{asked}' is neither a number from 1 nor auto" in result.stderr


@skipping.needs(hasattr(os, "sched_setaffinity"), "this system cannot bind a process to a core")
def test_sixteen_threads_on_one_core_end_with_the_bytes_of_one(tailcut: Tailcut, tiny: Path) -> None:
    racks = 'kind = "leaf-spine"\nracks = 16\nhosts_per_rack = 2\nspines = 2'
    tiny.write_text(tiny.read_text().replace('kind = "fat-tree"\nk = 4', racks))
    assert tailcut("run", tiny, *ONE_SEED, "--out", "one").exit_code == 0
    core = min(os.sched_getaffinity(0))
    bound = f"import os, sys; os.sched_setaffinity(0, {{{core}}}); from tailcut.cli import app; app(sys.argv[1:])"
    command = [sys.executable, "-c", bound, "run", str(tiny), *ONE_SEED, "--out", "many", "--threads", "16"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "16 threads in each of 2 runs" in done.stderr
    assert tables(Path("many")) == tables(Path("one"))
