"""Jobs as imports find them: messages and computations in arrays, the waits between them, and their cycles.

A job of ten million messages fits into 4 GB: an operation takes 32 bytes, a wait 8.
"""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MESSAGE, COMPUTATION = 1, 3
JOIN_PROCESSOR = 256
"""A processor that no file has: computations of 0 ns that only join waits run there, and hold nobody up."""

Integers = npt.NDArray[np.int64]


@dataclass(slots=True)
class Job:
    """The rows of a graph file.

    Attributes:
        ids: the id of each row.
        kinds: `MESSAGE` or `COMPUTATION`.
        one: the sending host, or the host that computes.
        other: the receiving host, or the processor.
        amounts: bytes, or nanoseconds.
        starts_ns: start of messages that wait for nothing; none if all start at 0.
        first: the waits of row i are ``waits[first[i]:first[i + 1]]``.
        waits: rows that are waited for.
        pool: the pool of each row, 0 for none; none if there are no pools.
        at_once: how many rows of its pool may run at once.
        until: what a row of a pool has to be before the next one starts: `sent`, `received` or `acknowledged`; none
            for what `over` says.
        over: when a message is over, as experiments have it.
        acknowledged: the waits that are for the acknowledgement of a message; none if all are for its last byte.
    """

    ids: Integers
    kinds: npt.NDArray[np.uint8]
    one: Integers
    other: Integers
    amounts: Integers
    first: Integers
    waits: Integers
    starts_ns: Integers | None = None
    acknowledged: npt.NDArray[np.bool_] | None = None
    pool: Integers | None = None
    at_once: Integers | None = None
    until: str | None = None
    over: str = "received"

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def messages(self) -> int:
        """The number of messages."""
        return int((self.kinds == MESSAGE).sum())

    def cycle(self) -> list[int]:
        """Returns rows that wait for each other in a circle, each for the next one; none if there are no such rows."""
        stuck = self._stuck()
        if not stuck.any():
            return []
        first, waits = self.first, self.waits
        at, place = int(stuck.argmax()), dict[int, int]()
        path: list[int] = []
        while at not in place:
            place[at] = len(path)
            path.append(at)
            # A stuck row waits for a stuck row.
            at = next(int(one) for one in waits[first[at] : first[at + 1]] if stuck[one])
        circle = path[place[at] :]
        begin = circle.index(min(circle))
        return circle[begin:] + circle[:begin]

    def _stuck(self) -> npt.NDArray[np.bool_]:
        """Returns the rows that can never start, because rows wait for each other."""
        rows = len(self)
        needs = np.diff(self.first)
        to = np.repeat(np.arange(rows, dtype=np.int64), needs)
        if (self.waits < to).all():
            return np.zeros(rows, dtype=np.bool_)
        order = np.argsort(self.waits, kind="stable")
        dependents = array("I", to[order].astype(np.uint32).tobytes())
        begins = np.zeros(rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.waits, minlength=rows), out=begins[1:])
        begin = array("q", begins.tobytes())
        left = array("I", needs.astype(np.uint32).tobytes())
        del to, order, begins
        ready = np.flatnonzero(needs == 0).tolist()
        while ready:
            done = ready.pop()
            for at in dependents[begin[done] : begin[done + 1]]:
                left[at] -= 1
                if not left[at]:
                    ready.append(at)
        return np.frombuffer(left, dtype=np.uint32) > 0

    def text(self, rows: int = 100_000, progress: Callable[[int], None] = lambda _: None) -> Iterator[str]:
        """Returns the graph file in parts of some rows each.

        Args:
            rows: how many rows a part has.
            progress: is told how many rows are written.
        """
        timed, pooled = self.starts_ns is not None, self.pool is not None
        started = ",start_ns" if timed else ""
        until = f",{self.until}" if pooled and self.until else ""
        pools = f",pool,at_once{',until' if until else ''}" if pooled else ""
        yield f"id,src,dst,bytes{started}{pools},host,processor,duration_ns,after\n"
        no_pool = ",," + "," * bool(until)
        blank = "," * (3 + timed) + no_pool * pooled
        zeros = np.zeros(len(self) if timed or pooled else 0, dtype=np.int64)
        more = [column if column is not None else zeros for column in (self.starts_ns, self.pool, self.at_once)]
        for begin in range(0, len(self), rows):
            part = slice(begin, begin + rows)
            first = self.first[begin : begin + rows + 1].tolist()
            lowest = first[0]
            places = self.waits[lowest : first[-1]]
            names = list(map(str, self.ids[places].tolist()))
            if self.acknowledged is not None:
                marks = self.acknowledged[lowest : first[-1]].tolist()
                ends = ("@received", "@acknowledged")
                names = [f"{name}{ends[mark]}" for name, mark in zip(names, marks, strict=True)]
            columns = [column[part].tolist() for column in (self.ids, self.kinds, self.one, self.other, self.amounts)]
            further = [column[part].tolist() for column in more]
            lines = []
            for at, (own, kind, one, other, amount) in enumerate(zip(*columns, strict=True)):
                after = " ".join(names[first[at] - lowest : first[at + 1] - lowest])
                if kind == MESSAGE:
                    pool, at_once = (further[1][at], further[2][at]) if pooled else (0, 0)
                    waits = after or pool
                    start = ("," if waits else f",{further[0][at]}") if timed else ""
                    joint = (f",{pool},{at_once}{until}" if pool else no_pool) if pooled else ""
                    lines.append(f"{own},{one},{other},{amount}{start}{joint},,,,{after}\n")
                else:
                    lines.append(f"{own},{blank}{one},{other},{amount},{after}\n")
            yield "".join(lines)
            progress(min(begin + rows, len(self)))
