"""The page as a file: what must be in it, what must not, and that the same results give the same bytes."""

import re
from pathlib import Path

import pytest

from support import synthetic
from tailcut import report


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("store")
    result = synthetic.with_model(
        synthetic.build(directory, synthetic.Shape(sweep=(("traffic.load", (0.3, 0.7)),), seeds=(1, 2), flows=150))
    )
    return report.write(result, directory / "report.html")


def test_the_page_comes_first_and_every_figure_is_there_as_svg_and_png(written: list[Path]) -> None:
    page, *figures = written
    assert page.name == "report.html"
    names = {path.stem for path in figures}
    assert {"fct", "gain", "cdf", "slowdown", "size", "links"} <= names
    assert {(path.stem, path.suffix) for path in figures} == {(n, s) for n in names for s in (".svg", ".png")}
    assert all(path.stat().st_size > 1000 for path in figures)


def test_the_page_names_no_address_to_load_anything_from(written: list[Path]) -> None:
    html = written[0].read_text("utf-8")
    markup = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"(src|href)\s*=\s*[\"']?\s*(https?:)?//", markup)
    assert not re.search(r"(jsdelivr|unpkg|cdnjs|googleapis|@import|url\([\"']?https?:)", html)


def test_the_same_results_give_the_same_page(written: list[Path], tmp_path: Path) -> None:
    again = report.write(written[0].parent, tmp_path / "again.html")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written]
