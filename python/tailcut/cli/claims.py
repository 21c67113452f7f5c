"""Commands on the papers' claims: the list with verdicts, the runs that answer them, and the page."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailcut.cli.common import Jobs, err, out
from tailcut.cli.experiment import executor_of
from tailcut.cli.results import quoted

if TYPE_CHECKING:
    from tailcut.claims import Claim, Paper, Scorecard

SCORECARD = Path("experiments/papers/scorecard.json")
"""The file of a checkout's scorecard, the one that comes with Tailcut."""
RESULTS = Path("results/claims")

app = typer.Typer(
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="PAPER|CLAIM...", help="Papers or claims; by default all.", show_default=False),
]
Card = Annotated[
    Path | None,
    typer.Option(
        "--scorecard",
        metavar="FILE",
        help=f"The scorecard; by default {SCORECARD} if it exists, otherwise the one that comes with Tailcut.",
        show_default=False,
    ),
]


@app.callback(invoke_without_command=True)
def claims(
    context: typer.Context,
    scorecard: Card = None,
    reading: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The reading to list; by default as the paper states it.", show_default=False
        ),
    ] = None,
    current: Annotated[
        bool,
        typer.Option(
            "--current", metavar="", help="Print nothing, and fail if rows are of an older version of results."
        ),
    ] = False,
) -> None:
    """List the claims of the papers, and the verdict on each."""
    if context.invoked_subcommand is not None:
        return
    if current:
        from tailcut.errors import ClaimsError

        stale = len(_card(scorecard).stale)
        if stale:
            raise ClaimsError(
                "TC-K004",
                f"{stale} rows of the scorecard are of an older version of results",
                "make claims makes them again",
            )
        return
    from tailcut.claims import load
    from tailcut.terminal import claims as view

    papers = load()
    out.print(view.overview([*papers.values()], _card(scorecard), reading), crop=False)


@app.command()
def run(
    names: Names = None,
    on: Annotated[
        str,
        typer.Option(
            metavar="sim|model|lab|authors", help="The backend; authors: the numbers that the authors released."
        ),
    ] = "sim",
    small: Annotated[
        bool,
        typer.Option(
            "--small", metavar="", help="Run the small variants, in seconds; their numbers are not the paper's."
        ),
    ] = False,
    reading: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The reading to run; by default as the paper states it. May be repeated."),
    ] = None,
    all_readings: Annotated[
        bool, typer.Option("--all-readings", metavar="", help="Run every reading that a claim names.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(metavar="N", min=1, help="Use the seeds 1 to N.")] = None,
    jobs: Jobs = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="WHERE", help="Make the runs on a Dask cluster, as `tailcut run` does.")
    ] = None,
    scorecard: Card = None,
    out_: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The directory for the runs of all claims.")
    ] = RESULTS,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print errors only.")] = False,
) -> None:
    """Make the missing runs that claims need, and write their numbers into the scorecard."""
    from tailcut.claims import load, make
    from tailcut.claims.document import STATED
    from tailcut.terminal import claims as view
    from tailcut.terminal.progress import display
    from tailcut.units import duration

    papers = [*load().values()]
    chosen = _chosen(papers, names or [])
    readings = [] if all_readings else reading or [STATED]
    batches = make.batches(papers, chosen, on, readings, small=small, seeds=seeds)
    if not batches:
        raise typer.BadParameter(f"the backend {on} answers none of these claims under that reading")
    card, target = _card(scorecard), _target(scorecard, small=small)
    runs = len({run["id"] for batch in batches for run in make.missing(batch, out_)})
    if not quiet:
        err.print(f"{runs} runs are missing: {duration(make.expected_seconds(batches, out_))}.", highlight=False)
    put = []
    with executor_of(cluster) as executor:
        for batch in batches:
            with nullcontext(None) if quiet else display(err) as progress:
                try:
                    for row in make.carry_out(batch, out_, progress, jobs=jobs, executor=executor):
                        card.put(row)
                        put.append(row)
                except KeyboardInterrupt:
                    err.print(f"Interrupted. Finished runs are kept in {quoted(out_)}; the same command goes on.")
                    raise
            if target is not None:  # after each experiment, so that an interruption loses nothing
                card.write(target)
    if not quiet:
        out.print(view.rows(papers, put), crop=False)
        if target is not None:
            err.print(f"\nThe scorecard is {quoted(target)}; tailcut claims page writes the page.", highlight=False)


@app.command()
def page(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The page to write.")] = Path("claims.html"),
    scorecard: Card = None,
) -> None:
    """Write the page of all claims: the papers' numbers, ours, and the verdicts. It works offline."""
    from tailcut.claims import load
    from tailcut.claims import page as written
    from tailcut.results.store import write_atomically

    write_atomically(file, written.render([*load().values()], _card(scorecard)).encode())
    out.print(str(file), highlight=False, soft_wrap=True)


def _chosen(papers: "Sequence[Paper]", names: Sequence[str]) -> "list[Claim]":
    every = [claim for paper in papers for claim in paper.claims]
    known = {paper.name for paper in papers} | {claim.id for claim in every}
    unknown = [name for name in names if name not in known]
    if unknown:
        import difflib

        close = difflib.get_close_matches(unknown[0], sorted(known), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise typer.BadParameter(f"no paper or claim is called {unknown[0]!r}{hint}")
    return [claim for claim in every if not names or claim.paper in names or claim.id in names]


def _card(file: Path | None) -> "Scorecard":
    from tailcut.claims import Scorecard

    home = file or SCORECARD
    if home.exists():
        return Scorecard.parse(home.read_text("utf-8"))
    return Scorecard() if file is not None else Scorecard.shipped()


def _target(file: Path | None, *, small: bool) -> Path | None:
    """Returns the file for new rows; None without one: rows of small variants never join those at the papers' scale."""
    if file is not None:
        return file
    return SCORECARD if SCORECARD.exists() and not small else None
