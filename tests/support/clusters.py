"""Comparisons for tests of sweeps on a cluster, and a way to hide a directory from a process."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import tailcut
from support.skipping import missing

VARYING = ("machine", "wall_seconds", "peak_memory_bytes", "packet_hops_per_second")
"""Entries of ``run.json`` that depend on where and how fast a run was made. The times of its files do, too."""


def tables(directory: Path) -> dict[str, str]:
    """Returns the SHA-256 of every table of every run."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.glob("runs/*/*.parquet"))
    }


def local(experiment: tailcut.Experiment, directory: Path) -> dict[str, str]:
    """Runs a sweep on this machine; returns the hashes of its tables."""
    tailcut.run(experiment, out=directory, jobs=2)
    return tables(directory)


def records(directory: Path) -> dict[str, dict[str, Any]]:
    """Returns the ``run.json`` of every run without the entries that depend on where and how fast it was made."""
    found = {}
    for path in sorted(directory.glob("runs/*/run.json")):
        about = json.loads(path.read_text())
        for key in VARYING:
            del about[key]
        for file in about["files"].values():
            del file["modified_ns"]
        found[path.parent.name] = about
    return found


def blind(directory: Path) -> list[str]:
    """Returns a command prefix that hides a directory from a worker, by a mount namespace of its own."""
    directory.mkdir(parents=True)
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        missing("user namespaces are not allowed here")
    return [*command, "sh", "-c", f'mount -t tmpfs none {directory} && exec "$@"', "sh"]
