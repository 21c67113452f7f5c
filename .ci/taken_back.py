"""Finds work that was lost because a commit was laid over an older tree: `python .ci/taken_back.py [clone]`.

Such a commit takes back most of what a commit shortly before it added to a file: the lines are gone, nothing new stands
in their place, and what they had replaced is there again. Lines that it has elsewhere are moved, not lost. A commit
that means it says so: it names the commit that it takes back, or says that it reverts, restores, undoes or takes back.
The exit code is 1 if one does not.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path

KNOWN = {
    "f7a00f3": "an accident, mended by 2fbc3d7",
    "63420c9": "an accident (`make fuzz`), mended with the Makefile of the first two minutes",
    "1836242": "an accident, mended by 8baf9c1",
    "f5fc218": "meant: one macro writes what stood there hook by hook",
    "425dae9": "meant, and said in other words: a shortcut that bought nothing",
    "5fa3f21": "meant, and said in other words: the reset on a FIN lost bytes",
    "bb4b604": "meant: it held that runs of kernels cannot be explained, and now they can",
    "7d6cf2e": "meant: 1d5e6bb let a test take either word of the verdict, a loosened expectation",
}
"""Commits that took something back without naming it, and what became of it. Accidents stand here once mended."""

SHORTLY = 40
"""After more commits than these, what is taken back is a change of mind."""
MOST = 0.7
"""From this share of the added lines on, and of those that they had replaced, it is all taken back."""
FEWEST = 5
"""An addition of fewer lines to a file is too small to tell an accident from an edit."""
WRITTEN_BY_TOOLS = re.compile(r"\.(?:snap|snap\.new|ambr)$|(?:^|/)proptest-regressions/")
"""Files that follow from others."""
MEANT = re.compile(r"\b(?:revert|restor|undo|tak(?:e|es|en|ing) back|took back)", re.IGNORECASE)
HASH = re.compile(r"\b[0-9a-f]{7,40}\b")

Lines = Counter[str]


@dataclass
class Hunk:
    """Neighbouring lines that a commit put in the place of others."""

    gone: Lines = field(default_factory=Lines)
    come: Lines = field(default_factory=Lines)


@dataclass(eq=False)
class Commit:
    """A commit and its hunks by file."""

    name: str
    message: str
    files: dict[str, list[Hunk]]

    def __str__(self) -> str:
        return f"{self.name[:7]} ({self.message.splitlines()[0] if self.message else ''})"


@dataclass
class Loss:
    """Lines of a file that `early` had added and `late` took back."""

    early: Commit
    late: Commit
    file: str
    lines: int
    of: int


def git(clone: Path, *arguments: str) -> str:
    """What a git command prints."""
    command = ["git", "-C", str(clone), "-c", "core.quotePath=false", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace", check=True).stdout


def hunks_of(diff: str) -> dict[str, list[Hunk]]:
    """The hunks of a diff without context, by file."""
    files: dict[str, list[Hunk]] = {}
    file = ""
    left = 0
    for line in diff.split("\n"):
        if left and line[:1] in {"+", "-"}:
            left -= 1
            # Brackets and blank lines are everywhere.
            if sum(map(str.isalnum, line)) > 3:
                hunk = files[file][-1]
                (hunk.come if line[0] == "+" else hunk.gone)[line[1:].strip()] += 1
        elif line.startswith(("--- a/", "+++ b/")):
            file = line[6:].rstrip("\t")
        elif line.startswith("@@ "):
            left = sum(int(side.partition(",")[2] or 1) for side in line.split()[1:3])
            files.setdefault(file, []).append(Hunk())
    return {file: hunks for file, hunks in files.items() if not WRITTEN_BY_TOOLS.search(file)}


def history(clone: Path) -> list[Commit]:
    """All commits, the oldest first; of a merge, what it has otherwise than git by itself would merge."""
    log = ["log", "--topo-order", "--format=%x00%H%x00%B%x00"]
    diff = ["--patch", "--diff-merges=remerge", "--unified=0", "--no-renames", "--no-color", "--no-ext-diff"]
    parts = iter(git(clone, *log, *diff).split("\0")[1:])
    commits = [Commit(name, message, hunks_of(diff)) for name, message, diff in zip(parts, parts, parts, strict=True)]
    # git's own --reverse (2.39) loses the bases of merges.
    return commits[::-1]


def total(hunks: list[Hunk]) -> tuple[Lines, Lines]:
    """All lines that have gone, and all that have come."""
    return sum((hunk.gone for hunk in hunks), Lines()), sum((hunk.come for hunk in hunks), Lines())


@cache
def net(commit: Commit, file: str) -> tuple[Lines, Lines]:
    """Lines that a commit removed from a file and added to it, but for those that only changed place or indentation."""
    gone, come = total(commit.files[file])
    return gone - come, come - gone


@cache
def all_that_came(commit: Commit) -> Lines:
    """The lines that a commit has new, or in a new place, in any file."""
    return sum((total(hunks)[1] for hunks in commit.files.values()), Lines())


def loss(early: Commit, late: Commit, file: str) -> Loss | None:
    """What `late` takes back of what `early` added to a file, if that is most of it."""
    removed, added = net(early, file)
    least = max(FEWEST, MOST * added.total())
    gone, in_place = total([hunk for hunk in late.files[file] if hunk.gone.keys() & added.keys()])
    taken = gone & added
    lines = taken.total() - (in_place - removed).total()
    if lines < least or (removed & net(late, file)[1]).total() < MOST * removed.total():
        return None
    lines -= (taken & all_that_came(late)).total()
    return Loss(early, late, file, lines, added.total()) if lines >= least else None


def says_so(late: Commit, early: Commit) -> bool:
    """Whether a message says that it takes the earlier commit back."""
    return bool(MEANT.search(late.message)) or any(map(early.name.startswith, HASH.findall(late.message)))


def losses(commits: list[Commit]) -> Iterator[Loss]:
    """All that was taken back without a word."""
    for at, late in enumerate(commits):
        for early in commits[max(0, at - SHORTLY) : at]:
            if late.name[:7] in KNOWN or says_so(late, early):
                continue
            for file in sorted(early.files.keys() & late.files.keys()):
                if found := loss(early, late, file):
                    yield found


def main(clone: Path) -> int:
    """Says what was taken back, and what to do about it."""
    try:
        shallow = git(clone, "rev-parse", "--is-shallow-repository").strip() == "true"
    except subprocess.CalledProcessError:
        print("lost work: not looked for, because this is no clone")
        return 0
    if shallow:
        print("lost work: not looked for, because a shallow clone has no history (git fetch --unshallow)")
        return 0
    code = 0
    for (early, late), files in groupby(losses(history(clone)), lambda loss: (loss.early, loss.late)):
        code = 1
        print(f"{late} takes back what {early} added, and does not say so:")
        for file in files:
            print(f"  {file.file}: {file.lines} of {file.of} lines")
    if code:
        print("Was it laid over an older tree? Then bring the work back.")
        print("Is it meant? Then let its message name the commit that it takes back.")
        print(f"Can the message not be changed? Then let KNOWN in {Path(__file__).name} say what became of it.")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
