"""Pages of the documentation whose blocks are run, in order, as a reader would.

- A block whose first line is a comment with a file's name (`# first.toml`) is saved under that name.
- A `console` block holds commands after `$ ` and what they print to standard output. A line `...` stands for any lines.
- Other `python` blocks run as programs of their own.
- `<!-- not run: REASON -->` on the line before a block leaves it out.
- `<!-- fails -->` there says that the commands of a block fail; what they print to standard error counts, too.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?P<skip><!-- not run: [^\n]+ -->\n+)?(?P<fails><!-- fails -->\n+)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NAME = re.compile(r"(?:#|//) ([\w.-]+\.\w+)$")
ELLIPSIS = "..."
MADE = {"_build", "api"}  # folders of pages that `make docs` makes


def written(folder: Path) -> list[Path]:
    """The pages below a folder that people write."""
    return sorted(page for page in folder.rglob("*.md") if not MADE & set(page.relative_to(folder).parts))


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    span: tuple[int, int]  # where the text stands in the page
    fails: bool = False  # whether its commands do


@dataclass(frozen=True)
class Command:
    """A command of a console block and what the page says that it prints."""

    line: str
    printed: list[str]


def blocks(page: str) -> list[Block]:
    """The blocks of a page that are run, in its order."""
    return [
        Block(match["language"], match["text"], match.span("text"), bool(match["fails"]))
        for match in FENCE.finditer(page)
        if not match["skip"] and match["language"] in {"toml", "python", "console", "json", "text"}
    ]


def commands(text: str) -> list[Command]:
    """The commands of a console block; one that ends in a backslash goes on in the next line."""
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
    """Whether what was printed is what the page says, line by line; `...` stands for any lines."""
    pattern = "\n".join(r"(?:.*)" if line == ELLIPSIS else re.escape(line) for line in said)
    return re.fullmatch(pattern, "\n".join(printed), re.S) is not None


def shell(line: str, directory: Path, *, fails: bool = False) -> list[str]:
    """What a command prints to standard output, without blank lines at its end; to both if it fails as it should."""
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


def replay(page: str, directory: Path) -> str:
    """Runs the blocks of a page in a directory; the page with what its commands printed this time.

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
                kept = command.printed if matches(command.printed, printed) else printed
                text += "\n".join([f"$ {command.line}", *kept]) + "\n"
            written = written[: block.span[0] + shift] + text + written[block.span[1] + shift :]
            shift += len(text) - len(block.text)
    return written
