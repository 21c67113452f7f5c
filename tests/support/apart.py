"""A network and mounts of this process's own, so that nothing else on the machine moves what tests compare."""

import ctypes
import os
import subprocess

CLONE_NEWNS, CLONE_NEWNET = 0x0002_0000, 0x4000_0000
MACHINE = """
ip link set lo up
ip link add machine0 type veth peer name machine1
ip link set machine0 addrgenmode none
ip link set machine1 addrgenmode none
ip address add 192.0.2.1/24 dev machine0
ip link set machine1 up
ip link set machine0 up
ip route add default via 192.0.2.2
"""
"""What a machine's network has: a link, an address and a route, which a lab must leave alone."""

_apart = False


def is_apart() -> bool:
    """Whether this process has left the machine's network and mounts."""
    return _apart


def leave() -> None:
    """Gives this process, and what it starts from now on, a network and mounts of its own, for good.

    It comes before everything else that a process does: threads that are there already keep the network that they have,
    and a working directory of their own. Does nothing for another user than root, who cannot have them, and can change
    neither.
    """
    global _apart  # noqa: PLW0603 - a process leaves once
    if _apart or os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        return  # as root of a container that lets nobody make namespaces
    _apart = True
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["sh", "-e"], input=MACHINE, check=True, encoding="utf-8")
