"""The lab's runs in a store, beside the simulator's: their ids name the planned run and the repeat."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, product
from typing import Any

from tailcut.lab import fabrics
from tailcut.plan import PlannedRun
from tailcut.results.store import State, Store

FABRICS = "|".join(re.escape(name) for name in fabrics.FABRICS if name != fabrics.ENGINE)
IDENTIFIER = re.compile(rf"(?P<run>[0-9a-f]+)-lab-(?:(?P<fabric>{FABRICS})-)?(?P<by>repnet-)?(?P<repeat>[1-9][0-9]*)")


def by_repnet(runs: Iterable[PlannedRun]) -> bool:
    """Whether `repnet-bench` carries the flows of a plan: all if any scheme replicates, so that only schemes differ."""
    return any(run["config"]["scheme"]["replicate"]["kind"] != "none" for run in runs)


def identifier(run_id: str, repeat: int, *, repnet: bool, fabric: str = fabrics.ENGINE) -> str:
    """The identifier of the lab's run of a planned run, the ``repeat``-th from 1, by `repnet-bench` or by sockets."""
    return f"{run_id}-{fabrics.backend(fabric)}-{'repnet-' if repnet else ''}{repeat}"


def repeats_from(run_id: str) -> Iterator[str]:
    """The identifiers of the repeats of a run of the lab: its own, and then all others from the first on."""
    yield run_id
    found = IDENTIFIER.fullmatch(run_id)
    assert found is not None  # noqa: S101 - asked of the lab's runs only
    for repeat in count(1):
        if repeat != int(found["repeat"]):
            yield f"{run_id[: found.start('repeat')]}{repeat}"


def planned(run_id: str) -> str:
    """The identifier of the planned run that a run of the store is of: its own, unless the lab made it."""
    found = IDENTIFIER.fullmatch(run_id)
    return run_id if found is None else found["run"]


def is_of_lab(run_id: str) -> bool:
    """Whether the lab made a run. Kernels are not deterministic: another time its tables are others."""
    return IDENTIFIER.fullmatch(run_id) is not None


NOT_FAITHFUL = "runs that are counted in are not faithful: the machine could not carry them in time"


def unfaithful(bad: int, of_all: int) -> str:
    """Returns the summary's note on numbers with unfaithful runs in them."""
    return f"{bad} of {of_all} {NOT_FAITHFUL}"


def is_caveat(reason: str | None) -> bool:
    """Whether a reason in the summary is a caveat on its number, rather than the cause of a missing one."""
    return reason is not None and (fabrics.TOO_FAST in reason or NOT_FAITHFUL in reason)


@dataclass(frozen=True, slots=True)
class LabRun:
    """A finished run of the lab.

    Attributes:
        id: its identifier in the store.
        run: the planned run.
        repeat: which repeat it is, from 1.
        fabric: what lay between the hosts.
        about: its ``run.json``.
    """

    id: str
    run: PlannedRun
    repeat: int
    fabric: str
    about: Mapping[str, Any]

    @property
    def faithful(self) -> bool:
        """Whether the machine could carry it."""
        return bool(self.about["faithful"])


def of_plan(store: Store, runs: Iterable[PlannedRun]) -> list[LabRun]:
    """The lab's finished runs of a plan's, by fabric, plan order and repeat, if they were carried as the plan asks."""
    planned_runs = list(runs)
    repnet = by_repnet(planned_runs)
    repeats: dict[tuple[str, str], list[int]] = {}
    for name in store.runs():
        found = IDENTIFIER.fullmatch(name)
        if found is not None and (found["by"] is not None) == repnet:
            repeats.setdefault((found["fabric"] or fabrics.ENGINE, found["run"]), []).append(int(found["repeat"]))
    there = []
    for fabric, run in product(fabrics.FABRICS, planned_runs) if repeats else ():
        for repeat in sorted(repeats.get((fabric, run["id"]), ())):
            run_id = identifier(run["id"], repeat, repnet=repnet, fabric=fabric)
            state, about = store.state_and_record(run_id)
            if state is State.COMPLETE and about is not None:
                there.append(LabRun(run_id, run, repeat, fabric, about))
    return there
