"""Changes where flows have not finished: the change of a lower bound is a bound itself, or not even that.

The column ``change_bound`` of a summary says that the change is ``at least`` what is told where the scheme's own time
may be longer, ``at most`` that where the baseline's may be, and ``roughly`` that where both may be; it is null where
both are known.
"""

AT_MOST, AT_LEAST, ROUGHLY = "at most", "at least", "roughly"
MARKS = {AT_MOST: "≤ ", AT_LEAST: "≥ ", ROUGHLY: "~ "}
"""The mark before a change that is a bound; below zero is faster."""


def of_change(own: bool, of_baseline: bool) -> str | None:
    """Returns the kind of bound of a change, given whether either time is a lower bound."""
    if own and of_baseline:
        return ROUGHLY
    return AT_LEAST if own else AT_MOST if of_baseline else None


def is_certain(change: float, bound: str | None) -> bool:
    """Whether the sign of a change is certain: no finishing time of the unfinished flows could reverse it."""
    return bound is None or bound == (AT_LEAST if change > 0 else AT_MOST)
