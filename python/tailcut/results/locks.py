"""Locks between processes that work on one directory. A lock goes with its holder, however that ends."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold ``path`` as a lock, which is removed afterwards.

    Args:
        path: the lock file; its directory exists.
        wait: until another holder lets go; otherwise yield False at once.

    Yields:
        Whether the lock is held.
    """
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        # Removed while held: whoever has this file open already sees that it is gone and tries again. Windows does not
        # remove what is open, and the lock goes by itself there.
        with contextlib.suppress(PermissionError):
            path.unlink(missing_ok=True)
        lock.release()
