"""Settings of a trace: the part that is taken, the moment that is 0, and the scale of time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from tailcut.traces import cells
from tailcut.traces.cells import TraceError
from tailcut.traces.reader import EPOCH_NS, Trace

PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "hosts",
        "takes": "text or table of texts",
        "default": None,
        "required": False,
        "doc": "What the trace calls hosts, such as IP addresses: path of a file with two columns, the trace's name and"
        " the host here (number, `h3` or the topology's name), or a table of them.",
    },
    {
        "name": "window",
        "takes": "list of two times",
        "default": None,
        "required": False,
        "doc": "The part of the trace to take: flows that start from the first time on and before the second."
        ' Times as the trace has them (`"10s"`) or with a date (`"2024-05-01T12:00:00Z"`); where the trace has dates,'
        " times without one count from its first flow.",
    },
    {
        "name": "origin",
        "takes": "time",
        "default": None,
        "required": False,
        "doc": 'The moment of the trace at which the run begins, or `"first"` for its first flow. By default the'
        " beginning of `window`; else the first flow where the trace has dates or counts from 1970, and 0 otherwise.",
    },
    {
        "name": "scale",
        "takes": "number",
        "default": 1,
        "required": False,
        "doc": "Times after `origin` are multiplied by it: 0.5 lets flows come twice as fast. What is no whole"
        " nanosecond then is rounded down.",
    },
]
"""The keys of traces that are read in Python, as `tailcut list` shows them."""
KEYS = tuple(str(one["name"]) for one in PARAMETERS)
DAY_NS = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class TraceFlow:
    """A flow as the simulator takes it: where it stands in its file, and when it starts in the run.

    Its ``id`` is None where the trace does not number its flows.
    """

    number: int
    id: int | None
    src: int
    dst: int
    size: int
    start: int


def flows(trace: Trace, settings: Mapping[str, Any]) -> list[TraceFlow]:
    """The flows of a trace that an experiment takes, in order of their start.

    Args:
        trace: what the file lists.
        settings: ``window``, ``origin`` and ``scale``, those that are given.

    Raises:
        TraceError: a setting is none, or leaves no flow, or a flow starts before the run or too late for any.
    """
    times = Times(trace.starts, of_day=trace.of_day)
    kept, origin, scale = times.settled(settings)
    found = []
    for index in kept:
        since = trace.starts[index] - origin
        if since < 0:
            message = f"{trace.where(index)}: starts {cells.written(-since)} before origin"
            hint = "choose an earlier origin, or leave these flows out with window"
            raise TraceError("trace-origin", message, hint, field="origin")
        start = since * scale.numerator // scale.denominator
        if start >= DAY_NS:
            late = f"starts {cells.written(start)} after the beginning"
            message = f"{trace.where(index)}: {late}: a run has at most a day"
            raise TraceError("trace-horizon", message, 'take a part of the trace with window, such as ["0s", "10s"]')
        number = None if trace.ids is None else trace.ids[index]
        found.append(
            TraceFlow(trace.numbers[index], number, trace.src[index], trace.dst[index], trace.sizes[index], start)
        )
    found.sort(key=lambda flow: flow.start)
    return found


class Times:
    """The clock of a trace.

    Args:
        starts: when its flows start, in nanoseconds.
        of_day: whether these count from 1970.
    """

    def __init__(self, starts: Sequence[int], *, of_day: bool) -> None:
        self.starts = starts
        self.of_day = of_day

    def settled(self, settings: Mapping[str, Any]) -> tuple[list[int], Fraction | int, Fraction]:
        """Return the flows that are taken, the moment that is 0, and the scale.

        Raises:
            TraceError: a setting is none, or leaves no flow.
        """
        window = settings.get("window")
        bounds = None if window is None else self._window(window)
        kept = [index for index, start in enumerate(self.starts) if bounds is None or bounds[0] <= start < bounds[1]]
        if not kept:
            first, last = (self._shown(limit(self.starts)) for limit in (min, max))
            message = f"window: no flow starts in it; the trace goes from {first} to {last}"
            raise TraceError("trace-window", message, "choose a part of that", field="window")
        origin = settings.get("origin")
        if origin == "first" or (origin is None and bounds is None and self.of_day):
            zero: Fraction | int = min(self.starts[index] for index in kept)
        elif origin is not None:
            zero = self._moment(origin, "origin")
        else:
            zero = 0 if bounds is None else bounds[0]
        return kept, _whole(zero), _scale(settings.get("scale", 1))

    def _window(self, window: object) -> tuple[Fraction, Fraction]:
        if not isinstance(window, list) or len(window) != 2:
            message = "window: two times are needed, from and until"
            raise TraceError("trace-window", message, 'write window = ["10s", "20s"]', field="window")
        first, last = (self._moment(one, "window") for one in window)
        if first >= last:
            message = "window: ends before it begins" if first > last else "window: ends where it begins"
            raise TraceError("trace-window", message, "write the earlier time first", field="window")
        return first, last

    def _moment(self, value: object, key: str) -> Fraction:
        """A moment by the trace's clock, in nanoseconds."""
        if isinstance(value, datetime):
            value = value.isoformat()
        elif isinstance(value, date):
            value = f"{value.isoformat()}T00:00:00"
        rule = f"trace-{key}"
        if not isinstance(value, str):
            message = f"{key}: {value!r} is not a time"
            raise TraceError(rule, message, 'write it with its unit ("10s") or as a date and time', field=key)
        of_day = cells.time_of_day(value)
        if of_day is not None:
            if not self.of_day:
                message = f"{key}: {value} is a date, and the trace has none"
                raise TraceError(rule, message, 'write a time as the trace counts it, such as "10s"', field=key)
            return of_day
        try:
            time = cells.time(value)
        except ValueError as error:
            raise TraceError(rule, f"{key}: {error}", 'write it with its unit, such as "10s"', field=key) from None
        return time + min(self.starts) if self.of_day and time < EPOCH_NS else time

    def _shown(self, start: int) -> str:
        if not self.of_day:
            return cells.written(start)
        seconds, rest = divmod(start, 10**9)
        moment = datetime.fromtimestamp(seconds, tz=UTC).replace(tzinfo=None).isoformat()
        part = f"{rest:09d}".rstrip("0")
        return f"{moment}{'.' + part if part else ''}Z"


def _whole(moment: Fraction | int) -> Fraction | int:
    return int(moment) if Fraction(moment).denominator == 1 else moment


def _scale(scale: object) -> Fraction:
    exact = None
    if isinstance(scale, int | float) and not isinstance(scale, bool):
        try:
            exact = Fraction(cells.decimal(repr(scale)))
        except ValueError:
            exact = None
    if exact is None or not 0 < exact <= 10**12:
        message = f"scale = {scale}: a number above 0 is needed"
        raise TraceError("trace-scale", message, "0.5 lets flows come twice as fast, 2 half as fast", field="scale")
    return exact
