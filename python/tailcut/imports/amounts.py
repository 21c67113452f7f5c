"""Rates and delays as other programs write them, exactly."""

import re
from fractions import Fraction

from tailcut.imports.source import Word

_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_RATE = re.compile(
    r"(?P<number>[\d.]+(?:[eE][-+]?\d+)?)\s*(?P<prefix>[kKmMgGtT]?)(?P<binary>i?)(?P<unit>bit|b|B)(?:ps|/s|/sec)?"
)
_DELAY = re.compile(r"(?P<number>[\d.]+(?:[eE][-+]?\d+)?)\s*(?P<unit>[a-zµμ]*)")
_DELAYS_PS = {
    "h": Fraction(3600 * 10**12), "min": Fraction(60 * 10**12), "s": Fraction(10**12), "ms": Fraction(10**9),
    "us": Fraction(10**6), "µs": Fraction(10**6), "μs": Fraction(10**6), "ns": Fraction(1000), "ps": Fraction(1),
    "fs": Fraction(1, 1000),
}  # fmt: skip


def rate_bps(word: Word, what: str, bare: int | None = 1) -> int:
    """A rate in bits per second: ``100Gbps``, ``10Gb/s``, ``1.5Mbit``; ``B`` counts bytes.

    Args:
        word: what is written.
        what: what it is the rate of.
        bare: what a number without unit counts, in bits per second; none where one must have a unit.
    """
    hint = "write a rate with its unit, such as 10Gbps"
    found = _RATE.fullmatch(word.text)
    if found is None:
        number = word.number(what, hint=hint)
        if bare is None:
            word.refuse(f"{what}: {word.text!r} has no unit", hint)
        exact = number * bare
    else:
        scale = (_BINARY if found["binary"] else _PREFIXES)[found["prefix"].lower()]
        exact = word.number(what, found["number"], hint) * scale * (8 if found["unit"] == "B" else 1)
    if exact.denominator != 1:
        word.refuse(f"{what}: {word.text} is no whole number of bits per second", "round it")
    return int(exact)


def delay_ps(word: Word, what: str, bare: Fraction | None = None) -> int:
    """A delay in picoseconds: ``0.001ms``, ``5us``.

    Args:
        word: what is written.
        what: what it is the delay of.
        bare: what a number without unit counts, in picoseconds; none where one must have a unit.
    """
    hint = "write a delay with its unit, such as 5us"
    found = _DELAY.fullmatch(word.text)
    unit = bare if found is None or not found["unit"] else _DELAYS_PS.get(found["unit"])
    if found is None or unit is None:
        word.refuse(f"{what}: {word.text!r} is no delay with a unit", hint)
    exact = word.number(what, found["number"], hint) * unit
    if exact.denominator != 1:
        word.refuse(f"{what}: {word.text} is finer than a picosecond", "round it")
    return int(exact)


def unit_ps(word: Word, what: str) -> int:
    """Returns a unit of time in picoseconds: ``ps``, ``us``."""
    unit = _DELAYS_PS.get(word.text)
    if unit is None or unit.denominator != 1:
        word.refuse(f"{what}: {word.text!r} is no unit of time", "write one such as ps, ns or us")
    return int(unit)


def rate_text(bps: int) -> str:
    """A rate as graphs have it, in the largest unit that leaves it whole."""
    for scale, unit in ((10**12, "Tbps"), (10**9, "Gbps"), (10**6, "Mbps"), (10**3, "kbps")):
        if bps % scale == 0:
            return f"{bps // scale}{unit}"
    return f"{bps}bps"


def delay_text(picoseconds: int) -> str:
    """A delay as graphs have it, in the largest unit that leaves it whole."""
    for scale, unit in ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns")):
        if picoseconds % scale == 0:
            return f"{picoseconds // scale}{unit}"
    return f"{picoseconds}ps"
