"""Drops of ports equal the packets that hosts miss, and a byte that a receiver misses fails the run. Real kernels."""

import ctypes
import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support import waiting
from support.disturbances import disturbed, held, star
from support.kernels import carried, planned
from support.killing import Lab
from support.skipping import missing
from tailcut.lab import process
from tailcut.lab.fabrics import FABRICS

pytestmark = pytest.mark.usefixtures("kernel")

PIDFD_GETFD = 438
FLOWS = "0,1,20000000,1000\n2,3,20000000,1000"
"""Two flows of eight seconds. A run that fails at the wrong byte needs only the first; on a busy machine the disturbing
process may be seconds late, and still finds the flow under way."""


def connections(pid: int) -> list[socket.socket]:
    """Returns duplicates of another process's connections: what is done to them affects the other process."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    found = []
    process_of = os.pidfd_open(pid)
    for one in Path(f"/proc/{pid}/fd").iterdir():
        if not str(one.readlink()).startswith("socket:"):
            continue
        ours = call(PIDFD_GETFD, process_of, int(one.name), 0)
        if ours < 0:
            missing(f"the kernel lab: another's sockets cannot be had: {os.strerror(ctypes.get_errno())}")
        known = socket.socket(fileno=ours)
        if known.family == socket.AF_INET and not known.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            found.append(known)
        else:
            known.close()
    os.close(process_of)
    return found


def send_one_more(lab: Lab) -> None:
    (sender,) = connections(lab.hosts[0])
    with closing(sender):
        assert sender.send(b"x") == 1


def takes_one(connection: socket.socket) -> bool:
    try:
        assert len(connection.recv(1)) == 1
    except BlockingIOError:
        return False
    return True


def take_one_away(lab: Lab) -> None:
    receiver = lab.hosts[1]
    (connection,) = connections(receiver)
    with held([receiver]), closing(connection):
        waiting.until(lambda: takes_one(connection), lambda: connection)


@pytest.mark.parametrize("disturb", [send_one_more, take_one_away], ids=["a byte too many", "a byte too few"])
def test_a_byte_too_many_or_too_few_fails_the_run(tmp_path: Path, token: str, disturb: Callable[[Lab], None]) -> None:
    star(tmp_path, FLOWS)
    run = planned(tmp_path / "star.toml", **{"transport.close": '"none"'})
    wrong = "byte [0-9]+ is not the one that was sent|more bytes than were sent"
    with pytest.raises(process.LabError, match=f"flow 0, host 1: its receiver: ({wrong})"):
        disturbed(run, token, 250_000_000, disturb)


def at_hosts(done: dict[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the counters of the links from hosts, and of the links to them."""
    tiers = {tier["up"]: tier for tier in done["measured"]["tiers"] if tier["tier"] == "host"}
    return tiers[True], tiers[False]


@pytest.mark.parametrize("fabric", FABRICS)
def test_every_packet_sent_is_received_or_counted_as_dropped(experiment: Path, fabric: str) -> None:
    run = planned(experiment, **{"queue.limit": '"3packets"', "traffic.load": "0.6"})
    done = carried(run, fabric=fabric)
    up, down = at_hosts(done)
    dropped = sum(tier["drops"] for tier in done["measured"]["tiers"])
    assert up["packets"] == done["frames"] - up["drops"]
    assert dropped == done["measured"]["dropped"] > 0
    assert done["frames"] == down["packets"] + dropped
    assert sum(counts["drops"] for one in done["switches"] for counts in one["ports"].values()) == dropped - up["drops"]
