"""What all tests in a browser share: contexts of one limit, which only what hangs reaches; what is told of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, expect

PATIENCE = 600_000
"""Milliseconds: machines that are busy with other tests take their time."""
SHOWN = 20_000
"""Characters of a page."""

expect.set_options(timeout=PATIENCE)

_said: dict[BrowserContext, list[str]] = {}


@contextmanager
def visiting(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    """A context without a network, whose pages and what they say are told if the test fails while it is open."""
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
    """Every open page: where it is, what it has said, what it shows."""
    told = []
    for context, said in _said.items():
        for page in context.pages:
            try:
                html = page.content()
            except Error as error:
                html = f"(no longer to be read: {error})"
            shown = html if len(html) <= SHOWN else f"{html[: SHOWN // 2]}\n[…]\n{html[-SHOWN // 2 :]}"
            told.append("\n".join([page.url, *said, shown]))
    return "\n\n".join(told)
