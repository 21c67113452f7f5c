"""The page as a file: what must be in it, what must not, and that the same results give the same bytes."""

import re
from html import unescape
from pathlib import Path

import pytest

from support import made_up, synthetic
from tailcut import report
from tailcut.plan import Axis
from tailcut.report import page
from tailcut.report.figures import Data
from tailcut.report.study import Study
from tailcut.report.theme import Theme
from tailcut.result import Result
from tailcut.results import Store


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
    assert {"fct", "change", "cdf", "slowdown", "size", "links"} <= names
    assert {(path.stem, path.suffix) for path in figures} == {(n, s) for n in names for s in (".svg", ".png")}
    assert all(path.stat().st_size > 1000 for path in figures)


def test_the_page_names_no_address_to_load_anything_from(written: list[Path]) -> None:
    html = written[0].read_text("utf-8")
    markup = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"(src|href)\s*=\s*[\"']?\s*(https?:)?//", markup)
    assert not re.search(r"(jsdelivr|unpkg|cdnjs|googleapis|@import|url\([\"']?https?:)", html)


def test_the_same_results_give_the_same_page(written: list[Path], tmp_path: Path) -> None:
    again = report.write(written[0].parent, tmp_path / "report.html")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written]


def test_pages_in_one_folder_name_figures_of_their_own(tmp_path: Path) -> None:
    result = synthetic.build(tmp_path, synthetic.Shape(schemes=("TCP",), sweep=(), seeds=(1,), flows=20))
    for name, folder in (("report", "figures"), ("other", "other-figures")):
        page, *figures = report.write(result, tmp_path / f"{name}.html")
        assert {path.parent for path in figures} == {tmp_path / folder}
        assert f"<code>{folder}</code> beside this page" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("overrides", "title", "options"),
    [
        ({}, "RepFlow against TCP", []),
        ({"seeds": "3"}, "RepFlow against TCP", ["--seeds 3"]),
        (
            {"traffic.load": "0.6", "queue.limit": '"9 packets"'},
            'RepFlow against TCP (with traffic.load = 0.6, queue.limit = "9 packets")',
            ["--set traffic.load=0.6", "--set 'queue.limit=\"9 packets\"'"],
        ),
        ({"title": "Mine", "traffic.load": "0.6"}, "Mine", ["--set title=Mine", "--set traffic.load=0.6"]),
    ],
)
def test_the_page_says_what_replaced_values_of_the_file(
    tmp_path: Path, overrides: dict[str, str], title: str, options: list[str]
) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1])
    store = Store.create(
        tmp_path / "results", {**plan, "title": overrides.get("title", plan["title"]), "overrides": overrides}
    )
    made_up.put(store, plan["runs"][0], made_up.flows([100, 200]))
    html = unescape(page.render(study := Study.of(Result(store)), Data.of(study), Theme(study.schemes)))
    assert f"<h1>{title}</h1>" in html
    assert re.findall("place of the file's</dt><dd><code>(.*?)</code>", html) == [" ".join(options)][: len(options)]


@pytest.mark.parametrize(
    ("sweep", "headings", "first"),
    [
        ([{"key": "traffic.load", "values": [0.3, 0.7]}], ["load"], ["0.3"]),
        ([{"key": "transport.min_rto", "values": ["10ms", "20ms"]}], ["min rto"], ["10 ms"]),
        ([{"key": "faults.active", "values": [False, True]}], ["failures"], ["no"]),
        ([{"key": "traffic.flows", "values": ["[src=0]", "[src=1]"]}], ["traffic.flows"], ["[src=0]"]),
        (
            [{"key": key, "values": [0.1, 0.25]} for key in ("queue.weight", "transport.congestion.weight")],
            ["queue.weight", "transport.congestion.weight"],
            ["0.1", "0.1"],
        ),
    ],
)
def test_the_totals_name_each_point_as_the_figures_do(
    tmp_path: Path, sweep: list[Axis], headings: list[str], first: list[str]
) -> None:
    plan = made_up.plan(sweep=sweep, seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    for run in plan["runs"]:
        made_up.put(store, run, made_up.flows([100, 200]))
    totals = page.totals(Study.of(Result(store)))
    assert totals.columns[: len(sweep) + 2] == ["scheme", *headings, "seeds"]
    assert list(totals.row(0)[1 : len(sweep) + 1]) == first
