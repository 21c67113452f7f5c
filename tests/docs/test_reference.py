"""The documentation is complete: what can be named, what a result holds and what goes wrong is all written down."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import tailcut
from support import experiments
from tailcut import _core
from tailcut.report import figures
from tailcut.report.study import Study
from tailcut.report.theme import Theme
from tailcut.results.tables import UNITS, schema
from tailcut.results.totals import ABOUT
from tailcut.terminal import components

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")] if "_build" not in path.parts)
COMPONENTS = sorted((DOCS / "components").glob("*.md"))

# Every table that a run can have: short and long flows, jobs, segments, throughput, series, the
# fabric.
EVERYTHING = """
title = "everything"
[topology]
kind = "fat-tree"
k = 4
[traffic]
kind = "mix"
parts = [
    { kind = "poisson", sizes = "web-search", load = 0.3 },
    { kind = "shuffle", bytes = "1MB" },
]
[horizon]
arrivals = "10ms"
drain = "20ms"
[measure]
segments = true
throughput = true
fabric = true
[series]
flows = [0]
[balance]
kind = "tinyflow"
"""


def sections(page: Path) -> dict[str, str]:
    """The text below each heading of the second level."""
    parts = re.split(r"^## +(.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def there(path: Path) -> bool:
    """Whether a path is there; experiments go by their names, too."""
    return path.exists() or path.with_name(f"{path.name}.toml").exists()


def first_cells(text: str) -> set[str]:
    """The names in the first column of the tables of a text, of which a cell may hold several."""
    cells = re.findall(r"^\| *([^|]+?) *\|", text, flags=re.MULTILINE)
    return {name.strip(" `") for cell in cells for name in cell.split(",")}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tailcut.Result:
    directory = tmp_path_factory.mktemp("everything")
    (directory / "everything.toml").write_text(EVERYTHING)
    return tailcut.run(tailcut.load(directory / "everything.toml"), out=directory / "results")


# --- components -----------------------------------------------------------------------------------


def test_every_component_that_list_names_has_a_page() -> None:
    written = "\n".join(page.read_text("utf-8") for page in COMPONENTS)
    kinds = [one for one in components.known() if one["name"] != one["group"]]
    missing = [one["name"] for one in kinds if not re.search(rf'[`"]{re.escape(one["name"])}[`"]', written)]
    assert missing == []


def test_every_section_of_an_experiment_is_in_the_reference() -> None:
    written = (DOCS / "reference/experiment-files.md").read_text("utf-8")
    groups = {one["group"] for one in json.loads(_core.describe())}
    assert {group for group in groups if "." not in group and f"`[{group}]`" not in written} == {"sizes"}


@pytest.mark.parametrize("page", COMPONENTS, ids=lambda page: page.stem)
def test_a_page_of_a_component_says_what_is_left_out_and_how_it_was_validated(page: Path) -> None:
    headings = sections(page)
    assert "Validation" in headings
    assert {"What it leaves out", "What they leave out"} & set(headings)
    assert len(headings["Validation"].split()) > 25


def test_every_figure_is_in_the_page_of_the_report(result: tailcut.Result) -> None:
    study = Study.of(result)
    theme = Theme(study.schemes)
    drawn = {figure.name for _, figure in figures.draw(study, figures.Data.of(study), theme)}
    assert drawn == first_cells(sections(DOCS / "components/report.md")["What it shows"]) & drawn


# --- results --------------------------------------------------------------------------------------


def tables_of(result: tailcut.Result) -> Iterator[tuple[str, pl.DataFrame]]:
    for path in sorted(result.directory.glob("runs/*/*.parquet")):
        yield path.stem, pl.read_parquet(path)


def test_every_column_of_every_table_is_in_the_reference_and_has_a_unit(result: tailcut.Result) -> None:
    reference = sections(DOCS / "reference/results.md")
    found = dict(tables_of(result))
    assert set(found) == set(UNITS) - {"starts"}, "that is of runs over kernels"
    for name in UNITS:
        text = reference[f"{name}.parquet"]
        documented = first_cells(text) | set(re.findall(r"`(\w+)`", text))
        assert set(schema(name)) <= documented, name
    for name, table in found.items():
        assert dict(table.schema) == schema(name), name


def test_every_entry_of_a_run_is_in_the_reference(result: tailcut.Result) -> None:
    (run,) = result.directory.glob("runs/*/run.json")
    text = sections(DOCS / "reference/results.md")["run.json"]
    documented = set(re.findall(r"`(\w+)`", text))
    assert set(json.loads(run.read_text())) - documented == set()
    assert set(ABOUT) <= documented


def test_every_column_of_the_summary_is_in_the_reference(result: tailcut.Result) -> None:
    documented = first_cells(sections(DOCS / "reference/results.md")["summary.parquet"])
    assert set(result.summary().columns) <= documented


# --- the command line, errors, links --------------------------------------------------------------


def test_every_error_code_is_explained() -> None:
    raised = {
        code
        for source in (ROOT / "python").rglob("*.py")
        for code in re.findall(r'"(TC-[A-Z]\d{3})"', source.read_text("utf-8"))
    }
    explained = "\n".join((DOCS / f"reference/{page}.md").read_text("utf-8") for page in ("cli", "errors"))
    assert len(raised) > 5
    assert {code for code in raised if f"| {code} |" not in explained} == set()


def test_everything_that_the_package_exports_is_in_the_reference() -> None:
    page = (DOCS / "reference/python.md").read_text("utf-8")
    of_package = re.findall(r"currentmodule:: tailcut\n(.*?)```", page, re.DOTALL)
    named = set(re.findall(r"auto\w+:: (\w+)", "".join(of_package)))
    assert set(tailcut.__all__) - {"__version__"} == named


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))
    files = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in files if target and not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    folders = "experiments|tests|benches|src|python|workloads|crates|packages|docs|schema"
    named = re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text("utf-8"))
    roots = (ROOT, ROOT / "crates/tailcut-net", ROOT / "packages/repnet")
    gone = [name for name in named if "_build" not in name and not any(there(root / name) for root in roots)]
    assert gone == []


def test_the_reference_of_the_papers_names_every_experiment_and_figures_that_there_are(result: tailcut.Result) -> None:
    page = (DOCS / "reference/papers.md").read_text("utf-8")
    rows = [row.split("|")[1:4] for row in page.splitlines() if row.startswith("| `")]
    listed = set()
    for first, _, _ in rows:
        paper, figure = re.findall(r"`(\w+)/([\w-]+)`", first)[0]
        names = [figure, *re.findall(r"(?:,|to) `(\w+)`", first)]
        if " to " in first:
            start, end = (int(re.findall(r"\d+", name)[0]) for name in names)
            names = [f"fig{number}" for number in range(start, end + 1)]
        listed |= {f"{paper}/{name}" for name in names}
    there = {f"{path.parent.name}/{path.stem}" for path in experiments.shipped("papers", "*/*.toml")}
    assert listed == there
    study = Study.of(result)
    titles = {figure.title for _, figure in figures.draw(study, figures.Data.of(study), Theme(study.schemes))}
    shown = {part.partition(":")[0].partition(" (")[0].strip() for *_, on in rows for part in on.split(";")}
    assert {title for title in shown if title not in titles | {"The numbers", "What it cost the network"}} <= {
        "`connect_ns` of the pings"
    }
