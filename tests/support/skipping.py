"""Skips by kind: an optional part is missing, or the machine is too busy to judge.

A test never calls ``pytest.skip`` itself. Skips are written as lines of JSON to the file that `TAILCUT_SKIPPED` names;
``.ci/skipped`` shows them.
"""

import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, ParamSpec

import pytest

from support import idle

P = ParamSpec("P")

TRIES = 3
"""The number of tries of a test that needs an idle machine."""

WAITING = 1.5
"""The processes per processor, running or waiting in the last minute, above which a machine is busy."""

MISSING = re.compile(r"missing: (?P<why>.*?)(?: \[to have it: (?P<how>.*)\])?", re.DOTALL)
BUSY = re.compile(r"too busy, tried (?P<tried>\d+) times: (?P<why>.*)", re.DOTALL)


class TooBusyError(Exception):
    """The machine was too busy to judge a test."""


@dataclass(frozen=True)
class Skip:
    """Why a test was skipped.

    Attributes:
        kind: ``missing``, an optional part, or ``busy``, the machine.
        why: what is missing, or what kept the machine from being judged.
        how: the command that brings a missing part, if there is one.
        tried: how often the test was tried.
    """

    kind: str
    why: str
    how: str | None = None
    tried: int = 0

    @property
    def reason(self) -> str:
        """The reason that pytest shows."""
        if self.kind == "busy":
            return f"too busy, tried {self.tried} times: {self.why}"
        return f"missing: {self.why}" + (f" [to have it: {self.how}]" if self.how else "")

    @classmethod
    def of(cls, reason: str) -> "Skip | None":
        """Reads a reason; returns None if no function of this module wrote it."""
        if found := BUSY.fullmatch(reason):
            return cls("busy", found["why"], None, int(found["tried"]))
        if found := MISSING.fullmatch(reason):
            return cls("missing", found["why"], found["how"])
        return None


def missing(why: str, how: str | None = None) -> NoReturn:
    """Skips the test: an optional part is missing, which the command ``how`` brings."""
    pytest.skip(Skip("missing", why, how).reason)


def needs(there: object, why: str, how: str | None = None) -> pytest.MarkDecorator:
    """Returns the marker that skips a test unless an optional part is there."""
    return pytest.mark.skipif(not there, reason=Skip("missing", why, how).reason)


needs_root = needs(os.geteuid() == 0, "only root can become another user", "run the tests as root")


def busy(why: str) -> NoReturn:
    """Gives up this try of a test under `judged_when_idle`."""
    raise TooBusyError(why)


@contextmanager
def on_an_idle_machine() -> Iterator[None]:
    """Takes an assertion that fails inside for a sign of a busy machine while processes wait for its processors.

    Encloses what a test under `judged_when_idle` asserts about time, and nothing that must hold on any machine.
    """
    try:
        yield
    except AssertionError as failure:
        load = os.getloadavg()[0]
        if load <= WAITING * (os.cpu_count() or 1):
            raise
        raise TooBusyError(f"{load:.1f} processes want a processor, and {str(failure).splitlines()[0]}") from failure


def judged_when_idle(test: Callable[P, None]) -> Callable[P, None]:
    """Tries a test up to three times, each time after the load has gone, until the machine was idle enough.

    Each try has a directory of its own in place of ``tmp_path``. A test that could not be judged is skipped as busy.
    """

    @functools.wraps(test)
    def tried(*arguments: P.args, **named: P.kwargs) -> None:
        why = ""
        place = named.get("tmp_path")
        for number in range(1, TRIES + 1):
            if isinstance(place, Path):
                own = place / f"try-{number}"
                own.mkdir()
                named["tmp_path"] = own
            try:
                test(*arguments, **named)
            except TooBusyError as error:
                why = str(error)
            else:
                return
            if number < TRIES:
                idle.wait()
        pytest.skip(Skip("busy", why, None, TRIES).reason)

    return pytest.mark.idle(tried)


def lines(skipped: Iterable[tuple[str, str]]) -> list[str]:
    """Returns a line of JSON for each reason, with the tests that were skipped for it."""
    tests: dict[Skip, list[str]] = {}
    for test, reason in skipped:
        tests.setdefault(Skip.of(reason) or Skip("missing", reason), []).append(test)
    return [
        json.dumps(
            {"kind": one.kind, "suite": "python", "why": one.why, "how": one.how, "tests": ids, "tried": one.tried}
        )
        for one, ids in tests.items()
    ]
