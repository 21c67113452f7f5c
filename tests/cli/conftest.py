from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from support import experiments
from tailcut import cli

Tailcut = Callable[..., Result]


@pytest.fixture(autouse=True)
def _as_on_a_terminal_of_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.out, "width", 100)
    monkeypatch.setattr(cli.err, "width", 100)


@pytest.fixture
def tailcut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tailcut:
    """The command, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    return lambda *arguments: runner.invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return experiments.tiny(tmp_path).relative_to(tmp_path)
