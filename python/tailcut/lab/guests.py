"""Runs programs of the user over the lab's fabric, together with the flows of an experiment.

``python -m tailcut.lab.guests`` reads one line of JSON: ``experiment``, the path of a file with one run; ``set``,
values of it that are replaced; ``guests``, a list of ``host`` and ``command``. They start when the run does,
and end with it, which lasts for the whole of the experiment's horizon unless its flows are over before. One line
of JSON is the answer: ``unfaithful`` and ``facts``, or ``failed``.
"""

import json
import sys

import tailcut
from tailcut.lab import process


def main() -> int:
    """Carries out the request on standard input."""
    asked = json.loads(sys.stdin.readline())
    (run,) = tailcut.load(asked["experiment"], set=asked["set"]).plan["runs"]
    try:
        done = process.run(json.dumps(run), lambda _now, _over: None, None, guests=asked["guests"])
    except process.LabError as error:
        answer, status = {"failed": str(error)}, 1
    else:
        answer, status = {"unfaithful": done["unfaithful"], "facts": done["facts"]}, 0
    sys.stdout.write(json.dumps(answer) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
