"""Parts that all commands share: two consoles, options, and errors as messages and exit codes."""

import errno
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from tailcut import backends

if TYPE_CHECKING:
    from tailcut.errors import TailcutError

FILE_WIDTH = 150  # of tables that go to a file or a pipe


class _Console(Console):
    """A console that leaves a closed output pipe to `Commands`; Rich would end the process with a failure."""

    def on_broken_pipe(self) -> None:
        """Raise the error that Rich has caught."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


# Names, titles and values are the user's: brackets in them are no markup, and words between colons
# no pictures.
out = _Console(markup=False, emoji=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_WIDTH)
err = _Console(markup=False, emoji=False, stderr=True)


class Commands(TyperGroup):
    """A command group that turns errors into messages and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Whoever read the output has seen enough; nothing is left to flush when the interpreter
            # ends.
            for stream in (sys.stdout, sys.stderr):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            raise typer.Exit(0) from None
        except OSError as error:
            raise typer.Exit(_tell(_unusable(error)) or 1) from None
        except Exception as error:
            code = _tell(error)
            if code is None:
                raise
            raise typer.Exit(code) from None


def key_and_value(text: str) -> tuple[str, str | None]:
    """Splits at the first ``=`` outside quotes; the value is None if there is none."""
    quoted = r""" "(?:[^"\\]|\\.)*" | '[^']*' """
    found = re.fullmatch(rf"((?> {quoted} | [^=] )*?) = (.*)", text, re.VERBOSE | re.DOTALL)
    return (text.strip(), None) if found is None else (found[1].strip(), found[2].strip())


def _tell(error: Exception) -> int | None:
    """Prints an error as a message and returns the exit code; None if it is no error of the user's."""
    if "tailcut.errors" not in sys.modules:  # so it is none of those, and `--help` (an exit) need not wait for them
        return None
    from tailcut.errors import TailcutError
    from tailcut.terminal import diagnostics

    if not isinstance(error, TailcutError):
        return None
    err.print(diagnostics.coloured(diagnostics.rendered(error)), soft_wrap=True)
    return error.exit_code


def _unusable(error: OSError) -> "TailcutError":
    """A file or directory that the system refuses, as a message."""
    from tailcut.errors import TailcutError

    place = f"{error.filename}: " if error.filename else ""
    return TailcutError(
        "TC-F001",
        f"{place}{error.strerror or error}",
        "check that the directory exists, that you may write there and that there is room",
    )


File = Annotated[Path, typer.Argument(metavar="FILE", help="The experiment, a TOML file.", show_default=False)]
Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="A directory of results, such as results/quickstart.", show_default=False)
]
Directories = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR...", help="A directory of results; the runs of several are read together.", show_default=False
    ),
]
Override = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Use this value, written as in TOML. May be repeated."),
]
Medium = Annotated[
    bool, typer.Option("--medium", metavar="", help="Apply FILE's table [medium], for a figure in about a minute.")
]
Small = Annotated[bool, typer.Option("--small", metavar="", help="Apply FILE's table [small], for a run in seconds.")]
Seeds = Annotated[int | None, typer.Option(metavar="N", min=1, help="Use the seeds 1 to N.")]
WithUnfaithful = Annotated[
    bool,
    typer.Option(
        "--with-unfaithful",
        metavar="",
        help="Include unfaithful lab runs (those the machine could not keep on time); affected numbers are marked.",
    ),
]


def threads_asked(text: str) -> backends.Threads:
    """Returns what ``--threads`` asks for.

    Raises:
        typer.BadParameter: that is neither a number from 1 nor auto.
    """
    if text == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither a number from 1 nor auto", param_hint="--threads")
    return int(text)


Threads = Annotated[
    str,
    typer.Option(
        "--threads",
        metavar="N|auto",
        help="Threads that simulate a run, with the same results; auto gives the last runs idle cores where that pays.",
    ),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Runs at a time; by default one per core.")
]
