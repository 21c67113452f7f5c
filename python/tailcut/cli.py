"""The ``tailcut`` command: one thin function per command.

Exit codes: 0 done, 2 what was asked is wrong, 130 interrupted, 1 anything else.
"""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

import tailcut
from tailcut import _core, backends
from tailcut.errors import ExperimentError, TailcutError
from tailcut.results import Result, Store

FILE_WIDTH = 150  # of tables that go to a file or a pipe

out = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_WIDTH)
err = Console(stderr=True)


class Commands(TyperGroup):
    """Turns what went wrong into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        from tailcut.terminal import diagnostics

        try:
            return super().invoke(ctx)
        except ExperimentError as error:
            err.print(diagnostics.coloured(error.rendered), soft_wrap=True)
            raise typer.Exit(2) from None
        except TailcutError as error:
            err.print(diagnostics.coloured(diagnostics.rendered(error)), soft_wrap=True)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


app = typer.Typer(
    name="tailcut",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[Path, typer.Argument(help="The experiment, a TOML file.", show_default=False)]
Directory = Annotated[Path, typer.Argument(help="A directory of results.", show_default=False)]
Override = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Use this value, written as in TOML. May be repeated."),
]
Seeds = Annotated[int | None, typer.Option(min=1, help="Use the seeds 1 to this number.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Runs at a time; by default one per core.")]


def _version(asked: bool) -> None:
    if asked:
        out.print(f"tailcut {tailcut.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Cut the latency tail of data-centre flows: experiments, simulated fast, with a report."""


@app.command()
def check(
    file: File,
    set_: Override = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole plan as JSON.")] = False,
) -> None:
    """Show what an experiment means: its runs, their size, and every default."""
    from tailcut.results import machine
    from tailcut.terminal.plan import plan_view

    plan = tailcut.load(file, _overrides(set_), seeds).plan
    if as_json:
        sys.stdout.write(json.dumps(plan, indent=2) + "\n")
    else:
        out.print(plan_view(plan, jobs or machine.cores()))


@app.command()
def run(
    file: File,
    on: Annotated[str, typer.Option(metavar="|".join(backends.NAMES), help="The backend.")] = "sim",
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where results go; by default results/NAME.", show_default=False)
    ] = None,
    jobs: Jobs = None,
    set_: Override = None,
    seeds: Seeds = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST|LINK",
            help="Write packets of a host (host:0) or link (link:h0>s0) as pcapng. May be repeated.",
        ),
    ] = None,
) -> None:
    """Make the runs that are not there yet, and print the summary."""
    from tailcut.terminal.progress import display

    experiment = tailcut.load(file, _overrides(set_), seeds)
    directory = out_ or Path("results") / experiment.name
    try:
        with display(err) as progress:
            result = tailcut.run(experiment, on=on, out=directory, jobs=jobs, capture=capture or (), progress=progress)
    except KeyboardInterrupt:
        _interrupted(directory)
        raise
    _show(result)
    err.print(f"\nResults are in {directory}; tailcut report {directory} writes the page.", highlight=False)


@app.command()
def summary(
    directory: Directory,
    full: Annotated[bool, typer.Option("--full", help="Every class and statistic, with intervals.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="The summary table as CSV.")] = False,
) -> None:
    """Print the summary of what is there."""
    from tailcut.terminal.table import full_table

    result = tailcut.open_results(directory)
    if csv:
        sys.stdout.write(result.summary().write_csv())
    elif full:
        out.print(full_table(result.plan, result.summary()))
    else:
        _show(result)


@app.command()
def report(
    directory: Directory,
    page: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; by default DIRECTORY/report.html.", show_default=False)
    ] = None,
) -> None:
    """Write one HTML page that works offline, and its figures as SVG and PNG."""
    result = tailcut.open_results(directory)
    _missing(result)
    written = result.report(page)
    out.print(f"{written[0]}", highlight=False, soft_wrap=True)


@app.command(name="list")
def list_(
    component: Annotated[
        str | None, typer.Argument(help="A section or component, to see its parameters.", show_default=False)
    ] = None,
) -> None:
    """List what an experiment can name: topologies, transports, workloads and so on."""
    from tailcut.terminal import components

    known = json.loads(_core.describe())
    if component is None:
        out.print(components.overview(known))
        return
    chosen = [one for one in known if component in (one["name"], one["group"])]
    if not chosen:
        names = sorted({one["group"] for one in known})
        raise typer.BadParameter(f"there is no {component!r}; sections are {', '.join(names)}")
    out.print(components.details(chosen))


@app.command()
def schema() -> None:
    """Print the JSON Schema of experiment files."""
    sys.stdout.write(_core.schema().rstrip("\n") + "\n")


@app.command()
def new(
    file: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)] = Path("experiment.toml"),
) -> None:
    """Write a small experiment with comments to start from."""
    from importlib.resources import files

    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write((files("tailcut") / "starter.toml").read_text(encoding="utf-8"))
    except FileExistsError:
        raise typer.BadParameter(f"{file} is there already; name another file") from None
    out.print(f"{file}: try tailcut run {file}", highlight=False, soft_wrap=True)


def _overrides(given: list[str] | None) -> dict[str, str]:
    overrides = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"--set {text}: write KEY=VALUE, such as --set traffic.load=0.3")
        overrides[key.strip()] = value.strip()
    return overrides


def _show(result: Result) -> None:
    from tailcut.terminal.table import summary_table

    out.print(summary_table(result.plan, result.summary(), result.totals()))
    _missing(result)


def _missing(result: Result) -> None:
    missing, runs = len(result.missing_runs), len(result.plan["runs"])
    answered_without_runs = missing == runs and "model" in result.summary()["backend"]
    if missing and not answered_without_runs:
        err.print(f"{missing} of {len(result.plan['runs'])} runs are not there yet.", style="yellow", highlight=False)


def _interrupted(directory: Path) -> None:
    """Say what is kept and how to go on."""
    result = Result(Store.open(directory))
    again = " ".join(["tailcut", *sys.argv[1:]])
    err.print(
        f"Interrupted. {len(result.finished_runs)} of {len(result.plan['runs'])} runs are kept in {directory}.\n"
        f"To go on from there: {again}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _terminated(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line."""
    # A batch system's SIGTERM ends a sweep the way Ctrl-C does: in order, keeping what is done.
    signal.signal(signal.SIGTERM, _terminated)
    app()
