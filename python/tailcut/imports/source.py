"""Files of other programs, read by line: words with their places, and refusals that name these."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from tailcut.errors import TailcutError
from tailcut.traces import cells

MAX_BYTES = 1_000_000_000
MAX_FLOWS = 20_000_000
MAX_HOSTS = 524_288
MAX_NODES = 1_048_576
MAX_LINKS = 2_097_152
MAX_SECONDS = 86_400
"""The longest run, a day."""


class ImportRefusedError(TailcutError):
    """A file of another program cannot be imported as it is."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a file, and where it stands, from 1."""

    file: str
    line: int
    column: int
    text: str

    def refuse(self, what: str, hint: str, code: str = "TC-I002") -> NoReturn:
        """Raises the refusal of this word."""
        raise ImportRefusedError(code, f"{self.file}:{self.line}:{self.column}: {what}", hint)

    def whole(self, what: str, most: int = 2**63 - 1) -> int:
        """Returns a non-negative integer; ``what`` names the quantity in errors."""
        try:
            number = cells.whole(self.text)
        except ValueError:
            self.refuse(f"{what}: {self.text!r} is not a non-negative integer", "write it with digits alone")
        if number > most:
            self.refuse(f"{what}: {self.text} is more than {most:,}", "import a part of the file, or split it")
        return number

    def number(self, what: str, part: str | None = None, hint: str = "write a number from 0 on") -> Fraction:
        """Return the word, or a part of it, as an exact number from 0 on."""
        try:
            number = Fraction(cells.decimal(self.text if part is None else part))
        except ValueError:
            self.refuse(f"{what}: {self.text!r} is not a number", hint)
        if number < 0:
            self.refuse(f"{what}: {self.text} is below 0", hint)
        return number

    def nanoseconds(self, exact: Fraction) -> int:
        """A start time as results state it: in whole nanoseconds."""
        if exact.denominator != 1:
            self.refuse(
                f"start: {self.text} is finer than a nanosecond", "round it to whole nanoseconds: results state these"
            )
        return int(exact)


class Source:
    """A file: its name in errors, and its text.

    Raises:
        ImportRefusedError: it cannot be read, is too large, or is no text in UTF-8.
    """

    def __init__(self, path: Path, most: int = MAX_BYTES) -> None:
        self.name = str(path)
        try:
            if not path.is_file():
                raise ImportRefusedError("TC-I001", f"{path}: there is no such file", "check the path")
            with path.open("rb") as file:
                content = file.read(most + 1)
        except OSError as error:
            raise ImportRefusedError("TC-I001", f"{path}: cannot be read: {error.strerror}", "check the path") from None
        if len(content) > most:
            raise ImportRefusedError("TC-I001", f"{path}: more than {most:,} bytes", "import a part of it")
        try:
            self.text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"{path}: it is not text in UTF-8 (byte {error.start + 1})"
            raise ImportRefusedError("TC-I001", message, "save it as UTF-8") from None

    def lines(self, comment: str | None = None) -> Iterator[list[Word]]:
        """The words of each line that has some; those from ``comment`` on are left out."""
        for number, line in enumerate(self._split(), 1):
            words = _words(self.name, number, line, comment)
            if words:
                yield words

    def _split(self) -> Iterator[str]:
        """Returns the lines one by one: a list of millions would take more memory than the text."""
        begin = 0
        while (end := self.text.find("\n", begin)) >= 0:
            yield self.text[begin:end]
            begin = end + 1
        yield self.text[begin:]

    def end(self) -> Word:
        """The place behind the last line."""
        return Word(self.name, self.text.rstrip().count("\n") + 1, 1, "")


class LineSource:
    """A file of any size, read line by line.

    Args:
        path: the file.

    Raises:
        ImportRefusedError: it cannot be read, or a line is no text in UTF-8.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._read = 0
        self._last = 0  # the last line that is not blank
        if not path.is_file():
            raise ImportRefusedError("TC-I001", f"{path}: there is no such file", "check the path")

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Returns the lines with their numbers, from 1, without blanks around them on the right."""
        self._read = 0
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    text = self._decoded(line, number)
                    self._read += len(line)
                    if text:
                        self._last = number
                    yield number, text
        except OSError as error:
            message = f"{self._path}: cannot be read: {error.strerror}"
            raise ImportRefusedError("TC-I001", message, "check the path") from None

    def _decoded(self, line: bytes, number: int) -> str:
        try:
            return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip()
        except UnicodeDecodeError as error:
            message = f"{self._path}: it is not text in UTF-8 (byte {self._read + error.start + 1})"
            raise ImportRefusedError("TC-I001", message, "save it as UTF-8") from None

    def words(self, number: int, line: str, comment: str | None = None) -> list[Word]:
        """Returns the words of a line; those from ``comment`` on are left out."""
        return _words(self.name, number, line, comment)

    def words_of(self, number: int, comment: str | None = None) -> list[Word]:
        """Returns the words of the line of a number, which it reads again."""
        return next(self.words(number, line, comment) for at, line in self.numbered() if at == number)

    def done(self) -> float:
        """Returns the share of the file that is read."""
        return self._read / max(self._path.stat().st_size, 1)

    def end(self) -> Word:
        """Returns the place behind the last line that was read."""
        return Word(self.name, max(self._last, 1), 1, "")


def _words(name: str, number: int, line: str, comment: str | None) -> list[Word]:
    content = line if comment is None else line.partition(comment)[0]
    return [Word(name, number, at.start() + 1, at[0]) for at in re.finditer(r"\S+", content)]
