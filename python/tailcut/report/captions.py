"""Captions of figures: the clock, the normalisation, the load and the interval."""

import polars as pl

from tailcut.report.study import CLOCKS, LOAD_KEY, Study, spell
from tailcut.report.tables import EXACT_POINTS

LOADS = {
    "host-links": "Load is the offered traffic as a fraction of the capacity of all host links.",
    "bisection": "Load is the offered traffic as a fraction of the capacity between the halves (racks) of the fabric.",
}


def clock(study: Study) -> str:
    """Returns when a flow's clock starts and stops."""
    if study.by_model_alone:
        return "Flow completion times (FCT) are the queueing model's, which knows no handshake."
    return f"Flow completion time (FCT) runs {CLOCKS[study.clock][1]} ({study.clock}'s clock)."


def normalisation() -> str:
    """Returns the reference of a slowdown."""
    return (
        "Slowdown is FCT divided by the best possible FCT of that flow: the closed form for the same size, transport"
        " and paths in an otherwise empty network. It is never below 1; statistics are taken over the flows' ratios."
    )


def load(study: Study) -> str:
    """Returns the reference of the load, if the horizontal axis or a fixed setting is a load."""
    if study.x is not None and LOAD_KEY.match(study.x.key):
        return LOADS[study.load_of]
    fixed = study.loaded.get("load")
    return f"Load is fixed at {spell(fixed)}. {LOADS[study.load_of]}" if fixed is not None else ""


def unfinished(study: Study) -> str:
    """Returns how flows that never finished enter the statistics."""
    if study.summary["n_unfinished"].sum() == 0:
        when = "in time" if study.unfinished_policy == "by" else "before its run ended"
        return f"Every flow finished {when}." if study.measured else ""
    if study.unfinished_policy == "censored":
        return (
            "Flows that had not finished when the run ended enter with the time they had been running,"
            " so that the statistics they reach are lower bounds (hollow, “at least”)."
        )
    if study.unfinished_policy == "by":
        by = study.plan["measure"]["unfinished"]["by"]
        return (
            f"Flows that had not finished {by} after the run began are left out of the statistics and counted in their"
            " own figure."
        )
    return (
        "Flows that had not finished when the run ended are left out of the statistics and counted in their own figure."
    )


def changes_of_bounds(table: pl.DataFrame) -> str:
    """Explains changes with unfinished flows (``results.bounds``); empty if every change is known.

    Args:
        table: ``tables.curves``.
    """
    if table["change_bound"].null_count() == table.height:
        return ""
    return (
        "A change is at least what is drawn if the scheme's own time is such a lower bound, at most if the baseline's"
        " is, and may be more or less (“roughly”) if both are. Such marks are hollow."
    )


def intervals(study: Study, *, changes: bool = False, model: bool = True) -> str:
    """Explains lines and bands.

    Args:
        study: the experiment.
        changes: true for changes against the baseline.
        model: false for a figure that leaves the model out.
    """
    simulated, real = (len({run.planned["seed"] for run in of}) for of in (study.runs, study.over_kernels))
    parts = []
    if max(simulated, real) > 1:
        of = "changes" if changes else "values"
        apart = f" ({real} over real kernels)" if simulated and real not in (0, simulated) else ""
        parts.append(
            f"Marks are {of} of the flows of all {simulated or real} seeds{apart} together; bands and whiskers are 95 %"
            " intervals over seeds."
        )
    elif study.measured:
        parts.append("One seed, so there is no interval: another seed would give other numbers.")
    if model and "model" in study.backends:
        parts.append("Dashed lines are the queueing model's; it has no seeds and no interval.")
        if changes:
            parts.append("The model's changes are those of its mean and 99th percentile slowdown, as in its paper.")
    return " ".join(parts)


def join(*sentences: str) -> str:
    """Joins sentences into a caption; empty ones are left out."""
    return " ".join(sentence for sentence in sentences if sentence)


def thinning() -> str:
    """Says that a curve is drawn through some of its flows (see ``tables.kept_ranks``)."""
    return (
        "Curves of many flows are drawn through some of the observed values, closer together towards the slowest; the"
        f" {EXACT_POINTS} slowest flows of each curve are all drawn."
    )
