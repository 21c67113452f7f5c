"""Stories as data: what ``tailcut explain --json`` writes."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tailcut.explain import Explained
from tailcut.explain.lines import lines


def as_data(stories: Sequence[Explained]) -> list[dict[str, Any]]:
    """Returns a dictionary per flow: its run, and its story under every scheme with the lines that people read.

    Times are in picoseconds. Those of packets and acts, ``start_ps`` and ``until_ps`` count from the beginning of
    the run; those of lines, ``connect_ps`` and completion times from the start of the flow.
    """
    return [
        {
            "flow": one.flow,
            "scheme": one.selection.scheme,
            "seed": one.selection.seed,
            "point": dict(one.selection.point),
            "schemes": [
                {"scheme": told.scheme, **told.story, "lines": [asdict(line) for line in lines(told)]}
                for told in one.stories
            ],
            "without": list(one.without),
        }
        for one in stories
    ]
