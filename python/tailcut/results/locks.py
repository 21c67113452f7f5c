"""Locks between processes that work on one directory. A lock goes with its holder, however that ends.

They save work and decide nothing: some network file systems have none, or give one lock to two machines.
"""

import contextlib
import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold ``path`` as a lock, which is removed afterwards.

    Args:
        path: the lock file; its directory exists.
        wait: until another holder lets go; otherwise yield False at once.

    Yields:
        Whether the lock is held; True also where the file system has no locks.
    """
    lock = FileLock(path, thread_local=False, fallback_to_soft=False)  # a soft lock outlives its holder
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        yield False
        return
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in NO_LOCKS:
            raise
        yield True
        return
    try:
        yield True
    finally:
        # Removed while held: whoever has this file open already sees that it is gone and tries
        # again. Windows does not remove what is open, and the lock goes by itself there.
        with contextlib.suppress(PermissionError):
            path.unlink(missing_ok=True)
        lock.release()
