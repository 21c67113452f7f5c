"""GOAL, the schedules of LogGOPSim and ATLAHS, as text: operations of ranks, and the waits between them.

Read as LogGOPSim's ``txt2bin`` reads it, and stricter: whatever that program lets pass and then forgets is refused.
A file is read line by line and may be compressed (``.goal.gz``).
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from tailcut.imports import goal_binary
from tailcut.imports.labels import Labels
from tailcut.imports.network import Format, Imported, ImportOptions
from tailcut.imports.schedule import ANY, CALC, RECV, SEND, Schedule, WaitKind
from tailcut.imports.source import ImportRefusedError, Word

_NUMBER = r"(\d{1,20})"
_SUFFIX = rf"(?:\s*tag\s+(-1|\d{{1,20}}))?(?:\s*cpu\s+{_NUMBER})?(?:\s*nic\s+{_NUMBER})?"
_LABEL = r"(?:([A-Za-z][A-Za-z0-9_]*)\s*:\s*)?"
_OPERATION = re.compile(
    rf"{_LABEL}(?:(calc)\s+{_NUMBER}(?:\s*cpu\s+{_NUMBER})?"
    rf"|(send)\s+{_NUMBER}\s*b\s*to\s+{_NUMBER}{_SUFFIX}"
    rf"|(recv)\s+{_NUMBER}\s*b\s*from\s+(-1|\d{{1,20}}){_SUFFIX})",
    re.ASCII,
)
_WAIT = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s+(i?requires)\s+([A-Za-z][A-Za-z0-9_]*)", re.ASCII)
_RANK = re.compile(rf"rank\s+{_NUMBER}\s*\{{", re.ASCII)
_RANKS = re.compile(rf"num_ranks\s+{_NUMBER}", re.ASCII)
_KEYWORDS = frozenset(("send", "recv", "calc", "rank", "num_ranks"))
_HINT = "write calc NS [cpu C], send BYTESb to RANK [tag T] [cpu C] [nic I], or recv BYTESb from RANK …"
_ANY_TAGS = frozenset(("-1", "4294967295", "18446744073709551615"))


def _fits(paths: Sequence[Path]) -> bool:
    return all(path.name.endswith((".goal", ".goal.gz")) or goal_binary.is_binary(path) for path in paths)


def _read(paths: Sequence[Path], options: ImportOptions) -> Imported:
    if len(paths) > 1:
        raise ImportRefusedError("TC-I004", f"{paths[0]} and {paths[1]} are two schedules", "name one of them")
    path = paths[0]
    schedule = Schedule(str(path), options)
    if goal_binary.is_binary(path):
        goal_binary.read(path, schedule)
    else:
        _Reader(path, schedule).read()
    return schedule.imported()


def lines(path: Path, progress: Schedule) -> Iterator[str]:
    """Returns the lines of a text file, compressed or not.

    Raises:
        ImportRefusedError: it cannot be read, or is no text in UTF-8.
    """
    number = 0
    try:
        if not path.is_file():
            raise ImportRefusedError("TC-I001", f"{path}: there is no such file", "check the path")
        with path.open("rb") as raw:
            file = gzip.open(raw) if path.suffix == ".gz" else raw  # noqa: SIM115
            for number, line in enumerate(file):
                if not number and goal_binary.begins_binary(line):
                    hint = "unpack it: binary schedules are read where they lie"
                    raise ImportRefusedError("TC-I001", f"{path}: a compressed binary schedule", hint)
                if not number % 65_536:
                    progress.tell_read(raw.tell(), path.stat().st_size)
                yield (line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line).decode()
    except UnicodeDecodeError:
        what = f"{path}: line {number + 1} is not text in UTF-8"
        raise ImportRefusedError("TC-I001", what, "save it as UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise ImportRefusedError("TC-I001", f"{path}: cannot be read: {error}", "check the file") from None


class _Reader:
    """Reads a schedule as text, a rank after the other."""

    def __init__(self, path: Path, schedule: Schedule) -> None:
        self.path = path
        self.schedule = schedule
        self.line = 0
        self.inside = False
        self.comment = 0  # the line in which a comment over lines has begun
        self.labels = Labels()

    def refuse(self, what: str, hint: str, line: int | None = None) -> NoReturn:
        """Raises the refusal of a line."""
        Word(str(self.path), self.line if line is None else line, 1, "").refuse(what, hint)

    def read(self) -> None:
        """Read the whole file."""
        schedule = self.schedule
        for line in lines(self.path, schedule):
            self.line += 1
            text = self._without_comments(line.strip())
            if not text:
                continue
            if schedule.ranks is not None and schedule.rank + 1 == schedule.ranks and not self.inside:
                schedule.note(f"line {self.line}", "what follows the last rank is left out")
                return
            if self.inside:
                self._inside(text)
            else:
                self._between(text)
        if self.comment:
            self.refuse("the comment does not end", "write */ behind it", self.comment)
        if self.inside:
            self.refuse(f"rank {schedule.rank} does not end", "write } in a line of its own")
        if schedule.ranks is None:
            self.refuse("no num_ranks", "write num_ranks N in the first line")
        if schedule.rank + 1 < schedule.ranks:
            missing = schedule.rank + 1
            self.refuse(f"there is no block for rank {missing} of {schedule.ranks}", f"write rank {missing} {{ }}")

    def _without_comments(self, text: str) -> str:
        """Returns a line without the comments with which it begins; a comment anywhere else is left in."""
        while True:
            if self.comment:
                _, end, text = text.partition("*/")
                if not end:
                    return ""
                self.comment = 0
                text = text.lstrip()
            if text.startswith("//"):
                return ""
            if not text.startswith("/*"):
                return text
            self.comment, text = self.line, text[2:]

    def _between(self, text: str) -> None:
        if self._ranks(text):
            return
        found = _RANK.fullmatch(text)
        if found is None:
            self.refuse(f"{_short(text)} is no beginning of a rank", "write rank R { in a line of its own")
        rank, schedule = int(found[1]), self.schedule
        if rank != schedule.rank + 1:
            self.refuse(f"rank {rank} where rank {schedule.rank + 1} is expected", "write all ranks, in their order")
        if schedule.ranks is not None and rank >= schedule.ranks:
            self.refuse(f"rank {rank} of {schedule.ranks}", "ranks are counted from 0: correct num_ranks")
        schedule.begin_rank()
        self.inside, self.labels = True, Labels()

    def _ranks(self, text: str) -> bool:
        """Reads the number of ranks, if the line has it."""
        found = _RANKS.fullmatch(text)
        if found is None:
            return False
        if self.schedule.ranks is not None:
            self.refuse("num_ranks is given twice", "remove one of them")
        if self.schedule.rank > 0 or (self.schedule.rank == 0 and not self.inside):
            self.refuse("num_ranks stands behind the first rank", "write it in the first line")
        self.schedule.set_ranks(int(found[1]), self.line)
        return True

    def _inside(self, text: str) -> None:
        if text == "}":
            self.inside, self.labels = False, Labels()
            self.schedule.end_rank()
            return
        found = _OPERATION.fullmatch(text)
        if found is not None:
            self._operation(found)
            return
        wait = _WAIT.fullmatch(text)
        if wait is not None:
            name, kind, other = wait.groups()
            over = WaitKind.OVER if kind == "requires" else WaitKind.STARTED
            self.schedule.wait(self._labelled(name), self._labelled(other), over, self.line)
        elif not self._ranks(text):
            self._refuse_line(text)

    def _labelled(self, label: str) -> int:
        """Returns the operation of a label."""
        found = self.labels.get(label)
        if found is None:
            self.refuse(f"{label} is not defined above in rank {self.schedule.rank}", "define labels before")
        return found

    def _operation(self, found: re.Match[str]) -> None:
        label, calc, ns, cpu, send, *sent = found.groups()
        schedule, line = self.schedule, self.line
        if calc:
            at = schedule.add(CALC, 0, int(ns), 0, int(cpu or 0), 0, line)
        else:
            kind, (amount, peer, tag, cpu, nic) = (SEND, sent[:5]) if send else (RECV, sent[6:])
            at = schedule.add(
                kind,
                ANY if peer == "-1" else int(peer),
                int(amount),
                ANY if tag in _ANY_TAGS else int(tag or 0),
                int(cpu or 0),
                int(nic or 0),
                line,
            )
        if label is not None:
            if label in _KEYWORDS:
                self.refuse(f"{label} is no label", "choose another word")
            known = self.labels.get(label)
            if known is not None:
                first = schedule.line_of(known)
                self.refuse(f"label {label} is that of line {first}, too", "every operation needs a label of its own")
            self.labels.add(label, at)

    def _refuse_line(self, text: str) -> NoReturn:
        shown = _short(text)
        words = text.split()
        if "requires" in words or "irequires" in words:
            self.refuse(f"{shown}: one label waits for one label", "write A requires B, a line for each wait")
        if "//" in text or "/*" in text:
            self.refuse(f"{shown}: a comment behind an operation", "write comments in lines of their own")
        if text.startswith("#"):
            self.refuse(f"{shown}: # begins no comment", "write // or /* */")
        if "}" in text:
            self.refuse(f"{shown}: an operation ends with its line", "write } in a line of its own")
        if re.search(r"\d\.\d|\d[eE]\d", text):
            self.refuse(f"{shown}: numbers are whole and decimal", _HINT)
        self.refuse(f"{shown} is no operation", _HINT)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")


FORMAT = Format("goal", ".goal of LogGOPSim and ATLAHS, text or, under any name, binary", _fits, _read)
