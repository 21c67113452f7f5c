"""The fabric on the page as a person meets it: time, links, flows, pods, keyboard, dark, print; and at 1,024 hosts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import tailcut
from support import browsing, experiments
from tailcut import report
from tailcut.report.fabric_samples import FabricSamples
from tailcut.report.study import Study

MOST_BYTES = 3_800_000
"""A page of 2 ms of arrivals; those of 5 ms, which take 14 s longer to make, are a third larger and may have 5 MB."""
SMALL = {
    "measure.fabric": "true",
    "measure.fabric_instants": "40",
    "traffic.sizes": "web-search",
    "traffic.load": "0.6",
    "horizon.arrivals": "20ms",
}
LARGE = {"measure.fabric": "true", "topology.k": "16", "traffic.load": "0.8", "horizon.arrivals": "2ms"}


@dataclass
class Shown:
    """A page with a fabric, what it is of, and what the browser had to say."""

    page: Page
    watched: FabricSamples
    size: int
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def lines(self, panel: int) -> Locator:
        return self.page.locator(".fabric-panel").nth(panel).locator("line")

    def heat(self, panel: int) -> list[int]:
        """The levels of the links of a panel, coldest first."""
        classes = self.page.evaluate(
            """(panel) => {
              const lines = document.querySelectorAll('.fabric-panel')[panel].querySelectorAll('line');
              return [...lines].map((line) => line.getAttribute('class'));
            }""",
            panel,
        )
        return sorted(int(name[-1]) for name in classes)


def made(directory: Path, changes: dict[str, str]) -> tuple[Path, FabricSamples]:
    """The page of an experiment that is carried out, and what its fabric shows."""
    experiment = tailcut.load(experiments.tiny(directory), set=changes, seeds=1)
    result = tailcut.run(experiment, out=directory / "results")
    watched = FabricSamples.of(Study.of(result))
    assert watched is not None
    return report.write(result, directory / "report.html")[0], watched


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FabricSamples]:
    return made(tmp_path_factory.mktemp("small"), SMALL)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FabricSamples]:
    return made(tmp_path_factory.mktemp("large"), LARGE)


@contextmanager
def opened(browser: Browser, made: tuple[Path, FabricSamples], **options: Any) -> Iterator[Shown]:
    file, watched = made
    with browsing.visiting(browser, **options) as context:
        shown = Shown(context.new_page(), watched, file.stat().st_size)
        shown.page.on("console", lambda message: shown.said.append(message.text))
        shown.page.on("pageerror", lambda error: shown.said.append(str(error)))
        shown.page.on("request", lambda sent: shown.requests.append(sent.url))
        shown.page.goto(file.as_uri())
        shown.page.wait_for_selector("html[data-drawn]")
        shown.page.wait_for_selector("#fabric-time[data-ready]")
        yield shown
        assert shown.said == []
        assert shown.requests == [file.as_uri()]


@pytest.fixture
def shown(browser: Browser, small: tuple[Path, FabricSamples]) -> Iterator[Shown]:
    with opened(browser, small) as found:
        yield found


def move(page: Page, instant: int) -> None:
    page.locator("#fabric-time").fill(str(instant))


def test_every_link_is_coloured_by_its_queue_at_the_instant(shown: Shown) -> None:
    queues = {name: sampled.queue for name, sampled in shown.watched.runs.items()}
    own = shown.watched.ports["from"].to_numpy() < shown.watched.hosts
    bounds = [share * shown.watched.longest for share in (0, 0.1, 0.25, 0.5, 0.8)]
    for instant in (1, 17, shown.watched.instants):
        move(shown.page, instant)
        expect(shown.page.locator("#fabric-now")).to_have_text(re.compile(r"^[\d.]+ ms$"))
        for panel, queue in enumerate(queues.values()):
            assert shown.lines(panel).count() == 48
            at = queue[instant - 1].copy() if instant <= len(queue) else own * 0
            at[own] = 0
            worst = at.reshape(48, 2).max(axis=1)
            assert shown.heat(panel) == sorted(sum(value > bound for bound in bounds) for value in worst)


def test_links_can_be_coloured_by_utilisation(shown: Shown) -> None:
    instant = 10
    move(shown.page, instant)
    shown.page.locator("#fabric-by").select_option("use")
    for panel, sampled in enumerate(shown.watched.runs.values()):
        worst = sampled.use[instant - 1].reshape(48, 2).max(axis=1)
        assert shown.heat(panel) == sorted(sum(int(value) > bound for bound in (5, 25, 50, 75, 95)) for value in worst)
    expect(shown.page.locator("#fabric-legend li").last).to_have_text("more than 95 %")


def test_either_panel_shows_any_scheme_at_the_same_instant(shown: Shown) -> None:
    move(shown.page, 12)
    before = [shown.heat(0), shown.heat(1)]
    choices = shown.page.locator(".fabric-scheme")
    choices.nth(0).select_option("RepFlow")
    choices.nth(1).select_option("TCP")
    assert [shown.heat(1), shown.heat(0)] == before
    expect(shown.page.locator("#fabric-flows-of")).to_have_text("RepFlow")


def test_playback_stops_at_the_last_instant(shown: Shown) -> None:
    move(shown.page, shown.watched.instants - 2)
    shown.page.get_by_role("button", name="Play").click()
    expect(shown.page.locator("#fabric-time")).to_have_value(str(shown.watched.instants))
    expect(shown.page.get_by_role("button", name="Play")).to_be_visible()


def middle(shown: Shown) -> tuple[float, float]:
    """The middle of some link of the first panel, in pixels of the window."""
    x, y = shown.page.evaluate(
        """() => {
          const map = document.querySelector('.fabric-map');
          map.scrollIntoView({ block: 'center', behavior: 'instant' });
          const { width, height } = map.viewBox.baseVal;
          const [line, box] = [map.querySelector('line'), map.getBoundingClientRect()];
          const [a, b, c, d] = ['x1', 'x2', 'y1', 'y2'].map((name) => Number(line.getAttribute(name)));
          return [box.left + ((a + b) / 2 / width) * box.width, box.top + ((c + d) / 2 / height) * box.height];
        }"""
    )
    return x, y


def test_hovering_a_link_shows_its_numbers_and_a_click_its_history(shown: Shown) -> None:
    move(shown.page, 15)
    x, y = middle(shown)
    shown.page.mouse.move(x, y)
    tip = shown.page.locator("#fabric-tip")
    expect(tip).to_be_visible()
    said = tip.inner_text()
    found = re.findall(r"(\w+) → (\w+): (\d+) packets wait, (\d+) % used", said)
    assert len(found) == 2
    sampled = shown.watched.runs["TCP"]
    for source, target, packets, used in found:
        port = shown.watched.ports.filter(pl.col("from_name") == source, pl.col("to_name") == target)["port"][0]
        assert int(packets) == sampled.queue[14, port]
        assert int(used) == sampled.use[14, port]
    expect(shown.page.locator("#fabric-series")).to_be_hidden()
    shown.page.mouse.click(x, y)
    expect(shown.page.locator("#fabric-series")).to_be_visible()
    expect(shown.page.locator("#fabric-series-title")).to_contain_text(found[0][0])
    assert shown.page.locator("#fabric-series-drawn path:not(.axis)").count() == 4
    shown.page.keyboard.press("Escape")


def test_a_large_number_of_drops_is_shown_exactly(
    browser: Browser, small: tuple[Path, FabricSamples], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = small[1]
    runs = {name: replace(sampled, drops=sampled.queue * 1001) for name, sampled in watched.runs.items()}
    monkeypatch.setattr(FabricSamples, "whole", lambda _: replace(watched, runs=runs))
    result = tailcut.open_results(small[0].parent / "results")
    page = report.write(result, tmp_path / "report.html")[0]
    dropped = runs["TCP"].drops.sum(axis=1)
    with opened(browser, (page, watched)) as shown:
        move(shown.page, int(dropped.argmax()) + 1)
        told = shown.page.locator(".fabric-said").first
        expect(told).to_have_text(f"{dropped.max():,} packets dropped just now")


def test_choosing_a_slow_flow_highlights_its_paths_under_both_schemes(shown: Shown) -> None:
    flow = next(flow for flow in shown.watched.flows if 0 in flow["lists"])
    shown.page.get_by_role("button", name=f"show the path of flow {flow['id']}", exact=True).click()
    expect(shown.page.locator("#fabric-time")).to_have_value(str(flow["at"] + 1))
    panels = shown.page.locator(".fabric-panel")
    for panel, of in enumerate(flow["of"]):
        ways = panels.nth(panel).locator(".way")
        assert ways.count() == len({copy for copy, _ in of["ways"]})
        drawn = "".join(ways.nth(at).get_attribute("d") or "" for at in range(ways.count()))
        assert drawn.count("M") == len(of["ways"])
        assert panels.nth(panel).locator(".way.lost").count() == ways.count() - 1
    expect(shown.page.locator("#fabric-chosen")).to_contain_text(f"Flow {flow['id']} from")
    shown.page.get_by_role("button", name=f"show the path of flow {flow['id']}", exact=True).click()
    expect(shown.page.locator(".way")).to_have_count(0)


def test_the_keyboard_moves_in_time_and_walks_through_the_links(shown: Shown) -> None:
    move(shown.page, 12)
    shown.page.locator(".fabric-map").first.focus()
    shown.page.keyboard.press("ArrowRight")
    expect(shown.page.locator("#fabric-time")).to_have_value("13")
    shown.page.keyboard.press("ArrowDown")
    own = shown.watched.ports["from"].to_numpy() < shown.watched.hosts
    queue = shown.watched.runs["TCP"].queue[12].copy()
    queue[own] = 0
    expect(shown.page.locator("#spoken")).to_contain_text(f"{queue.max()} packets wait")
    expect(shown.page.locator("#fabric-series")).to_be_visible()
    shown.page.keyboard.press("Escape")
    expect(shown.page.locator("#fabric-series")).to_be_hidden()


def test_a_dark_page_has_a_dark_fabric_and_paper_a_light_one(
    browser: Browser, small: tuple[Path, FabricSamples]
) -> None:
    with opened(browser, small, color_scheme="dark") as shown:
        colour = "(e) => getComputedStyle(e).stroke"
        line = shown.page.locator(".fabric-map .l0").first
        dark = line.evaluate(colour)
        shown.page.emulate_media(media="print")
        assert line.evaluate(colour) == "rgb(198, 206, 214)" != dark
        expect(shown.page.locator("#fabric-time")).to_be_hidden()
        expect(shown.page.locator("#fabric-now")).to_be_visible()
        expect(shown.page.locator(".fabric-scheme").first).to_be_visible()


def test_paper_shows_the_instant_that_was_chosen(shown: Shown) -> None:
    move(shown.page, 12)
    now = shown.page.locator("#fabric-now").inner_text()
    heat = [shown.heat(0), shown.heat(1)]
    move(shown.page, 13)
    assert [shown.heat(0), shown.heat(1)] != heat
    move(shown.page, 12)
    shown.page.emulate_media(media="print")
    expect(shown.page.locator("#fabric-now")).to_have_text(now)
    assert [shown.heat(0), shown.heat(1)] == heat
    expect(shown.page.locator(".fabric-map line").first).to_be_visible()


def test_a_thousand_hosts_fold_into_pods_and_the_page_stays_small(
    browser: Browser, large: tuple[Path, FabricSamples]
) -> None:
    with opened(browser, large) as shown:
        assert shown.watched.hosts == 1024
        assert shown.size <= MOST_BYTES
        assert shown.lines(0).count() == 16 * 64
        pods = shown.page.locator(".fabric-panel").first.locator(".fold")
        expect(pods).to_have_count(16)
        pods.nth(3).focus()
        shown.page.keyboard.press("Enter")
        # Its 64 hosts and 64 links between its switches are drawn, and its links to the cores are
        # as many as before.
        expect(shown.lines(0)).to_have_count(16 * 64 + 64 + 64)
        expect(shown.lines(1)).to_have_count(16 * 64 + 64 + 64)
        shown.page.keyboard.press("Enter")
        expect(shown.lines(0)).to_have_count(16 * 64)
        flow = next(flow for flow in shown.watched.flows if 0 in flow["lists"])
        shown.page.get_by_role("button", name=f"show the path of flow {flow['id']}", exact=True).click()
        unfolded = {host // 64 for host in (flow["src"], flow["dst"])}
        expect(shown.lines(0)).to_have_count(16 * 64 + 128 * len(unfolded))
        assert shown.page.locator(".fabric-panel").nth(1).locator(".way").count() >= 1
