"""Gives this process its own network and mounts, so that nothing else on the machine changes what tests compare."""

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
"""A network as a machine has it: a link, an address and a route, which a lab must not change."""

_apart = False


def is_apart() -> bool:
    """Returns whether this process has left the machine's network and mounts."""
    return _apart


def leave() -> None:
    """Moves this process, and all that it starts from now on, into its own network and mounts, for good.

    Call it before anything else: threads that exist already keep their network and get their own working directory.
    Does nothing unless the user is root, because other users can neither have nor change them.
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
