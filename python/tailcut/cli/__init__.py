"""The ``tailcut`` command: one thin function per command.

Exit codes: 0 done, 2 what was asked is wrong, 3 no run over kernels is faithful, 4 interrupted before one was,
130 interrupted, 1 anything else.
"""

import signal
from types import FrameType
from typing import Annotated, NoReturn

import typer

import tailcut
from tailcut.cli import claims, experiment, explain, imports, new, results
from tailcut.cli.common import Commands, err, out
from tailcut.terminal.encoding import plain_where_needed

__all__ = ["app", "err", "main", "out"]

app = typer.Typer(
    name="tailcut",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # its help takes longer to import than to read
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


# In the order of the help.
app.command()(experiment.check)
app.command()(experiment.run)
app.command()(results.summary)
app.command()(explain.explain)
app.command()(results.report)
app.command(name="open")(results.open_)
app.command()(results.verify)
app.command()(results.prune)
app.command()(results.merge)
app.command()(experiment.lab)
app.command(name="list")(experiment.list_)
app.command()(experiment.schema)
app.command()(new.new)
app.command(name="import")(imports.import_)
app.add_typer(claims.app, name="claims")


def _terminated(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line."""
    # A batch system's SIGTERM ends a sweep the way Ctrl-C does: in order, keeping what is done.
    signal.signal(signal.SIGTERM, _terminated)
    plain_where_needed()
    app()
