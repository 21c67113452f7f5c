"""Runs of the lab with a disturbance."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from support.kernels import LIMIT_SECONDS, planned
from support.killing import Lab, found
from tailcut.lab import process


def star(directory: Path, flows: str, drain: str = "30s", incidents: str = "[]") -> dict[str, Any]:
    """Plans four hosts and a switch that never drops; 1 MB in flight waits for 400 ms in its queue."""
    (directory / "flows.csv").write_text(f"src,dst,bytes,start_us\n{flows}\n")
    (directory / "star.toml").write_text(
        'title = "a gate"\n[topology]\nkind = "star"\nhosts = 4\nrate = "20Mbps"\n[queue]\nlimit = "unlimited"\n'
        '[transport]\ninitial_rto = "1s"\nreceive_window = "1MB"\n[traffic]\nkind = "trace"\nfile = "flows.csv"\n'
        f'[faults]\nincidents = {incidents}\n[horizon]\narrivals = "2s"\ndrain = "{drain}"\n[schemes.TCP]\n'
    )
    return planned(directory / "star.toml")


def disturbed(
    run: dict[str, Any], token: str, after_ns: int, disturb: Callable[[Lab], None], fabric: str = "engine"
) -> dict[str, Any]:
    """Carries out a run, and disturbs it once ``after_ns`` of it have passed."""
    done = False

    def look(now_ns: int, _over: int) -> None:
        nonlocal done
        if now_ns >= after_ns and not done:
            done = True
            disturb(found(token, os.getpid()))

    outcome = process.run(json.dumps(run), look, LIMIT_SECONDS, fabric=fabric)
    assert done, "it was over too soon"
    return outcome


@contextmanager
def held(pids: list[int]) -> Iterator[None]:
    """Stops processes for as long as the block lasts."""
    # The number 0 would stop the whole process group of the tests.
    assert all(pid > 0 for pid in pids), pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            # An error about a process killed meanwhile would hide the cause.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def stop(pids: list[int], seconds: float) -> None:
    with held(pids):
        time.sleep(seconds)
