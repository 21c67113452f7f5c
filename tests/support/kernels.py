"""Runs over real kernels, and what of them is left on the machine."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

import tailcut
from tailcut import _core
from tailcut.lab import process
from tailcut.results import tables

POISSON = 'kind = "poisson"\nsizes = "20KB"\nload = 0.2'
EVERY_JOB = """kind = "mix"
parts = [
    { kind = "transfers", bytes = "60KB", sizes = "20KB" },
    { kind = "pings", count = 3, gap = "2ms" },
    { kind = "partition-aggregate", workers = 3, queries_per_second = 10.0, compute = "1ms" },
    { kind = "bucket-sort", numbers = 2000, rounds = 2 },
    { kind = "shuffle", bytes = "60KB", fetches_at_once = 2 },
]"""
"""Traffic of one kind, and that of all jobs which may stand in its place."""

T = TypeVar("T")
MARK = "TAILCUT_LAB_TEST"  # in the environment of what a test starts
AS_NOBODY = """
import ctypes, os
from tailcut.lab import inside
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: as a process that was started by this user is
inside.main()
"""


def planned(experiment: Path, **overrides: str) -> dict[str, Any]:
    return dict(tailcut.load(experiment, set=overrides).plan["runs"][0])


def offered(name: str) -> bool:
    """Whether this kernel offers something, by its name in ``tailcut lab``."""
    return any(one["name"] == name and one["offered"] for one in process.probe())


def carried(run: dict[str, Any], program: list[str] | None = None, fabric: str = "engine") -> dict[str, Any]:
    return process.run(json.dumps(run), lambda _now, _over: None, 120, program, fabric=fabric)


def network() -> list[str]:
    """The machine's own interfaces, addresses and routes; the time that an address has left is none of it."""
    asked = [["ip", *what, "show"] for what in (["link"], ["address"], ["route"])]
    said = [subprocess.run(one, capture_output=True, check=True, encoding="utf-8").stdout for one in asked]
    return [re.sub(r"(valid|preferred)_lft \S+", "", one) for one in said]


def processes(token: str) -> set[int]:
    """Those that have the token in their environment: what was started with it, and what these started."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={token}".encode() in (place / "environ").read_bytes().split(b"\0"):
                found.add(int(place.name))
        except OSError:
            continue
    return found


def wait_until_none(token: str) -> set[int]:
    """Give the kernel time to take processes down; what is left after a minute stays."""
    deadline = time.monotonic() + 60
    while (left := processes(token)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def stays(look: Callable[[], set[T]], before: set[T]) -> set[T]:
    """What is there besides, and still is once whatever else runs beside this test must have ended, after a minute."""
    deadline = time.monotonic() + 60
    there = look() - before
    while (there := there & look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return there


@contextmanager
def running(
    run: dict[str, Any], token: str, program: list[str] | None = None, fabric: str = "engine"
) -> Iterator[subprocess.Popen[bytes]]:
    """A caller of the lab in a process of its own."""
    code = (
        "import json, sys; from tailcut.lab import process\n"
        f"program = json.loads({json.dumps(program)!r})\n"
        f"process.run(sys.stdin.readline(), lambda a, b: None, 60, program, fabric={fabric!r})"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, MARK: token},
        cwd="/",
    ) as caller:
        assert caller.stdin is not None
        caller.stdin.write(json.dumps(run).encode() + b"\n")
        caller.stdin.flush()
        try:
            yield caller
        finally:
            caller.kill()


def left_after_a_kill(
    run: dict[str, Any], moment: int, within: float, program: list[str] | None = None, fabric: str = "engine"
) -> set[int]:
    """What is left of a run when something of it is killed, at a moment that is drawn, ``within`` seconds."""
    drawn = random.Random(1000 * int(os.environ["TAILCUT_TEST_SEED"]) + moment)  # noqa: S311 - moments
    token = f"{os.getpid()}-{fabric}-{'own' if program is None else 'repnet'}-{moment}"
    with running(run, token, program, fabric) as caller:
        # From the start of the interpreter over the set-up into the run; how far it is by then, the machine decides.
        time.sleep(drawn.uniform(0, within))
        there = sorted(processes(token))
        # The caller, or whatever of its making it is.
        victim = caller.pid if moment % 3 == 0 or not there else drawn.choice(there)
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            caller.kill()
        # When a host, a switch or a tool is killed, the supervisor notices, and the caller ends with its error.
        caller.wait(60)
    return wait_until_none(token)


def assert_flows_waited(run: dict[str, Any], done: dict[str, Any]) -> None:
    """Every flow has arrived; none began before what it waits for was over, nor beside more of its pool than may be."""
    demand = json.loads(_core.demand(json.dumps(run)))
    planned_flows = demand["flows"]
    flows = {flow["index"]: flow for flow in done["measured"]["flows"]}
    assert len(flows) == len(planned_flows)
    starts = [flows[at].get("start_ns", one["start_ps"] // 1000) for at, one in enumerate(planned_flows)]
    delays = [one["delay_ps"] // 1000 for one in planned_flows]
    lasted = {"received": "fct_ns", "acknowledged": "fct_ack_ns"}

    def over(flow: int, signal: str) -> int:
        return int(starts[flow] + flows[flow][lasted[signal]])

    def of_pool(number: int) -> list[int]:
        return [at for at, one in enumerate(planned_flows) if one["pool"] == number]

    for wait in demand["waits"]:
        end = over(wait["after"], wait["on"])
        for flow in [wait["flow"]] if wait["pool"] is None else of_pool(wait["pool"]):
            assert starts[flow] >= end + delays[flow]
    for number, pool in enumerate(demand["pools"]):
        for flow in of_pool(number):
            due = starts[flow] - delays[flow]
            assert due >= pool["opens_ps"] // 1000
            before = [other for other in of_pool(number) if starts[other] < starts[flow]]
            assert len([other for other in before if over(other, pool["on"]) > due]) < pool["at_once"]


def jobs_of(run: dict[str, Any], done: dict[str, Any]) -> pl.DataFrame:
    """The table of jobs of a run that was carried out."""
    made = _core.tabulate(json.dumps(run), json.dumps(done["measured"]))
    return tables.frame(dict(made["further"])["jobs"])
