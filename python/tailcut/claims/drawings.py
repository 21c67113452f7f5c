"""Pictures of a page of questions as SVG: the table of ideas, and the numbers of a question with their intervals.

They have a ground of their own in light and in dark, and say with signs what they say with colours.
"""

from collections.abc import Iterable, Sequence
from html import escape

from tailcut.claims import words
from tailcut.claims.answers import Found, cell, find, no_change
from tailcut.claims.document import Claim, Paper
from tailcut.claims.questions import Question, Reference
from tailcut.claims.scorecard import Scorecard
from tailcut.claims.verdict import Number
from tailcut.plan import written

SIGNS = {"helps": "▼", "harms": "▲", "alike": "=", "open": "?", "absent": "…"}
"""The sign of each mark, for readers who cannot tell colours apart."""
MEANINGS = {
    "helps": "faster, beyond doubt",
    "harms": "slower, beyond doubt",
    "alike": "within 5 %",
    "open": "the interval allows both",
    "absent": "not run yet",
}
STYLE = """
.ground { fill: #ffffff } text { fill: #1b1f24; font: 14px system-ui, sans-serif }
.head { font-weight: 600 } .soft { fill: #57606a; font-size: 12px }
.line { stroke: #d0d7de; fill: none } .zero { stroke: #57606a; fill: none }
.helps { fill: #cfe6f7 } .harms { fill: #fbdcc4 } .alike { fill: #eceff2 } .absent { fill: none }
.open { fill: #ffffff; stroke: #8c959f; stroke-dasharray: 3 3 }
.ours { fill: #0b62a8; stroke: #0b62a8; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
.ground { fill: #15191e } text { fill: #e6e9ed } .soft { fill: #9aa4ae }
.line { stroke: #353c44 } .zero { stroke: #9aa4ae }
.helps { fill: #123f5f } .harms { fill: #5f3413 } .alike { fill: #2a3037 }
.open { fill: #15191e; stroke: #6b7681 } .ours { fill: #6cb6f2; stroke: #6cb6f2 }
}
"""
LARGE = 10
"""A change by more than this factor is shown as a factor."""
CHARACTER = 7.4
"""The width of a character of the text, in pixels, on average."""


def table(paper: Paper, scorecard: Scorecard) -> str:
    """Returns the table of ideas by situation."""
    page = paper.answers
    if page is None:
        return ""
    first = 24 + max(len(situation) for situation in page.situations) * CHARACTER
    width, height, top = 152, 50, 80
    whole = first + width * len(page.ideas) + 16
    bottom = top + height * len(page.situations)
    parts = [_text(16, 28, "Change of short flows' completion times: the mean, and the 99th percentile (p99)", "head")]
    for column, idea in enumerate(page.ideas):
        name, _, what = idea.name.partition(": ")
        middle = first + (column + 0.5) * width
        parts += [_text(middle, 54, name, "head", middle=True), _text(middle, 71, what, "soft", middle=True)]
        for row, situation in enumerate(page.situations):
            found = cell(paper, scorecard, idea, situation)
            if found:
                parts += _cell(found, first + column * width, top + row * height, width, height)
    parts += [_text(16, top + row * height + 30, situation) for row, situation in enumerate(page.situations)]
    x = 16.0
    for mark, meaning in MEANINGS.items():
        if mark == "absent" and not any("…" in part for part in parts):
            continue
        parts.append(f'<rect class="{mark}" x="{x:.0f}" y="{bottom + 16}" width="22" height="20" rx="3"/>')
        parts.append(_text(x + 11, bottom + 31, SIGNS[mark], middle=True))
        parts.append(_text(x + 30, bottom + 31, meaning, "soft"))
        x += 46 + len(meaning) * 6.6
    return _svg(whole, bottom + 52, _said(paper, scorecard), parts)


def marked(found: Found) -> str:
    """Returns a number of the table with the sign of its mark."""
    number, compare = found.number, found.claim.compare
    said = "" if number is None else words.amount(found.claim, number.value)
    if number is not None and compare is not None:
        factor = number.value + (compare.kind == "change")
        if compare.kind == "ratio" or (compare.kind == "change" and factor > LARGE):
            said = f"× {factor:.3g}" if factor < LARGE else f"× {factor:,.0f}"
    return f"{SIGNS[found.mark]} {said}".strip()


def _cell(found: Sequence[Found], x: float, y: float, width: float, height: float) -> list[str]:
    """Draws the numbers of a cell; the first marks it."""
    place = f'x="{x + 3:.0f}" y="{y + 3:.0f}" width="{width - 6:.0f}" height="{height - 6:.0f}"'
    middle = x + width / 2
    drawn = [f'<rect class="{found[0].mark}" {place} rx="4"/>', _text(middle, y + 24, marked(found[0]), middle=True)]
    return drawn + [_text(middle, y + 41, f"p99 {marked(one)}", "soft", middle=True) for one in found[1:]]


def _said(paper: Paper, scorecard: Scorecard) -> str:
    page = paper.answers
    lines = []
    for idea in page.ideas if page else ():
        cells = [
            f"{situation} {', '.join(one.text for one in cell(paper, scorecard, idea, situation))}"
            for situation in idea.cells
        ]
        lines.append(f"{idea.name}: {'; '.join(cells)}.")
    return "Change of short flows' completion times: the mean, and the 99th percentile. " + " ".join(lines)


def figure(paper: Paper, scorecard: Scorecard, question: Question) -> str:
    """Returns the numbers of a question's claims under all readings, with their intervals on common axes."""
    found = [
        find(paper, scorecard, Reference(claim.id.partition("/")[2], "", at, reading))
        for claim in _named(paper, question.figure)
        for reading in claim.readings
        for at in _points(scorecard, claim.id, reading)
    ]
    shown = [one for one in found if one.number is not None]
    parts: list[str] = []
    y = 12.0
    panels: dict[tuple[str, str], list[Found]] = {}
    for one in shown:
        panels.setdefault(_panel(one), []).append(one)
    for panel in panels.values():
        y = _draw_panel(panel, y, parts)
    return _svg(WIDTH, y + 8, f"{question.asks} " + " ".join(f"{_label(one)}: {one.text}." for one in shown), parts)


WIDTH, LABELS, NUMBERS = 940, 370, 214


def _named(paper: Paper, names: Iterable[str]) -> list[Claim]:
    by_id = {claim.id: claim for claim in paper.claims}
    return [by_id[f"{paper.name}/{name}"] for name in names]


def _points(scorecard: Scorecard, claim_id: str, reading: str) -> list[str]:
    row = next((one for one in scorecard.rows if one.claim == claim_id and one.reading == reading), None)
    if row is None or len(row.points) == 1:
        return [""]
    return [written([*point.at.values()][-1]) for point in row.points]


def _panel(found: Found) -> tuple[str, str]:
    measure, compare = found.claim.measure, found.claim.compare
    assert measure is not None and compare is not None  # noqa: S101, PT018 - shown numbers have both
    return words.subject(found.claim), words.amount(found.claim, 1.0)[-2:]


def _label(found: Found) -> str:
    compare = found.claim.compare
    assert compare is not None  # noqa: S101 - as above
    who = compare.scheme if compare.against == compare.scheme else f"{compare.scheme} over {compare.against}"
    place = (
        ""
        if found.point is None or found.row is None or len(found.row.points) == 1
        else f", {words.place(found.point)}"
    )
    reading = "" if found.row is None or found.row.reading == found.claim.readings[0] else f", {found.row.reading}"
    return who + place + reading


def _draw_panel(panel: Sequence[Found], y: float, parts: list[str]) -> float:
    """Draws the numbers of one unit, and returns where the next panel begins."""
    none = no_change(panel[0].claim)
    low, high = _scale([one.number for one in panel if one.number is not None], none)

    def x(value: float) -> float:
        value = min(max(value, low), high)
        return round(LABELS + (value - low) / (high - low) * (WIDTH - LABELS - NUMBERS), 1)

    step = 22
    parts.append(_text(16, y + 20, words.subject(panel[0].claim), "head"))
    top, bottom = y + 32, y + 36 + step * len(panel)
    parts.append(f'<path class="zero" d="M{x(none)} {top}V{bottom}"/>')
    before = None
    for place, one in enumerate(panel):
        middle = y + 36 + step * (place + 0.5)
        number = one.number
        assert number is not None  # noqa: S101 - as above
        if before is not None and before != one.claim.id:
            parts.append(f'<path class="line" d="M16 {middle - step / 2}H{WIDTH - 16}"/>')
        before = one.claim.id
        parts.append(_text(16, middle + 5, _label(one)))
        if number.low is not None and number.high is not None:
            parts.append(f'<path class="ours" d="M{x(number.low)} {middle}H{x(number.high)}"/>')
        parts.append(f'<circle class="ours" cx="{x(number.value)}" cy="{middle}" r="4"/>')
        parts.append(_text(WIDTH - NUMBERS + 12, middle + 5, one.text, "soft"))
    return bottom + 12


def _scale(numbers: Sequence[Number], none: float) -> tuple[float, float]:
    """Returns the ends of an axis: intervals much wider than everything else together are cut off."""
    values = [none, *(number.value for number in numbers)]
    low, high = min(values), max(values)
    room = (high - low) or 0.1
    lows = [number.low for number in numbers if number.low is not None]
    highs = [number.high for number in numbers if number.high is not None]
    least, most = max(min([low, *lows]), low - room), min(max([high, *highs]), high + room)
    return least - room * 0.05, most + room * 0.05


def _text(x: float, y: float, said: str, kind: str = "", *, middle: bool = False) -> str:
    name = f' class="{kind}"' if kind else ""
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text{name} x="{x:g}" y="{y:g}"{anchor}>{escape(said)}</text>'


def _svg(width: float, height: float, said: str, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    ground = f'<rect class="ground" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
    inner = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>{escape(said)}</title>'
    return f"{head}\n<style>{STYLE}</style>\n{ground}\n{inner}\n</svg>\n"
