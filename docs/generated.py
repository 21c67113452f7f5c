"""The pages of the reference that are made from the code when the site is built."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

from tailcut import _core, claims, shipped
from tailcut.claims import Scorecard, Verdict, words
from tailcut.terminal import components

REPNET = Path(__file__).parents[1] / "packages/repnet"
SCHEMA = Path(__file__).parents[1] / "schema/experiment.schema.json"


def commands() -> str:
    """Every command of `tailcut` with its arguments and options."""
    made = subprocess.run(
        [sys.executable, "-m", "typer", "tailcut.cli", "utils", "docs", "--name", "tailcut"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return made.stdout.replace("# `tailcut`", "# Commands", 1)


def what_can_be_named() -> str:
    """Every section of an experiment file, what it can name, and each parameter; and the backends."""
    text = (
        "# What an experiment can name\n\n"
        "`tailcut list` prints the same in the terminal. How the parts of a file go together: "
        "[Experiment files](experiment-files.md). A `backend` is named on the command line: `--on lab`.\n"
    )
    for group, members in groupby(components.known(), key=lambda one: str(one["group"])):
        text += f"\n## `{group}`\n"
        for one in members:
            if one["name"] != group:
                text += f"\n### `{one['name']}`" + (" (default)" if one["default"] else "") + "\n"
            text += f"\n{one['summary']}\n"
            text += f"\n{one['details']}\n" if one.get("details") else ""
            text += _parameters(one["parameters"])
    return text


def _parameters(parameters: list[dict[str, Any]]) -> str:
    if not parameters:
        return ""
    rows = ["", "| parameter | default | takes | meaning |", "|---|---|---|---|"]
    for one in parameters:
        default = "required" if one["required"] else ""
        if one["default"] is not None:
            default = f"`{json.dumps(one['default'], ensure_ascii=False)}`"
        cells = [f"`{one['name']}`", default, one["takes"], one["doc"]]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def what_comes_along() -> str:
    """The experiments and workloads that `tailcut new --from` copies, and the question that each experiment asks."""
    text = (
        "# What comes along\n\n"
        "`tailcut new --from NAME` writes a copy of one. In a checkout they are in `experiments/` and `workloads/`.\n"
        "Those of the papers are in [a page of their own](papers.md).\n"
    )
    known = shipped.texts()
    experiments, _ = _core.shipped()
    for name, content in ({shipped.STARTER: known[shipped.STARTER]} | dict(experiments)).items():
        if not name.startswith("papers/"):
            paragraphs = [
                f"## `{name}`",
                f"{shipped.summary(name, content)}.",
                tomllib.loads(content).get("question", ""),
            ]
            if name not in known:
                paragraphs.append("It needs a further file and is in checkouts only.")
            text += "".join(f"\n{' '.join(paragraph.split())}\n" for paragraph in paragraphs if paragraph)
    text += "\n## Workloads\n\n| name | flow sizes |\n|---|---|\n"
    for name, content in known.items():
        if name.endswith(shipped.WORKLOAD):
            text += f"| `{name}` | {shipped.summary(name, content).rstrip('.')} |\n"
    return text


def what_is_claimed() -> str:
    """Every claim of the papers with what came out, from the scorecard."""
    card, papers = Scorecard.shipped(), [*claims.load().values()]
    text = (
        "# The papers' claims\n\n"
        "Made from the scorecard that is checked in, by one rule: [how](../guide/claims.md).\n"
        f"{words.all_totals(card, papers)}\n"
    )
    if card.stale:
        text += f"\nOf an older version of results are {len(card.stale)} rows; they are marked.\n"
    for paper in papers:
        text += f"\n## {paper.title}\n\n{paper.source}.\n\n{table_of_claims(paper.name)}"
    return text


def table_of_claims(name: str) -> str:
    """A paper's claims as stated: the paper's number, ours, and the verdict."""
    card, paper = Scorecard.shipped(), claims.load()[name]
    text = f"| claim | {words.source_of(paper)} | ours | verdict |\n|---|---|---|---|\n"
    for claim in paper.claims:
        row = card.main(claim)
        verdict = card.verdict(claim).value + (f" ({words.STALE})" if row is not None and row.stale else "")
        ours = "" if row is None else words.numbers(claim, row)
        said = f"{claim.says} ({claim.where})"
        text += f"| {said} | {words.target(claim)} | {ours} | {verdict} |\n"
    return text


def table_of_reading(name: str, reading: str) -> str:
    """What another reading of a paper gives beside the stated one, where it has been run: a row for each claim."""
    card, paper = Scorecard.shipped(), claims.load()[name]
    text = f"| claim | {words.source_of(paper)} | stated | {reading} | verdict |\n|---|---|---|---|---|\n"
    for claim in paper.claims:
        stated, other = card.main(claim), next((row for row in card.of(claim) if row.reading == reading), None)
        if other is not None:
            verdict = other.verdict.value + (f" ({words.STALE})" if other.stale else "")
            ours = "" if stated is None else words.numbers(claim, stated)
            cells = [f"{claim.says} ({claim.where})", words.target(claim), ours, words.numbers(claim, other), verdict]
            text += f"| {' | '.join(cells)} |\n"
    return text


def counts_of_claims() -> str:
    """How many claims of each paper have which verdict as stated."""
    card, papers = Scorecard.shipped(), [paper for paper in claims.load().values() if paper.published]
    shown = [verdict for verdict in Verdict if card.totals(papers)[verdict]]
    head = ["paper", "claims", *(verdict.value for verdict in shown)]
    text = "| " + " | ".join(head) + " |\n|" + "---|" * len(head) + "\n"
    for paper in papers:
        totals = card.totals([paper])
        cells = [f"[{paper.title}](../validation/{paper.name}.md)", str(totals.total())]
        text += "| " + " | ".join([*cells, *(str(totals[verdict] or "–") for verdict in shown)]) + " |\n"
    return text


def filled(text: str) -> str:
    """A page with the tables that its comments ask for.

    These are ``<!-- claims: rps -->``, ``<!-- claims: rps, threshold 30 -->`` for a reading, and ``<!-- claims -->``.
    """
    text = re.sub(r"<!-- claims: (\w+), ([^>]+) -->", lambda asked: table_of_reading(asked[1], asked[2]), text)
    text = re.sub(r"<!-- claims: (\w+) -->", lambda asked: table_of_claims(asked[1]), text)
    return text.replace("<!-- claims -->", counts_of_claims())


def departures() -> str:
    """Every departure from the RFCs that `imitate` can switch on, from the schema of experiment files."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    named = schema["$defs"]["Imitation"]["oneOf"][-1]["items"]["oneOf"]
    text = (
        "# Departures that can be imitated\n\n"
        '`imitate = "ns-3"` switches all of these on but those of ns-3.10, `imitate = ["no-rescue"]` single ones. '
        "They\nare there to compare [TCP](../components/tcp.md) with [ns-3](../validation/ns3.md), and ns-3.10's for "
        "claims of\n"
        "papers that used it.\n\n| name | what it does |\n|---|---|\n"
    )
    return text + "".join(f"| `{one['const']}` | {one['description']} |\n" for one in named)


def repnet_page(name: str) -> Callable[[], str]:
    """A page of the package repnet, which also stands on its own beside its code."""

    def made() -> str:
        text = (REPNET / ("README.md" if name == "index" else f"docs/{name}.md")).read_text("utf-8")
        text = text.replace("](../README.md", "](index.md")
        text = re.sub(r"\]\(docs/", "](", text)
        if name == "index":
            text += "\n```{toctree}\n:hidden:\n:glob:\n\napi/*\n" + "\n".join(PAGES_OF_REPNET) + "\n```\n"
        return text

    return made


PAGES_OF_REPNET = sorted(page.stem for page in (REPNET / "docs").glob("*.md"))

PAGES: dict[str, Callable[[], str]] = {
    "reference/commands": commands,
    "reference/components": what_can_be_named,
    "reference/shipped": what_comes_along,
    "reference/claims": what_is_claimed,
    "reference/departures": departures,
    **{f"repnet/{name}": repnet_page(name) for name in ["index", *PAGES_OF_REPNET]},
}
"""The function that makes each page, by the page's name."""
