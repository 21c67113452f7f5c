"""Output that the terminal or a pipe cannot encode is replaced; no command dies of it."""

import codecs
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import experiments
from tailcut.terminal.encoding import plain_where_needed

COMMAND = [sys.executable, "-c", "from tailcut.cli import main; main()"]
ENCODINGS = ["ascii", "latin-1", "cp949", "cp1252", "koi8-r", "utf-8"]


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the handler of encoding errors, registered."""
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    plain_where_needed()
    assert isinstance(sys.stdout, io.TextIOWrapper)
    return str(sys.stdout.errors)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("— 4.2 µs ≥ 1 × 2 … −8 %", "-- 4.2 us >= 1 x 2 ... -8 %"),
        ("a → b ± 3", "a -> b +- 3"),
        ("━━─│┼", "---|-"),
        ("größer, naïve, Ångström", "grosser, naive, Angstrom"),
        ("日本", "??"),
    ],
)
def test_characters_that_ascii_lacks_are_replaced_by_similar_ones(handler: str, text: str, plain: str) -> None:
    assert text.encode("ascii", handler).decode("ascii") == plain


def test_a_file_name_that_is_no_text_is_written_unchanged(handler: str) -> None:
    assert os.fsdecode(b"d\xff").encode("utf-8", handler) == b"d\xff"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_character_can_be_written_in_every_encoding(handler: str, encoding: str) -> None:
    codecs.lookup(encoding)
    text = "".join(map(chr, [*range(0x20, 0x3000), *range(0xFB00, 0x10000), 0x1F600]))
    text.encode(encoding, handler)


@pytest.mark.parametrize("encoding", ["ascii", "cp949"])
def test_run_show_and_explain_work_on_an_ascii_terminal(tmp_path: Path, encoding: str) -> None:
    experiments.tiny(tmp_path)
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}

    def said(*words: str) -> str:
        done = subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, env=environment, capture_output=True, encoding=encoding, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "RepFlow" in said("run", "tiny.toml", "--seeds", "1")
    story = said("explain", "results/tiny", "--flow", "0")
    assert "Flow 0" in story
    assert " us" in story or encoding != "ascii"
    assert json.loads(said("summary", "results/tiny", "--json"))
