"""Runs over real kernels, and checks of what they leave on the machine."""

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

import tailcut
from support import apart, waiting
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
"""Traffic of all jobs, which may replace that of one kind."""

LIMIT_SECONDS = 600.0
"""The time limit of a test's run, longer than one takes on any working machine. The error says how far it was."""

T = TypeVar("T")
MARK = "TAILCUT_LAB_TEST"  # in the environment of what a test starts
AS_NOBODY = """
import ctypes, os
from tailcut.lab import worker
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: as a process that was started by this user is
worker.main()
"""


def planned(experiment: Path, **overrides: str) -> dict[str, Any]:
    return dict(tailcut.load(experiment, set=overrides).plan["runs"][0])


def offered(name: str) -> bool:
    """Returns whether this kernel offers a capability, by its name in ``tailcut lab``."""
    return any(one["name"] == name and one["offered"] for one in process.probe(timers=False))


def carried(run: dict[str, Any], program: list[str] | None = None, fabric: str = "engine") -> dict[str, Any]:
    return process.run(json.dumps(run), lambda _now, _over: None, LIMIT_SECONDS, program, fabric=fabric)


SHOWN = ("link", "address", "route show table all", "-6 route show table all", "rule", "-6 rule", "nexthop")
COUNTED = re.compile(r"\b(valid_lft|preferred_lft|expires|packets|bytes) \S+")  # goes on by itself
HOSTS = r"10\.77\."
"""A pattern of the prefix of the lab's hosts' addresses."""
MOVING = re.compile(r"nf_conntrack_count$|tcp_available_congestion_control$")
"""Sysctls that other processes change: a lab beside this one adds DCTCP to the second."""


def network() -> dict[str, str]:
    """Returns the network and the mounts around the lab, a text for each part.

    A process with its own network and mounts reports all of them, since nothing else changes them. Otherwise only the
    lines that name the lab's hosts count: other programs change the rest.
    """
    parts = around()
    if apart.is_apart():
        return parts
    return {name: "\n".join(re.findall(f".*{HOSTS}.*", text)) for name, text in parts.items()}


def around() -> dict[str, str]:
    """Returns the network and the mounts of this process."""

    def said(*command: str, lines: str = "") -> str:
        done = subprocess.run(command, input=lines, capture_output=True, check=False, encoding="utf-8")
        return COUNTED.sub(r"\1", done.stdout + done.stderr)

    parts = {f"ip {what}": said("ip", *what.split()) for what in SHOWN}
    parts["tc qdisc"] = said("tc", "qdisc", "show")
    if shutil.which("nft"):
        parts["nft"] = said("nft", "list", "ruleset")
    parts["sysctls"] = sysctls(Path("/proc/sys/net"))
    parts["mounts"] = Path("/proc/self/mountinfo").read_text("utf-8")
    return parts


def sysctls(place: Path) -> str:
    """Returns all sysctls that can be read, one per line."""
    lines = []
    for path in sorted(place.rglob("*")):
        if path.is_file() and not MOVING.search(str(path)):
            with contextlib.suppress(OSError):
                lines.append(f"{path}: {path.read_text('utf-8', errors='replace').strip()}")
    return "\n".join(lines)


def processes(token: str) -> set[int]:
    """Returns the processes with the token in their environment: those started with it, and their descendants."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={token}".encode() in (place / "environ").read_bytes().split(b"\0"):
                found.add(int(place.name))
        except OSError:
            continue
    return found


def has_ended(pid: int, within: float = 0.0) -> bool:
    """Returns whether a process has ended, or ends within so many seconds."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within)[0])
    finally:
        os.close(watched)


def wait_until_none(token: str) -> None:
    """Waits until all processes with the token have ended."""
    waiting.until(lambda: not processes(token), lambda: [state_of(pid) for pid in processes(token)])


def state_of(pid: int) -> str:
    """Returns a process's number, state and command."""
    place = Path("/proc") / str(pid)
    try:
        command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return f"{pid} {(place / 'stat').read_text().rpartition(')')[2].split()[0]} {command}"
    except OSError:
        return f"{pid}, which has ended"


def wait_until_gone(look: Callable[[], set[T]], before: set[T]) -> None:
    """Waits until all new items have gone. Programs beside this test may have such items, but only for a while."""
    there = look() - before

    def gone() -> bool:
        nonlocal there
        there = there & look()
        return not there

    waiting.until(gone, lambda: there)


def assert_flows_waited(run: dict[str, Any], done: dict[str, Any]) -> None:
    """Checks that every flow has arrived, and that none began before its dependencies ended or its pool had room."""
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
    """Returns the table of jobs of a run that was carried out."""
    made = _core.tabulate(json.dumps(run), json.dumps(done["measured"]))
    return tables.frame(dict(made["further"])["jobs"])
