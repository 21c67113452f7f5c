"""Settings of all tests.

Property tests draw the same cases in every session. TAILCUT_TEST_SEED, in the head of the report, draws others.
"""

import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

# Machines differ in speed and share their cores; only results are tested. The seed is all that it takes to repeat them.
settings.register_profile("tailcut", deadline=None, database=None)
settings.load_profile("tailcut")

SEED = "TAILCUT_TEST_SEED"
SLOW = re.compile(
    "^(browser|capture|cluster|determinism|playground)/|^lab/test_(kernels|killing|lone|repnet)"
    "|^cli/test_(interruption|other_systems)|^report/test_page|^results/test_without_locks"
    "|::test_(a_page_can_be_followed|a_small_variant_runs|an_experiment_runs_at_a_smaller_scale|a_run_at_the_papers_scale)"
    "|::test_(a_process_killed|every_experiment_that_comes_along|the_scheme_of_the_page)"
)
"""Tests that take seconds each, by their names below this folder: `make check` leaves them out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests."""
    here = Path(__file__).parent
    for item in items:
        if SLOW.search(f"{item.path.relative_to(here).as_posix()}::{item.name}"):
            item.add_marker("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give Hypothesis the session's seed; the workers of a session inherit it."""
    os.environ.setdefault(SEED, "1")
    config.option.hypothesis_seed = os.environ[SEED]


def pytest_report_header() -> str:
    """Say which cases are drawn."""
    return f"{SEED}={os.environ[SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it where failures are told, too; what was skipped goes to the list of all tests."""
    reasons: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons.setdefault(why.removeprefix("Skipped: "), []).append(report.nodeid)
    skipped = os.environ.get("TAILCUT_SKIPPED")
    if skipped and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(skipped).open("a", encoding="utf-8") as file:
            file.writelines(f"  Python: {why}: {', '.join(tests)}\n" for why, tests in reasons.items())
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"{SEED}={os.environ[SEED]} draws the same cases again")
