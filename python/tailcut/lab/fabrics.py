"""What lies between the hosts of the lab: the kinds of fabric that the extension has."""

import json
from dataclasses import dataclass

from tailcut import _core
from tailcut.errors import BackendError

ENGINE = "engine"
TOO_FAST = (
    "too fast by a packet's transmission at each idle port, which kernels' switches do not delay: not to be compared"
    " with other backends"
)
"""What the summary says of times with a fabric that does not delay packets at idle ports."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """A kind of fabric.

    Attributes:
        name: as in ``--lab-fabric NAME``.
        about: what it is, in a line.
        sees_frames: whether what hosts send and receive can be captured.
        delays_when_idle: whether a packet takes the time of its transmission at an idle port, too.
    """

    name: str
    about: str
    sees_frames: bool
    delays_when_idle: bool


FABRICS = {one["name"]: Fabric(**one) for one in json.loads(_core.lab_fabrics())}
"""All kinds by name; the first is the default."""


def confirm(fabric: str, on: str) -> None:
    """Confirm that a backend has such a fabric.

    Raises:
        BackendError: it has none, or none of that name.
    """
    if fabric not in FABRICS or (fabric != ENGINE and on != "lab"):
        raise BackendError(
            "TC-B004",
            f"the backend {on!r} has no fabric {fabric!r}",
            f"use --on lab, and --lab-fabric with one of: {', '.join(FABRICS)}",
        )


def backend(fabric: str) -> str:
    """Under which name the summary has runs with this fabric."""
    return "lab" if fabric == ENGINE else f"lab-{fabric}"
