"""The runs of one backend as a summary asks for them: by scheme and point, and within by seed."""

from collections.abc import Mapping, Sequence

import polars as pl

from tailcut.plan import PlannedRun, Value, canonical
from tailcut.results.derived import Derived, in_threads
from tailcut.results.samples import Group, Sample, over_runs
from tailcut.results.store import Store
from tailcut.results.tables import read_parquet

Made = tuple[str, str, int]
"""A run's identifier, which tables it has (``derived.tables_of``) and when it ended, in ns."""


def groups_of(per_run: pl.DataFrame) -> list[Group]:
    """The groupings and classes that runs have rows of."""
    return per_run.select("grouping", "class").unique(maintain_order=True).rows()


class Cells:
    """Runs by scheme and point; several of one seed, as the lab makes them, are taken together.

    Args:
        kept: what is computed from each run.
        store: where they are.
        runs: each with what was planned.
    """

    def __init__(self, kept: Derived, store: Store, runs: Sequence[tuple[PlannedRun, Made]]) -> None:
        self._kept = kept
        self._store = store
        self._runs: dict[str, dict[int, list[Made]]] = {}
        for run, made in runs:
            of_cell = self._runs.setdefault(canonical([run["scheme"], run["point"]]), {})
            of_cell.setdefault(run["seed"], []).append(made)

    def _of(self, scheme: str, point: Mapping[str, Value]) -> Mapping[int, Sequence[Made]]:
        return self._runs.get(canonical([scheme, point]), {})

    def samples(self, scheme: str, point: Mapping[str, Value]) -> dict[int, dict[Group, Sample]]:
        """By seed, the samples of one cell's runs."""
        of_seeds = self._of(scheme, point)
        found = in_threads(
            lambda made: self._kept.samples(*made), [made for runs in of_seeds.values() for made in runs]
        )
        each = iter(found)
        return {seed: over_runs([next(each) for _ in runs]) for seed, runs in of_seeds.items()}

    def parted(self, scheme: str, point: Mapping[str, Value]) -> dict[int, pl.DataFrame]:
        """By seed, the flows of one cell with their parts."""
        return {
            seed: pl.concat([read_parquet(self._store.path(run_id) / "flows.parquet") for run_id, _, _ in several])
            for seed, several in self._of(scheme, point).items()
        }
