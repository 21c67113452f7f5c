"""Tables are read from the file that is named, whatever its name."""

from pathlib import Path

import polars as pl
import pytest

from tailcut.results import tables

PACKAGE = Path(tables.__file__).parents[1]


def written(path: Path, number: int) -> Path:
    path.parent.mkdir(parents=True)
    path.write_bytes(tables.to_parquet(pl.DataFrame({"number": [number], "other": [0]}), {}))
    return path


@pytest.mark.parametrize("name", ["g[12]", "g*", "g?"])
def test_a_directory_name_that_is_a_glob_pattern_is_read_literally(name: str, tmp_path: Path) -> None:
    written(tmp_path / "g1" / "flows.parquet", 1)
    path = written(tmp_path / name / "flows.parquet", 2)
    assert tables.read_parquet(path, ["number"]).to_dicts() == [{"number": 2}]
    assert tables.scan_parquet(path, place="file").collect().to_dicts() == [
        {"number": 2, "other": 0, "file": str(path)}
    ]


def test_no_module_reads_parquet_except_through_tables() -> None:
    by_itself = {"pl.read_parquet(", "pl.scan_parquet("}
    sources = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path, text in sources.items()
        if any(call in text for call in by_itself)
    }
    assert found == {"results/tables.py", "traces/parquet.py"}, "traces are bytes in memory, which have no name"
