"""Flow sizes in packets: the distribution F of RepFlow's analysis and the integrals over it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.integrate import quad


@dataclass(frozen=True)
class FlowSizes:
    """A piecewise-linear distribution of flow sizes in packets.

    The CDF is linear between its points and the first point is an atom, as in the flow-size tables of the
    field. Where two points share a size, their difference in probability is an atom there.

    Attributes:
        packets: sizes at the points, in packets, at least 1, not decreasing.
        probability: P(X <= size) at the points, not decreasing, the last one 1.
    """

    packets: tuple[float, ...]
    probability: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuses a table that is no distribution.

        Raises:
            ValueError: the points do not describe a CDF of sizes of at least one packet.
        """
        if len(self.packets) != len(self.probability) or not self.packets:
            raise ValueError("a flow-size table needs as many probabilities as sizes, and at least one point")
        if any(b < a for a, b in pairwise(self.packets)) or self.packets[0] < 1:
            raise ValueError("flow sizes must not decrease and start at one packet or more")
        if any(b < a for a, b in pairwise(self.probability)) or self.probability[0] < 0:
            raise ValueError("cumulative probabilities must not decrease and start at 0 or more")
        if abs(self.probability[-1] - 1) > 1e-9:
            raise ValueError(f"the last cumulative probability must be 1, not {self.probability[-1]}")

    @classmethod
    def from_bytes(cls, size: Sequence[float], probability: Sequence[float], mss: int) -> Self:
        """The distribution of a table in bytes, carried in packets of `mss` payload bytes.

        A flow of less than one packet is one packet: the probability below one packet becomes an atom there.
        Larger sizes stay fractional, as the paper's integrals have them.
        """
        packets = np.asarray(size, dtype=float) / mss
        cumulative = np.asarray(probability, dtype=float)
        if packets[0] >= 1:
            return cls(tuple(packets.tolist()), tuple(cumulative.tolist()))
        at_one = float(np.interp(1.0, packets, cumulative))
        above = packets > 1
        return cls((1.0, *packets[above].tolist()), (at_one, *cumulative[above].tolist()))

    def partial_expectation(
        self, value: Callable[[float], float], above: float = 0.0, up_to: float = float("inf")
    ) -> float:
        """E[value(X); above < X <= up_to], which is the integral of value(x) f(x) over that range."""
        total = 0.0
        if above < self.packets[0] <= up_to:
            total += self.probability[0] * value(self.packets[0])
        points = zip(self.packets, self.probability, strict=True)
        for (low, p_low), (high, p_high) in pairwise(points):
            mass = p_high - p_low
            if mass == 0.0:
                continue
            if high == low:
                total += mass * value(low) if above < low <= up_to else 0.0
                continue
            start, end = max(low, above), min(high, up_to)
            if start < end:
                # 1e-12 relative is as near as double precision reliably gets on these smooth
                # integrands.
                total += quad(value, start, end, epsabs=0.0, epsrel=1e-12)[0] * mass / (high - low)
        return total

    def cdf(self, size: float) -> float:
        """F(size) = P(X <= size), read off the points.

        A sum of integrals may miss 1 by a hair where no flow is larger, and a class of no flows would have some.
        """
        above = bisect_right(self.packets, size)
        low = self.probability[above - 1] if above else 0.0
        if low == self.probability[-1]:
            return 1.0
        if above == 0:
            return 0.0
        start, end = self.packets[above - 1 : above + 1]
        return low + (self.probability[above] - low) * (size - start) / (end - start)

    def mean(self) -> float:
        """E[X] in packets."""
        return self.partial_expectation(lambda x: x)

    def short_byte_share(self, short_limit: float) -> float:
        """The paper's epsilon (below eq. 5): the share of bytes in flows of up to `short_limit` packets."""
        return self.partial_expectation(lambda x: x, up_to=short_limit) / self.mean()
