"""Waits, for a bounded time, until nothing else keeps the machine's processors busy."""

import time
from pathlib import Path

STAT = Path("/proc/stat")
QUIET = 0.1
"""The share of the processors' time that others may use on an idle machine."""
WINDOW_SECONDS = 1.0
LIMIT_SECONDS = 40.0
"""The longest wait before one try."""
SESSION_SECONDS = 160.0
"""All waits of a session together: a machine that stays busy is not waited for again and again."""

_waited = 0.0


def ticks(stat: str) -> tuple[int, int]:
    """Returns the ticks in which processors were idle, and all their ticks, by the first line of /proc/stat."""
    all_ticks = [int(field) for field in stat.splitlines()[0].split()[1:9]]
    return all_ticks[3] + all_ticks[4], sum(all_ticks)


def share(before: str, after: str) -> float:
    """Returns the share of the processors' time that was used between two readings of /proc/stat."""
    (idle, total), (idle_before, total_before) = ticks(after), ticks(before)
    return 1 - (idle - idle_before) / max(1, total - total_before)


def wait() -> bool:
    """Returns True once the machine is idle, False if it stays busy for as long as it may be waited for."""
    global _waited  # noqa: PLW0603 - one budget for the session
    began = time.monotonic()
    try:
        while time.monotonic() - began < min(LIMIT_SECONDS, SESSION_SECONDS - _waited):
            before = STAT.read_text()
            time.sleep(WINDOW_SECONDS)
            if share(before, STAT.read_text()) <= QUIET:
                return True
        return False
    finally:
        _waited += time.monotonic() - began
