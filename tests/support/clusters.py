"""What tests of sweeps on a cluster compare, and how a process is kept from seeing a directory."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import tailcut
from support.skipping import missing

VARYING = ("machine", "wall_seconds", "peak_memory_bytes", "packet_hops_per_second")
"""Entries of ``run.json`` that say where and how fast a run was made; besides these, the times of its files."""


def tables(directory: Path) -> dict[str, str]:
    """The SHA-256 of every table of every run."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.glob("runs/*/*.parquet"))
    }


def local(experiment: tailcut.Experiment, directory: Path) -> dict[str, str]:
    """What a sweep on this machine gives."""
    tailcut.run(experiment, out=directory, jobs=2)
    return tables(directory)


def records(directory: Path) -> dict[str, dict[str, Any]]:
    """The ``run.json`` of every run without what says where and how fast it was made."""
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
    """What to start a worker with so that it does not see a directory: a mount namespace of its own that hides it."""
    directory.mkdir(parents=True)
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        missing("user namespaces are not allowed here")
    return [*command, "sh", "-c", f'mount -t tmpfs none {directory} && exec "$@"', "sh"]
