"""Slow flows as time-sequence diagrams: packets on their way, the queues that they met, losses, timers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from tailcut.explain import Explained, FlowStory, RunSelection, all_selections, explain, slowest
from tailcut.explain.lines import Line, lines, lost, towards_sender
from tailcut.report.theme import Theme
from tailcut.units import size, time_text

if TYPE_CHECKING:
    from tailcut.results import StoredResult

MOST_DRAWN = 300
"""Packets of one flow in a diagram; those that were lost or sent again are drawn beyond."""
MOST_QUEUES = 6
MOST_BYTES = 3_000_000
"""Size limit of all diagrams and stories of a page; points beyond it are left out."""
LINE_BYTES = 70
"""Bytes of a line besides its words."""
LEFT, WIDTH, TOP, WAY, ROW = 96, 560, 26, 110, 15
"""Left and right end of times, the sender's line, the distance to the receiver's, and the height of a queue's."""


@dataclass(frozen=True, slots=True)
class Diagram:
    """A flow under one scheme.

    Attributes:
        scheme: the scheme.
        took: how long the flow took, in words.
        drawing: the diagram, as SVG.
        lines: the story in lines.
    """

    scheme: str
    took: str
    drawing: Markup
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A flow under every scheme.

    Attributes:
        flow: its number.
        key: what no other flow on the page has.
        title: what it is.
        where: the point and the seed.
        point: the swept keys and their values.
        diagrams: one per scheme.
        times: how long it took in us, by scheme, as the distributions have it.
    """

    flow: int
    key: str
    title: str
    where: str
    point: Mapping[str, Any]
    diagrams: Sequence[Diagram]
    times: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Timelines:
    """The slow flows of a page.

    Attributes:
        number: how many of the slowest of each scheme.
        at: where they are, and the flows there, the slowest of the first scheme first.
        left_out: where more are, for which the page has no room.
    """

    number: int
    at: Sequence[tuple[str, Sequence[Timeline]]]
    left_out: Sequence[str]

    @property
    def flows(self) -> list[Timeline]:
        """All of them."""
        return [one for _, flows in self.at for one in flows]


def timelines(
    result: "StoredResult", number: int, theme: Theme, seeds: Sequence[int] = (), most_bytes: int = MOST_BYTES
) -> Timelines:
    """The slowest flows of each scheme at every point of the sweep, the last point first, while there is room.

    Args:
        result: the results.
        number: how many of each scheme, at each point with each seed.
        theme: colours of the schemes.
        seeds: of the runs; without any the first that is there.
        most_bytes: of all diagrams and stories; the first point is there whatever it takes.
    """
    at: list[tuple[str, list[Timeline]]] = []
    left_out: list[str] = []
    taken = 0
    for selection in all_selections(result, seeds):
        if left_out:
            left_out.append(selection.label)
            continue
        found = [
            _timeline(one, len(at), theme)
            for one in explain(result, selection, _slowest_of_each(result, selection, number))
        ]
        bytes_ = sum(map(_bytes, found))
        if at and taken + bytes_ > most_bytes:
            left_out.append(selection.label)
        else:
            at.append((selection.label, found))
            taken += bytes_
    return Timelines(number, at, left_out)


def _slowest_of_each(result: "StoredResult", selection: RunSelection, number: int) -> list[int]:
    """The slowest flows of each scheme there, each once, that the first scheme has as well."""
    flows: dict[int, None] = {}
    for scheme in selection.runs:
        of_scheme = replace(selection, runs={scheme: selection.runs[scheme]})
        flows |= dict.fromkeys(slowest(result, of_scheme, number))
    there = set(result.flows_of(selection.run_id(selection.scheme))["id"].to_list())
    return [flow for flow in flows if flow in there]


def _bytes(timeline: Timeline) -> int:
    """Returns the approximate size of a timeline on the page, in bytes."""
    return sum(
        len(diagram.drawing) + sum(len(line.what) + LINE_BYTES for line in diagram.lines)
        for diagram in timeline.diagrams
    )


def _timeline(explained: Explained, place: int, theme: Theme) -> Timeline:
    first = explained.stories[0].story
    span = max((told.story["fct_ps"] or told.story["until_ps"] - told.story["start_ps"]) for told in explained.stories)
    return Timeline(
        explained.flow,
        f"{place}-{explained.flow}",
        f"Flow {explained.flow}, {first['from']} to {first['to']}, {size(first['bytes'])}",
        explained.selection.label,
        explained.selection.point,
        [Diagram(told.scheme, _took(told), _drawing(told, span, theme), lines(told)) for told in explained.stories],
        {told.scheme: told.row["fct_ns"] / 1e3 for told in explained.stories if told.row["fct_ns"] is not None},
    )


def _took(told: FlowStory) -> str:
    took = told.story["fct_ps"]
    return "not finished" if took is None else time_text(took)


def _drawing(told: FlowStory, span: int, theme: Theme) -> Markup:
    """The diagram of a flow; all schemes of it share the scale of time."""
    story = told.story
    scale = (WIDTH - LEFT - 10) / max(span, 1)

    def x(at_ps: int) -> float:
        return float(round(LEFT + min(max(at_ps - story["start_ps"], 0), span) * scale, 1))

    shown = _shown(story["packets"], story["start_ps"] + span)
    queues = _queues(shown)
    height = TOP + WAY + 24 + ROW * len(queues) + 24
    colour = theme.colour(told.scheme)
    parts = [
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{escape(told.scheme)}: packets of flow {story["flow"]} over time; the story below tells it">',
        *_timers(story, x),
        *(_end(y, name) for y, name in ((TOP, f"{story['from']} sends"), (TOP + WAY, f"{story['to']} receives"))),
        *(_way(packet, x, colour) for packet in shown),
    ]
    for row, (link, met) in enumerate(queues.items()):
        y = TOP + WAY + 24 + ROW * row
        parts.append(f'<text x="{LEFT - 6}" y="{y + 9}" class="name">{escape(link)}</text>')
        bars = "".join(
            f"M{x(begin)} {y}H{max(x(end), x(begin) + 0.6):.1f}V{y + 10}H{x(begin)}Z" for begin, end in _merged(met)
        )
        parts.append(f'<path d="{bars}" style="fill:{colour}" opacity="0.75"/>')
    parts.extend(_axis(span, scale, height))
    if story["fct_ps"] is not None:
        end = x(story["start_ps"] + story["fct_ps"])
        parts.append(f'<path class="over" d="M{end} {TOP - 8}V{height - 22}"/>')
    parts.append("</svg>")
    return Markup("".join(parts))  # noqa: S704 - what people have named is escaped


def _shown(packets: Sequence[Mapping[str, Any]], until: int) -> list[Mapping[str, Any]]:
    """The packets that are drawn."""
    within = [packet for packet in packets if packet["sent_ps"] <= until]
    first = within[:MOST_DRAWN]
    return first + [packet for packet in within[MOST_DRAWN:] if lost(packet) or packet["again"]][:MOST_DRAWN]


def _queues(packets: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[int, int]]]:
    """Returns the waits of packets, at the links where they waited longest in all."""
    met: dict[str, list[tuple[int, int]]] = {}
    for packet in packets:
        for hop in packet["hops"]:
            if hop["begins_ps"] > hop["at_ps"]:
                met.setdefault(hop["link"], []).append((hop["at_ps"], hop["begins_ps"]))
    longest = sorted(met, key=lambda link: -sum(end - begin for begin, end in met[link]))[:MOST_QUEUES]
    return {link: met[link] for link in met if link in longest}


def _merged(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans that touch as one."""
    begin, end = None, 0
    for first, last in sorted(spans):
        if begin is None:
            begin, end = first, last
        elif first <= end:
            end = max(end, last)
        else:
            yield begin, end
            begin, end = first, last
    if begin is not None:
        yield begin, end


def _end(y: int, name: str) -> str:
    text = f'<text x="{LEFT - 6}" y="{y + 4}" class="name">{escape(name)}</text>'
    return f'{text}<path class="host" d="M{LEFT} {y}H{WIDTH}"/>'


def _way(packet: Mapping[str, Any], x: Any, colour: str) -> str:
    """Returns the line of a packet from one host to the other; it is level while the packet waits."""
    back = towards_sender(packet)
    near, far = (TOP + WAY, TOP) if back else (TOP, TOP + WAY)
    links = max(len(packet["hops"]), 1) if not lost(packet) else max(len(packet["hops"]) + 1, 2)
    points: list[tuple[float, float]] = [(x(packet["sent_ps"]), near)]
    for number, hop in enumerate(packet["hops"]):
        y = round(near + (far - near) * number / links, 1)
        points.extend([(x(hop["at_ps"]), y), (x(hop["begins_ps"]), y)])
    end = packet["end"]
    if end is not None:
        y = far if not lost(packet) else round(near + (far - near) * len(packet["hops"]) / links, 1)
        points.append((x(end["at_ps"]), y))
    # Where nothing waits one stroke says the same.
    if not any(hop["begins_ps"] > hop["at_ps"] for hop in packet["hops"]) and end is not None:
        points = [points[0], points[-1]]
    line = "L".join(f"{across} {down}" for across, down in dict.fromkeys(points))
    kind = "back" if back else "again" if packet["again"] else "there"
    drawn = f'<path class="{kind}" d="M{line}" stroke="{"var(--muted)" if back else colour}"/>'
    if lost(packet):
        across, down = points[-1]
        drawn += f'<path class="lost" d="M{across - 4} {down - 4}l8 8m0-8l-8 8"/>'
    return drawn


def _timers(story: Mapping[str, Any], x: Any) -> Iterator[str]:
    for act in story["acts"]:
        if act["what"] == "timed-out" and act["timer_ps"]:
            begin, end = x(act["at_ps"] - act["timer_ps"]), x(act["at_ps"])
            yield f'<path class="timer" d="M{begin} {TOP}H{end}V{TOP + WAY}H{begin}Z"/>'
            what = f"timer {time_text(act['timer_ps'])}"
            yield f'<text x="{(begin + end) / 2:.1f}" y="{TOP - 8}" class="what">{what}</text>'


def _axis(span: int, scale: float, height: int) -> Iterator[str]:
    step = 10 ** (len(str(span)) - 1)
    step = next(step // part for part in (1, 2, 5, 10) if span // (step // part) >= 3)
    for at in range(0, span + 1, step):
        across = round(LEFT + at * scale, 1)
        yield f'<path class="tick" d="M{across} {height - 22}v5"/>'
        yield f'<text x="{across}" y="{height - 6}" class="what">{escape(time_text(at) if at else "0")}</text>'
