"""Locks between processes that work on one directory. A lock goes with its holder, however that ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold ``path`` as a lock, which is removed afterwards.

    Args:
        path: the lock file; its directory exists.
        wait: until another holder lets go; otherwise yield False at once.

    Yields:
        Whether the lock is held.
    """
    descriptor = _acquire(path, wait=wait)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        # Removed while held: whoever has this file open already sees that it is gone and tries again.
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, *, wait: bool) -> int | None:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_still(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)
