"""A small picture of a claim: the paper's numbers as a band or ticks, ours as points with their intervals."""

from dataclasses import dataclass

from tailcut.claims.document import Claim
from tailcut.claims.scorecard import Row
from tailcut.claims.verdict import Number, Target

WIDTH, HEIGHT, EDGE = 168, 56, 5


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float

    def y(self, value: float) -> float:
        """Returns the height of a value, from the top; beyond the ends it is at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE), 1)


def svg(claim: Claim, row: Row | None) -> str:
    """Returns the picture as SVG without colours; the page styles the classes ``paper``, ``ours`` and ``zero``.

    It says nothing that the numbers beside it do not, and is hidden from readers of text.
    """
    numbers = [] if row is None else [point.number for point in row.points]
    targets = claim.target if len(claim.target) > 1 else claim.target * max(len(numbers), 1)
    if not targets:
        return ""
    scale = _scale([one for one in numbers if one is not None], targets)
    step = (WIDTH - 2 * EDGE) / len(targets)
    parts = [
        f'<svg class="picture" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true">'
    ]
    if scale.low <= 0 <= scale.high:
        parts.append(f'<path class="zero" d="M0 {scale.y(0)}H{WIDTH}"/>')
    for place, target in enumerate(targets):
        left, right = EDGE + place * step + step * 0.15, EDGE + (place + 1) * step - step * 0.15
        parts.append(_paper(target, scale, round(left, 1), round(right, 1)))
    middles = [round(EDGE + (place + 0.5) * step, 1) for place in range(len(targets))]
    shown = [(x, one) for x, one in zip(middles, numbers, strict=False) if one is not None]
    if len(shown) > 1:
        line = "L".join(f"{x} {scale.y(one.value)}" for x, one in shown)
        parts.append(f'<path class="line" d="M{line}"/>')
    parts += [_ours(one, scale, x) for x, one in shown]
    return "".join([*parts, "</svg>"])


def _scale(numbers: list[Number], targets: tuple[Target, ...]) -> _Scale:
    ends = [end for target in targets for end in (target.low, target.high) if end is not None]
    ends += [one.value for one in numbers]
    if targets[0].change:
        ends.append(0.0)
    low, high = min(ends), max(ends)
    room = (high - low) * 0.25 or abs(high) * 0.25 or 1.0
    reach = [end for one in numbers for end in (one.low, one.high) if end is not None]
    # An interval may be wider than everything else together: it is cut off at half as much again on
    # either side.
    least = max(min([low, *reach]), low - 2 * room)
    most = min(max([high, *reach]), high + 2 * room)
    return _Scale(least - room / 4, most + room / 4)


def _paper(target: Target, scale: _Scale, left: float, right: float) -> str:
    top = scale.y(scale.high if target.high is None else target.high)
    bottom = scale.y(scale.low if target.low is None else target.low)
    if target.low == target.high:
        return f'<path class="paper tick" d="M{left} {top}H{right}"/>'
    height = round(max(bottom - top, 1), 1)
    return f'<rect class="paper" x="{left}" y="{top}" width="{round(right - left, 1)}" height="{height}"/>'


def _ours(number: Number, scale: _Scale, x: float) -> str:
    whisker = ""
    if number.low is not None and number.high is not None and number.low < number.high:
        whisker = f'<path class="ours" d="M{x} {scale.y(number.low)}V{scale.y(number.high)}"/>'
    return f'{whisker}<circle class="ours" cx="{x}" cy="{scale.y(number.value)}" r="3"/>'
