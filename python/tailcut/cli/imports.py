"""``tailcut import``."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tailcut.cli.common import err, out
from tailcut.cli.results import quoted


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Files of another program that describe one experiment.", show_default=False
        ),
    ],
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The directory to write; by default named after the first file.",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="The files' format, if their names do not show it; an unknown name lists all formats.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="The rate of links that state none, such as 10Gbps.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(metavar="TIME", help="The delay of links that state none, such as 5us.")
    ] = None,
    start_unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT",
            help="The unit of htsim's start times: ps (by default), ns or us; uec and swift count us.",
            show_default=False,
        ),
    ] = None,
    nics: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=256,
            help="Interfaces of a GOAL rank, each a host: rank R's interface I is host R x N + I.",
            show_default=False,
        ),
    ] = None,
    eager: Annotated[
        bool,
        typer.Option(
            "--eager",
            metavar="",
            help="A GOAL send is over as it starts, for what waits for it; otherwise when it has arrived.",
        ),
    ] = False,
) -> None:
    """Write an experiment from files of another program: its network, its flows, its TOML."""
    import re

    from tailcut import imports
    from tailcut.imports import amounts
    from tailcut.imports.source import Word
    from tailcut.imports.written import write

    options = imports.ImportOptions(
        None if rate is None else amounts.rate_bps(Word("--rate", 1, 1, rate), "rate", None),
        None if delay is None else amounts.delay_ps(Word("--delay", 1, 1, delay), "delay"),
        None if start_unit is None else amounts.unit_ps(Word("--start-unit", 1, 1, start_unit), "start unit"),
        nics,
        eager,
        _progress(),
    )
    known, found = imports.read(files, format_, options)
    stem = re.sub(r"[^\w-]+", "-", files[0].name.partition(".")[0]).strip("-") or known.name
    directory = Path(f"{stem}-imported") if out_ is None else out_
    title = f"Imported from {', '.join(path.name for path in files)}"
    paths = write(found, directory, title, [path.name for path in files], options.progress)
    for note in found.notes:
        err.print(f"note: {note}", highlight=False, soft_wrap=True)
    for path in paths:
        out.print(str(path), highlight=False, soft_wrap=True)
    err.print(f"tailcut run {quoted(paths[0])} runs it.", highlight=False, soft_wrap=True)


def _progress(seconds: float = 2.0) -> Callable[[str], None]:
    """Returns what prints a line on what goes on, from time to time; short imports print none."""
    last = time.monotonic()

    def tell(line: str) -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            err.print(line, highlight=False, soft_wrap=True)

    return tell
