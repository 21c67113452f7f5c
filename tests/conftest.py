"""Settings of all tests.

Property tests draw other cases in every session. The seed is in the report's head; TAILCUT_TEST_SEED gives it again.
"""

import os
import secrets

import pytest
from hypothesis import settings

# Machines differ in speed and share their cores; only results are tested. The seed is all that it takes to repeat them.
settings.register_profile("tailcut", deadline=None, database=None)
settings.load_profile("tailcut")

SEED = "TAILCUT_TEST_SEED"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give Hypothesis the session's seed; the workers of a session inherit it."""
    os.environ.setdefault(SEED, str(secrets.randbits(32)))
    config.option.hypothesis_seed = os.environ[SEED]


def pytest_report_header() -> str:
    """Say which cases are drawn."""
    return f"{SEED}={os.environ[SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it where failures are told, too."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"{SEED}={os.environ[SEED]} draws the same cases again")
