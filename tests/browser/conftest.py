import shutil
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from support import browsing, synthetic
from support.skipping import missing
from tailcut import report

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@dataclass
class Opened:
    """A page in the browser, and what it did beyond showing itself."""

    page: Page
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        missing("there is no chromium", "apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("store")
    shape = synthetic.Shape(
        sweep=(("traffic.load", (0.3, 0.5, 0.7)),), seeds=(1, 2), flows=200, unfinished=0.02
    )  # fmt: skip
    result = synthetic.with_model(synthetic.build(directory, shape, series=True))
    return report.write(result, directory / "report.html")[0]


@pytest.fixture
def opened(browser: Browser, report_file: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """The report, drawn; the marker ``context`` passes options to the browser context."""
    options = {name: value for mark in request.node.iter_markers("context") for name, value in mark.kwargs.items()}
    with browsing.visiting(browser, **options) as context:
        page = context.new_page()
        result = Opened(page)
        page.on("request", lambda sent: result.requests.append(sent.url))
        page.on("console", lambda message: result.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: result.messages.append(f"error: {error}"))
        page.goto(report_file.as_uri())
        page.wait_for_selector("html[data-drawn]")
        yield result


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "context(**options): options of the browser context")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell of the pages that were open when a limit was reached, or whatever else went wrong."""
    report = yield
    if report.failed and call.when != "teardown" and (told := browsing.state()):
        report.sections.append(("open pages", told))
    return report
