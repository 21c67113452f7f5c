"""Drafts of a store: hidden directories named after the process that made them, removed once that process is gone.

A rename turns a draft into a run. Removal also begins with a rename, to a name that nobody publishes. Whichever rename
comes first decides, so that no run has only some of its files, even without working locks or when a process is killed.
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


def draft_path(runs: Path, of: str) -> Path:
    """Returns a unique path for a draft of the run ``of``; nothing is created."""
    return runs / f".{of}.{_here()}-{os.getpid()}-{_started(os.getpid())}.{uuid.uuid4().hex}.tmp"


def remove(path: Path) -> None:
    """Removes a draft or a run; the rename that comes first takes all of its files away at once."""
    gone = draft_path(path.parent, path.name.removeprefix(".").partition(".")[0])
    with contextlib.suppress(FileNotFoundError):  # somebody else has removed or published it
        path.rename(gone)
    if gone.is_dir():
        shutil.rmtree(gone, ignore_errors=True)
    else:
        gone.unlink(missing_ok=True)


def left_behind(path: Path) -> bool:
    """Whether the process that made a draft is gone.

    A draft of another machine, or of a process that is hidden, counts as left behind after a day without a change.
    Call this only while holding the claim on the run: the claim excludes a live maker.
    """
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
    """Hash of host name, boot id and PID namespace: the scope within which a process id is unique."""
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
