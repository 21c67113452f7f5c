"""A schedule of GOAL: operations of ranks as they are read, and the job that they become.

Receives are no rows. What waits for one waits for its message, and for what the receive itself waits for; what waits
for an operation's start waits for what that operation waits for. Both stay within a rank, so that each rank is
resolved as it ends.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NoReturn

import numpy as np

from tailcut.imports import matching
from tailcut.imports.job import COMPUTATION, JOIN_PROCESSOR, MESSAGE, Job
from tailcut.imports.labels import Waits
from tailcut.imports.network import Imported, ImportOptions
from tailcut.imports.order import Cycle, start_order
from tailcut.imports.source import MAX_HOSTS, ImportRefusedError, Word

SEND, RECV, CALC = 1, 2, 3
_JOIN, _SELF = 4, 5
ANY = -1
_ANY_PEER, _ANY_TAG = 2**32 - 1, 2**64 - 1
_MOST_BYTES, _MOST_NS = 3 * 10**12, 10**15
_MOST_OPERATIONS = 2**31
_NOTHING: list[int] = []
_FEW = 8
"""Operations that pass on more waits than these have a row that joins them."""


class WaitKind(IntEnum):
    """The event that is waited for."""

    OVER = 0
    STARTED = 1


class Schedule:
    """The operations of a schedule, rank by rank.

    Args:
        file: its name in errors.
        options: among them, when a send is over, and how many interfaces a rank has.
    """

    def __init__(self, file: str, options: ImportOptions) -> None:
        self.file = file
        self.options = options
        self.unit = "line"
        self.ranks: int | None = None
        self.rank = -1
        self._kinds = array("B")
        self._peers = array("I")
        self._amounts = array("Q")
        self._tags = array("Q")
        self._places = array("H")  # cpu, and 256 times the nic
        self._lines = array("I")
        self._rank_begins = array("I")
        self._first = array("Q")  # of each operation, where its waits begin
        self._waits = array("I")
        self._before = Waits()  # of the current rank
        self._wait_lines: dict[tuple[int, int], int] = {}
        self._forward = True
        self._selves: list[int] = []
        self._counts: Counter[str] = Counter()
        self._notes: list[str] = []

    # --- reading

    def set_ranks(self, ranks: int, line: int) -> None:
        """Set the number of ranks."""
        hosts = ranks * (self.options.nics or 1)
        if ranks < 1:
            self.refuse(line, f"{ranks} ranks", "write num_ranks N with at least 1")
        if hosts > MAX_HOSTS:
            self.refuse(
                line, f"{hosts:,} hosts: at most {MAX_HOSTS:,} are supported", "import a smaller job", "TC-I003"
            )
        self.ranks = ranks

    def begin_rank(self) -> None:
        """Begin the next rank."""
        self.rank += 1
        self._rank_begins.append(len(self._kinds))
        self._before = Waits()
        self._wait_lines.clear()
        self._selves.clear()
        self._forward = True

    def add(self, kind: int, peer: int, amount: int, tag: int, cpu: int, nic: int, line: int) -> int:
        """Add an operation of the current rank; returns its number."""
        if peer != ANY and self.ranks is not None and peer >= self.ranks:
            self._refuse_peer(peer, line)
        if cpu > 255 or nic > 255:
            self.refuse(line, f"cpu {cpu}, nic {nic}: both go up to 255", "use smaller numbers", "TC-I003")
        if kind == CALC:
            if amount > _MOST_NS:
                self.refuse(line, f"calc {amount}: over eleven days", "shorten it", "TC-I003")
        else:
            if amount > _MOST_BYTES:
                self.refuse(line, f"{amount} bytes: a message has at most 3,000 GB here", "split it", "TC-I003")
            if tag > _ANY_TAG or peer > _ANY_PEER:
                self.refuse(line, f"tag {tag}, rank {peer}: too large", "tags have 64 bits, ranks 32")
            if nic >= (self.options.nics or 256):
                nics = self.options.nics
                self.refuse(line, f"nic {nic} of {nics}: interfaces are counted from 0", "correct --nics", "TC-I003")
            if peer == self.rank:
                self._selves.append(len(self._kinds))
        at = len(self._kinds)
        if at >= _MOST_OPERATIONS:
            self.refuse(line, f"more than {_MOST_OPERATIONS:,} operations", "import a part of it", "TC-I003")
        self._append(kind, _ANY_PEER if peer == ANY else peer, amount, _ANY_TAG if tag == ANY else tag, line)
        self._places[at] = cpu | nic << 8
        return at

    def _append(self, kind: int, peer: int, amount: int, tag: int, line: int) -> None:
        self._kinds.append(kind)
        self._peers.append(peer)
        self._amounts.append(amount)
        self._tags.append(tag)
        self._places.append(0)
        self._lines.append(line)

    def wait(self, waiting: int, other: int, kind: WaitKind, line: int) -> None:
        """Make an operation of the current rank wait for another one."""
        self._before.add(waiting, other << 1 | kind)
        if other >= waiting:
            self._forward = False
            self._wait_lines[waiting, other] = line

    def end_rank(self) -> None:
        """End the current rank: resolve its waits."""
        begin, end = self._rank_begins[-1], len(self._kinds)
        if self.rank == 0 and self.ranks is not None:
            for at in range(begin, end):  # num_ranks may stand behind them
                if self._kinds[at] in (SEND, RECV) and self.ranks <= self._peers[at] < _ANY_PEER:
                    self._refuse_peer(self._peers[at], self._lines[at])
        self._before.sort(begin, end)
        partners = self._pair_selves()
        order: Sequence[int] = range(begin, end)
        in_order = not partners and self._forward
        if not in_order:
            order = self._order(begin, end, partners)
        before: dict[int, Sequence[int]] = {}  # of the operations that pass waits on; of all if out of order
        joins: list[list[int]] = []
        passing = self._passing(begin, end)
        for at in order:
            found = self._resolved(self._before.get(at, _NOTHING), before, partners)
            if len(found) > _FEW and passing[at - begin]:
                joins.append(found)
                found = [end + len(joins) - 1]
            if found and (passing[at - begin] or not in_order):
                before[at] = array("I", found)
            if in_order:
                self._add_waits(at, found)
        if not in_order:
            for at in range(begin, end):
                self._add_waits(at, before.get(at, ()))
        for found in joins:
            self._append(_JOIN, 0, 0, 0, 0)
            self._first.append(len(self._waits))
            self._waits.extend(found)

    def _add_waits(self, operation: int, found: Sequence[int]) -> None:
        """Adds the waits of the next operation; receives have none of their own."""
        self._first.append(len(self._waits))
        if found and self._kinds[operation] in (SEND, CALC):
            self._waits.extend(found)

    def _refuse_peer(self, peer: int, line: int) -> NoReturn:
        self.refuse(line, f"there is no rank {peer}: the schedule has {self.ranks}", "ranks are counted from 0")

    def _pair_selves(self) -> dict[int, int]:
        """Pairs the sends of the current rank to itself with its receives: neither becomes a row."""
        partners: dict[int, int] = {}
        if not self._selves:
            return partners
        sends = [at for at in self._selves if self._kinds[at] == SEND]
        own = [at for at in self._selves if self._kinds[at] == RECV]
        if len(sends) > len(own):
            of_any = range(self._rank_begins[-1], len(self._kinds))
            own += [at for at in of_any if self._kinds[at] == RECV and self._peers[at] == _ANY_PEER]
        for any_source, any_tag in ((False, False), (False, True), (True, False), (True, True)):
            for recv in own:
                kind = self._peers[recv] == _ANY_PEER, self._tags[recv] == _ANY_TAG
                if kind != (any_source, any_tag):
                    continue
                fits = (s for s in sends if any_tag or self._tags[s] in (self._tags[recv], _ANY_TAG))
                send = next(fits, None)
                if send is not None:
                    sends.remove(send)
                    partners[recv], partners[send] = send, recv
                    self._counts["any source"] += any_source
        for at in self._selves:
            if at not in partners:
                self.refuse(self._lines[at], self._lonely(at), "write a receive for each send")
        for at in partners:
            self._kinds[at] = _SELF
        self._counts["selves"] += len(partners) // 2
        return partners

    def _order(self, begin: int, end: int, partners: dict[int, int]) -> list[int]:
        """Returns the operations of the current rank in an order in which they can start."""
        try:
            return start_order(begin, end, self._before, partners)
        except Cycle as cycle:
            rows = cycle.operations
            line = next(
                (
                    self._wait_lines[pair]
                    for pair in zip(rows, [*rows[1:], rows[0]], strict=True)
                    if pair in self._wait_lines
                ),
                self._lines[rows[0]],
            )
            self._refuse_cycle([self._lines[at] for at in rows], line)

    def _refuse_cycle(self, lines: list[int], line: int) -> NoReturn:
        names = [f"{self.unit} {one}" for one in (*lines[1:8], lines[0])]
        more = "" if len(lines) <= 8 else "others, and so on, until one waits for "
        what = f"{self.unit} {lines[0]} waits for {', which waits for '.join([*names[:-1], more + names[-1]])}"
        self.refuse(line, f"{what}: none of them can start", "remove one of these waits")

    def _passing(self, begin: int, end: int) -> bytearray:
        """Returns for each operation whether its own waits pass on to those that wait for it."""
        passing = bytearray(end - begin)
        for one in self._before.others():
            if one & 1 == WaitKind.STARTED or self._kinds[one >> 1] in (RECV, _SELF) or self.options.eager:
                passing[(one >> 1) - begin] = 1
        return passing

    def _resolved(
        self, waits: Sequence[int], before: Mapping[int, Sequence[int]], partners: Mapping[int, int]
    ) -> list[int]:
        """Returns sends, calcs and received messages (by their receives) that an operation waits for."""
        found: list[int] = []
        for one in waits:
            other, wait = one >> 1, one & 1
            kind = self._kinds[other]
            if wait == WaitKind.OVER:
                if kind in (CALC, RECV) or (kind == SEND and not self.options.eager):
                    found.append(other)
                    if kind != RECV:
                        continue
                elif kind == _SELF:
                    found.extend(before.get(partners[other], ()))
            found.extend(before.get(other, ()))
        return list(dict.fromkeys(found)) if len(found) > 1 else found

    # --- what is told

    def refuse(self, line: int, what: str, hint: str, code: str = "TC-I002") -> NoReturn:
        """Raises the refusal of a line."""
        if self.unit == "line":
            Word(self.file, line, 1, "").refuse(what, hint, code)
        raise ImportRefusedError(code, f"{self.file}: {self.unit} {line}: {what}", hint)

    def note(self, place: str, what: str) -> None:
        """Notes what is left out."""
        self._notes.append(f"{self.file}: {place}: {what}")

    def line_of(self, operation: int) -> int:
        """Returns the line of an operation."""
        return self._lines[operation]

    def tell_read(self, done: int, whole: int) -> None:
        """Say how much of the file is read."""
        self.options.progress(f"{self.file}: {done / max(whole, 1):.0%} read, {len(self._kinds):,} operations")

    def _lonely(self, at: int) -> str:
        kind, peer, tag = self._kinds[at], self._peers[at], self._tags[at]
        tagged = "any tag" if tag == _ANY_TAG else f"tag {tag}"
        if kind == SEND:
            return f"no receive of rank {peer} takes the message with {tagged}"
        source = "any rank" if peer == _ANY_PEER else f"rank {peer}"
        return f"no message with {tagged} from {source} is left for this receive"

    # --- the job

    def imported(self) -> Imported:
        """Returns the job, and what is to be told of it."""
        self.options.progress(f"{self.file}: matching sends with receives")
        job = self._job()
        self.options.progress(f"{self.file}: looking for cycles")
        cycle = job.cycle()
        if cycle:
            is_join = (job.kinds == COMPUTATION) & (job.other == JOIN_PROCESSOR)
            lines = [int(job.ids[row]) for row in cycle if not is_join[row]]
            self._refuse_cycle(lines, lines[0])
        if not job.messages:
            self.refuse(max(self._lines, default=1), "the schedule has no message", "import one that has", "TC-I003")
        hosts = (self.ranks or 0) * (self.options.nics or 1)
        return Imported(hosts=hosts, job=job, notes=[*self._notes, *self._summary()])

    def _job(self) -> Job:
        kinds = np.frombuffer(self._kinds, dtype=np.uint8)
        peers = np.frombuffer(self._peers, dtype=np.uint32)
        count = len(kinds)
        begins = np.append(np.frombuffer(self._rank_begins, dtype=np.uint32).astype(np.int64), count)
        ranks = np.repeat(np.arange(len(begins) - 1, dtype=np.uint32), np.diff(begins))
        tags = np.frombuffer(self._tags, dtype=np.uint64)
        found = matching.match(kinds, ranks, peers, tags)
        if found.unmatched is not None:
            hint = "every send needs a receive of the same ranks and tag, and every receive a send"
            self.refuse(self._lines[found.unmatched], self._lonely(found.unmatched), hint)
        self._counts["shared"] = found.shared
        self._counts["any source"] += found.any_source
        amounts = np.frombuffer(self._amounts, dtype=np.uint64).astype(np.int64)
        recvs = np.flatnonzero(kinds == RECV)
        self._counts["larger"] = int((amounts[found.sends[recvs]] > amounts[recvs]).sum())
        operations = np.flatnonzero((kinds == SEND) | (kinds == CALC) | (kinds == _JOIN))
        rows = np.zeros(count, dtype=np.int64)
        rows[operations] = np.arange(len(operations))
        rows[recvs] = rows[found.sends[recvs]]
        own = kinds[operations]
        sends = own == SEND
        places = np.frombuffer(self._places, dtype=np.uint16)
        nics = self.options.nics or 1
        if nics == 1 and (places[operations[sends]] >> 8).any():
            self._counts["nics"] = 1
        takes = np.zeros(count, dtype=np.int64)  # of a send, its receive
        takes[found.sends[recvs]] = recvs
        one = ranks[operations].astype(np.int64) * nics
        other = (places[operations] & 255).astype(np.int64)
        other[own == _JOIN] = JOIN_PROCESSOR
        amount = amounts[operations]
        at = operations[sends]
        if nics > 1:
            one[sends] += places[at] >> 8
        other[sends] = peers[at].astype(np.int64) * nics + ((places[takes[at]] >> 8) if nics > 1 else 0)
        self._counts["empty"] = int((amount[sends] == 0).sum())
        amount[sends] = np.maximum(amount[sends], 1)
        ids = np.frombuffer(self._lines, dtype=np.uint32)[operations].astype(np.int64)
        joins = own == _JOIN
        ids[joins] = int(ids.max(initial=0)) + 1 + np.arange(int(joins.sum()))
        first = np.append(np.frombuffer(self._first, dtype=np.uint64)[operations].astype(np.int64), len(self._waits))
        waits = rows[np.frombuffer(self._waits, dtype=np.uint32)] if len(self._waits) else np.zeros(0, dtype=np.int64)
        kind = np.where(sends, MESSAGE, COMPUTATION).astype(np.uint8)
        return Job(ids=ids, kinds=kind, one=one, other=other, amounts=amount, first=first, waits=waits)

    def _summary(self) -> list[str]:
        texts = {
            "any source": "{n:,} receives from any source are paired by rank",
            "empty": "{n:,} empty messages are made 1 byte",
            "selves": "{n:,} messages of a rank to itself are left out: no network carries them",
            "larger": "{n:,} messages are larger than their receives: sizes are those of the sends",
            "shared": "{n:,} messages have the ranks and the tag of an earlier one: matched in the order of the file",
            "nics": "interfaces (nic) are left out: each rank is a host with one; --nics N makes each interface a host",
        }
        return [
            f"{self.file}: {text.format(n=self._counts[name])}" for name, text in texts.items() if self._counts[name]
        ]
