"""Kinds of fabric between the lab's hosts."""

import json
from dataclasses import dataclass

from tailcut import _core
from tailcut.errors import BackendError
from tailcut.plan import Plan

ENGINE = "engine"
TOO_FAST = (
    "too fast by a packet's transmission at each idle port, which kernels' switches do not delay: not to be compared"
    " with other backends"
)
"""The summary's note on times with a fabric that does not delay packets at idle ports."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """A kind of fabric.

    Attributes:
        name: as in ``--lab-fabric NAME``.
        about: what it is, in a line.
        delays_when_idle: whether a packet takes the time of its transmission at an idle port, too.
    """

    name: str
    about: str
    delays_when_idle: bool


FABRICS = {one["name"]: Fabric(**one) for one in json.loads(_core.lab_fabrics())}
"""All kinds by name; the first is the default."""


def of(plan: Plan, asked: str | None, on: str) -> str:
    """Returns the fabric of a backend: the one asked for, else the experiment's.

    Raises:
        BackendError: the lab has none of that name, or one is asked for of another backend.
    """
    fabric = asked or plan["lab"]["fabric"]
    if fabric not in FABRICS:
        raise BackendError(
            "TC-B004",
            f"the lab has no fabric {fabric!r}",
            f"write one of {', '.join(FABRICS)} {'as lab.fabric' if asked is None else 'after --lab-fabric'}",
        )
    if asked is not None and on != "lab":
        raise BackendError("TC-B004", f"the backend {on!r} has no fabric to choose", "use --lab-fabric with --on lab")
    return fabric


def backend(fabric: str) -> str:
    """Under which name the summary has runs with this fabric."""
    return "lab" if fabric == ENGINE else f"lab-{fabric}"
