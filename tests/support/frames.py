"""Made-up captures of the kernel lab: frames of one connection, at the hosts of its two ends."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

FIN, SYN, RST, ACK = 1, 2, 4, 16
LISTEN = 62_000
# Data crosses the end of the sequence space.
FIRST_THERE, FIRST_BACK = (1 << 32) - 1_000, 77


@dataclass
class Wire:
    """Frames between a flow's sender and its receiver.

    Attributes:
        hosts: the sender's number, and the receiver's.
        port: the sender's port.
        copy: which connection of the flow.
        start_us: when the flow starts, from the beginning of the run; times of frames count from there.
        frames: time in ns, host, whether it sends, and bytes.
    """

    hosts: tuple[int, int]
    port: int
    start_us: float
    copy: int = 0
    frames: list[tuple[int, int, bool, bytes]] = field(default_factory=list)
    sent: int = 0

    def there(self, at_us: float, reaches_us: float | None, flags: int, seq: int, payload: int = 0) -> None:
        """Adds a segment from the sender, ``seq`` after its initial one; it is lost if ``reaches_us`` is None."""
        ack = 0 if flags == SYN else FIRST_BACK + 1
        ports = self.port, LISTEN + self.copy
        self._add(at_us, reaches_us, self.hosts, ports, (FIRST_THERE + seq, ack, flags, payload))

    def back(self, at_us: float, reaches_us: float | None, flags: int, ack: int, seq: int = 1) -> None:
        """Adds a segment from the receiver that acknowledges everything before ``ack``."""
        ports = LISTEN + self.copy, self.port
        self._add(at_us, reaches_us, self.hosts[::-1], ports, (FIRST_BACK + seq, FIRST_THERE + ack, flags, 0))

    def _add(
        self,
        at_us: float,
        reaches_us: float | None,
        hosts: tuple[int, int],
        ports: tuple[int, int],
        segment: tuple[int, int, int, int],
    ) -> None:
        self.sent += 1
        # A SYN-ACK has no number of its own.
        number = 0 if segment[2] == SYN | ACK else self.sent
        for when, host, sends in ((at_us, hosts[0], True), (reaches_us, hosts[1], False)):
            if when is not None:
                # A segment marked on its path is another frame, but the same segment.
                data = _frame(hosts, ports, segment, number, marked=not sends and bool(segment[3]))
                self.frames.append((round(1000 * (self.start_us + when)), host, sends, data))


def write(path: Path, wires: Sequence[Wire], hosts: Sequence[int], most: int = 1 << 30) -> int:
    """Writes the frames that these hosts send and receive as pcapng; returns their number.

    Args:
        path: the file.
        wires: the connections.
        hosts: the hosts whose frames are captured.
        most: the most bytes of a frame that are kept.
    """
    found = sorted((one for wire in wires for one in wire.frames if one[1] in hosts), key=lambda one: one[0])
    blocks = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    blocks += [_block(1, struct.pack("<HHI", 1, 0, 1 << 18)) for _ in hosts]
    for at_ns, host, sends, frame in found:
        kept = frame[:most]
        padded = kept + bytes(-len(kept) % 4)
        head = struct.pack("<5I", list(hosts).index(host), at_ns >> 32, at_ns & 0xFFFFFFFF, len(kept), len(frame))
        blocks.append(_block(6, head + padded + struct.pack("<HHIHH", 2, 4, 2 if sends else 1, 0, 0)))
    path.write_bytes(b"".join(blocks))
    return len(found)


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _frame(
    hosts: tuple[int, int], ports: tuple[int, int], segment: tuple[int, int, int, int], number: int, *, marked: bool
) -> bytes:
    seq, ack, flags, payload = segment
    options = b"\x02\x04\x05\xb4\x01\x01\x04\x02" if flags & SYN else b""
    offset = (20 + len(options)) // 4 << 4
    checksum = (seq + ack + flags + payload) & 0xFFFF
    tcp = struct.pack(">HHIIBBHHH", *ports, seq % (1 << 32), ack % (1 << 32), offset, flags, 62_780, checksum, 0)
    total = 20 + len(tcp) + len(options) + payload
    addresses = [10 << 24 | 77 << 16 | host + 1 for host in hosts]
    ip = struct.pack(">BBHHHBBHII", 0x45, 3 if marked else 2, total, number, 0x4000, 64, 6, 0, *addresses)
    return bytes(12) + b"\x08\x00" + ip + tcp + options + bytes(payload)
