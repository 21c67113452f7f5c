"""The process that a run of the lab lives in: it has one thread, so that it may enter namespaces of its own.

``python -m tailcut.lab.inside`` reads one line: what is to be run, as JSON, or `PROBE` or `PROBE_TIMERS`, which ask
what this kernel offers. It answers in lines of JSON. When its standard input is closed at the other end, everything
that it has started ends with it.
"""

import json
import sys

from tailcut import _core
from tailcut.lab import programs

PROBE = "probe"
PROBE_TIMERS = "probe, and the timers"


def main() -> None:
    """Do what the line says."""
    line = sys.stdin.buffer.readline().decode().strip()
    if line in (PROBE, PROBE_TIMERS):
        _tell(_core.lab_probe(programs.directory(), timers=line == PROBE_TIMERS))
        return
    try:
        _core.lab_run(line)
    except ValueError as error:
        _tell(json.dumps({"failed": str(error)}))


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
