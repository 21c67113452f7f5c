"""A page of many schemes with long names and selections, on a phone and on a desk, light and dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support import browsing, synthetic
from tailcut.report import page as pages
from tailcut.report.figures import Data
from tailcut.report.study import Study
from tailcut.report.theme import theme_for

SCHEMES = ("TCP", "sim", "RepFlow", *(f"a scheme with quite a long name, number {n}" for n in range(4, 9)))
SWEEP: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("traffic.load", (0.3, 0.7)),
    ("transport.recovery", ("one of two ways to recover that takes many words to name", "the other")),
)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("many")
    shape = synthetic.Shape(schemes=SCHEMES, sweep=SWEEP, seeds=(1,), flows=12)
    study = Study.of(synthetic.with_model(synthetic.build(directory, shape)))
    html = pages.render(study, Data.of(study), theme_for(study.schemes, study.baseline, interactive=True))
    (directory / "report.html").write_text(html, "utf-8")
    return directory / "report.html"


@pytest.fixture(scope="module", params=[390, 1280])
def shown(browser: Browser, many: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    with browsing.visiting(browser, viewport={"width": request.param, "height": 844}) as context:
        page = context.new_page()
        page.goto(many.as_uri())
        page.wait_for_selector("html[data-drawn]")
        yield page


@pytest.fixture(params=["light", "dark"])
def page(shown: Page, request: pytest.FixtureRequest) -> Page:
    shown.emulate_media(color_scheme=request.param)
    return shown


def test_the_page_is_as_wide_as_the_window(page: Page) -> None:
    assert page.viewport_size is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_selections_stay_in_sight_beside_many_schemes(page: Page) -> None:
    page.locator("#slowdown").scroll_into_view_if_needed()
    legend = page.locator(".legend").bounding_box()
    assert legend is not None
    assert page.viewport_size is not None
    choices = page.locator(".legend select").all()
    assert len(choices) == 2
    for choice in choices:
        box = choice.bounding_box()
        assert box is not None
        assert legend["y"] <= box["y"] <= legend["y"] + legend["height"] - box["height"]
        assert 0 <= box["x"] <= page.viewport_size["width"] - box["width"]
        assert choice.evaluate(
            "(it) => { const box = it.getBoundingClientRect();"
            " return it.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)); }"
        ), "nothing lies over it"


def test_the_legend_leaves_most_of_the_window_to_the_figures(page: Page) -> None:
    legend = page.locator(".legend").bounding_box()
    assert legend is not None
    assert page.viewport_size is not None
    assert legend["height"] < page.viewport_size["height"] / 3


def test_a_scheme_that_is_called_as_a_backend_hides_its_own_rows_alone(shown: Page) -> None:
    key = shown.get_by_role("group", name="Schemes").get_by_role("button", name="sim", exact=True)
    of_others = shown.locator("table.summary tr[data-scheme='TCP'][data-backend='sim']").first
    expect(of_others).to_be_visible()
    key.click()
    expect(shown.locator("table.summary tr[data-scheme='sim']").first).to_be_hidden()
    expect(of_others).to_be_visible()
    key.click()
