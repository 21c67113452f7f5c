"""Commands that take a directory of results."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tailcut
from tailcut.cli.common import Directories, Directory, WithUnfaithful, err, out

MOST_SENTENCES = 10
"""Most unfinished jobs that are named below a summary."""

if TYPE_CHECKING:
    from tailcut.results import StoredResult


def summary(
    directories: Directories,
    full: Annotated[
        bool, typer.Option("--full", metavar="", help="Every class and statistic, with intervals.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", metavar="", help="The summary table as CSV.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="The summary table as JSON, a list of rows.")
    ] = False,
    with_unfaithful: WithUnfaithful = False,
) -> None:
    """Print the summary of the finished runs."""
    from tailcut.results.tables import for_spreadsheets
    from tailcut.terminal.table import full_table

    result = tailcut.open_results(*directories, with_unfaithful=with_unfaithful)
    if as_json:
        rows = json.loads(result.summary().write_json())
        sys.stdout.write(json.dumps(rows, separators=(",", ":")) + "\n")  # in ASCII, which every terminal has
    elif csv:
        sys.stdout.write(for_spreadsheets(result.summary()).write_csv())
    elif full:
        out.print(full_table(result.plan, result.summary()), crop=False)
    else:
        show(result)


def report(
    directories: Directories,
    page: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PAGE",
            help="The page; by default DIR/report.html, with the names of further directories added.",
            show_default=False,
        ),
    ] = None,
    slow_flows: Annotated[
        int,
        typer.Option(
            "--explain",
            metavar="N",
            min=0,
            max=20,
            help="Explain the N slowest flows of each scheme packet by packet, by repeating their runs.",
        ),
    ] = 0,
    slow_seeds: Annotated[
        list[int] | None,
        typer.Option(
            "--explain-seed",
            metavar="SEED",
            min=0,
            help="The seed of those flows; by default the first with finished runs. May be repeated.",
            show_default=False,
        ),
    ] = None,
    with_unfaithful: WithUnfaithful = False,
) -> None:
    """Write the page: HTML that works offline, and its figures."""
    result = tailcut.open_results(*directories, with_unfaithful=with_unfaithful)
    if slow_seeds and not slow_flows:
        raise typer.BadParameter("--explain-seed needs --explain N, the number of flows")
    missing(result)
    written = result.report(page, slow_flows, slow_seeds or ())
    out.print(f"{written[0]}", highlight=False, soft_wrap=True)


def open_(directory: Directory) -> None:
    """Open the page in the browser; a missing or outdated page is written first."""
    import webbrowser

    from tailcut.errors import TailcutError

    result = tailcut.open_results(directory)
    page = directory / "report.html"
    if not (page.is_file() and page.stat().st_mtime_ns > result.changed_ns()):
        missing(result)
        result.report(page)
    out.print(f"{page}", highlight=False, soft_wrap=True)
    if not webbrowser.open(page.resolve().as_uri()):
        raise TailcutError("TC-P002", "no browser can be started here", f"open {page.resolve()} in a browser")


def verify(directory: Directory) -> None:
    """Read every byte of all runs and say which are damaged."""
    from tailcut.errors import TailcutError
    from tailcut.results import State, Store

    store = Store.open(directory)
    runs = store.runs()
    damaged = [run_id for run_id in runs if store.verify(run_id) is State.DAMAGED]
    if damaged:
        raise TailcutError(
            "TC-S006",
            "\n".join(
                [f"{len(damaged)} of {len(runs)} runs are damaged:", *(f"  {store.path(one)}" for one in damaged)]
            ),
            "run the experiment again with the same options: it makes damaged runs anew",
        )
    out.print(f"{len(runs)} runs verified, none damaged", highlight=False)
    strays = store.strays()
    if strays:
        which = ", ".join(str(one.relative_to(directory)) for one in strays[:3]) + (", …" if len(strays) > 3 else "")
        err.print(f"{len(strays)} files belong to no run: {which}", style="yellow", highlight=False, soft_wrap=True)


def prune(
    directory: Directory,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="List the runs that would be removed, and remove none.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Remove without asking.")] = False,
    last: Annotated[bool, typer.Option("--last", metavar="", help="Keep only the runs of the latest plan.")] = False,
) -> None:
    """Remove the runs that none of the directory's plans needs."""
    from tailcut.results import Store, upkeep
    from tailcut.units import size

    store = Store.open(directory)
    unneeded = upkeep.unreferenced_runs(store, by_last=last)
    kept = len(store.runs()) - len(unneeded)
    for run_id in unneeded if dry_run else ():
        out.print(f"{store.path(run_id)}", highlight=False, soft_wrap=True)
    what = f"{len(unneeded)} runs ({size(upkeep.bytes_of(store, unneeded))})"
    plan = "the latest plan" if last else "any plan"
    if not unneeded:
        which = "the latest plan" if last else "a plan"
        err.print(f"{directory}: all {kept} runs are part of {which}.", highlight=False, soft_wrap=True)
        return
    if dry_run:
        err.print(f"{directory}: {what} are not part of {plan}; {kept} runs are.", highlight=False, soft_wrap=True)
        return
    question = f"Remove {what} that are not part of {plan} from {directory}, and keep {kept}?"
    if not yes and not typer.confirm(question, err=True):
        raise typer.Exit(1)
    err.print(f"{upkeep.prune(store, unneeded)} runs removed.", highlight=False)


def merge(
    into: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of results that receives the runs.")],
    other: Annotated[
        Path, typer.Argument(metavar="OTHER", help="The directory whose runs are copied; it stays as it is.")
    ],
) -> None:
    """Copy the runs of another directory into this one."""
    from tailcut.results import Store, upkeep

    store = Store.open(into)
    done = upkeep.merge(store, Store.open(other))
    for run_id in done.damaged:
        err.print(f"{other}: run {run_id} is damaged and was left out", style="yellow", highlight=False, soft_wrap=True)
    unneeded = len(set(upkeep.unreferenced_runs(store, by_last=True)) & {*done.taken, *done.there})
    repeats = f", {len(done.repeats)} of them as further repeats of lab runs" if done.repeats else ""
    more = f"; {unneeded} are not in the plan of {into}: run the experiment with their seeds and values"
    err.print(
        f"{len(done.taken)} runs copied{repeats}, {len(done.there)} were there already{more if unneeded else ''}.",
        highlight=False,
        soft_wrap=True,
    )


def show(result: "StoredResult") -> None:
    """Prints the summary, the verdicts on lab runs, and which runs are missing."""
    from tailcut.terminal.table import summary_table

    table = summary_table(result.plan, result.summary(), result.totals(), result.bus_bandwidths())
    out.print(table, crop=False)
    for sentence in result.same:
        out.print(sentence, style="yellow", highlight=False, soft_wrap=True)
    unfinished(result)
    if result.lab.finished:
        from tailcut.terminal import lab

        out.print(lab.spread(result), crop=False)
        out.print(lab.verdicts(result))
    missing(result)


def unfinished(result: "StoredResult") -> None:
    """Prints which jobs given as graphs had not ended with their runs, and what waited for what."""
    sentences = result.unfinished_jobs
    for sentence in sentences[:MOST_SENTENCES]:
        err.print(sentence, style="yellow", highlight=False, soft_wrap=True)
    if len(sentences) > MOST_SENTENCES:
        more = f"{len(sentences) - MOST_SENTENCES} more jobs have not ended: result.unfinished_jobs names them."
        err.print(more, style="yellow", highlight=False, soft_wrap=True)


def missing(result: "StoredResult") -> None:
    """Prints how many runs are missing, if any, and how to make them."""
    absent, damaged, runs = len(result.missing_runs), len(result.damaged_runs), len(result.plan["runs"])
    answered_without_runs = absent == runs and set(result.summary()["backend"]) != {"sim"}
    if not absent or answered_without_runs:
        return
    which = f"{absent} of {runs} runs {'is' if absent == 1 else 'are'} missing"
    which += f", {damaged} of them damaged" if damaged else ""
    again = f"run {result.plan['source_file']} again with the same options"
    err.print(f"{which}: {again}.", style="yellow", highlight=False, soft_wrap=True)


def quoted(path: Path | str) -> str:
    """Returns a path quoted for a shell."""
    return shlex.quote(str(path))
