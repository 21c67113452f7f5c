"""The simulator against real kernels, over the seeds that both have: another seed says nothing of how they differ."""

import polars as pl

from tailcut.plan import Plan
from tailcut.results import estimates
from tailcut.results.summary import Cell, Runs, axes_schema, cells, point_columns

CLASSES, STATISTICS = ("short", "long"), ("mean", "p99")


def compare_with_kernels(plan: Plan, simulated: Runs, real: Runs) -> pl.DataFrame:
    """The values of both over the flows of the seeds that both have, of each class and statistic, and their change.

    Args:
        plan: what was asked.
        simulated: the simulator's runs.
        real: those over kernels.

    Returns:
        The columns ``scheme``, the sweep's axes, ``class``, ``statistic``, ``simulated_us``, ``real_us``, ``change``
        (above zero where kernels took longer) and ``n_seeds``. Times of which only a lower bound is known are left out.
    """
    rows = []
    for scheme, point in cells(plan["runs"]):
        over_kernels = real.samples(scheme, point)
        both = {seed: of for seed, of in simulated.samples(scheme, point).items() if seed in over_kernels}
        for name in CLASSES if both else ():
            ours = Cell({seed: of["class", name] for seed, of in both.items()})
            theirs = Cell({seed: over_kernels[seed]["class", name] for seed in both})
            for statistic in STATISTICS:
                change = estimates.change(ours.times, theirs.times, statistic)
                if change is None or ours.is_bound(statistic) or theirs.is_bound(statistic):
                    continue
                common = tuple(seed for seed in ours.times.seeds if seed in theirs.times.seeds)
                rows.append(
                    {
                        "scheme": scheme, **point_columns(plan, point), "class": name, "statistic": statistic,
                        "simulated_us": ours.times.only(common).values[statistic] / 1000,
                        "real_us": theirs.times.only(common).values[statistic] / 1000,
                        "change": change.value, "n_seeds": change.seeds,
                    }
                )  # fmt: skip
    schema = {
        "scheme": pl.String(), **axes_schema(plan), "class": pl.String(), "statistic": pl.String(),
        "simulated_us": pl.Float64(), "real_us": pl.Float64(), "change": pl.Float64(), "n_seeds": pl.UInt32(),
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)
