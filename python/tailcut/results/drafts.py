"""Drafts of a store: hidden directories with the name of their maker, which go when it has gone.

A draft becomes a run by a rename, and it is removed by a rename to a name that nobody publishes. Whichever rename comes
first decides, so that no run has half of its files: neither where locks do not hold, nor when a process is killed.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import time
import uuid
from functools import cache
from pathlib import Path

FORGOTTEN_SECONDS = 86_400.0
"""Age after its last change at which a draft of another machine counts as left behind."""


def new(runs: Path, of: str) -> Path:
    """A name for a draft that nobody else has."""
    return runs / f".{of}.{_here()}-{os.getpid()}-{_started(os.getpid())}.{uuid.uuid4().hex}.tmp"


def remove(path: Path) -> None:
    """Remove a draft or a run; the first step takes it away whole."""
    gone = new(path.parent, path.name.removeprefix(".").partition(".")[0])
    with contextlib.suppress(FileNotFoundError):  # somebody else has removed or published it
        path.rename(gone)
    if gone.is_dir():
        shutil.rmtree(gone, ignore_errors=True)
    else:
        gone.unlink(missing_ok=True)


def left_behind(path: Path) -> bool:
    """Whether the maker of a draft has gone. Ask while its run is claimed, which decides where nothing else does."""
    place, _, process = path.name.split(".")[2].partition("-")
    number, _, started = process.partition("-")
    if not number.isdecimal():
        return True  # an older version's, which knew it by the lock alone
    if place != _here():
        return _age(path) > FORGOTTEN_SECONDS
    if int(number) == os.getpid() and started == _started(os.getpid()):
        return False  # our own, also where there is no telling when a process was started
    found = _started(int(number))
    if found == _HIDDEN:
        return _age(path) > FORGOTTEN_SECONDS
    return found != started or started == _UNKNOWN


_UNKNOWN, _HIDDEN = "0", "hidden"


@cache
def _here() -> str:
    """Identifies the machine since it was started, and the space in which a process identifier is one of a process."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text("ascii"), str(Path("/proc/self/ns/pid").readlink())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _started(process: int) -> str:
    """Returns when a process was started, so that no later one is taken for it.

    "0" if there is none, or no telling; "hidden" if it is another user's that `/proc` does not show (``hidepid``).
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return _HIDDEN if _is_of_another_user(process) else _UNKNOWN
    state, *fields = stat.rpartition(")")[2].split()
    return _UNKNOWN if state in "ZX" else fields[18]


def _is_of_another_user(process: int) -> bool:
    if os.name == "nt":  # no signal is harmless there
        return False
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def _age(path: Path) -> float:
    """Seconds since something in a draft changed."""
    changed = 0.0
    with contextlib.suppress(OSError):
        changed = max(one.stat().st_mtime for one in [path, *path.glob("*")])
    return time.time() - changed
