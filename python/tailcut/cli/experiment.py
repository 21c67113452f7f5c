"""Commands that take an experiment file, or help to write one."""

import contextlib
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tailcut
from tailcut import backends
from tailcut.cli.common import (
    File,
    Jobs,
    Medium,
    Override,
    Seeds,
    Small,
    Threads,
    WithUnfaithful,
    err,
    key_and_value,
    out,
    threads_asked,
)
from tailcut.cli.results import quoted, show, unfinished

if TYPE_CHECKING:
    from distributed import Client

    from tailcut.plan import Plan
    from tailcut.results import StoredResult

NONE_FAITHFUL = 3
"""Exit code of a lab command whose results hold no faithful run."""
INTERRUPTED_WITHOUT_FAITHFUL = 4
"""Exit code of a lab command that is interrupted before any of its runs is faithful."""
LabFabric = Annotated[
    str | None,
    typer.Option(
        metavar="engine|kernel",
        help="The fabric between the lab's hosts: the simulator's, or kernel switches; by default FILE's lab.fabric.",
        show_default=False,
    ),
]


def check(
    file: File,
    set_: Override = None,
    seeds: Seeds = None,
    small: Small = False,
    medium: Medium = False,
    jobs: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the whole plan as JSON.")] = False,
    on: Annotated[
        str,
        typer.Option(metavar="|".join(backends.NAMES), help="The backend; with lab, also how each field is realised."),
    ] = "sim",
    lab_fabric: LabFabric = None,
) -> None:
    """Show an experiment's runs, their size, and every default."""
    from tailcut.results import machine
    from tailcut.terminal.plan import plan_view

    _refuse_two_variants(small=small, medium=medium)
    plan = tailcut.load(file, _overrides(set_), seeds, small=small, medium=medium).plan
    chosen = None if on == "sim" and lab_fabric is None else _backend(on, lab_fabric=lab_fabric)
    if on == "lab":
        from tailcut.lab.fabrics import resolve_fabric
        from tailcut.terminal import lab as view

        view.check(plan, resolve_fabric(plan, lab_fabric), out, sys.stdout if as_json else None)
    elif as_json:
        sys.stdout.write(json.dumps(plan, indent=2) + "\n")
    else:
        for gap in [] if chosen is None else chosen.check(plan, backends.Options()):
            err.print(f"{gap.where}: {gap.reason}", highlight=False, soft_wrap=True)
        out.print(plan_view(plan, jobs or machine.cores()))


def run(
    file: File,
    on: Annotated[str, typer.Option(metavar="|".join(backends.NAMES), help="The backend.")] = "sim",
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The directory for results; by default results/ and FILE's path without experiments/ and suffix.",
            show_default=False,
        ),
    ] = None,
    jobs: Jobs = None,
    threads: Threads = "1",
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Make the runs on a Dask cluster: tcp://HOST:PORT of its scheduler, its scheduler file (.json), or"
            " local[:N] to try it.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="The longest time that a run may take; by default no limit."),
    ] = None,
    set_: Override = None,
    seeds: Seeds = None,
    small: Small = False,
    medium: Medium = False,
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
    trace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="flow=ID",
            help="Make no runs, but print what decides on a flow: drops, marks, windows, timers. May be repeated.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print errors only.")] = False,
    repeat: Annotated[
        int, typer.Option(metavar="N", min=1, help="Make each run N times; with --on lab only.", show_default=False)
    ] = 1,
    lab_fabric: LabFabric = None,
    with_unfaithful: WithUnfaithful = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", "-x", metavar="", help="End at the first run that fails.")
    ] = False,
    tracebacks: Annotated[
        bool, typer.Option("--traceback", metavar="", help="Print the traceback of each failed run.")
    ] = False,
) -> None:
    """Make the missing runs, and print the summary."""
    from tailcut.errors import RunError
    from tailcut.result import Result
    from tailcut.results.thread_times import sentence
    from tailcut.terminal.progress import display

    asked = threads_asked(threads)
    packets = backends.Capture(tuple(capture or ()), capture_packets, capture_bytes, capture_snapshot)
    if packets.bounds and not packets.points:
        raise typer.BadParameter(
            "capture bounds are given, but no capture: say what to capture, such as --capture host:0"
        )
    _refuse_two_variants(small=small, medium=medium)
    experiment = tailcut.load(file, _overrides(set_), seeds, small=small, medium=medium)
    if trace:
        _trace(experiment.plan, trace, on)
        return
    directory = out_ or experiment.directory
    chosen = _backend(on, repeat=repeat, lab_fabric=lab_fabric)
    needs_faithful = on == "lab" and not with_unfaithful
    try:
        with executor_of(cluster) as executor, nullcontext(None) if quiet else display(err) as progress:
            result = tailcut.run(
                experiment,
                on=chosen,
                out=directory,
                jobs=jobs,
                threads=asked,
                capture=packets,
                executor=executor,
                limit_seconds=time_limit,
                progress=progress,
                fail_fast=fail_fast,
            )
    except RunError as error:
        for label, where in error.tracebacks.items() if tracebacks else ():
            err.print(f"{label}:\n{where}", highlight=False, soft_wrap=True)
        raise
    except KeyboardInterrupt:
        kept = _interrupted(directory, experiment.plan, on, repeat, lab_fabric)
        if needs_faithful and not _judge(kept, lab_fabric):
            raise typer.Exit(INTERRUPTED_WITHOUT_FAITHFUL) from None
        raise
    if quiet:
        unfinished(result)
    else:
        show(Result(result.store, result.plan, with_unfaithful=with_unfaithful))
        if asked != 1 and (times := result.thread_seconds):
            err.print(sentence(times), highlight=False, soft_wrap=True)
        _say_where(directory)
    if needs_faithful and not _judge(result, lab_fabric):
        raise typer.Exit(NONE_FAITHFUL)


def _trace(plan: "Plan", asked: list[str], on: str) -> None:
    """Print the trace of the flows that are asked for."""
    from tailcut.explain.trace import trace

    flows = []
    for text in asked:
        key, value = key_and_value(text)
        if key != "flow" or not (value or "").isdecimal():
            raise typer.BadParameter(f"--trace {text}: write flow=ID, such as --trace flow=17")
        flows.append(int(value or ""))
    if on != "sim":
        raise typer.BadParameter(f"--trace with --on {on}: only the simulator has trace points")
    trace(plan, flows, lambda line: out.print(line, highlight=False, soft_wrap=True))


def _say_where(directory: Path) -> None:
    err.print(
        f"\nResults are in {directory}; tailcut report {quoted(directory)} writes the page.",
        highlight=False,
        soft_wrap=True,
    )


def _backend(on: str, repeat: int = 1, lab_fabric: str | None = None) -> backends.Backend:
    """Returns the backend with those of its own options that were given."""
    from tailcut.errors import BackendError

    if lab_fabric is not None and on != "lab":
        raise BackendError("TC-B004", f"the backend {on!r} has no fabric to choose", "use --lab-fabric with --on lab")
    options = {"repeat": None if repeat == 1 else repeat, "fabric": lab_fabric}
    return backends.backend(on, **{name: value for name, value in options.items() if value is not None})


def _judge(result: "StoredResult", lab_fabric: str | None) -> bool:
    """Names the command that repeats runs without a faithful repeat; returns whether any run is faithful."""
    from tailcut.lab.fabrics import resolve_fabric

    fabric = resolve_fabric(result.plan, lab_fabric)
    there = [one for one in result.lab.finished if one.fabric == fabric]
    faithful = {one.run["id"] for one in there if one.faithful}
    without = {one.run["id"] for one in there} - faithful
    if without:
        more = max(one.repeat for one in there) + 1
        err.print(
            f"{len(without)} of {len(without | faithful)} runs have no faithful repeat: the same command with"
            f" --repeat {more} makes each once more.",
            style="yellow",
            highlight=False,
            soft_wrap=True,
        )
    return bool(faithful)


def lab() -> None:
    """Show what the kernel lab needs of this machine, what each part is for, and how to get it."""
    from tailcut.errors import BackendError
    from tailcut.lab import doctor
    from tailcut.terminal import lab as view

    found = doctor.findings(timers=True)
    out.print(view.offers(found))
    obstacle = doctor.obstacle(found)
    if obstacle is not None:
        raise BackendError("TC-L001", f"no run of the lab can begin here: {obstacle}")


def list_(
    component: Annotated[
        str | None,
        typer.Argument(
            metavar="SECTION|COMPONENT", help="A section or component, to see its parameters.", show_default=False
        ),
    ] = None,
) -> None:
    """List what an experiment can name, topologies, transports and so on, and the backends."""
    from tailcut.terminal import components

    known = components.known()
    if component is None:
        for line in components.overview(known):
            out.print(line, soft_wrap=True)
        return
    chosen = [one for one in known if component in (one["name"], one["group"], one["group"].rpartition(".")[2])]
    if not chosen:
        raise typer.BadParameter(components.unknown(component, known))
    out.print(components.details(chosen))


def schema() -> None:
    """Print the JSON Schema of experiment files."""
    from tailcut.traces import schema as traces

    sys.stdout.write(json.dumps(traces.schema(), indent=2, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def executor_of(cluster: str | None) -> "Iterator[Client | None]":
    """Connects to the given cluster; yields None without one."""
    if cluster is None:
        yield None
        return
    from tailcut.cluster import connect

    with connect(cluster) as client:
        yield client


def _refuse_two_variants(*, small: bool, medium: bool) -> None:
    if small and medium:
        raise typer.BadParameter("--small and --medium are two variants of FILE: choose one")


def _overrides(given: list[str] | None) -> dict[str, str]:
    overrides = {}
    for text in given or []:
        key, value = key_and_value(text)
        if value is None or not key:
            raise typer.BadParameter(f"--set {text}: write KEY=VALUE, such as --set traffic.load=0.3")
        overrides[key] = value
    return overrides


def _interrupted(directory: Path, plan: "Plan", on: str, repeat: int, lab_fabric: str | None) -> "StoredResult":
    """Prints what is kept and how to continue; returns the kept results."""
    from tailcut.lab.fabrics import resolve_fabric
    from tailcut.results import Store, StoredResult

    result = StoredResult(Store(directory), plan)
    kept, runs = len(result.finished_runs), len(plan["runs"])
    if on == "lab":
        fabric = resolve_fabric(plan, lab_fabric)
        kept = sum(one.fabric == fabric and one.repeat <= repeat for one in result.lab.finished)
        runs *= repeat
    again = shlex.join(["tailcut", *sys.argv[1:]])
    lost = "; an unfinished run begins anew" if kept < runs else ""
    way = "To begin anew" if runs == 1 and not kept else "To continue"
    err.print(
        f"Interrupted. {kept} of {runs} runs are kept in {directory}{lost}.\n{way}: {again}",
        highlight=False,
        soft_wrap=True,
    )
    return result
