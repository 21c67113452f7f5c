"""Slow flows on the page: chosen from the list, or from the tail of the distribution."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import tailcut
from support import browsing, experiments


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("slow")
    losses = {"queue.limit": '"8packets"', "traffic.load": "0.6", "traffic.sizes": '"90KB"'}
    experiment = tailcut.load(experiments.tiny(directory), set=losses, seeds=1)
    return tailcut.run(experiment, out=directory / "results").report(directory / "page.html", 3)[0]


@pytest.fixture
def page(browser: Browser, written: Path) -> Iterator[Page]:
    with browsing.visiting(browser, color_scheme="dark") as context:
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(written.as_uri())
        page.wait_for_selector("html[data-drawn]")
        yield page
        assert not said


def test_the_chosen_flow_is_shown_and_no_other(page: Page) -> None:
    flows = page.locator("#slow-flow option").evaluate_all("options => options.map(one => one.value)")
    assert len(flows) >= 3
    for flow in (flows[-1], flows[0]):
        page.locator("#slow-flow").select_option(flow)
        expect(page.locator("figure.slow:visible")).to_have_count(1)
        expect(page.locator(f"figure.slow[data-flow='{flow}'] svg.timeline")).to_have_count(2)
    page.locator("[data-hide='scheme:RepFlow']").click()
    expect(page.locator("figure.slow:visible svg.timeline:visible")).to_have_count(1)


def test_one_list_offers_the_slow_flows_of_every_point(browser: Browser, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path, '[sweep]\n"traffic.load" = [0.2, 0.4]\n'), seeds=1)
    written = tailcut.run(experiment, out=tmp_path / "results").report(tmp_path / "page.html", 1)[0]
    with browsing.visiting(browser) as context:
        page = context.new_page()
        page.goto(written.as_uri())
        page.wait_for_selector("html[data-drawn]")
        groups = page.locator("#slow-flow optgroup")
        assert groups.evaluate_all("all => all.map(one => one.label)") == ["load 0.4, seed 1", "load 0.2, seed 1"]
        first = groups.nth(1).locator("option").first.get_attribute("value")
        page.locator("#slow-flow").select_option(first)
        shown = page.locator("figure.slow:visible")
        expect(shown).to_have_count(1)
        expect(shown.locator("figcaption")).to_contain_text("load 0.2, seed 1")


def test_the_keyboard_leads_from_the_slowest_mark_to_its_flow(page: Page) -> None:
    slowest = page.evaluate(
        """() => {
          const { slow } = JSON.parse(document.getElementById("state").textContent);
          const longest = ({ times }) => Math.max(...Object.values(times));
          return String(slow.toSorted((a, b) => longest(b) - longest(a))[0].flow);
        }"""
    )
    others = page.locator(f"#slow-flow option:not([value='{slowest}'])")
    page.locator("#slow-flow").select_option(others.first.get_attribute("value"))
    page.locator("#tail-short").focus()
    for key in ("ArrowLeft", "ArrowRight", "Enter"):  # from the first to the last but one, to the last
        page.keyboard.press(key)
    expect(page.locator("#slow-flow")).to_have_value(slowest)
    expect(page.locator(f"figure.slow[data-flow='{slowest}']")).to_be_visible()


def test_the_diagrams_are_printed_in_the_colours_of_paper(page: Page) -> None:
    page.emulate_media(media="print", color_scheme="light")
    expect(page.locator("figure.slow:visible")).to_have_count(1)
    ink = page.locator("svg.timeline:visible text").first.evaluate("text => getComputedStyle(text).fill")
    assert ink == "rgb(86, 96, 107)"
