"""Contexts for tests in a browser, with one generous time limit, and a report of their pages for failed tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, expect

PATIENCE = 600_000
"""The time limit in milliseconds, long enough for a machine that is busy with other tests."""
SHOWN = 20_000
"""The most characters of a page in a report."""

expect.set_options(timeout=PATIENCE)

_said: dict[BrowserContext, list[str]] = {}


@contextmanager
def visiting(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    """Opens a context without a network. If the test fails meanwhile, its pages and their messages are reported."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    context.set_offline(offline=True)
    said = _said[context] = []
    context.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    context.on("weberror", lambda error: said.append(f"error: {error.error}"))
    yield context
    del _said[context]
    context.close()


def state() -> str:
    """Returns every open page: its address, its messages and its content."""
    pages = []
    for context, said in _said.items():
        for page in context.pages:
            try:
                html = page.content()
            except Error as error:
                html = f"(no longer to be read: {error})"
            shown = html if len(html) <= SHOWN else f"{html[: SHOWN // 2]}\n[…]\n{html[-SHOWN // 2 :]}"
            pages.append("\n".join([page.url, *said, shown]))
    return "\n\n".join(pages)
