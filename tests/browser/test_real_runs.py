"""The page of runs that were simulated, and of an experiment that only the model has answered."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Browser, Page, expect

import tailcut
from support import browsing, experiments
from tailcut import report
from tailcut.result import Result

MORE = """
[series]
flows = [0]
[sweep]
"traffic.load" = [0.3, 0.6]
"""
LARGER = {"traffic.sizes": "web-search", "horizon.arrivals": "20ms", "horizon.drain": "100ms"}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> tailcut.Experiment:
    return tailcut.load(experiments.tiny(tmp_path_factory.mktemp("experiment"), MORE), set=LARGER)


@contextmanager
def opened(browser: Browser, result: Result, directory: Path) -> Iterator[tuple[Page, list[str]]]:
    """Writes and opens the page, without a network; the page, and what the browser had to say."""
    file = report.write(result, directory / "report.html")[0]
    with browsing.visiting(browser) as context:
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-drawn]")
        expect(page.locator(".panel .chart svg")).to_have_count(page.locator(".panel .chart").count())
        yield page, said


def test_simulated_runs_and_the_model_share_a_page(
    browser: Browser, experiment: tailcut.Experiment, tmp_path: Path
) -> None:
    tailcut.run(experiment, out=tmp_path)
    result = tailcut.run(experiment, on="model", out=tmp_path)
    cell = result.summary().filter(
        pl.col("backend") == "sim", pl.col("scheme") == "TCP", pl.col("traffic.load") == 0.3,
        pl.col("class") == "short", pl.col("statistic") == "mean",
    ).row(0, named=True)  # fmt: skip
    with opened(browser, result, tmp_path) as (page, said):
        row = page.locator("table.summary tr[data-scheme='TCP'][data-backend='sim']").first
        unit = "ms" if "(ms)" in page.locator("table.summary thead").first.inner_text() else "µs"
        shown = float(row.locator("td.number").first.inner_text().split()[0].replace(",", ""))
        assert shown == pytest.approx(cell["value_us"] / {"ms": 1000, "µs": 1}[unit], rel=0.01)
        expect(page.locator("#series .chart svg")).not_to_have_count(0)
        assert said == []


def test_with_many_schemes_a_reader_can_show_the_baseline_alone_and_add_others(
    browser: Browser, tmp_path: Path
) -> None:
    many = "".join(f'[schemes.Spare{n}]\ntransport = {{ initial_window = "{n}packets" }}\n' for n in range(1, 13))
    experiment = tailcut.load(experiments.tiny(tmp_path, many))
    with opened(browser, tailcut.run(experiment, out=tmp_path / "results"), tmp_path) as (page, said):
        rows = page.locator("table.summary").first.locator("tbody tr:visible")
        everything = rows.count()
        page.get_by_role("button", name="only TCP").click()
        expect(rows).to_have_count(1)
        page.get_by_role("button", name="Spare3").click()
        expect(rows).to_have_count(2)
        page.get_by_role("button", name="show all").click()
        expect(rows).to_have_count(everything)
        assert said == []


def test_a_page_of_the_models_rows_alone_says_so(
    browser: Browser, experiment: tailcut.Experiment, tmp_path: Path
) -> None:
    with opened(browser, tailcut.run(experiment, on="model", out=tmp_path), tmp_path) as (page, said):
        expect(page.locator("header")).to_contain_text("all numbers are the queueing model's")
        expect(page.locator(".headline")).to_contain_text("according to the model")
        assert said == []
