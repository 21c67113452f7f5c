"""The script that draws a page's figures: bundled once, kept for the pages after it."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import platformdirs
import pytest
import vl_convert

from tailcut.report import vega

BUNDLE = "window.vegaEmbed = 1; '</script>'"


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the bundles made, with an empty cache directory."""
    done: list[str] = []

    def bundle(snippet: str, vl_version: str) -> str:
        done.append(vl_version)
        return BUNDLE

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    keep_in(monkeypatch, lambda: tmp_path / "cache")
    return done


def keep_in(monkeypatch: pytest.MonkeyPatch, place: Callable[[], Path]) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: place())


def test_the_second_page_reuses_the_bundled_script_of_the_first(bundled: list[str]) -> None:
    first = vega.script()
    assert vega.script() == first
    assert len(bundled) == 1


def test_the_script_contains_no_closing_script_tag(bundled: list[str]) -> None:
    assert "</script" not in vega.script()
    assert "</script" not in vega.script(), "nor when it was kept"
    assert len(bundled) == 1


def test_another_version_bundles_its_own_script(bundled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    vega.script()
    monkeypatch.setattr(metadata, "version", lambda _: "99.0")
    vega.script()
    assert len(bundled) == 2


def test_without_a_writable_cache_the_script_is_bundled_each_time(
    bundled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("a file, where a directory would have to be", "utf-8")
    keep_in(monkeypatch, lambda: file / "below")
    assert vega.script() == vega.script()
    assert len(bundled) == 2


def test_without_a_home_directory_nothing_is_cached(
    bundled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keep_in(monkeypatch, lambda: Path("~/.cache/tailcut"))
    assert vega.script() == vega.script()
    assert len(bundled) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_cache_file_is_bundled_again(bundled: list[str]) -> None:
    script = vega.script()
    vega.kept_at().write_bytes(b"\xff\xfe\xff")
    assert vega.script() == script
    assert vega.kept_at().read_text("utf-8") == script


def test_the_script_of_a_page_defines_what_draws_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_in(monkeypatch, lambda: tmp_path)
    assert "window.vegaEmbed" in vega.script()
