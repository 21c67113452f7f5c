"""The playground as a person meets it: as a file, without a network, with a mouse, a keyboard, a phone, in the dark."""

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from support import browsing, playground
from tailcut import _core

STORIES = ["elephant", "second-path", "incast", "broken-link", "mice"]
RUN = """async (runs) => {
  const text = (id) => document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text('module')), (letter) => letter.charCodeAt(0));
  const whole = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const module = await WebAssembly.compile(await new Response(whole).arrayBuffer());
  const worker = new Worker(URL.createObjectURL(new Blob([text('worker')], { type: 'text/javascript' })));
  const ask = (message) => new Promise((resolve) => {
    worker.onmessage = ({ data }) => { if ('answer' in data) resolve(data.answer); };
    worker.postMessage(message);
  });
  await ask({ id: 0, task: 'start', module });
  const letters = (array) => array === null ? null : btoa(Array.from(
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength), (byte) => String.fromCharCode(byte)).join(''));
  const told = [];
  for (const run of runs) {
    const { tables } = await ask({ id: 1, task: 'run', run, frames: 50 });
    told.push(Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, Object.fromEntries(
      Object.entries(table).map(([column, { cells, valid }]) => [column, [letters(cells), letters(valid)]]))])));
  }
  worker.terminate();
  return told;
}"""


def story(name: str) -> Path:
    return playground.ROOT / "experiments/playground" / f"{name}.toml"


@pytest.fixture(scope="session")
def playground_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = playground.module()
    page = tmp_path_factory.mktemp("playground") / "index.html"
    command = ["node", str(playground.NODE.with_name("build.mjs")), str(module), str(page)]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return page


class Opened:
    """The page in the browser, and what it did beyond showing itself."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.messages: list[str] = []
        page.on("request", lambda sent: self.requests.append(sent.url))
        page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))

    def status(self, text: str) -> None:
        expect(self.page.locator("#status")).to_have_text(re.compile(text))

    def file(self) -> str:
        return self.page.locator("#file").input_value()


@pytest.fixture
def opened(browser: Browser, playground_file: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """The page, ready, where nothing moves that need not."""
    options: dict[str, Any] = {"reduced_motion": "reduce"}
    for mark in request.node.iter_markers("context"):
        options |= mark.kwargs
    with browsing.visiting(browser, **options) as context:
        opened = Opened(context.new_page())
        opened.page.goto(playground_file.as_uri())
        opened.page.wait_for_selector("html[data-ready]")
        yield opened


def test_the_page_loads_offline_without_console_errors(opened: Opened, playground_file: Path) -> None:
    opened.status("^Ready: ")
    assert opened.messages == []
    fetched = [url for url in opened.requests if not url.startswith(("data:", "blob:"))]
    assert fetched == [playground_file.as_uri()]


@pytest.mark.parametrize("name", STORIES)
def test_a_story_runs_to_its_end_with_the_numbers_of_the_command_line(opened: Opened, name: str) -> None:
    page = opened.page
    plan = json.loads(_core.load(str(story(name))))
    page.get_by_role("button", name=plan["title"]).click()
    expect(page.locator("#story li")).to_have_count(3)
    expect(page.locator("#file")).to_have_value(story(name).read_text())
    opened.status("^Ready: ")
    page.locator("#run").click()
    opened.status("^Finished")
    rows = page.locator("#numbers tbody tr")
    expect(rows).to_have_count(2)
    for run, row in zip(plan["runs"], rows.all(), strict=True):
        flows = {key: column["values"] for key, column in _core.run(json.dumps(run))["flows"].items()}
        assert flows["finished"][flows["bytes"] <= 100_000].all()
        times = np.sort(flows["fct_ns"][flows["bytes"] <= 100_000])
        told = row.inner_text().replace("\N{NO-BREAK SPACE}", " ").split("\t")
        assert told[0] == run["scheme"]
        assert told[1] == f"{len(times):,}"
        for share, text in zip((0.5, 0.9, 0.99, 1.0), told[2:6], strict=True):
            value, unit = text.split()
            expected = times[max(1, int(np.ceil(share * len(times) - 1e-9))) - 1]
            last_digit = 10.0 ** -len(value.partition(".")[2])
            assert abs(float(value) - expected / {"µs": 1e3, "ms": 1e6, "s": 1e9}[unit]) <= 0.501 * last_digit
        assert told[6] == "0"
    assert page.locator("#verdict").inner_text().startswith(f"Under {plan['baseline']}, half of the flows")
    assert opened.messages == []


@pytest.mark.context(bypass_csp=True)
def test_the_worker_makes_the_same_bytes_as_the_command_line(opened: Opened) -> None:
    runs = [run for name in STORIES for run in json.loads(_core.load(str(story(name))))["runs"]]
    told = opened.page.evaluate(RUN, [json.dumps(run) for run in runs])
    for run, tables in zip(runs, told, strict=True):
        native = _core.run(json.dumps(run))
        for name in ("flows", "tiers"):
            assert list(tables[name]) == list(native[name])
            for column, (cells, valid) in tables[name].items():
                expected = native[name][column]
                assert base64.b64decode(cells) == np.asarray(expected["values"]).tobytes(), (run["id"], column)
                known = None if expected["valid"] is None else np.asarray(expected["valid"]).tobytes()
                assert (None if valid is None else base64.b64decode(valid)) == known, (run["id"], column)


def test_every_scheme_can_be_chosen_and_is_written_into_the_file(opened: Opened) -> None:
    page = opened.page
    components = json.loads(_core.describe())
    for group in ("transport", "queue", "balance", "replicate"):
        known = [component["name"] for component in components if component["group"] == group]
        options = page.locator(f"#scheme-1-{group}-kind option").all_inner_texts()
        assert options == known
    page.locator("#scheme-1-balance-kind").select_option("drill")
    expect(page.locator("#file")).to_have_value(re.compile(r'balance = \{ kind = "drill" \}'))
    page.locator("#scheme-1-transport-congestion-kind").select_option("cubic")
    expect(page.locator("#file")).to_have_value(re.compile(r'congestion = \{ kind = "cubic" \}'))
    page.locator("#topology-kind").select_option("leaf-spine")
    expect(page.locator("#file")).to_have_value(re.compile(r'kind = "leaf-spine"'))


def test_what_the_controls_write_is_planned_alike_on_the_command_line(opened: Opened) -> None:
    page = opened.page
    page.get_by_role("button", name="Why a second path helps").click()
    opened.status("^Ready: ")
    page.locator("#topology-k").fill("4")
    page.locator("#topology-k").press("Enter")
    expect(page.locator("#file")).to_have_value(re.compile(r"^k = 4$|kind = \"fat-tree\"\n\n", re.MULTILINE))
    page.locator("#traffic-load").fill("0.2")
    page.locator("#traffic-load").dispatch_event("change")
    expect(page.locator("#file")).to_have_value(re.compile(r"^load = 0.2$", re.MULTILINE))
    page.locator("#traffic-sizes").fill("20 KB")
    page.locator("#traffic-sizes").press("Tab")
    expect(page.locator("#file")).to_have_value(re.compile(r'^sizes = "20KB"$|^sizes = "20 KB"$', re.MULTILINE))
    opened.status("^Ready: ")
    plan = json.loads(_core.loads("experiment.toml", opened.file(), str(playground.ROOT)))
    names = " and ".join(run["id"][:8] for run in plan["runs"])
    expect(page.locator("#ids")).to_contain_text(names)


def test_a_mistake_in_the_file_is_shown_with_its_place_and_can_be_corrected(opened: Opened) -> None:
    page = opened.page
    right = opened.file()
    page.locator("#file").fill(right.replace("[queue]", "").replace('kind = "mix"', 'kind = "mixx"'))
    page.locator("#file").blur()
    opened.status("has an error")
    expect(page.get_by_role("alert")).to_contain_text("mixx")
    expect(page.get_by_role("alert")).to_contain_text("experiment.toml:")
    expect(page.locator("#run")).to_be_disabled()
    page.locator("#file").fill(right)
    page.locator("#file").blur()
    opened.status("^Ready: ")
    expect(page.locator("#problem")).to_be_hidden()
    expect(page.locator("#run")).to_be_enabled()


@pytest.mark.context(reduced_motion="no-preference")
def test_a_run_can_be_played_paused_and_rewound(opened: Opened) -> None:
    page = opened.page
    page.locator("#run").click()
    expect(page.locator("#progress")).to_have_text(re.compile("Flows that have finished: [1-9]"))
    page.locator("#pause").click()
    expect(page.locator("#pause")).to_have_text("Play")
    paused = page.locator("#clock").inner_text()
    assert paused != "0.0\N{NO-BREAK SPACE}ms"
    page.locator("#time").fill("0")
    expect(page.locator("#clock")).to_have_text("0.0\N{NO-BREAK SPACE}ms")
    page.locator("#pause").click()
    opened.status("^Finished")
    expect(page.locator("#pause")).to_have_text("Play again")
    assert opened.messages == []


@pytest.mark.context(reduced_motion="no-preference")
def test_a_run_paused_before_its_start_can_be_resumed(opened: Opened) -> None:
    opened.page.evaluate("() => ['run', 'pause'].forEach((id) => document.getElementById(id).click())")
    expect(opened.page.locator("#pause")).to_have_text("Play")
    opened.page.locator("#pause").click()
    opened.status("^Finished")


def test_the_page_can_be_operated_by_keyboard_alone(opened: Opened) -> None:
    page = opened.page

    def focused() -> str:
        return str(page.evaluate("() => document.activeElement.id || document.activeElement.textContent"))

    page.keyboard.press("Tab")
    assert focused() == "Skip to the simulation"
    for _ in range(3):
        page.keyboard.press("Tab")
    assert focused() == "When replication hurts: incast"
    page.keyboard.press("Enter")
    expect(page.locator("#file")).to_have_value(story("incast").read_text())
    opened.status("^Ready: ")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert focused() == "run"
    page.keyboard.press("Enter")
    opened.status("^Finished")


def test_every_field_has_a_name(opened: Opened) -> None:
    nameless = """() => [...document.querySelectorAll('input, select, textarea, canvas, button')]
      .filter((each) => !(each.labels?.length || each.getAttribute('aria-label') || each.textContent.trim()))
      .map((each) => each.outerHTML)"""
    assert opened.page.evaluate(nameless) == []


@pytest.mark.context(viewport={"width": 360, "height": 740})
def test_a_phone_sized_page_does_not_scroll_sideways(opened: Opened) -> None:
    opened.page.get_by_role("button", name="When replication hurts").click()
    opened.status("^Ready: ")
    opened.page.locator("#run").click()
    opened.status("^Finished")
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= 360


@pytest.mark.context(color_scheme="dark")
def test_the_page_follows_a_dark_colour_scheme(opened: Opened) -> None:
    assert opened.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
