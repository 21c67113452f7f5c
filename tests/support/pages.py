"""Runs the blocks of documentation pages in order, as a reader would.

- A block whose first line is a comment with a file's name (`# first.toml`) is saved under that name.
- A `console` block holds commands after `$ ` and what they print to standard output. A line `...` stands for any lines.
- Other `python` blocks run as programs of their own.
- `<!-- not run: REASON -->` on the line before a block leaves it out.
- `<!-- fails -->` there says that the commands of a block fail; what they print to standard error counts, too.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?P<skip><!-- not run: [^\n]+ -->\n+)?(?P<fails><!-- fails -->\n+)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NAME = re.compile(r"(?:#|//) ([\w.-]+\.\w+)$")
ELLIPSIS = "..."
MADE = {"_build", "api"}  # folders of pages that `make docs` generates


def written(folder: Path) -> list[Path]:
    """Returns the pages below a folder that are not generated."""
    return sorted(page for page in folder.rglob("*.md") if not MADE & set(page.relative_to(folder).parts))


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    span: tuple[int, int]  # where the text stands in the page
    fails: bool = False  # whether its commands do


@dataclass(frozen=True)
class Command:
    """A command of a console block, and its output on the page."""

    line: str
    printed: list[str]


def blocks(page: str) -> list[Block]:
    """Returns the blocks of a page that are run, in order."""
    return [
        Block(match["language"], match["text"], match.span("text"), bool(match["fails"]))
        for match in FENCE.finditer(page)
        if not match["skip"] and match["language"] in {"toml", "python", "console", "json", "text"}
    ]


def commands(text: str) -> list[Command]:
    """Returns the commands of a console block; one that ends in a backslash continues on the next line."""
    found: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        elif found and not found[-1].printed and found[-1].line.endswith("\\"):
            found[-1] = Command(found[-1].line[:-1] + line.strip(), [])
        elif found:
            found[-1].printed.append(line.rstrip())
    return found


def matches(said: list[str], printed: list[str]) -> bool:
    """Returns whether the output equals the page's, line by line; `...` stands for any lines."""
    pattern = "\n".join(r"(?:.*)" if line == ELLIPSIS else re.escape(line) for line in said)
    return re.fullmatch(pattern, "\n".join(printed), re.S) is not None


def shell(line: str, directory: Path, *, fails: bool = False) -> list[str]:
    """Runs a command; returns its output without blank lines at the end, with standard error if it must fail."""
    bin_directory = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        ["bash", "-c", line], cwd=directory, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    if bool(done.returncode) != fails:
        raise AssertionError(f"$ {line}\nends with {done.returncode}:\n{done.stdout}{done.stderr}")
    printed = done.stdout + (done.stderr if fails else "")
    return [row.rstrip() for row in printed.rstrip().splitlines()]


STARTER = re.compile(r"tailcut new (\w+)\.toml")
"""The command that writes the experiment of several pages."""


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Excludes other processes of the session from the place meanwhile."""
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def starter_runs(place: Path) -> Path:
    """Returns results of the experiment that ``tailcut new`` writes; the first caller makes them.

    Args:
        place: a folder that all callers share; it is created.
    """
    with _alone(place):
        if not place.exists():
            unfinished = place.with_suffix(".unfinished")
            unfinished.mkdir()
            shell("tailcut new first.toml && tailcut run first.toml", unfinished)
            unfinished.rename(place)
    return place / "results" / "first"


def replay(page: str, directory: Path, starter: Callable[[], Path] | None = None) -> str:
    """Runs the blocks of a page in a directory; returns the page with the output of this time.

    Args:
        page: its text.
        directory: where.
        starter: returns results of the experiment that ``tailcut new`` writes, which are then not made again.

    Raises:
        AssertionError: a command or program of the page fails.
    """
    written = page
    shift = 0
    for block in blocks(page):
        first, _, _ = block.text.partition("\n")
        if name := NAME.match(first):
            (directory / name[1]).write_text(block.text, "utf-8")
        elif block.language == "python":
            (directory / "block.py").write_text(block.text, "utf-8")
            shell("python block.py", directory)
        elif block.language == "console":
            text = ""
            for command in commands(block.text):
                printed = shell(command.line, directory, fails=block.fails)
                if starter is not None and (new := STARTER.fullmatch(command.line)):
                    shutil.copytree(starter(), directory / "results" / new[1])
                kept = command.printed if matches(command.printed, printed) else printed
                text += "\n".join([f"$ {command.line}", *kept]) + "\n"
            written = written[: block.span[0] + shift] + text + written[block.span[1] + shift :]
            shift += len(text) - len(block.text)
    return written
