"""Commands import what they use: those that only print a text do not wait for Polars, NumPy or SciPy."""

import subprocess
import sys
from pathlib import Path

import pytest

import tailcut
from support import experiments

HEAVY = ("altair", "jinja2", "polars", "scipy", "vl_convert")
SLOW = (*HEAVY, "numpy", "rich.markdown", "tailcut._core")

CALL = """
import sys
sys.argv[0] = "tailcut"
from tailcut.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
sys.stderr.write("\\n".join(sys.modules))
"""


def imported(*arguments: str, cwd: Path | None = None) -> set[str]:
    """The modules that a command has imported when it ends."""
    command = [sys.executable, "-c", CALL, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd)
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["report", "-h"], ["--version"]])
def test_help_imports_nothing_that_computes(arguments: list[str]) -> None:
    assert imported(*arguments) & set(SLOW) == set()


def test_a_check_imports_nothing_that_reads_results(tmp_path: Path) -> None:
    experiments.tiny(tmp_path)
    for command in (["check", "tiny.toml"], ["list"], ["schema"]):
        assert imported(*command, cwd=tmp_path) & set(HEAVY) == set()


def test_a_worker_imports_no_statistics_and_no_report() -> None:
    code = "import sys, tailcut.backends.worker, tailcut.backends.sim; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) & {"scipy", "altair", "jinja2", "vl_convert", "typer"} == set()


def test_every_public_name_can_be_had_and_is_listed() -> None:
    assert set(tailcut.__all__) <= set(dir(tailcut))
    assert all(getattr(tailcut, name) is not None for name in tailcut.__all__)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = tailcut.nothing_like_it


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "tailcut", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tailcut {tailcut.__version__}\n"
