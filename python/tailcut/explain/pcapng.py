"""Frames of a capture (`runs/<id>/capture.pcapng`), as this project writes them: TCP over IPv4 over Ethernet.

The format is that of draft-ietf-opsawg-pcapng, little-endian, with timestamps in nanoseconds from the start of the run.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENHANCED_PACKET = 6
SECTION_HEADER = 0x0A0D0D0A
BYTE_ORDER_MAGIC = 0x1A2B3C4D
SENT = 2
"""Direction of a frame that a host sends, in the flags of its block; 1 is one that it receives."""
HEADERS = 54
"""Bytes of the headers of Ethernet, IPv4 and TCP without options."""
FIN, SYN, RST, ACK = 1, 2, 4, 16
WINDOW_SCALE = 3


class DamagedError(Exception):
    """A file is no capture, or not a whole one; says why."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A TCP segment as a host sent or received it.

    Attributes:
        at_ns: when, from the start of the run.
        sent: whether the host sent it.
        source: IPv4 address and port that it comes from.
        destination: those that it goes to.
        seq: sequence number of its first byte.
        ack: acknowledgement number.
        flags: ``FIN``, ``SYN``, ``RST`` and ``ACK``, as TCP has them.
        window: advertised receive window, as it stands in the header.
        scale: what its option of window scale says, if it has one.
        payload: bytes.
        marked: whether it says that it met congestion (CE of RFC 3168).
        identity: what tells it from all others of its connection, and is the same where it arrives.
    """

    at_ns: int
    sent: bool
    source: tuple[int, int]
    destination: tuple[int, int]
    seq: int
    ack: int
    flags: int
    window: int
    scale: int | None
    payload: int
    marked: bool
    identity: tuple[int, ...]


def frames(path: Path) -> Iterator[Frame]:
    """The TCP segments of a capture of hosts, in order of time.

    Raises:
        DamagedError: the file is none, ends early, or has frames that are cut before the end of their headers.
    """
    with path.open("rb") as file:
        magic = file.read(12)
        if len(magic) < 12 or struct.unpack("<I4xI", magic) != (SECTION_HEADER, BYTE_ORDER_MAGIC):
            raise DamagedError("it is no pcapng file of this project")
        file.seek(0)
        while head := file.read(8):
            if len(head) < 8:
                raise DamagedError("it ends within a block")
            kind, length = struct.unpack("<II", head)
            body = file.read(max(length - 8, 0))
            if length < 12 or len(body) < length - 8:
                raise DamagedError("it ends within a block")
            if kind == ENHANCED_PACKET:
                found = _frame(body)
                if found is not None:
                    yield found


def _frame(block: bytes) -> Frame | None:
    """The segment in an enhanced packet block, after its type and length; none if it is no TCP over IPv4."""
    _, high, low, kept, _ = struct.unpack_from("<5I", block)
    frame = block[20 : 20 + kept]
    if kept < HEADERS:
        raise DamagedError(f"its frames are cut after {kept} bytes, before the end of their headers")
    kind, first, total, number, protocol = struct.unpack_from(">12xHBxHH3xB", frame)
    if kind != 0x0800 or first >> 4 != 4 or protocol != 6:
        return None
    ip = 14 + 4 * (first & 15)
    source, destination = struct.unpack_from(">II", frame, 26)
    ports = struct.unpack_from(">HH", frame, ip)
    seq, ack, offset, flags, window, checksum = struct.unpack_from(">IIBBHH", frame, ip + 4)
    header = 4 * (offset >> 4)
    payload = total - (ip - 14) - header
    (options,) = struct.unpack_from("<I", block, 20 + (kept + 3) // 4 * 4 + 4)
    return Frame(
        at_ns=high << 32 | low,
        sent=options & 3 == SENT,
        source=(source, ports[0]),
        destination=(destination, ports[1]),
        seq=seq,
        ack=ack,
        flags=flags,
        window=window,
        scale=_scale(frame[ip + 20 : ip + header]) if flags & SYN else None,
        payload=payload,
        marked=frame[15] & 3 == 3,
        identity=(number, seq, ack, flags, payload, checksum),
    )


def _scale(options: bytes) -> int | None:
    """The window scale that a SYN's options announce (RFC 7323)."""
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        if at + 1 >= len(options) or options[at + 1] < 2:
            return None
        if options[at] == WINDOW_SCALE:
            return options[at + 2] if at + 2 < len(options) else None
        at += options[at + 1]
    return None
