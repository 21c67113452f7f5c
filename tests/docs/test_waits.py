"""Tests wait for what has to come, not for a time: what passes on a quick machine passes on a busy one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

JAVASCRIPT = re.compile(
    r"(?<![.\w])setTimeout\(|timers/promises|\bAtomics\.wait\(|\bAbortSignal\.timeout\("
    r"|\b(?:for|while) \(.*\.now\(\)|\b(?:Date|performance)\.now\(\) *[<>+]"
)
PYTHON = re.compile(r"\bsleep\(|\btimeout=[0-9]|\b(?:monotonic|perf_counter|time)\(\) *[<>+]|\bwhile .*time\.\w+\(\)")
RUST = re.compile(r"\bsleep\(|\b(?:park|recv|wait)_timeout\(|\bwhile .*\.elapsed\(\)")
UNIT_TESTS = "#[cfg(test)]"

UNTIL = "the helper: its limit is ten minutes, and it tells the state"
ALLOWED = {
    ("packages/repnet/test/lib/support.mjs", "const end = Date.now() + PATIENCE;"): UNTIL,
    ("packages/repnet/test/lib/support.mjs", "if (Date.now() > end)"): UNTIL,
    ("packages/repnet/test/drop-in.test.mjs", "last = Date.now(); i < 12"): "done again if the process stood still",
    ("packages/repnet/test/lib/flow-pair.mjs", "setTimeout(() => this.destroyed"): "of the virtual clock",
    ("packages/repnet/test/lib/flow-pair.mjs", "this.#waitOver()), WAIT_TIMEOUT"): "of the virtual clock",
    ("packages/repnet/test/single-fault.test.mjs", "setTimeout(() => {"): "of the virtual clock",
    ("packages/repnet/test/lib/relay.mjs", "setTimeout(resume, fault.ms"): "the fault is a delay",
    ("packages/repnet/test/lib/stalled-client.mjs", "Atomics.wait("): "the test is of a process that stands still",
    ("packages/repnet/test/race/child.mjs", "setTimeout(() => {"): "what a loser of the race may still report",
    ("packages/repnet/test/race/child.mjs", "setTimeout(over, limit)"): "the limit of a connection that never opens",
    ("packages/repnet/test/race/server.mjs", "return setTimeout("): "the fault is a late reset",
    ("packages/repnet/test/soak/relay.mjs", "while (begun < count"): "the soak is told how long to go on",
    ("packages/repnet/test/soak/run.mjs", "const until = performance.now()"): "the soak is told how long to go on",
    ("packages/repnet/test/soak/run.mjs", "const loop = `for ("): "it keeps a processor busy for as long as the soak",
    ("tests/support/waiting.py", "time.sleep(0.01)"): "the helper: its limit is pytest's, and it tells the state",
    ("tests/support/disturbances.py", "time.sleep(seconds)"): "the disturbance: something stands still for so long",
    ("tests/support/stutter.py", "time.sleep(LOOKS_EVERY_SECONDS)"): "the helper: its limit is the test's",
    ("tests/support/stutter.py", "time.sleep(still_seconds)"): "the disturbance: something stands still for so long",
    ("tests/support/stutter.py", "goes_on_until = time.monotonic() + GOES"): "the disturbance goes on so long",
    ("tests/support/stutter.py", "while time.monotonic() < goes_on_until:"): "the disturbance goes on so long",
    ("tests/support/idle.py", "while time.monotonic() - began"): "a busy machine is not waited for without end",
    ("tests/support/idle.py", "time.sleep(WINDOW_SECONDS)"): "the load is counted over so long",
    ("tests/support/disturber.py", "until = time.monotonic() + seconds"): "the disturbance is told how long to go on",
    ("tests/support/disturber.py", "while time.monotonic() < until"): "the disturbance is told how long to go on",
    ("tests/support/disturber.py", "time.sleep(PAUSE_SECONDS"): "the disturbance pauses",
    ("tests/lab/test_guests.py", "time.sleep(0.01)"): "a guest of the lab, which asks until it is answered",
    ("tests/lab/test_table.py", "time.monotonic() + 600"): "a deadline that is passed on, and not waited for",
}
"""By file and a part of the line: why that is none."""


class Wait(NamedTuple):
    """A line that waits for a time."""

    file: str
    number: int
    line: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.line.strip()}"


def waits(file: str, text: str) -> Iterator[Wait]:
    """Yields the waits in a file of tests."""
    suffix = Path(file).suffix
    pattern = {".py": PYTHON, ".rs": RUST}.get(suffix, JAVASCRIPT)
    # Of a source file only its unit tests, which are at its end.
    tested = "/src/" not in file
    for number, line in enumerate(text.splitlines(), 1):
        tested = tested or UNIT_TESTS in line
        if tested and pattern.search(line):
            yield Wait(file, number, line)


def code_of_tests() -> Iterator[Path]:
    """Every file that has tests, or that tests start."""
    yield from (path for path in ROOT.glob("tests/**/*.py") if path != Path(__file__))
    for pattern in ("*/tests/**/*.rs", "*/src/**/*.rs"):
        yield from (ROOT / "crates").glob(pattern)
    for suffix in ("mjs", "cjs", "js", "ts"):
        yield from (ROOT / "packages").glob(f"*/test/**/*.{suffix}")


@pytest.fixture(scope="module")
def found() -> list[Wait]:
    files = sorted(code_of_tests())
    assert {path.suffix for path in files} >= {".py", ".rs", ".mjs"}
    return [wait for path in files for wait in waits(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))]


def is_of(wait: Wait, allowed: tuple[str, str]) -> bool:
    return wait.file == allowed[0] and allowed[1] in wait.line


def test_no_test_waits_for_a_time(found: list[Wait]) -> None:
    bare = [str(wait) for wait in found if not any(is_of(wait, one) for one in ALLOWED)]
    assert bare == [], "wait for the condition (until), count ticks, or move the clock; or say in ALLOWED why not"


def test_every_allowed_wait_still_exists(found: list[Wait]) -> None:
    assert [one for one in ALLOWED if not any(is_of(wait, one) for wait in found)] == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("packages/x/test/x.test.mjs", "await new Promise((resolve) => setTimeout(resolve, 50));"),
        ("packages/x/test/x.test.mjs", "import { setTimeout as wait } from 'node:timers/promises';"),
        ("packages/x/test/x.test.mjs", "for (const end = Date.now() + 5_000; !there && Date.now() < end; ) {}"),
        ("packages/x/test/x.test.mjs", "while (performance.now() - began < 900) await turn();"),
        ("packages/x/test/x.test.mjs", "if (Date.now() > end) break;"),
        ("packages/x/test/x.test.mjs", "await once(socket, 'end', { signal: AbortSignal.timeout(1_000) });"),
        ("tests/x/test_x.py", "    time.sleep(1)"),
        ("tests/x/test_x.py", "    deadline = time.monotonic() + 60"),
        ("tests/x/test_x.py", "    while not there and time.time() < end:"),
        ("tests/x/test_x.py", "    process.wait(timeout=5)"),
        ("crates/x/tests/x.rs", "    std::thread::sleep(Duration::from_millis(10));"),
        ("crates/x/src/x.rs", "#[cfg(test)]\nmod tests { fn f() { thread::sleep(LONG); } }"),
        ("crates/x/tests/x.rs", "    let answer = answers.recv_timeout(SECOND);"),
    ],
)
def test_a_planted_wait_is_found(file: str, line: str) -> None:
    assert len(list(waits(file, line))) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("packages/x/test/x.test.mjs", "socket.setTimeout(40);"),
        ("packages/x/test/x.test.mjs", "await until(() => seen.closed, 'it is closed');"),
        ("packages/x/test/x.test.mjs", "const took = performance.now() - began;"),
        ("tests/x/test_x.py", "    waiting.until(lambda: process.poll() is not None, log)"),
        ("tests/x/test_x.py", "    lengths.append(time.monotonic() - began)"),
        ("crates/x/src/x.rs", "thread::sleep(pause); // the program's own"),
    ],
)
def test_waits_for_a_condition_are_accepted(file: str, line: str) -> None:
    assert list(waits(file, line)) == []
