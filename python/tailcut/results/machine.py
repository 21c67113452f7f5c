"""What a run was made on, and what it needed. Goes into ``run.json``, never into a table."""

import contextlib
import os
import platform
from pathlib import Path


def describe() -> dict[str, str | int]:
    """Processor, cores, kernel and Python of this machine."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def available_memory() -> int | None:
    """Bytes that can be used without swapping; None where the system does not say."""
    return _kilobytes("/proc/meminfo", "MemAvailable")


def forget_peak_memory() -> None:
    """Start the process's peak memory anew, where the system can do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory() -> int | None:
    """The most bytes resident since ``forget_peak_memory``; None where the system does not say."""
    return _kilobytes("/proc/self/status", "VmHWM")


def _kilobytes(path: str, field: str) -> int | None:
    with contextlib.suppress(OSError):
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) * 1024
    return None
