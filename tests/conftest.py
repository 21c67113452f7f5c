"""Settings of all tests.

Property tests draw the same cases in every session. TAILCUT_TEST_SEED, in the head of the report, draws others.
"""

import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from support import apart, skipping, workers

# Machines differ in speed and share their cores; only results are tested. The seed is all that it
# takes to repeat them.
settings.register_profile("tailcut", deadline=None, database=None)
settings.load_profile("tailcut")

SEED = "TAILCUT_TEST_SEED"
SLOW = re.compile(
    "^(browser|capture|cluster|determinism|playground)/|^lab/test_(kernels|killing|idle_flows|repnet)"
    "|^cli/test_(interruption|other_systems)|^report/test_page|^results/test_without_locks"
    "|::test_(a_page_can_be_followed|a_small_variant_runs|an_experiment_runs_at_a_smaller_scale|a_run_at_the_papers_scale)"
    "|::test_(a_process_killed|every_experiment_that_comes_along|the_scheme_of_the_page)"
)
"""Tests that take seconds each, by their names below this folder: `make check` leaves them out."""


@pytest.fixture(scope="session", autouse=True)
def _in_process() -> Iterator[None]:
    """Makes runs in this process, by the worker's code; `worker_processes` brings the processes back."""
    with workers.in_process():
        yield


@pytest.fixture
def worker_processes() -> Iterator[None]:
    """Makes runs in worker processes, for tests of these."""
    with workers.in_processes():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests; put those last that need an idle machine."""
    here = Path(__file__).parent
    for item in items:
        if SLOW.search(f"{item.path.relative_to(here).as_posix()}::{item.name}"):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("idle") is not None)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Leave the machine's network and mounts; give Hypothesis the session's seed, which its workers inherit."""
    apart.leave()
    os.environ.setdefault(SEED, "1")
    config.option.hypothesis_seed = os.environ[SEED]


def pytest_report_header() -> str:
    """Say which cases are drawn."""
    return f"{SEED}={os.environ[SEED]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips without saying what kind of thing is missing."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and skipping.Skip.of(reason(report)) is None:
        report.outcome = "failed"
        report.longrepr = f"use support.skipping, which tells the kind: {reason(report)}"
    return report


def reason(report: pytest.TestReport) -> str:
    """Returns why a test was skipped."""
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return why.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write what was skipped to the list of all suites; say the seed where failures are told, too."""
    skipped = [(report.nodeid, reason(report)) for report in terminalreporter.stats.get("skipped", [])]
    listed = os.environ.get("TAILCUT_SKIPPED")
    if listed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(listed).open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in skipping.lines(skipped))
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"{SEED}={os.environ[SEED]} draws the same cases again")
