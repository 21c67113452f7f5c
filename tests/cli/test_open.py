"""`tailcut open` shows the page in the browser that the system names."""

import os
import stat
from pathlib import Path

import pytest

from support import made_up
from tailcut.results import Store

from .conftest import Tailcut


@pytest.fixture
def results(tmp_path: Path) -> Path:
    plan = made_up.plan(sweep=[], seeds=[1])
    store = Store.create(tmp_path / "results", plan, tmp_path / "made-up.toml")
    for run in plan["runs"]:
        made_up.put(store, run, made_up.flows([100.0, 200.0]))
    return store.directory


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which a stand-in for a browser records the addresses that it is given."""
    noted, browser = tmp_path / "opened.txt", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {noted}\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    return noted


def test_the_page_is_written_and_opened(tailcut: Tailcut, results: Path, opened: Path) -> None:
    page = results / "report.html"
    assert tailcut("open", results).stdout == f"{page}\n"
    assert opened.read_text() == f"{page.as_uri()}\n"
    assert page.is_file()


def test_a_page_as_new_as_the_results_is_opened_as_it_is(tailcut: Tailcut, results: Path, opened: Path) -> None:
    page = results / "report.html"
    page.write_text("as it was")
    tailcut("open", results)
    assert page.read_text() == "as it was"


def test_a_page_older_than_the_results_is_written_anew(tailcut: Tailcut, results: Path, opened: Path) -> None:
    page = results / "report.html"
    page.write_text("as it was")
    os.utime(page, (1, 1))
    tailcut("open", results)
    assert page.read_text() != "as it was"


def test_without_a_browser_the_page_is_named(tailcut: Tailcut, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    result = tailcut("open", results)
    assert (result.exit_code, result.stdout) == (1, f"{results / 'report.html'}\n")
    assert "TC-P002" in result.stderr
