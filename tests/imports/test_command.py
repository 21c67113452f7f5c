"""``tailcut import``: what it writes, and what it never does."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.imports import imported, refused, written
from tailcut import imports
from tailcut.cli import app

FILES = {"topology.txt": "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n", "flow.txt": "1\n0 1 3 1 9 0\n"}


def test_three_files_are_written_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, FILES)
    result = CliRunner().invoke(app, ["import", "topology.txt", "flow.txt"])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (tmp_path / "topology-imported").iterdir()) == [
        "experiment.toml", "flows.csv", "topology.json",
    ]  # fmt: skip


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    out = imported(tmp_path, FILES)
    with pytest.raises(imports.ImportRefusedError, match="nothing is overwritten") as caught:
        imported(tmp_path, FILES)
    assert (caught.value.code, (out / "flows.csv").read_text()) == ("TC-I005", "src,dst,bytes,start_ns\n0,1,9,0\n")


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "flows.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(imports.ImportRefusedError, match="nothing is overwritten"):
        imported(tmp_path, FILES)
    assert not (tmp_path / "elsewhere.csv").exists()


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"topology.txt": b"\xff"}, "TC-I001"),
        ({"topology.txt": "", "other.txt": ""}, "TC-I004"),
        ({"notes.md": ""}, "TC-I004"),
    ],
)
def test_files_of_an_unknown_format_are_refused(files: dict[str, str | bytes], code: str, tmp_path: Path) -> None:
    error = refused(tmp_path, files)
    assert (error.code, error.exit_code) == (code, 2)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(imports.ImportRefusedError, match="there is no such file"):
        imports.read([tmp_path / "topology.txt"])


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("x" * 11)
    with pytest.raises(imports.ImportRefusedError, match="more than 10 bytes"):
        imports.Source(tmp_path / "big.txt", most=10)
