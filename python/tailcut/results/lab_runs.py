"""The lab's runs in a store: beside the simulator's, under an identifier with which run and which repeat it is."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tailcut.plan import PlannedRun
from tailcut.results.store import State, Store

IDENTIFIER = re.compile(r"(?P<run>[0-9a-f]+)-lab-(?P<by>repnet-)?(?P<repeat>[1-9][0-9]*)")


def by_repnet(runs: Iterable[PlannedRun]) -> bool:
    """Whether `repnet-bench` carries the flows of a plan: all if any scheme replicates, so that only schemes differ."""
    return any(run["config"]["scheme"]["replicate"]["kind"] != "none" for run in runs)


def identifier(run_id: str, repeat: int, *, repnet: bool) -> str:
    """The identifier of the lab's run of a planned run, the ``repeat``-th from 1, by `repnet-bench` or by sockets."""
    return f"{run_id}-lab-{'repnet-' if repnet else ''}{repeat}"


def planned(run_id: str) -> str:
    """The identifier of the planned run that a run of the store is of: its own, unless the lab made it."""
    found = IDENTIFIER.fullmatch(run_id)
    return run_id if found is None else found["run"]


def is_of_lab(run_id: str) -> bool:
    """Whether the lab made a run. Kernels are not deterministic: another time its tables are others."""
    return IDENTIFIER.fullmatch(run_id) is not None


@dataclass(frozen=True, slots=True)
class LabRun:
    """A finished run of the lab.

    Attributes:
        id: its identifier in the store.
        run: the planned run.
        repeat: which repeat it is, from 1.
        about: its ``run.json``.
    """

    id: str
    run: PlannedRun
    repeat: int
    about: Mapping[str, Any]

    @property
    def faithful(self) -> bool:
        """Whether the machine could carry it."""
        return bool(self.about["faithful"])


def of_plan(store: Store, runs: Iterable[PlannedRun]) -> list[LabRun]:
    """The lab's finished runs of a plan's, in their order and by repeat, if they were carried as the plan asks."""
    planned_runs = list(runs)
    repnet = by_repnet(planned_runs)
    repeats: dict[str, list[int]] = {}
    for name in store.runs():
        found = IDENTIFIER.fullmatch(name)
        if found is not None and (found["by"] is not None) == repnet:
            repeats.setdefault(found["run"], []).append(int(found["repeat"]))
    there = []
    for run in planned_runs if repeats else ():
        for repeat in sorted(repeats.get(run["id"], ())):
            run_id = identifier(run["id"], repeat, repnet=repnet)
            state, about = store.look(run_id)
            if state is State.COMPLETE and about is not None:
                there.append(LabRun(run_id, run, repeat, about))
    return there
