"""Capabilities of this machine that the lab needs: their use, and how to obtain them."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tailcut import _core
from tailcut.lab import process, repnet


@dataclass(frozen=True, slots=True)
class Finding:
    """A capability that the lab needs.

    Attributes:
        name: what it is.
        needed_for: what the lab does with it.
        offered: whether it can be had here.
        found: what was found, or why it cannot be had.
        remedy: how to get it.
        fatal: whether no run can begin without it.
    """

    name: str
    needed_for: str
    offered: bool
    found: str
    remedy: str
    fatal: bool

    @property
    def lack(self) -> str:
        """Returns the name, the reason why it is missing, and the remedy."""
        return f"{self.name}: {self.found} ({self.remedy})"


_OF_SCHEMES = {one["name"]: (one["needed_for"], one["remedy"], one["fatal"]) for one in json.loads(_core.lab_rows())}
"""The engine's facts about its congestion controls and transports."""

NEEDS: dict[str, tuple[str, str, bool]] = {
    **_OF_SCHEMES,
    "namespaces": (
        "hosts of their own, without root, that vanish with their processes",
        "allow user namespaces: sysctl user.max_user_namespaces above 0; on Ubuntu also"
        " kernel.apparmor_restrict_unprivileged_userns=0; in a container ask for them, or run as root",
        True,
    ),
    "supervisor": ("setting up the namespaces of hosts and switches", "allow PID namespaces", True),
    "iproute2": ("interfaces, addresses and routes of the hosts", "install the package iproute2", True),
    "veth": ("a link from each host to the fabric", "a kernel with CONFIG_VETH, or modprobe veth", True),
    "packet ring": ("how the fabric receives frames", "a kernel with CONFIG_PACKET", True),
    "netem": (
        "nothing yet: netem could delay and lose packets between kernel switches",
        "a kernel with CONFIG_NET_SCH_NETEM, or modprobe sch_netem",
        False,
    ),
    "red": (
        "nothing yet: could serve queue.kind red on kernel switches",
        "a kernel with CONFIG_NET_SCH_RED, or modprobe sch_red",
        False,
    ),
    "fq": (
        "nothing yet: fq could pace what hosts send; TCP paces itself if it has to",
        "a kernel with CONFIG_NET_SCH_FQ, or modprobe sch_fq",
        False,
    ),
    "tbf": (
        "rates and queues of kernel switches (--lab-fabric kernel)",
        "a kernel with CONFIG_NET_SCH_TBF, or modprobe sch_tbf",
        False,
    ),
    "nft numgen": (
        "kernel switches that spray packets",
        "install the package nftables; a kernel with CONFIG_NFT_NUMGEN",
        False,
    ),
    "hash seeds": (
        "paths of flows across kernel switches",
        "a kernel of 6.11 or later with CONFIG_IP_ROUTE_MULTIPATH",
        False,
    ),
    "BPF programs": (
        "kernel switches that remember flows (balance.kind flowlet and tinyflow), and DCTCP",
        "install the packages clang, libbpf-dev and libbpf1; a kernel of 6.6 or later with CONFIG_BPF_SYSCALL and"
        " CONFIG_NET_SCH_INGRESS",
        False,
    ),
    "BPF struct_ops": (
        "the lab's own DCTCP, if the kernel has none, or none with the plan's parameters",
        "everything that BPF programs need; a kernel of 6.4 or later with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF",
        False,
    ),
    "repnet-bench": (
        "carrying the flows of experiments with RepFlow or RepSYN, and of their baselines",
        repnet.INSTALL,
        False,
    ),
    "cpu pressure": (
        "how long processes waited for a CPU, shown in verdicts",
        "a kernel with CONFIG_PSI, booted with psi=1",
        False,
    ),
    "awake processors": (
        "timing: processors stay awake, since sleeping ones may wake late, as in virtual machines",
        "a kernel with a cpuidle driver; run the lab as root, or let its user write to /dev/cpu_dma_latency",
        False,
    ),
    "programs in memory": (
        "timing: the kernel cannot take memory from waiting programs and read it from the disk again",
        "run the lab as root, or let its user lock memory (`memlock 262144` in /etc/security/limits.conf)",
        False,
    ),
    "processors first": (
        "timing: the lab's processes run before all others, on any free processor",
        "run the lab as root, or let its user have real-time priority (`rtprio 2` in /etc/security/limits.conf)",
        False,
    ),
    "timers": (
        "timing: frames and flows cannot be more punctual than this machine's timers",
        "an idle machine; a virtual one needs dedicated processors",
        False,
    ),
}
"""Capabilities that the lab needs: use, remedy, and whether every run needs them."""


def findings(*, timers: bool = False) -> list[Finding]:
    """Probes everything that the lab needs by using it.

    Args:
        timers: whether to measure the machine's timers, too; they decide no run, and take most of a second.
    """
    if sys.platform != "linux":
        return [
            Finding("Linux", "everything", offered=False, found=sys.platform, remedy="use a Linux machine", fatal=True)
        ]
    try:
        offers = process.probe(timers=timers)
    except process.LabError as error:
        offers = [{"name": "supervisor", "offered": False, "found": str(error)}]
    return [Finding(one["name"], *_need(one)) for one in [*offers, _repnet()]]


def _repnet() -> dict[str, object]:
    try:
        return {"name": "repnet-bench", "offered": True, "found": " ".join(repnet.program())}
    except repnet.MissingError as error:
        return {"name": "repnet-bench", "offered": False, "found": str(error)}


def _need(offer: dict[str, object]) -> tuple[str, bool, str, str, bool]:
    needed_for, remedy, fatal = NEEDS[str(offer["name"])]
    return needed_for, bool(offer["offered"]), str(offer["found"]), remedy, fatal


def obstacle(found: Sequence[Finding]) -> str | None:
    """Why no run can begin here, if none can."""
    return "; ".join(one.lack for one in found if one.fatal and not one.offered) or None


def refusals(found: Sequence[Finding], needs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the fields of a plan that this machine cannot realise, each with reason and remedy.

    Args:
        found: what was tried.
        needs: what the plan takes besides what every run does: the name of a finding, and the field that takes it.
    """
    missing = {one.name: one for one in found if not one.offered}
    nothing = [("--on", one.lack) for one in missing.values() if one.fatal]
    fields = [(field, missing[name].lack) for name, field in needs if name in missing and not missing[name].fatal]
    return nothing + fields
