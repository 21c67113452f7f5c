"""Explains why a job took as long as it did: its critical path, from repeating its run under every scheme."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tailcut import _core
from tailcut.errors import ExplainError
from tailcut.explain.selection import RunSelection
from tailcut.plan import label
from tailcut.results.tables import read_parquet
from tailcut.traces import read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tailcut.results import StoredResult


@dataclass(frozen=True, slots=True)
class ExplainedJob:
    """A job under every scheme that has it, the one asked about first.

    Attributes:
        job: its number.
        selection: the runs that it belongs to.
        paths: the answer of `tailcut._core.explain_job` by scheme.
    """

    job: int
    selection: RunSelection
    paths: "Mapping[str, Mapping[str, Any]]"


def explain_job(result: "StoredResult", selection: RunSelection, job: int) -> ExplainedJob:
    """Returns the critical path of a job under every scheme; the runs are repeated.

    Raises:
        ExplainError: TC-X003: the chosen scheme has no such job, or the runs are the lab's; TC-X004: a run cannot be
            repeated, or gives another completion time than the stored one.
    """
    if selection.lab:
        raise ExplainError("TC-X003", "runs of the lab have no critical paths", "add --on sim")
    paths = {}
    for scheme, run in selection.runs.items():
        file = result.store.path(run["id"]) / "jobs.parquet"
        jobs = read_parquet(file) if file.exists() else pl.DataFrame(schema={"id": pl.UInt64()})
        rows = jobs.filter(pl.col("id") == job)
        if rows.is_empty():
            if scheme == selection.scheme:
                known = jobs["id"].to_list()
                span = f"its jobs are {known[0]} to {known[-1]}" if known else "it has none"
                raise ExplainError("TC-X003", f"{scheme}, {selection.label} has no job {job}", span)
            continue
        try:
            path = json.loads(_core.explain_job(json.dumps(run), job, read_table))
        except ValueError as error:
            raise ExplainError(
                "TC-X004", f"{label(run)} cannot be repeated: {error}", "run the experiment again with this version"
            ) from None
        found, stored = path["completion_ps"], rows["completion_ns"][0]
        if (None if found is None else found // 1000) != stored:
            raise ExplainError(
                "TC-X004",
                f"{label(run)}, repeated, gives job {job} {found} ps instead of the stored {stored} ns",
                "tailcut verify says whether the stored results are intact; if so, this is a defect of Tailcut",
            )
        paths[scheme] = path
    return ExplainedJob(job, selection, paths)
