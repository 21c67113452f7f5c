"""The command that tells why a flow took as long as it did."""

import json
import sys
from typing import Annotated

import typer

import tailcut
from tailcut.cli.common import Directory, key_and_value, out


def explain(
    directory: Directory,
    flow: Annotated[
        list[int] | None, typer.Option(metavar="ID", min=0, help="The flow with this number. May be repeated.")
    ] = None,
    slowest: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="The N slowest short flows; 1 if no flow is named.", show_default=False),
    ] = None,
    job: Annotated[
        int | None, typer.Option(metavar="ID", min=0, help="The critical path of the job with this number.")
    ] = None,
    scheme: Annotated[
        str | None, typer.Option(metavar="NAME", help="The scheme whose flows to explain; by default the baseline.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="SEED", help="The seed of the run; by default the first with finished runs.")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="The point of the sweep, such as load=0.8; by default the last."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="BACKEND",
            help="The backend: sim, or lab (from captures); by default sim, if it has runs.",
            show_default=False,
        ),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="The repeat of the lab's run; by default the first captured one."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", metavar="", help="Print a line for every packet, and fold none.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the stories as JSON, every packet with its queues.")
    ] = False,
) -> None:
    """Show what happened to a flow, packet by packet, under every scheme.

    Simulated runs are repeated with the flow traced; runs of the lab are read from their captures.
    """
    from tailcut.explain import explain as explained
    from tailcut.explain import select_runs
    from tailcut.explain import slowest as slowest_of
    from tailcut.explain.data import as_data
    from tailcut.explain.job import explain_job
    from tailcut.terminal.job import job_story
    from tailcut.terminal.story import story

    if job is not None and (flow or slowest):
        raise typer.BadParameter("--job excludes --flow and --slowest: give one of them")
    if flow and slowest:
        raise typer.BadParameter("--flow and --slowest exclude each other: give one of them")
    if on not in (None, "sim", "lab"):
        raise typer.BadParameter(f"--on {on}: must be sim or lab")
    wanted = {}
    for text in at or ():
        key, value = key_and_value(text)
        if value is None:
            raise typer.BadParameter(f"--at {text}: write KEY=VALUE, such as --at load=0.8")
        wanted[key] = value
    result = tailcut.open_results(directory)
    place = select_runs(result, scheme, seed, wanted, on=on, repeat=repeat)
    if job is not None:
        path = explain_job(result, place, job)
        if as_json:
            sys.stdout.write(json.dumps(path.paths) + "\n")
        else:
            out.print(job_story(path))
        return
    stories = explained(result, place, flow or slowest_of(result, place, slowest or 1))
    if as_json:
        sys.stdout.write(json.dumps(as_data(stories)) + "\n")
        return
    for number, one in enumerate(stories):
        if number:
            out.print()
        out.print(story(one, everything=everything))
