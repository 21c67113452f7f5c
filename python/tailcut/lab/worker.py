"""The worker process of a run of the lab: it has one thread, so that it may enter namespaces of its own.

``python -m tailcut.lab.worker`` reads one line: the run as JSON, or `PROBE` or `PROBE_TIMERS`, which ask what this
kernel offers. It answers in lines of JSON. When its standard input is closed, it ends with every process that it has
started.
"""

import json
import sys

from tailcut import _core
from tailcut.lab import programs

PROBE = "probe"
PROBE_TIMERS = "probe, and the timers"


def main() -> None:
    """Carries out the request on standard input."""
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
