"""The page as a person meets it: in a browser without a network, with a mouse, a keyboard, a phone, in the dark."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect


def marks(page: Page, scheme: str, within: str = "") -> Locator:
    """The drawn marks of a scheme, which Vega labels with the values behind them."""
    return page.locator(f"{within} svg [aria-roledescription='point'][aria-label*='scheme: {scheme}']")


def tooltip(page: Page) -> Locator:
    return page.locator("#vg-tooltip-element.visible")


def test_every_panel_is_drawn_without_console_errors(opened: Any) -> None:
    panels = opened.page.locator(".panel .chart")
    drawn = opened.page.locator(".panel .chart svg")
    assert panels.count() > 15
    expect(drawn).to_have_count(panels.count())
    assert opened.messages == []


def test_the_page_makes_no_network_requests(opened: Any, report_file: Path) -> None:
    assert opened.requests == [report_file.as_uri()]


@pytest.mark.parametrize("panel", ["#fct-short-p99", "#change-short-mean", "#slowdown-short-p99", "#size-p99"])
def test_hovering_shows_value_and_interval(opened: Any, panel: str) -> None:
    page = opened.page
    mark = marks(page, "RepFlow", panel).first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(tooltip(page)).to_contain_text("RepFlow")
    expect(tooltip(page)).to_contain_text(re.compile(r"95 % interval\s*−?[\d.,]+ to −?[\d.,]+"))
    expect(tooltip(page)).to_contain_text("seeds")


def test_hovering_beside_a_mark_shows_the_nearest(opened: Any) -> None:
    page = opened.page
    chart = page.locator("#cdf-short svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.4)
    expect(tooltip(page)).to_contain_text("flows at most this slow")


def test_a_toggle_hides_a_scheme_in_every_figure_and_table_and_brings_it_back(opened: Any) -> None:
    page = opened.page
    key = page.get_by_role("button", name="RepFlow")
    before = marks(page, "RepFlow").count()
    others = marks(page, "TCP").count()
    rows = page.locator("tr[data-scheme='RepFlow']")
    assert before > 20
    key.click()
    expect(key).to_have_attribute("aria-pressed", "false")
    expect(marks(page, "RepFlow")).to_have_count(0)
    expect(marks(page, "TCP")).to_have_count(others)
    assert all(not row.is_visible() for row in rows.all())
    key.click()
    expect(key).to_have_attribute("aria-pressed", "true")
    expect(marks(page, "RepFlow")).to_have_count(before)


def test_a_toggle_hides_the_model_and_leaves_the_simulator(opened: Any) -> None:
    page = opened.page
    both = marks(page, "TCP", "#fct-short-mean").count()
    page.get_by_role("button", name="model").click()
    expect(marks(page, "TCP", "#fct-short-mean")).to_have_count(both // 2)


def test_choosing_a_load_redraws_the_figures_of_one_point_and_says_so(opened: Any) -> None:
    page = opened.page
    curve = page.locator("#cdf-short svg path[aria-roledescription='line mark']").first
    heading = page.locator("#cdf h2")
    expect(heading).to_contain_text("at load 0.5")
    shape = curve.get_attribute("d")
    page.get_by_role("combobox", name="load").select_option("0.7")
    expect(heading).to_contain_text("at load 0.7")
    expect(curve).not_to_have_attribute("d", shape or "")


def test_the_keyboard_toggles_a_scheme(opened: Any) -> None:
    page = opened.page
    page.get_by_role("button", name="RepSYN").focus()
    page.keyboard.press("Space")
    expect(marks(page, "RepSYN")).to_have_count(0)


def test_arrow_keys_walk_through_the_marks_of_a_figure_and_read_them_out(opened: Any) -> None:
    page = opened.page
    spoken = page.locator("#spoken")
    page.locator("#fct-short-mean").focus()
    page.keyboard.press("ArrowRight")
    expect(tooltip(page)).to_contain_text("mean FCT")
    expect(spoken).to_contain_text("mean FCT")
    first = spoken.text_content()
    page.keyboard.press("ArrowRight")
    expect(spoken).not_to_have_text(first or "")
    page.keyboard.press("ArrowLeft")
    expect(spoken).to_have_text(first or "")
    page.keyboard.press("Escape")
    expect(tooltip(page)).to_have_count(0)


def colour(locator: Locator, attribute: str) -> str:
    return str(locator.evaluate(f"element => getComputedStyle(element).{attribute}"))


@pytest.mark.context(color_scheme="dark")
def test_the_dark_page_has_dark_paper_and_light_ink_in_its_figures(opened: Any) -> None:
    page = opened.page
    assert colour(page.locator("body"), "backgroundColor") == "rgb(20, 24, 29)"
    assert colour(page.locator("#fct-short-mean svg text").first, "fill") == "rgb(163, 173, 184)"


def test_the_reader_may_choose_light_or_dark(opened: Any) -> None:
    page = opened.page
    button = page.get_by_role("button", name="Theme")
    button.click()
    button.click()
    expect(button).to_have_text("Theme: dark")
    assert colour(page.locator("body"), "backgroundColor") == "rgb(20, 24, 29)"


@pytest.mark.context(color_scheme="dark")
def test_paper_is_white_also_when_a_dark_page_is_printed(opened: Any) -> None:
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert colour(opened.page.locator("body"), "backgroundColor") == "rgb(255, 255, 255)"
    assert colour(opened.page.locator("#fct-short-mean svg text").first, "fill") == "rgb(86, 96, 107)"
    assert not opened.page.locator("#theme").is_visible()


@pytest.mark.context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
def test_on_a_phone_panels_stack_and_the_page_scrolls_vertically_only(opened: Any) -> None:
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first, second = (page.locator(name).bounding_box() for name in ("#fct-short-mean", "#fct-short-p99"))
    assert second["y"] > first["y"] + first["height"]
    assert first["width"] > 300


def test_a_figure_saved_as_svg_has_colours_of_its_own(opened: Any) -> None:
    page = opened.page
    page.locator("#fct details summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="as SVG").first.click()
    svg = Path(download.value.path()).read_text("utf-8")
    assert svg.startswith("<svg")
    assert "var(" not in svg
    assert "#0072b2" in svg


def test_the_numbers_of_a_figure_are_saved_as_csv(opened: Any) -> None:
    page = opened.page
    page.locator("#change details summary").click()
    with page.expect_download() as download:
        page.locator("#change").get_by_role("button", name="Save as CSV").click()
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert lines[0].startswith("backend,scheme,point,class,statistic")
    assert len(lines) > 20
