"""The page of questions as Markdown, and its pictures: all that `make today` writes."""

import textwrap
from collections.abc import Iterable

from tailcut.claims import drawings, kernels, words
from tailcut.claims.answers import answered, cell, contradictions, sentence
from tailcut.claims.document import STATED, Paper, Reading
from tailcut.claims.questions import Question, references
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
    for question in answered(paper):
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
        _list(f"**{'As asked' if name == STATED else name}.** {one.says}" for name, one in _readings(paper).items()),
        METHOD,
    ]
    parts += [_question(paper, scorecard, number, one) for number, one in enumerate(asked.questions, 1)]
    parts.append(_kernels(paper, scorecard))
    parts += ["## Limits\n", _list(asked.limits), AGAIN.format(runs=_runs(paper, scorecard))]
    return "\n".join(part for part in parts if part)


HEAD = """<!-- Written by `make today` from experiments/today/claims.toml and the scorecard. Change those. -->
# Which of the five ideas is worth it today

Copies of short flows (RepFlow), two handshakes (RepSYN), spraying (RPS), elephants in pieces
(TinyFlow) and many subflows (MMPTCP) were measured at 1 Gbps on hosts and switches of their years.
These are eight questions about them on hosts and switches of today.
"""
CAPTION = """*Change of the mean of short flows (up to 100 KB), and in the picture of their 99th
percentile. Below zero is faster. ▼: the whole 95 % interval is below zero; ▲: above; =: within 5 %;
?: on both sides. The first number marks the cell.*
"""
METHOD = """Every number is a change of one scheme over another on the same flows, with its 95 % interval over
seeds, or a value that says so. Each is a row of [the claims' table](../reference/claims.md), judged
by [the rule of the papers' claims](claims.md); the words around it are tested against its sign.
"""
AGAIN_KERNELS = """`make today-kernels` makes the runs over kernels, in real time, on a machine that does nothing else;
runs that were not in time do not count.
"""
AGAIN = """## Make it again

<!-- not run: it makes hundreds of runs -->
```console
$ make today
```

makes what is missing of {runs} runs, each of which takes a second or two, and writes this page and
its pictures. After an interruption it goes on.
"""


def _readings(paper: Paper) -> dict[str, Reading]:
    """Returns the readings of the claims that the page shows."""
    experiments = {f"{paper.name}/{question.experiment}" for question in answered(paper)}
    used = {name for claim in paper.claims if claim.experiment in experiments for name in claim.readings}
    return {name: reading for name, reading in paper.readings.items() if name in used}


def _list(lines: Iterable[str]) -> str:
    return "".join(f"{wrapped(f'- {line}', '  ')}\n" for line in lines)


def wrapped(text: str, indent: str = "") -> str:
    """Returns a paragraph in lines of at most 100 columns."""
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _over_kernels(paper: Paper, scorecard: Scorecard, question: Question) -> str:
    """Returns what kernels say of a question, as a paragraph; empty where nothing is known of it."""
    said = kernels.paragraph(paper, scorecard, question)
    return f"\n{wrapped(f'**Over kernels.** {said}')}\n" if said else ""


def _kernels(paper: Paper, scorecard: Scorecard) -> str:
    """Returns the section on kernels; empty where they were asked nothing."""
    table = kernels.section(paper, scorecard)
    how = paper.answers.kernels if paper.answers else ""
    return f"## Over kernels\n\n{wrapped(how)}\n\n{table}\n{AGAIN_KERNELS}" if table else ""


def _runs(paper: Paper, scorecard: Scorecard) -> int:
    """Returns how many simulated runs the page's numbers are of."""
    of_page = (row for row in scorecard.rows if row.claim.startswith(f"{paper.name}/") and row.backend != kernels.LAB)
    return len({run for row in of_page for run in row.runs})


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
            cells.append(drawings.marked(found[0]).replace(" ", "\u00a0") if found else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _question(paper: Paper, scorecard: Scorecard, number: int, question: Question) -> str:
    def said(before: str, text: str, after: str = "") -> str:
        found = sentence(paper, scorecard, text) if references(text) else "Not asked yet."
        return wrapped(f"{before}{found}{after}")

    if not question.answered:
        return f"## {number}. {question.asks}\n\nNot answered yet: its runs have not been made.\n"
    return f"""## {number}. {question.asks}

{said("**", question.answer, "**")}

![{question.asks} The numbers with their intervals](../{PICTURES}/{question.experiment}.svg)

{said("**Why.** ", question.why)}

{said("**What would change it.** ", question.change)}
{_over_kernels(paper, scorecard, question)}
*Experiment: `experiments/{paper.name}/{question.experiment}.toml`.*
"""
