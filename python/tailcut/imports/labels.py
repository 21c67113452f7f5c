"""Labels and waits of a rank's operations, while a schedule is read."""

from array import array
from collections.abc import Iterator, Mapping

import numpy as np

_SPARSE = 65_536
"""Numbers up to so much beyond twice the labels have a place in an array."""


class Labels:
    """Operations by label.

    Labels of a word and a number, as programs write them, take 4 bytes each; other labels are kept as texts.
    """

    def __init__(self) -> None:
        self._by_word: dict[str, array[int]] = {}
        self._others: dict[str, int] = {}
        self._count = 0

    def get(self, label: str) -> int | None:
        """Returns the operation of a label, none if there is none."""
        word, number = _split(label)
        if number is not None:
            places = self._by_word.get(word)
            if places is not None and number < len(places) and places[number]:
                return places[number] - 1
        return self._others.get(label)

    def add(self, label: str, operation: int) -> None:
        """Adds a label that is not there yet."""
        self._count += 1
        word, number = _split(label)
        if number is None or number > 2 * self._count + _SPARSE:
            self._others[label] = operation
            return
        places = self._by_word.setdefault(word, array("I"))
        if number >= len(places):
            places.frombytes(bytes(4 * (number + number // 8 + 1 - len(places))))
        places[number] = operation + 1


def _split(label: str) -> tuple[str, int | None]:
    """Returns the word of a label and the number behind it, none if it is not written in the shortest way."""
    word = label.rstrip("0123456789")
    digits = label[len(word) :]
    if not digits or len(digits) > 9 or (digits[0] == "0" and digits != "0"):
        return label, None
    return word, int(digits)


class Waits(Mapping[int, list[int]]):
    """The waits of a rank's operations: each is twice the operation waited for, plus one if for its start.

    Waits are added first, then sorted, then read.
    """

    def __init__(self) -> None:
        self._to = array("I")
        self._from = array("I")
        self._begin = 0
        self._first = array("q")

    def add(self, waiting: int, other: int) -> None:
        """Makes an operation wait for another one."""
        self._to.append(waiting)
        self._from.append(other)

    def sort(self, begin: int, end: int) -> None:
        """Sorts the waits of the operations from `begin` to `end` by operation; those of one keep their order."""
        to = np.frombuffer(self._to, dtype=np.uint32) if self._to else np.zeros(0, dtype=np.uint32)
        origins = np.frombuffer(self._from, dtype=np.uint32) if self._from else np.zeros(0, dtype=np.uint32)
        own = to - np.uint32(begin)
        first = np.zeros(end - begin + 1, dtype=np.int64)
        np.cumsum(np.bincount(own, minlength=end - begin), out=first[1:])
        ordered = origins[np.argsort(own, kind="stable")]
        self._begin, self._first = begin, array("q", first.tobytes())
        self._from, self._to = array("I", ordered.tobytes()), array("I")

    def others(self) -> "array[int]":
        """Returns all waits, whichever operation has them."""
        return self._from

    def __getitem__(self, operation: int) -> list[int]:
        at = operation - self._begin
        if not 0 <= at < len(self._first) - 1:
            raise KeyError(operation)
        found = self._from[self._first[at] : self._first[at + 1]]
        if not found:
            raise KeyError(operation)
        return found.tolist()

    def __iter__(self) -> Iterator[int]:
        first = self._first
        return (self._begin + at for at in range(len(first) - 1) if first[at] < first[at + 1])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, operation: object) -> bool:
        at = operation - self._begin if isinstance(operation, int) else -1
        return 0 <= at < len(self._first) - 1 and self._first[at] < self._first[at + 1]
