"""`check`, `run` and `report` need nothing that only Linux has: they work with all of that hidden, workers included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import experiments

HIDDEN = """
import builtins, importlib.abc, io, os, select, signal, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules.pop(name, None)
for module, names in {
    os: ["sched_getaffinity", "fork", "getuid", "sysconf"],
    select: ["epoll"],
    signal: ["SIGKILL", "SIGHUP"],
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

real = io.open

def without_proc(file, *rest, **named):
    if isinstance(file, (str, os.PathLike)) and os.fspath(file).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", os.fspath(file))
    return real(file, *rest, **named)

io.open = builtins.open = without_proc
print("hidden", file=sys.stderr)
"""


def test_the_commands_run_without_what_only_linux_has(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDDEN)
    experiments.tiny(tmp_path)
    program = "from tailcut.cli import main; main()"
    for command in (["check", "tiny.toml"], ["run", "tiny.toml", "--jobs", "2"], ["report", "results/tiny"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *command],
            cwd=tmp_path,
            # Without pwd a home is what the environment says.
            env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path / "hidden")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "hidden" in done.stderr
    assert (tmp_path / "results" / "tiny" / "report.html").stat().st_size > 0
    assert len(list((tmp_path / "results" / "tiny" / "runs").iterdir())) == 4


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "python").rglob("*.py")), ids=lambda path: path.stem
)
def test_no_module_imports_what_only_unix_has(path: Path) -> None:
    unix_only = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "selectors", "posix"}
    words = {word for line in path.read_text().splitlines() if "import " in line for word in line.split()}
    assert not words & unix_only
