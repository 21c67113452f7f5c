"""GOAL as LogGOPSim and htsim read it: binary, little-endian, a table of places and a block per rank.

A node is named by its number over all ranks, from 0: the file has neither labels nor lines.
"""

import mmap
import struct
from pathlib import Path

from tailcut.imports.schedule import ANY, CALC, RECV, SEND, Schedule, WaitKind
from tailcut.imports.source import ImportRefusedError

_MAGIC, _SPOILT = 4223, 2342
_HEADER = struct.Struct("<QIBB")
_RANK = struct.Struct("<QQ")
_COUNTS = struct.Struct("<II")
_NODE = struct.Struct("<IBIQIBBIIII")
_ANY = 2**32 - 1


def is_binary(path: Path) -> bool:
    """Whether a file begins as a binary schedule does."""
    try:
        with path.open("rb") as file:
            return begins_binary(file.read(8))
    except OSError:
        return False


def begins_binary(content: bytes) -> bool:
    """Whether these are the first bytes of a binary schedule."""
    return content[:8] in (_MAGIC.to_bytes(8, "little"), _SPOILT.to_bytes(8, "little"))


def read(path: Path, schedule: Schedule) -> None:
    """Read a binary schedule.

    Raises:
        ImportRefusedError: it is cut off, or not what its numbers say.
    """
    schedule.unit = "node"
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            _read(content, schedule)
        except struct.error:
            raise _damaged(schedule, "it ends too early") from None


def _damaged(schedule: Schedule, what: str) -> ImportRefusedError:
    hint = "make it again with txt2bin, or import the text"
    return ImportRefusedError("TC-I002", f"{schedule.file}: no whole binary schedule: {what}", hint)


def _read(content: mmap.mmap, schedule: Schedule) -> None:
    magic, ranks, _, _ = _HEADER.unpack_from(content)
    if magic == _SPOILT:
        raise _damaged(schedule, "a run with --save-mem has spoilt it")
    if _HEADER.size + ranks * _RANK.size > len(content):
        raise _damaged(schedule, f"{ranks} ranks do not fit into {len(content)} bytes")
    schedule.set_ranks(ranks, 0)
    number = 0
    for rank in range(ranks):
        begin, end = (8 + place for place in _RANK.unpack_from(content, _HEADER.size + rank * _RANK.size))
        if not begin <= end <= len(content):
            raise _damaged(schedule, f"rank {rank} is outside of it")
        schedule.begin_rank()
        if begin < end:
            number = _rank(content, begin, end, schedule, number)
        schedule.end_rank()
        schedule.tell_read(end, len(content))


def _rank(content: mmap.mmap, begin: int, end: int, schedule: Schedule, number: int) -> int:
    """Reads a rank; returns the number of the next node."""
    nodes: int
    nodes, roots = _COUNTS.unpack_from(content, begin)
    first = begin + _COUNTS.size + 4 * roots
    appendix = first + nodes * _NODE.size
    if appendix > end:
        raise _damaged(schedule, f"{nodes} nodes of rank {schedule.rank} do not fit")
    places = (end - appendix) // 4
    waiting: list[tuple[int, int, int, WaitKind]] = []
    begins: int | None = None
    needs = [0] * nodes
    for at in range(nodes):
        fields = _NODE.unpack_from(content, first + at * _NODE.size)
        needs[at], kind, peer, amount, tag, cpu, nic, over, over_at, started, started_at = fields
        if kind not in (SEND, RECV, CALC):
            schedule.refuse(number + at, f"kind {kind} is neither send (1) nor recv (2) nor calc (3)", "make it again")
        if kind == SEND and peer == _ANY:
            schedule.refuse(number + at, "a send to any rank", "name its destination")
        own = schedule.add(
            kind,
            0 if kind == CALC else ANY if peer == _ANY else peer,
            amount,
            ANY if tag == _ANY else tag,
            cpu,
            nic,
            number + at,
        )
        begins = own if begins is None else begins
        for count, place, event in ((over, over_at, WaitKind.OVER), (started, started_at, WaitKind.STARTED)):
            if count and place + count > places:
                raise _damaged(schedule, f"node {number + at} names waits outside of rank {schedule.rank}")
            if count:
                waiting.append((own, count, place, event))
    for own, count, place, event in waiting:
        for one in struct.unpack_from(f"<{count}I", content, appendix + 4 * place):
            if one >= nodes:
                raise _damaged(schedule, f"node {one} of rank {schedule.rank} has {nodes}")
            needs[one] -= 1
            schedule.wait((begins or 0) + one, own, event, number + one)
    wrong = next((at for at, left in enumerate(needs) if left), None)
    if wrong is not None:
        schedule.refuse(number + wrong, "waits are not as many as the node says", "make it again with txt2bin")
    return number + nodes
