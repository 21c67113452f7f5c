"""Claims with their verdicts, as `tailcut claims` shows them."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tailcut.claims import Claim, Paper, Row, Scorecard, Verdict
from tailcut.claims.words import STALE, numbers, target
from tailcut.terminal.table import WholeTable

STYLES = {
    Verdict.REPRODUCED: "green",
    Verdict.DIRECTION: "yellow",
    Verdict.NOT: "red",
    Verdict.UNDECIDED: "cyan",
}


def overview(papers: Sequence[Paper], scorecard: Scorecard, reading: str | None = None) -> RenderableType:
    """Every claim in a line, by paper, and how many have each verdict."""
    parts: list[RenderableType] = []
    for paper in papers:
        table = _table(paper.title)
        for claim in paper.claims:
            row = next((one for one in scorecard.of(claim) if one.reading == reading), None)
            shown = scorecard.main(claim) if reading is None else row
            verdict = scorecard.verdict(claim) if reading is None or row is None else row.verdict
            if reading is None or reading in claim.readings:
                _line(table, claim, shown, verdict)
        if table.row_count:
            parts.append(table)
    groups = {
        "claims": [paper for paper in papers if paper.published],
        "known answers": [paper for paper in papers if paper.known],
        "promises of ideas today": [paper for paper in papers if not (paper.published or paper.known)],
    }
    for what, group in groups.items():
        totals = scorecard.totals(group)
        said = ", ".join(f"{totals[verdict]} {verdict.value}" for verdict in Verdict if totals[verdict])
        if totals:
            parts.append(Text(f"{totals.total()} {what} as stated: {said}."))
    stale = len(scorecard.stale)
    if stale:
        those = "row is" if stale == 1 else "rows are"
        said = f"{stale} {those} {STALE}: `tailcut claims run` makes them again."
        parts.append(Text(said, style="yellow"))
    return Group(*parts)


def rows(papers: Sequence[Paper], put: Sequence[Row]) -> RenderableType:
    """Rows that have just been made."""
    claims = {claim.id: claim for paper in papers for claim in paper.claims}
    table = _table("What came out")
    for row in put:
        _line(table, claims[row.claim], row, row.verdict)
    return table


def _table(title: str) -> Table:
    table = WholeTable(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("claim", no_wrap=True)
    table.add_column("the paper", no_wrap=True)
    table.add_column("ours, 95 % interval", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    return table


def _line(table: Table, claim: Claim, row: Row | None, verdict: Verdict) -> None:
    marked = verdict.value + (f" ({STALE})" if row is not None and row.stale else "")
    style = STYLES.get(verdict, "")
    table.add_row(claim.id, target(claim), numbers(claim, row) if row else "", Text(marked, style=style))
