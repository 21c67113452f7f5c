"""Imitates other programs of a machine at random for a while: `python tests/support/disturber.py [--seconds 60]`.

It mounts file systems, starts processes that end at once, listens on ports of loopback, writes temporary files, and
makes network namespaces. Tests that run beside it must not be affected. It removes exactly what it made, also when it
is terminated, and leaves out what its user may not do.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

MOST = 8
"""The most things of a kind at the same time."""
PAUSE_SECONDS = 0.05

Undo = Callable[[], object]


def run(*command: str) -> bool:
    """Runs a command; returns False if it fails, or is not there."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def mount(place: Path, number: int) -> Undo | None:
    """Mounts a tmpfs that every process on the machine sees."""
    point = place / f"mount-{number}"
    point.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=64k", f"disturber-{number}", str(point)):
        return lambda: run("umount", str(point))
    return None


def listen(_place: Path, _number: int) -> Undo:
    """Listens on a port that the system chooses."""
    return socket.create_server(("127.0.0.1", 0)).close


def fork(_place: Path, _number: int) -> Undo:
    """Starts a process that lasts for some milliseconds."""
    process = subprocess.Popen(["sleep", "0.02"])
    return process.wait


def namespace(_place: Path, number: int) -> Undo | None:
    """Makes a named network namespace with a link in it."""
    name = f"disturber-{os.getpid()}-{number}"
    if not run("ip", "netns", "add", name):
        return None
    run("ip", "-n", name, "link", "set", "lo", "up")
    run("ip", "-n", name, "link", "add", "dummy0", "type", "veth", "peer", "name", "dummy1")
    return lambda: run("ip", "netns", "delete", name)


def link(_place: Path, number: int) -> Undo | None:
    """Adds a link to the machine's own network."""
    name = f"dist{os.getpid() % 10_000}x{number % 1000}"[:15]
    if run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"[:15]):
        return lambda: run("ip", "link", "delete", name)
    return None


def temporary(_place: Path, _number: int) -> Undo:
    """Writes a file of its own to each place for temporary files."""
    files = []
    for folder in (tempfile.gettempdir(), "/dev/shm"):  # noqa: S108 - where tests must not look
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(prefix="disturber-", dir=folder)
            os.close(descriptor)
            files.append(Path(name))

    def remove() -> None:
        for file in files:
            file.unlink()

    return remove


KINDS: tuple[Callable[[Path, int], Undo | None], ...] = (mount, listen, fork, namespace, link, temporary)


def disturb(seconds: float, seed: int, is_over: Callable[[], bool]) -> dict[str, int]:
    """Disturbs for ``seconds``, or until ``is_over()``; returns how often each kind of thing was done."""
    drawn = random.Random(seed)  # noqa: S311 - no secrets
    done: dict[str, int] = {kind.__name__: 0 for kind in KINDS}
    there: dict[str, list[Undo]] = {kind.__name__: [] for kind in KINDS}
    place = Path(tempfile.mkdtemp(prefix="disturber-"))
    until = time.monotonic() + seconds
    number = 0
    try:
        while time.monotonic() < until and not is_over():
            kind = drawn.choice(KINDS)
            kept = there[kind.__name__]
            if len(kept) == MOST or (kept and drawn.random() < 0.5):
                kept.pop(drawn.randrange(len(kept)))()
            else:
                number += 1
                undo = kind(place, number)
                if undo is not None:
                    kept.append(undo)
                    done[kind.__name__] += 1
            time.sleep(PAUSE_SECONDS * drawn.random())
    finally:
        for kept in there.values():
            for undo in kept:
                undo()
        shutil.rmtree(place)
    return done


def main() -> None:
    """Disturbs, then prints what was done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TAILCUT_TEST_SEED", "1")))
    asked = parser.parse_args()
    # A signal is recorded and acted on between two things, so that nothing is left half done.
    signals: list[int] = []
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda number, _: signals.append(number))
    done = disturb(asked.seconds, asked.seed, lambda: bool(signals))
    sys.stdout.write("disturbed: " + ", ".join(f"{count} times {kind}" for kind, count in done.items()) + "\n")


if __name__ == "__main__":
    main()
