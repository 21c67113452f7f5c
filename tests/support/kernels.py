"""Runs over real kernels, and what of them is left on the machine."""

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
"""Traffic of one kind, and that of all jobs which may stand in its place."""

LIMIT_SECONDS = 600.0
"""What a run of a test may take: longer than one does on any machine at work. It tells how far it was then."""

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
    return any(one["name"] == name and one["offered"] for one in process.probe(timers=False))


def carried(run: dict[str, Any], program: list[str] | None = None, fabric: str = "engine") -> dict[str, Any]:
    return process.run(json.dumps(run), lambda _now, _over: None, LIMIT_SECONDS, program, fabric=fabric)


SHOWN = ("link", "address", "route show table all", "-6 route show table all", "rule", "-6 rule", "nexthop")
COUNTED = re.compile(r"\b(valid_lft|preferred_lft|expires|packets|bytes) \S+")  # goes on by itself
HOSTS = r"10\.77\."
"""What addresses of the lab's hosts begin with."""
MOVING = re.compile(r"nf_conntrack_count$|tcp_available_congestion_control$")
"""Sysctls that other processes of the machine move: DCTCP of a lab beside this one is among the second."""


def network() -> dict[str, str]:
    """Returns the network and the mounts around the lab, a text for each part.

    They are this process's own, where nothing else moves them. Those of the machine are shown as far as they name
    the lab's hosts: other programs move the rest, and who is not root cannot.
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
    """All that can be read, a line each."""
    lines = []
    for path in sorted(place.rglob("*")):
        if path.is_file() and not MOVING.search(str(path)):
            with contextlib.suppress(OSError):
                lines.append(f"{path}: {path.read_text('utf-8', errors='replace').strip()}")
    return "\n".join(lines)


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


def has_ended(pid: int, within: float = 0.0) -> bool:
    """Whether a process has ended, or does so within so many seconds."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within)[0])
    finally:
        os.close(watched)


def wait_until_none(token: str) -> None:
    """Wait for the kernel to take down what was started with the token."""
    waiting.until(lambda: not processes(token), lambda: [state_of(pid) for pid in processes(token)])


def state_of(pid: int) -> str:
    """What a process is, and what it does, in words."""
    place = Path("/proc") / str(pid)
    try:
        command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return f"{pid} {(place / 'stat').read_text().rpartition(')')[2].split()[0]} {command}"
    except OSError:
        return f"{pid}, which has ended"


def wait_until_gone(look: Callable[[], set[T]], before: set[T]) -> None:
    """Wait for what is there besides to go: what runs beside this test may have some of it, but not for good."""
    there = look() - before

    def gone() -> bool:
        nonlocal there
        there = there & look()
        return not there

    waiting.until(gone, lambda: there)


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
