"""The rule of all verdicts: it compares our number's interval with the paper's statement and its precision.

No tolerance belongs to a claim. They were fixed before the first scorecard was made.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Precision(Enum):
    """How exactly the paper's number can be read."""

    PRINTED = "printed"
    READ = "read off a figure"
    ABOUT = "about"
    COMPUTED = "computed"
    SIMULATED = "simulated"
    SIMULATED_BY_LUCK = "simulated, by luck"


RELATIVE = {
    Precision.PRINTED: 0.10,
    Precision.READ: 0.15,
    Precision.ABOUT: 0.25,
    Precision.COMPUTED: 0.02,
    Precision.SIMULATED: 0.03,
    Precision.SIMULATED_BY_LUCK: 0.10,
}
"""By how much of the paper's value ours may differ. Single draws decide another simulator's range "by luck"."""
POINTS = {
    Precision.PRINTED: 0.05,
    Precision.READ: 0.08,
    Precision.ABOUT: 0.10,
    Precision.COMPUTED: 0.02,
    Precision.SIMULATED: 0.03,
    Precision.SIMULATED_BY_LUCK: 0.10,
}
"""By how much of the whole a change may differ from the paper's: 0.05 are five percentage points."""
BEYOND = 10
"""Fewest flows beyond a percentile that is judged."""


class Verdict(Enum):
    """The outcome of a claim."""

    REPRODUCED = "reproduced"
    DIRECTION = "direction"
    UNDECIDED = "undecided"
    NOT = "not"
    CANNOT = "cannot be shown"
    CONTRADICTION = "the paper contradicts itself"
    ABSENT = "not run yet"


@dataclass(frozen=True, slots=True)
class Target:
    """The paper's number.

    Attributes:
        low: its lower end; None without one.
        high: its upper end; None without one.
        precision: how exactly it can be read.
        change: whether it is a change, of which 0 is none, and not a value.
        alike: whether it says that nothing changes: its ends are then how much is nothing, and no tolerance is added.
        sign: whether it says the sign alone.
    """

    low: float | None
    high: float | None
    precision: Precision = Precision.PRINTED
    change: bool = False
    alike: bool = False
    sign: bool = False

    @property
    def accepted(self) -> tuple[float, float]:
        """The lowest and the highest value that count as the paper's number."""
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        if self.alike or self.sign:
            return low, high
        if self.change:
            return low - POINTS[self.precision], high + POINTS[self.precision]
        return low - RELATIVE[self.precision] * abs(low), high + RELATIVE[self.precision] * abs(high)

    @property
    def effect(self) -> float:
        """The size of the reported effect: a wider interval decides nothing."""
        ends = [end for end in (self.low, self.high) if end is not None]
        return abs(sum(ends) / len(ends)) if not self.alike else 2 * max(abs(end) for end in ends)


@dataclass(frozen=True, slots=True)
class Number:
    """Our number at one point.

    Attributes:
        value: it.
        low: the lower end of its 95 % interval; None without one.
        high: the upper end.
        exact: whether it has no interval because nothing is drawn: the queueing model's.
        beyond: how many flows lie beyond the percentile that it is; None for other statistics.
    """

    value: float
    low: float | None = None
    high: float | None = None
    exact: bool = False
    beyond: int | None = None


def judge(number: Number, target: Target) -> Verdict:
    """The verdict on one point.

    *Reproduced*: the interval lies within what is accepted as the paper's number; or the value does, and the interval
    is no wider than the paper's effect. *Direction*: it is another number of the same sign, which the interval tells
    from zero. *Undecided*: the interval is wider than the effect and allows both, there is none, or fewer than ten
    flows lie beyond the percentile. *Not*: anything else.
    """
    low, high = (number.value, number.value) if number.exact else (number.low, number.high)
    if low is None or high is None or (number.beyond is not None and number.beyond < BEYOND):
        return Verdict.UNDECIDED
    least, most = target.accepted
    if target.sign:
        if least <= low and high <= most:
            return Verdict.REPRODUCED
        return Verdict.NOT if high < least or low > most else Verdict.UNDECIDED
    if least <= low and high <= most:
        return Verdict.REPRODUCED
    apart = high < least or low > most
    wide = high - low > target.effect
    if not apart and wide:
        return Verdict.UNDECIDED
    if least <= number.value <= most:
        return Verdict.REPRODUCED
    if target.alike:
        return Verdict.NOT
    return Verdict.DIRECTION if _same_way(low, high, target) else Verdict.NOT


def _same_way(low: float, high: float, target: Target) -> bool:
    """Whether a change has the paper's sign beyond doubt; values have no direction."""
    if not target.change:
        return False
    ends = [end for end in (target.low, target.high) if end is not None]
    middle = sum(ends) / len(ends)
    return (middle < 0 and high < 0) or (middle > 0 and low > 0)


def over_points(verdicts: Sequence[Verdict], *, most: bool) -> Verdict:
    """The verdict on a claim that holds at several points: at all of them, or at more than half.

    It is the best that so many of them reach. Where that is *not*, but undecided points could make it more, it is
    undecided.
    """
    if not verdicts:
        return Verdict.UNDECIDED
    needed = len(verdicts) // 2 + 1 if most else len(verdicts)
    reached = 0
    for verdict in (Verdict.REPRODUCED, Verdict.DIRECTION):
        reached += verdicts.count(verdict)
        if reached >= needed:
            return verdict
    return Verdict.UNDECIDED if reached + verdicts.count(Verdict.UNDECIDED) >= needed else Verdict.NOT
