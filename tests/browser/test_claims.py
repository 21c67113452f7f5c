"""The page of claims in a browser: on a phone and on a desk, light and dark."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tailcut import _core, claims
from tailcut.claims import Row, Scorecard, Verdict, page
from tailcut.claims.scorecard import Point
from tailcut.claims.verdict import Number

CLAIM = "repnet/fig5-repflow-mean"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with one row that has come out."""
    number = Number(-0.14, -0.17, -0.11)
    points = (Point({"traffic.load": 0.5}, number, Verdict.REPRODUCED),)
    row = Row(CLAIM, "stated", "sim", points, Verdict.REPRODUCED, _core.RESULTS, (1, 2), ("f00",))
    file = tmp_path_factory.mktemp("claims") / "claims.html"
    file.write_text(page.render([*claims.load().values()], Scorecard([row])))
    return file


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_can_be_read(browser: Browser, shown: Path, width: int, scheme: str) -> None:
    complaints: list[str] = []
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    tab.on("console", lambda message: complaints.append(message.text))
    tab.goto(shown.as_uri())
    for details in tab.locator("details").all():
        details.evaluate("one => one.open = true")
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert tab.locator("article").count() == sum(len(paper.claims) for paper in claims.load().values())
    verdict = tab.locator(f"[id='{CLAIM}'] .judged")
    assert verdict.inner_text().split() == ["✓", "reproduced"]
    assert complaints == []
    tab.close()
