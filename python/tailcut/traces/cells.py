"""Cells of a trace as numbers and times: read exactly, or refused."""

import csv
import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction

NO_UNIT = "name the column start_ns, start_us, start_ms or start_s to give its unit once"
TIME_OF_DAY = re.compile(
    r"(?P<day>\d{4}-?\d\d-?\d\d)(?:[T ](?P<clock>\d\d(?::?\d\d(?::?\d\d)?)?)(?:[.,](?P<part>\d+))?)?"
    r"\s*(?P<zone>Z|z|[+-]\d\d(?::?\d\d)?)?"
)
UNITS_NS = {
    "s": Fraction(10**9), "ms": Fraction(10**6), "us": Fraction(1000), "µs": Fraction(1000), "μs": Fraction(1000),
    "ns": Fraction(1), "ps": Fraction(1, 1000),
}  # fmt: skip
_SEPARATOR = re.compile(r'"[^"]*"|([,;\t])')
_LONGEST = 40
"""Digits and marks of a number: more are refused before they are taken for one."""


class TraceError(ValueError):
    """A trace cannot be read.

    Attributes:
        code: the name of the rule, as it stands after ``TC-E100/``.
        hint: what to do.
        field: the key that it is about.
    """

    def __init__(self, code: str, message: str, hint: str | None = None, field: str = "file") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.field = field


def fields(line: str) -> list[str]:
    """The columns of a line: apart by the first separator that is in no quotes, otherwise by white space."""
    if '"' not in line:
        for mark in line:
            if mark in ",;\t":
                return [field.strip() for field in line.split(mark)]
        return line.split()
    found = next((match[1] for match in _SEPARATOR.finditer(line) if match[1]), " ")
    (fields,) = csv.reader([line], delimiter=found, skipinitialspace=True)
    return [field.strip() for field in fields]


def decimal(text: str) -> Decimal:
    """Returns a number exactly as written.

    Raises:
        ValueError: it is none, or not finite, or longer than a number that is meant.
    """
    if len(text) > _LONGEST or "_" in text:
        raise ValueError(text)
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None
    if not value.is_finite() or abs(value.adjusted()) > _LONGEST:
        raise ValueError(text)
    return value


def whole(text: str) -> int:
    """A non-negative integer; ``1500.0`` is one.

    Raises:
        ValueError: it is none.
    """
    value = decimal(text)
    if value < 0 or value != value.to_integral_value():
        raise ValueError(text)
    return int(value)


def nanoseconds(text: str, unit: int) -> Fraction:
    """Returns a number of units as nanoseconds.

    Raises:
        ValueError: it is no number.
    """
    return Fraction(decimal(text)) * unit


def time(text: str) -> Fraction:
    """A time with its unit (``246.918us``), in nanoseconds.

    Raises:
        ValueError: it is none; the message says why.
    """
    found = re.fullmatch(r"([-+.\deE]*\d\.?)\s*([a-zA-Zµμ]*)", text)
    if found is None:
        raise ValueError(f"{text!r} is not a time")
    if not found[2]:
        raise ValueError(f"{text!r} has no unit")
    if found[2] not in UNITS_NS:
        raise ValueError(f"{text!r}: {found[2]!r} is no unit of time")
    try:
        return Fraction(decimal(found[1])) * UNITS_NS[found[2]]
    except ValueError:
        raise ValueError(f"{text!r} is not a time") from None


def time_of_day(text: str) -> Fraction | None:
    """A date and time of ISO 8601, in nanoseconds since 1970; None where the text is none. Without a zone it is UTC."""
    found = TIME_OF_DAY.fullmatch(text)
    if found is None:
        return None
    clock = f"T{found['clock']}" if found["clock"] else ""
    zone = (found["zone"] or "Z").upper()
    try:
        moment = datetime.fromisoformat(f"{found['day']}{clock}").replace(tzinfo=UTC)
        offset = datetime.fromisoformat(f"1970-01-01T00:00:00{zone}").timestamp() if zone != "Z" else 0
    except ValueError:
        return None
    seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _SECOND + int(offset)
    part = Fraction(int(found["part"]), 10 ** len(found["part"])) if found["part"] else Fraction(0)
    width = len((found["clock"] or "").replace(":", ""))
    return (seconds + part * {0: 86400, 2: 3600, 4: 60}.get(width, 1)) * 10**9


_SECOND = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)


def written(nanoseconds: Fraction | int) -> str:
    """A time as experiments have it, in the largest unit that leaves it whole: ``15ms``."""
    exact = Fraction(nanoseconds)
    for unit in ("s", "ms", "us", "ns"):
        if (exact / UNITS_NS[unit]).denominator == 1:
            return f"{exact / UNITS_NS[unit]}{unit}"
    value = Decimal(exact.numerator) / Decimal(exact.denominator)
    return f"{value.normalize():f}ns"
