"""A page of one question, and scorecards for it."""

from tailcut import _core
from tailcut.claims import Paper, Row, Scorecard, Verdict, document
from tailcut.claims.questions import Answers
from tailcut.claims.scorecard import Point
from tailcut.claims.verdict import Number

FILE = """
title = "Today"
source = "Us"
situations = ["25 Gbps", "1 Gbps"]
limits = ["One fabric."]

[readings.slow]
says = "At 1 Gbps."
set = { topology.rate = "1Gbps" }

[[ideas]]
name = "Copies"
cells = { "25 Gbps" = "faster", "1 Gbps" = "faster @ slow" }

[[questions]]
id = "copies"
asks = "Do copies help?"
experiment = "1-copies"
answer = "A copy is faster: {faster:less}."
why = "Waiting is {waiting} of the time."
change = "At 1 Gbps nothing is sure: {faster:open @ slow}."
figure = ["faster", "waiting"]

[[claims]]
id = "faster"
says = "It is faster."
where = "question 1"
experiment = "1-copies"
measure = { metric = "fct", statistic = "p99" }
compare = { kind = "change", scheme = "B", against = "A" }
paper = { sign = "less" }
readings = ["stated", "slow"]

[[claims]]
id = "waiting"
says = "It waits."
where = "question 1"
experiment = "1-copies"
measure = { metric = "part_share", statistic = "share", name = "queue" }
compare = { kind = "value", scheme = "A" }
paper = { at_least = 0.5 }
"""


def row(
    claim: str, number: Number, reading: str = "stated", backend: str = "sim", runs: tuple[str, ...] = ("f00",)
) -> Row:
    point = Point({}, number, Verdict.UNDECIDED)
    return Row(f"today/{claim}", reading, backend, (point,), Verdict.UNDECIDED, _core.RESULTS, (1, 2), runs)


def card(faster: tuple[float, float, float] = (-0.3, -0.4, -0.2), *, few: bool = False) -> Scorecard:
    beyond = 9 if few else 20
    return Scorecard(
        [
            row("faster", Number(*faster, beyond=beyond)),
            row("faster", Number(-0.1, -0.3, 0.2, beyond=20), "slow"),
            row("waiting", Number(0.6, 0.5, 0.7)),
        ]
    )


def read(text: str = FILE) -> Paper:
    return document.read("today", text)


def asked(paper: Paper) -> Answers:
    assert paper.answers is not None
    return paper.answers
