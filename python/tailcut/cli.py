"""The ``tailcut`` command: one thin function per command.

Exit codes: 0 done, 2 what was asked is wrong, 130 interrupted, 1 anything else.
"""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

import tailcut
from tailcut import backends

if TYPE_CHECKING:
    from tailcut.errors import TailcutError
    from tailcut.plan import Plan
    from tailcut.results import Result

if TYPE_CHECKING:
    from distributed import Client

FILE_WIDTH = 150  # of tables that go to a file or a pipe

# Names, titles and values are the user's: brackets in them are no markup.
out = Console(markup=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_WIDTH)
err = Console(markup=False, stderr=True)


class Commands(TyperGroup):
    """Turns what went wrong into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Whoever read the output has seen enough; nothing is left to flush when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as error:
            raise typer.Exit(_tell(_unusable(error)) or 1) from None
        except Exception as error:
            code = _tell(error)
            if code is None:
                raise
            raise typer.Exit(code) from None


def _tell(error: Exception) -> int | None:
    """Print what went wrong as a message; the exit code, or None for what is no such error."""
    if "tailcut.errors" not in sys.modules:  # so it is none of those, and `--help` (an exit) need not wait for them
        return None
    from tailcut.errors import ExperimentError, TailcutError
    from tailcut.terminal import diagnostics

    if isinstance(error, ExperimentError):
        text, code = error.rendered, 2
    elif isinstance(error, TailcutError):
        text, code = diagnostics.rendered(error), error.exit_code
    else:
        return None
    err.print(diagnostics.coloured(text), soft_wrap=True)
    return code


def _unusable(error: OSError) -> "TailcutError":
    """A file or directory that the system refuses, as a message."""
    from tailcut.errors import TailcutError

    place = f"{error.filename}: " if error.filename else ""
    return TailcutError(
        "TC-F001",
        f"{place}{error.strerror or error}",
        "check that the directory exists, that you may write there and that there is room",
    )


app = typer.Typer(
    name="tailcut",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # its help takes longer to import than to read
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The experiment, a TOML file.", show_default=False)]
Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="A directory of results, such as results/quickstart.", show_default=False)
]
Override = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Use this value, written as in TOML. May be repeated."),
]
Seeds = Annotated[int | None, typer.Option(metavar="N", min=1, help="Use the seeds 1 to N.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Runs at a time; by default one per core.")
]


def _version(asked: bool) -> None:
    if asked:
        out.print(f"tailcut {tailcut.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Cut the latency tail of data-centre flows: experiments, simulated fast, with a report."""


@app.command()
def check(
    file: File,
    set_: Override = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the whole plan as JSON.")] = False,
    on: Annotated[
        str, typer.Option(metavar="|".join(backends.NAMES), help="The backend; lab tells what becomes of every field.")
    ] = "sim",
) -> None:
    """Show an experiment's runs, their size, and every default."""
    from tailcut.results import machine
    from tailcut.terminal.plan import plan_view

    plan = tailcut.load(file, _overrides(set_), seeds).plan
    if as_json:
        sys.stdout.write(json.dumps(plan, indent=2) + "\n")
    elif on == "lab":
        from tailcut.terminal import lab as view

        view.check(plan, out)
    else:
        for gap in [] if on == "sim" else backends.backend(on).check(plan, backends.Options()):
            err.print(f"{gap.where}: {gap.reason}", highlight=False, soft_wrap=True)
        out.print(plan_view(plan, jobs or machine.cores()))


@app.command()
def run(
    file: File,
    on: Annotated[str, typer.Option(metavar="|".join(backends.NAMES), help="The backend.")] = "sim",
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Where results go; by default results/ and the path of FILE, without a leading experiments/ and"
            " without suffix.",
            show_default=False,
        ),
    ] = None,
    jobs: Jobs = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Make the runs on a Dask cluster: tcp://HOST:PORT of its scheduler, its scheduler file (.json), or"
            " local[:N] to try it.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="Longest that a run may take; by default any time.")
    ] = None,
    set_: Override = None,
    seeds: Seeds = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST|LINK",
            help="Write packets of a host (host:0) or link (link:h0>s0) as pcapng. May be repeated.",
        ),
    ] = None,
    capture_packets: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most packets in a capture; by default all.")
    ] = None,
    capture_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Most bytes in a capture, such as 100MB; by default 1GB.")
    ] = None,
    capture_snapshot: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Most bytes kept of a packet, such as 96B; by default whole packets."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", metavar="", help="Print nothing but what goes wrong.")
    ] = False,
    repeat: Annotated[
        int, typer.Option(metavar="N", min=1, help="Make each run N times; with --on lab only.", show_default=False)
    ] = 1,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", "-x", metavar="", help="End at the first run that fails.")
    ] = False,
    tracebacks: Annotated[
        bool, typer.Option("--traceback", metavar="", help="Print where in the code runs failed.")
    ] = False,
) -> None:
    """Make the runs that are not there yet, and print the summary."""
    from tailcut.errors import RunError
    from tailcut.terminal.progress import display

    packets = backends.Capture(tuple(capture or ()), capture_packets, capture_bytes, capture_snapshot)
    if packets.bounds and not packets.points:
        raise typer.BadParameter(
            "a capture is bounded and none is asked for; say what to capture with --capture host:0"
        )
    experiment = tailcut.load(file, _overrides(set_), seeds)
    directory = out_ or experiment.directory
    try:
        with _executor(cluster) as executor, nullcontext(None) if quiet else display(err) as progress:
            result = tailcut.run(
                experiment,
                on=on,
                out=directory,
                jobs=jobs,
                capture=packets,
                executor=executor,
                limit_seconds=time_limit,
                progress=progress,
                fail_fast=fail_fast,
                repeat=repeat,
            )
    except RunError as error:
        for label, where in error.tracebacks.items() if tracebacks else ():
            err.print(f"{label}:\n{where}", highlight=False, soft_wrap=True)
        raise
    except KeyboardInterrupt:
        _interrupted(directory, experiment.plan)
        raise
    if quiet:
        return
    _show(result)
    err.print(
        f"\nResults are in {directory}; tailcut report {directory} writes the page.", highlight=False, soft_wrap=True
    )


@app.command()
def summary(
    directory: Directory,
    full: Annotated[
        bool, typer.Option("--full", metavar="", help="Every class and statistic, with intervals.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", metavar="", help="The summary table as CSV.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="The summary table as JSON, a list of rows.")
    ] = False,
) -> None:
    """Print the summary of what is there."""
    from tailcut.terminal.table import full_table

    result = tailcut.open_results(directory)
    if as_json:
        sys.stdout.write(result.summary().write_json() + "\n")
    elif csv:
        sys.stdout.write(result.summary().write_csv())
    elif full:
        out.print(full_table(result.plan, result.summary()))
    else:
        _show(result)


@app.command()
def report(
    directory: Directory,
    page: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PAGE", help="The page; by default DIR/report.html.", show_default=False),
    ] = None,
) -> None:
    """Write the page: HTML that works offline, and its figures."""
    result = tailcut.open_results(directory)
    _missing(result)
    written = result.report(page)
    out.print(f"{written[0]}", highlight=False, soft_wrap=True)


@app.command(name="open")
def open_(directory: Directory) -> None:
    """Open the page in the browser; it is written first if it is not there, or older than the results."""
    import webbrowser

    from tailcut.errors import TailcutError

    result = tailcut.open_results(directory)
    page = directory / "report.html"
    if not (page.is_file() and page.stat().st_mtime_ns > result.changed_ns()):
        _missing(result)
        result.report(page)
    out.print(f"{page}", highlight=False, soft_wrap=True)
    if not webbrowser.open(page.resolve().as_uri()):
        raise TailcutError("TC-P002", "there is no browser here that could be started", f"open {page.resolve()} in one")


@app.command()
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
            "run the experiment again, with the same options, to make them anew",
        )
    out.print(f"{len(runs)} runs, all as they were written", highlight=False)


@app.command()
def prune(
    directory: Directory,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Name the runs that would be removed, and remove none.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    """Remove the runs that the plan asked for last does not refer to."""
    from tailcut.results import Store, upkeep
    from tailcut.units import size

    store = Store.open(directory)
    unasked = upkeep.unasked(store)
    kept = len(store.runs()) - len(unasked)
    for run_id in unasked if dry_run else ():
        out.print(f"{store.path(run_id)}", highlight=False, soft_wrap=True)
    what = (
        f"{len(unasked)} runs ({size(upkeep.bytes_of(store, unasked))}) that the plan asked for last does not refer to"
    )
    if not unasked or dry_run:
        err.print(f"{directory} has {what}, and {kept} that it does.", highlight=False, soft_wrap=True)
        return
    if not yes and not typer.confirm(f"Remove {what} from {directory}, and keep {kept}?", err=True):
        raise typer.Exit(1)
    err.print(f"{upkeep.prune(store, unasked)} runs removed.", highlight=False)


@app.command()
def merge(
    into: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of results that takes.")],
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="The one that gives; it stays as it is.")],
) -> None:
    """Put the runs of another directory into this one."""
    from tailcut.results import Store, upkeep

    store = Store.open(into)
    done = upkeep.merge(store, Store.open(other))
    for run_id in done.damaged:
        err.print(f"{other}: run {run_id} is damaged and was left out", style="yellow", highlight=False, soft_wrap=True)
    unasked = len(set(upkeep.unasked(store)) & {*done.taken, *done.there})
    more = (
        f"; {unasked} are not in the plan of {into}: run the experiment with their seeds and values" if unasked else ""
    )
    err.print(f"{len(done.taken)} runs taken, {len(done.there)} were there{more}.", highlight=False, soft_wrap=True)


@app.command()
def lab() -> None:
    """Show what this machine offers the kernel lab, what each thing is for, and how to get it."""
    from tailcut.errors import BackendError
    from tailcut.lab import doctor
    from tailcut.terminal import lab as view

    found = doctor.findings()
    out.print(view.offers(found))
    obstacle = doctor.obstacle(found)
    if obstacle is not None:
        raise BackendError("TC-L001", f"no run of the lab can begin here: {obstacle}")


@app.command(name="list")
def list_(
    component: Annotated[
        str | None,
        typer.Argument(
            metavar="SECTION|COMPONENT", help="A section or component, to see its parameters.", show_default=False
        ),
    ] = None,
) -> None:
    """List what an experiment can name: topologies, transports and so on."""
    from tailcut import _core
    from tailcut.terminal import components

    known = json.loads(_core.describe())
    if component is None:
        out.print(components.overview(known))
        return
    chosen = [one for one in known if component in (one["name"], one["group"], one["group"].rpartition(".")[2])]
    if not chosen:
        raise typer.BadParameter(components.unknown(component, known))
    out.print(components.details(chosen))


@app.command()
def schema() -> None:
    """Print the JSON Schema of experiment files."""
    from tailcut import _core

    sys.stdout.write(_core.schema().rstrip("\n") + "\n")


@app.command()
def new(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="The file to write; by default experiment.toml, or called as what it is from.",
            show_default=False,
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="Start from an experiment or workload that comes with Tailcut."),
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--list", metavar="", help="Name what there is to start from, and write nothing.")
    ] = False,
) -> None:
    """Write a small experiment with comments to start from, or a copy of one that comes with Tailcut."""
    from tailcut import shipped

    known = shipped.texts()
    if list_all:
        for name, text in known.items():
            out.print(f"{name:32} {shipped.summary(name, text)}", highlight=False, soft_wrap=True)
        return
    if from_ is not None and from_ not in known:
        raise typer.BadParameter(shipped.unknown(from_, known))
    text = known[from_ or shipped.STARTER]
    file = file or Path(shipped.file_name(from_) if from_ else "experiment.toml")
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise typer.BadParameter(f"{file} is there already; name another file") from None
    workload = from_ is not None and from_.endswith(shipped.WORKLOAD)
    use = f'name it in an experiment: sizes = {{ file = "{file}" }}' if workload else f"try tailcut run {file}"
    out.print(f"{file}: {use}", highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _executor(cluster: str | None) -> "Iterator[Client | None]":
    """The cluster that is asked for, if one is."""
    if cluster is None:
        yield None
        return
    from tailcut.cluster import connect

    with connect(cluster) as client:
        yield client


def _overrides(given: list[str] | None) -> dict[str, str]:
    overrides = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"--set {text}: write KEY=VALUE, such as --set traffic.load=0.3")
        overrides[key.strip()] = value.strip()
    return overrides


def _show(result: "Result") -> None:
    from tailcut.terminal.table import summary_table

    out.print(summary_table(result.plan, result.summary(), result.totals()))
    _missing(result)


def _missing(result: "Result") -> None:
    missing, damaged, runs = len(result.missing_runs), len(result.damaged_runs), len(result.plan["runs"])
    answered_without_runs = missing == runs and not {"model", "lab"}.isdisjoint(result.summary()["backend"])
    if not missing or answered_without_runs:
        return
    which = f"{missing} of {runs} runs {'is' if missing == 1 else 'are'} not there"
    which += f", {damaged} of them damaged" if damaged else ""
    again = f"run {result.plan['source_file']} again, with the same options, to fill in what is missing"
    err.print(f"{which}: {again}.", style="yellow", highlight=False, soft_wrap=True)


def _interrupted(directory: Path, plan: "Plan") -> None:
    """Say what is kept and how to go on."""
    from tailcut.results import Result, Store

    result = Result(Store(directory), plan)
    again = " ".join(["tailcut", *sys.argv[1:]])
    err.print(
        f"Interrupted. {len(result.finished_runs)} of {len(result.plan['runs'])} runs are kept in {directory}.\n"
        f"To go on from there: {again}",
        highlight=False,
        soft_wrap=True,
    )


def _terminated(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line."""
    # A batch system's SIGTERM ends a sweep the way Ctrl-C does: in order, keeping what is done.
    signal.signal(signal.SIGTERM, _terminated)
    app()
