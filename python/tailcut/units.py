"""Quantities: read from a plan's spelling, and written for people."""

from fractions import Fraction

LONG = 1e6
"""From here on a number is written with an exponent: the end of an interval over two seeds may have many digits."""
_TIME_PS = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1}


def time_ps(text: str) -> int:
    """A time as a plan spells it (``"100ms"``), in picoseconds.

    Raises:
        ValueError: it is not a time.
    """
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :]
    if unit not in _TIME_PS:
        raise ValueError(f"{text!r} is not a time")
    return int(Fraction(number) * _TIME_PS[unit])


_BYTES = {
    "B": 1, "KB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30,
}  # fmt: skip
_BPS = {"bps": 1, "kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}
_PACKETS = ("packets", "packet")


def amount_bytes(text: str, packet: int | None = None) -> int:
    """An amount of data as a plan spells it (``"64KB"``), in bytes.

    Args:
        text: the amount; with ``packet`` also a number of packets (``"12packets"``).
        packet: bytes of a packet.

    Raises:
        ValueError: it is not an amount.
    """
    number, unit = _split(text)
    if packet is not None and unit in _PACKETS:
        return int(number) * packet
    if unit not in _BYTES:
        raise ValueError(f"{text!r} is not an amount of data")
    return int(number * _BYTES[unit])


def rate_bps(text: str) -> int:
    """A rate as a plan spells it (``"10Gbps"``), in bits per second.

    Raises:
        ValueError: it is not a rate.
    """
    number, unit = _split(text)
    if unit not in _BPS:
        raise ValueError(f"{text!r} is not a rate")
    return int(number * _BPS[unit])


def _split(text: str) -> tuple[Fraction, str]:
    """The number and the unit of a quantity."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return Fraction(digits.strip()), text[len(digits) :]


def time_text(picoseconds: int) -> str:
    """Simulated time for people: ``12.3 ms``."""
    return microseconds(picoseconds / 1e6)


def microseconds(value: float) -> str:
    """A number of microseconds with three digits and the unit that suits it: ``1.23 ms``."""
    if value < 0:
        return f"−{microseconds(-value)}"
    for limit, scale, unit in ((1e3, 1.0, "µs"), (1e6, 1e3, "ms")):
        if value < limit * 0.9995:
            return f"{_digits(value / scale)} {unit}"
    return f"{_digits(value / 1e6)} s"


def _digits(value: float) -> str:
    if value >= LONG:
        return f"{value:.1e}"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def duration(seconds: float) -> str:
    """Wall time for people: ``under 0.1 s``, ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if 0 < seconds < 0.1:
        return "under 0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def count(value: float) -> str:
    """A count with a prefix once it is long: ``950``, ``12.3 k``, ``4.56 M``."""
    for limit, scale, prefix in ((1e3, 1.0, ""), (1e6, 1e3, " k"), (1e9, 1e6, " M"), (1e12, 1e9, " G")):
        if value < limit * 0.9995:
            return f"{value:.0f}" if not prefix else f"{_digits(value / scale)}{prefix}"
    return f"{_digits(value / 1e12)} T"


def number(value: float) -> str:
    """A number of a sweep: six digits if that is exact, else as many as tell it from its neighbours."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def percent(value: float, digits: int = 0) -> str:
    """A part in percent, not below 0, without its sign; 100 only where it is all: less time by 100 % would be none."""
    text = f"{value:.{digits}f}" if value < LONG else f"{value:.1e}"
    return f"{min(value, 99.9):.1f}" if value < 100 <= float(text) else text


def size(value: float) -> str:
    """Bytes with a decimal prefix: ``1.50 MB``; at most GB, the largest that experiments are written in."""
    if value >= 999.5e9:
        return f"{value / 1e9:.0f} GB"
    text = count(value)
    return f"{text}B" if " " in text else f"{text} B"
