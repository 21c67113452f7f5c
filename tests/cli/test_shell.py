"""The command in a shell: closed pipes, quoting, and names that are printed unchanged."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tailcut as package

from .conftest import Tailcut


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_closed_output_pipe_is_no_failure(stream: str, tiny: Path, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {stream: write}
    command = [sys.executable, "-c", "from tailcut.cli import main; main()", "run", str(tiny), "--on", "model"]
    try:
        done = subprocess.run(command, cwd=tmp_path, check=False, text=True, **streams)  # type: ignore[call-overload]
    finally:
        os.close(write)
    assert done.returncode == 0
    assert "Traceback" not in str(done.stderr)


def test_after_an_interrupt_the_command_that_goes_on_can_be_pasted_into_a_shell(
    tailcut: Tailcut, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    asked = ["run", str(tiny), "--set", 'title="it\'s one"', "--out", "my results; $(ls)"]
    monkeypatch.setattr(package, "run", interrupted)
    monkeypatch.setattr(sys, "argv", ["/somewhere/tailcut", *asked])
    result = tailcut(*asked)
    assert result.exit_code == 130
    assert shlex.split(result.stderr.rpartition("To continue: ")[2]) == ["tailcut", *asked]


def test_words_between_colons_are_shown_as_they_are(tailcut: Tailcut, tiny: Path) -> None:
    tiny.write_text(tiny.read_text().replace("[schemes.RepFlow]", '[schemes.":fire:"]'))
    assert "2 schemes (TCP, :fire:)" in tailcut("check", tiny).stdout
