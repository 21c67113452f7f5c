from pathlib import Path

import pytest

from support.kernels import MARK
from support.lab import LAB, Kernels
from support.skipping import missing
from tailcut.lab import doctor, process


@pytest.fixture(scope="session")
def kernel() -> None:
    """Namespaces and what else the lab needs; a test that has none of it is skipped with the reason."""
    obstacle = doctor.obstacle(doctor.findings())
    if obstacle is not None:
        missing(f"the kernel lab: {obstacle}", "tailcut lab")


@pytest.fixture(scope="session")
def bpf() -> None:
    """BPF programs, compiled and in a kernel that takes them; a test that has none of it is skipped with the reason."""
    for found in doctor.findings():
        if found.name == "BPF programs" and not found.offered:
            missing(f"the lab's BPF programs: {found.found}", "make lab-bpf")


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """The small experiment, in a directory whose name has quotes and spaces."""
    directory = tmp_path / "a 'b' \"c\"; d"
    directory.mkdir()
    path = directory / "lab.toml"
    path.write_text(LAB)
    return path


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Marks the processes of this test's runs by their environment, and returns the mark."""
    monkeypatch.setenv(MARK, str(tmp_path))
    return str(tmp_path)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """Stands for real kernels."""
    made = Kernels()
    monkeypatch.setattr(process, "run", made)
    return made
