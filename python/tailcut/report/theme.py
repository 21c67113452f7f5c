"""The look of every figure: one colour and one mark shape per scheme, everywhere.

Colours start from Okabe and Ito's palette, which stays apart under the common colour-vision deficiencies, each in a
light and a dark form with a contrast of at least 3:1 against its background. A scheme also has its own mark shape, so
that a page printed in grey still tells schemes apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Static figures use the Liberation Sans that vl-convert brings along, so that they look alike on every machine."""

PAIRS: tuple[tuple[str, str], ...] = (
    ("#59636e", "#a9b4c0"),  # grey: the baseline
    ("#0072b2", "#56b4e9"),  # blue
    ("#bf4300", "#f28e4b"),  # vermillion
    ("#008f68", "#2ccb9c"),  # bluish green
    ("#7d0f5c", "#f7b6e0"),  # reddish purple
    ("#a38f00", "#f2cf3a"),  # amber
    ("#3d2b94", "#8b78ea"),  # violet
    ("#5e2c10", "#b5714a"),  # brown
)
SHAPES: tuple[str, ...] = (
    "circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right",
)  # fmt: skip
INK: Mapping[str, tuple[str, str]] = {
    "ink": ("#1b2026", "#e8ecf0"),
    "muted": ("#56606b", "#a3adb8"),
    "rule": ("#8d97a2", "#6c7784"),
    "grid": ("#e4e8ec", "#2b323a"),
    "load-0": ("#c6ced6", "#3a444f"),
    "load-1": ("#d9b13b", "#8d7430"),
    "load-2": ("#ec8f1c", "#c98f2b"),
    "load-3": ("#e05a1c", "#f2853a"),
    "load-4": ("#c22a1f", "#ff5f4a"),
    "load-5": ("#7d0a1a", "#ffc4b8"),
    "way-0": ("#0a6ed1", "#58aeff"),
    "way-1": ("#8246c9", "#b795f2"),
}
BACKENDS: Mapping[str, tuple[str, tuple[int, int]]] = {
    "sim": ("simulated", (1, 0)),
    "model": ("model", (7, 4)),
    "lab": ("real kernels", (2, 3)),
    "lab-kernel": ("real kernels, switches too", (8, 2)),
}
"""The name of a backend in a legend, and the dash of its lines."""


@dataclass(frozen=True)
class Theme:
    """Colours, and whether a figure reacts to the page.

    Attributes:
        schemes: the schemes in the order of the plan; the order fixes colour and shape.
        interactive: true for the page, where colours are CSS variables (so that dark mode and print are style sheets)
            and the marks obey the signals ``hidden``, ``cell`` and ``point``; false for SVG and PNG.
        baseline: the scheme that is drawn in grey, if any.
    """

    schemes: tuple[str, ...]
    interactive: bool = False
    baseline: str | None = None

    def slot(self, scheme: str) -> int:
        """The number of the scheme's colour: 0 for the baseline, then in order."""
        ordered = [s for s in self.schemes if s == self.baseline]
        ordered += [s for s in self.schemes if s != self.baseline]
        offset = 0 if self.baseline in self.schemes else 1
        return ordered.index(scheme) + offset

    def colour(self, scheme: str) -> str:
        """The scheme's colour: a CSS variable on the page, else a hexadecimal value."""
        return self.hue(_style(self.slot(scheme))[0])

    def hue(self, number: int) -> str:
        """Returns one of the colours of ``PAIRS``: a CSS variable on the page, else a hexadecimal value."""
        return f"var(--scheme-{number})" if self.interactive else PAIRS[number][0]

    def shape(self, scheme: str) -> str:
        """The scheme's mark shape; 56 schemes differ in colour or in shape."""
        return SHAPES[_style(self.slot(scheme))[1]]

    def dash(self, scheme: str) -> list[int]:
        """Returns the dash of curves without marks, so that two schemes of one colour stay apart."""
        return [[1, 0], [6, 3], [2, 2]][_style(self.slot(scheme))[2] % 3]

    def ink(self, name: str) -> str:
        """A colour that is no scheme's: ``ink``, ``muted``, ``rule`` or ``grid``."""
        return f"var(--{name})" if self.interactive else INK[name][0]

    def config(self) -> dict[str, Any]:
        """The Vega-Lite configuration of every figure."""
        text = {"labelColor": self.ink("muted"), "titleColor": self.ink("ink")}
        return {
            "font": "inherit" if self.interactive else FONT,
            "background": None if self.interactive else "#ffffff",
            "view": {"stroke": None},
            "axis": {
                **text,
                "labelFontSize": 11,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "titlePadding": 8,
                "gridColor": self.ink("grid"),
                "domainColor": self.ink("rule"),
                "tickColor": self.ink("rule"),
                "labelFlush": False,
            },
            "legend": {**text, "labelFontSize": 12, "symbolSize": 90, "symbolStrokeWidth": 2},
            "header": {**text, "labelFontSize": 12, "labelFontWeight": "bold"},
            "title": {
                "color": self.ink("ink"),
                "subtitleColor": self.ink("muted"),
                "fontSize": 13,
                "subtitleFontSize": 12,
                "fontWeight": "bold",
                "anchor": "start",
                "offset": 10,
            },
        }


def _style(slot: int) -> tuple[int, int, int]:
    """The colour and the shape of a slot, as numbers, and how often the colour has been used before.

    Grey is the baseline's as long as there is another colour and shape to be had.
    """
    hues = len(PAIRS) - 1
    slot %= len(PAIRS) * len(SHAPES)
    if slot == 0:
        return 0, 0, 0
    cycle, hue = divmod(slot - 1, hues)
    if cycle < len(SHAPES):
        return hue + 1, (hue + 1 + cycle) % len(SHAPES), cycle
    return 0, slot - hues * len(SHAPES), slot - hues * len(SHAPES)


def variables(dark: bool) -> Mapping[str, str]:
    """The CSS variables that the page's figures refer to, by name."""
    which = int(dark)
    colours = {f"scheme-{slot}": pair[which] for slot, pair in enumerate(PAIRS)}
    return {**colours, **{name: pair[which] for name, pair in INK.items()}}


def theme_for(schemes: Sequence[str], baseline: str | None, *, interactive: bool) -> Theme:
    """The theme of an experiment's figures."""
    return Theme(tuple(schemes), interactive, baseline)
