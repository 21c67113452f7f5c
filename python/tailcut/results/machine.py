"""The machine of a run, and the run's needs. Goes into ``run.json``, never into a table."""

import contextlib
import math
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

SAMPLES, SAMPLE_SECONDS = 3, 0.005  # of what else is running: many threads run for less than that


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


def cores(root: Path = Path("/")) -> int:
    """Cores that this process may use, within its affinity and the quotas of its control groups; part of one counts.

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        allowed = os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(quota) for quota in _quotas(root))]))


def idle_cores(own: int = 0, root: Path = Path("/")) -> int:
    """Cores that this process may use and that no other program wants at this moment; at least one.

    Args:
        own: threads at work that belong to this process's runs.
        root: as for `cores`.
    """
    running = min(_running(root) for _ in range(SAMPLES))
    others = max(0, running - 1 - own)  # one of them counts
    return max(1, min(cores(root), (os.cpu_count() or 1) - others))


def _running(root: Path) -> int:
    """Threads that run or wait for a processor; 0 where the system does not say."""
    time.sleep(SAMPLE_SECONDS)
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int((root / "proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])
    return 0


def _quotas(root: Path) -> Iterator[float]:
    """Yields the processor quota of each control group above this process that limits it (versions 1 and 2)."""
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            for mounted in ("", "unified") if not controllers else ("cpu", "cpu,cpuacct"):
                top = root / "sys/fs/cgroup" / mounted
                group = top / path.strip("/")
                # In a container the path may be that of the host, while its own group is the top.
                for folder in (group, *group.parents, top):
                    quota = _quota(folder)
                    if quota is not None and folder.is_relative_to(top):
                        yield quota


def _quota(group: Path) -> float | None:
    """The quota of one control group over its period; None where it has none."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota, period = ((group / f"cpu.cfs_{what}_us").read_text(encoding="ascii") for what in ("quota", "period"))
        # "max" and -1 are none.
        if float(quota) > 0:
            return float(quota) / float(period)
    return None


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
