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
        about: a description in one line.
        delays_when_idle: whether an idle port, too, delays a packet by its transmission time.
    """

    name: str
    about: str
    delays_when_idle: bool


FABRICS = {one["name"]: Fabric(**one) for one in json.loads(_core.lab_fabrics())}
"""All kinds by name; the first is the default."""


def resolve_fabric(plan: Plan, asked: str | None = None) -> str:
    """Returns the name of the fabric: ``asked`` if it is given, else the experiment's ``lab.fabric``.

    Raises:
        BackendError: TC-B004: the lab has no such fabric.
    """
    fabric = asked or plan["lab"]["fabric"]
    if fabric not in FABRICS:
        raise BackendError(
            "TC-B004",
            f"the lab has no fabric {fabric!r}",
            f"write one of {', '.join(FABRICS)} {'as lab.fabric' if asked is None else 'after --lab-fabric'}",
        )
    return fabric


def backend(fabric: str) -> str:
    """Returns the backend's name in the summary for runs with this fabric: ``lab``, or ``lab-kernel``."""
    return "lab" if fabric == ENGINE else f"lab-{fabric}"
