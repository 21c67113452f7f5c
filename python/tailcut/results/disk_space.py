"""Disk space: the bytes that runs are expected to write, and the free bytes, checked before a run begins."""

import errno
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailcut.plan import PlannedRun
from tailcut.units import amount_bytes, time_ps

# Measured on compressed tables, rounded up: 25 to 60 bytes per flow, some kilobytes per file
# whatever is in it.
BYTES_PER_RUN = 64_000
BYTES_PER_FLOW = 100
BYTES_PER_SAMPLE = 8
# With measure.fabric: of a port at an instant, of a port, and of the links of a flow.
BYTES_PER_PORT_SAMPLE = 8
BYTES_PER_PORT = 20
BYTES_PER_PATH = 200
SERIES_PER_FLOW = 4
# A data packet and its acknowledgement with all headers and what pcapng adds.
DATA_BYTES = 1_600
ACK_BYTES = 128
CAPTURE_LIMIT = "1GB"

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))  # not every system has quotas


def expected_bytes(run: PlannedRun, capture: Mapping[str, Any] | None = None) -> int:
    """About how many bytes the files of a run take, rather more than less.

    Args:
        run: the run.
        capture: what is captured, as `Capture.spec` gives it.
    """
    facts, series = run["facts"], run["config"].get("series", {})
    sampled = SERIES_PER_FLOW * len(series.get("flows", []))
    sampled += len(series.get("links", [])) + len(series.get("differentials", []))
    tables = BYTES_PER_RUN + facts["flows"] * BYTES_PER_FLOW
    if sampled:
        tables += sampled * _samples(run, series) * BYTES_PER_SAMPLE
    if instants := run["config"].get("labels", {}).get("instants"):
        ports = 2 * facts["links"]
        tables += ports * (instants * BYTES_PER_PORT_SAMPLE + BYTES_PER_PORT) + facts["flows"] * BYTES_PER_PATH
    return tables + (_captured(run, capture) if capture else 0)


def _samples(run: PlannedRun, series: Mapping[str, Any]) -> int:
    horizon = run["config"]["horizon"]
    duration = time_ps(horizon["arrivals"]) + time_ps(horizon["drain"])
    return min(int(series["max_samples"]), duration // max(1, time_ps(series["interval"])))


def _captured(run: PlannedRun, capture: Mapping[str, Any]) -> int:
    """A host or link is expected to see twice its share of the packets, within the capture's bounds."""
    facts = run["facts"]
    kept = amount_bytes(capture.get("snapshot", "1GB"))
    packets = 2 * facts["expected_packets"] // max(1, facts["hosts"])
    seen = packets * (min(DATA_BYTES, kept) + min(ACK_BYTES, kept))
    if "max_packets" in capture:
        seen = min(seen, int(capture["max_packets"]) * min(DATA_BYTES, kept))
    return int(min(seen, amount_bytes(capture.get("max_bytes", CAPTURE_LIMIT)))) * len(capture["points"])


def free_bytes(directory: Path) -> int | None:
    """Returns the bytes that can be written to a directory's file system; None where the system does not say."""
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return None


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk, or the user's quota of it, is full."""
    if isinstance(error, OSError):
        return error.errno in FULL
    # The core passes the system's error on as text.
    return any(f"(os error {code})" in str(error) for code in FULL)
