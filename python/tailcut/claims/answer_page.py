"""The page of questions as Markdown, and its pictures: all that `make today` writes."""

from tailcut.claims import drawings, words
from tailcut.claims.answers import cell, contradictions, sentence
from tailcut.claims.document import Paper
from tailcut.claims.questions import Question
from tailcut.claims.scorecard import Scorecard
from tailcut.errors import ClaimsError

PICTURES = "images/today"
"""The folder of the pictures, below the documentation's."""


def files(paper: Paper, scorecard: Scorecard) -> dict[str, str]:
    """Returns the text of each file, by its place below the documentation's folder.

    Raises:
        ClaimsError: TC-K006: the words of a sentence do not agree with its number.
    """
    wrong = [*contradictions(paper, scorecard)]
    if wrong:
        raise ClaimsError(
            "TC-K006", "the page's words do not agree with its numbers:\n" + "\n".join(wrong), "correct its claims.toml"
        )
    found = {"guide/today.md": page(paper, scorecard), f"{PICTURES}/ideas.svg": drawings.table(paper, scorecard)}
    for question in paper.answers.questions if paper.answers else ():
        found[f"{PICTURES}/{question.experiment}.svg"] = drawings.figure(paper, scorecard, question)
    return found


def page(paper: Paper, scorecard: Scorecard) -> str:
    """Returns the page."""
    asked = paper.answers
    if asked is None:
        return ""
    parts = [
        HEAD,
        f"![Ideas by situation: changes of the completion times of short flows](../{PICTURES}/ideas.svg)\n",
        CAPTION,
        _table(paper, scorecard),
        _stale(paper, scorecard),
        "## How it was asked\n",
        "\n".join(f"- **{name}.** {reading.says}" for name, reading in paper.readings.items()) + "\n",
        METHOD,
    ]
    parts += [_question(paper, scorecard, number, one) for number, one in enumerate(asked.questions, 1)]
    parts += ["## Limits\n", "\n".join(f"- {limit}" for limit in asked.limits) + "\n", AGAIN]
    return "\n".join(part for part in parts if part)


HEAD = """<!-- Written by `make today` from experiments/today/claims.toml and the scorecard. Change those. -->
# Which of the five ideas is worth it today

Copies of short flows (RepFlow), two handshakes (RepSYN), spraying (RPS), elephants in pieces
(TinyFlow) and many subflows (MMPTCP) were measured at 1 Gbps on hosts and switches of their years.
These are eight questions about them on hosts and switches of today.
"""
CAPTION = """*Change of the mean of short flows (up to 100 KB), and beside it of their 99th percentile. Below
zero is faster. ▼: the whole 95 % interval is below zero; ▲: above; =: within 5 %;
?: on both sides.*
"""
METHOD = """Every number is a change of one scheme over another on the same flows, with its 95 % interval over
seeds, or a value that says so. Each is a row of [the claims' table](../reference/claims.md), judged
by [the rule of the papers' claims](claims.md); the words around it are tested against its sign.
"""
AGAIN = """## Make it again

<!-- not run: it takes up to three hours -->
```console
$ make today
```

makes every run that is missing, and writes this page and its pictures. After an interruption it
goes on.
"""


def _stale(paper: Paper, scorecard: Scorecard) -> str:
    count = sum(row.claim.startswith(f"{paper.name}/") for row in scorecard.stale)
    return f"**Numbers {words.STALE} of results: {count}. `make today` makes them again.**\n" if count else ""


def _table(paper: Paper, scorecard: Scorecard) -> str:
    asked = paper.answers
    if asked is None:
        return ""
    head = ["idea", *asked.situations]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for idea in asked.ideas:
        cells = [idea.name]
        for situation in asked.situations:
            found = cell(paper, scorecard, idea, situation)
            cells.append(", ".join(drawings.marked(one) for one in found))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _question(paper: Paper, scorecard: Scorecard, number: int, question: Question) -> str:
    def said(text: str) -> str:
        return sentence(paper, scorecard, text)

    return f"""## {number}. {question.asks}

**{said(question.answer)}**

![{question.asks} The numbers with their intervals](../{PICTURES}/{question.experiment}.svg)

**Why.** {said(question.why)}

**What would change it.** {said(question.change)}

*Experiment: `experiments/{paper.name}/{question.experiment}.toml`.*
"""
