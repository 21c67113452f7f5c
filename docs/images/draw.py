"""The README's picture, from the page of a real run: `make picture`."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

# Under TCP it waits behind the busiest link; under RepFlow the copy that wins goes round it.
FLOW = "113"


def draw(report: Path, picture: Path) -> None:
    """Draws the fabric at the instant at which the flow is on its way, under two schemes.

    Args:
        report: the page.
        picture: the PNG file that is written.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900}, device_scale_factor=1.25)
        page.goto(report.resolve().as_uri())
        page.wait_for_selector("html[data-drawn]")
        page.locator("#fabric-flows").get_by_text(FLOW, exact=True).click()
        # A picture has no controls.
        page.add_style_tag(content=".fabric-bar, #fabric > h2, #fabric > .lead, #fabric figcaption { display: none }")
        page.locator(".fabric-panel select").evaluate_all(
            "all => all.forEach(one => one.replaceWith(one.selectedOptions[0].text))"
        )
        page.locator("#fabric figure").screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
