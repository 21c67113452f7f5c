"""How many runs at once: what the system lets this process use."""

import os
from pathlib import Path

import pytest

from tailcut.results import machine


@pytest.fixture(autouse=True)
def _sixteen_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)


def system(root: Path, groups: str, **files: str) -> Path:
    """A system whose ``/proc/self/cgroup`` says this, and whose control groups have these files."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"user/me/cpu.max": "max 100000"}, 16),
        ({"user/me/cpu.max": "200000 100000"}, 2),
        ({"user/me/cpu.max": "150000 100000"}, 2),
        ({"user/me/cpu.max": "5000 100000"}, 1),
        ({"user/cpu.max": "300000 100000", "user/me/cpu.max": "max 100000"}, 3),
        ({"user/cpu.max": "300000 100000", "user/me/cpu.max": "400000 100000"}, 3),
        ({"user/me/cpu.max": "9900000 100000"}, 16),
        ({"cpu.max": "400000 100000"}, 4),
        ({}, 16),
    ],
)
def test_the_tightest_quota_above_a_process_counts(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert machine.cores(system(tmp_path, "0::/user/me\n", **files)) == expected


@pytest.mark.parametrize("mounted", ["cpu", "cpu,cpuacct"])
@pytest.mark.parametrize(("quota", "expected"), [("-1", 16), ("250000", 3)])
def test_quotas_of_the_first_version_count_as_well(tmp_path: Path, mounted: str, quota: str, expected: int) -> None:
    files = {f"{mounted}/box/cpu.cfs_quota_us": quota, f"{mounted}/box/cpu.cfs_period_us": "100000"}
    assert machine.cores(system(tmp_path, "5:memory:/other\n4:cpu,cpuacct:/box\n", **files)) == expected


@pytest.mark.parametrize(
    ("running", "own", "processors", "expected"),
    [
        ("1/300", 0, 16, 16),  # this process alone
        ("2/300", 0, 16, 15),
        ("5/300", 4, 16, 16),
        ("2/300", 4, 16, 16),  # own threads may sleep
        ("40/300", 0, 16, 1),
        ("11/300", 0, 64, 16),  # there are enough others
    ],
)
def test_cores_that_others_want_are_not_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: str, own: int, processors: int, expected: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    root = system(tmp_path, "0::/user/me\n")
    (root / "proc/loadavg").write_text(f"0.20 0.18 0.12 {running} 11206\n")
    assert machine.idle_cores(own, root) == expected


def test_a_system_that_does_not_say_what_runs_has_idle_cores(tmp_path: Path) -> None:
    assert machine.idle_cores(0, tmp_path) == min(16, os.cpu_count() or 1)


def test_a_quota_of_another_group_does_not_count(tmp_path: Path) -> None:
    groups = "0::/user/me\n"
    assert machine.cores(system(tmp_path, groups, **{"user/you/cpu.max": "100000 100000"})) == 16


def test_a_system_without_control_groups_has_no_quotas(tmp_path: Path) -> None:
    assert machine.cores(tmp_path) == 16
