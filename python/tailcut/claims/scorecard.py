"""The scorecard: rows by claim, reading and backend in one file, from which pages and documentation are made."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tailcut import _core
from tailcut.claims.document import AUTHORS, Claim, Paper
from tailcut.claims.verdict import Number, Verdict
from tailcut.errors import ClaimsError
from tailcut.plan import Value
from tailcut.results.store import write_atomically

FORMAT = 1
Key = tuple[str, str, str]
"""A claim's identifier, a reading and a backend."""


@dataclass(frozen=True, slots=True)
class Point:
    """Our number at one point of the sweep.

    Attributes:
        at: the point.
        number: it; None where there is none.
        verdict: on it.
    """

    at: Mapping[str, Value]
    number: Number | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of a claim under one reading with one backend.

    Attributes:
        claim: its identifier.
        reading: the name of the reading.
        backend: the name of the backend.
        points: the numbers, in the order of the sweep.
        verdict: on the claim.
        results: the version of results that they are of (``tailcut._core.RESULTS``).
        seeds: the seeds that were run.
        runs: the identifiers of the runs; empty for backends that make none.
        small: whether they are of the small variant of the experiment, whose numbers are not the paper's.
    """

    claim: str
    reading: str
    backend: str
    points: tuple[Point, ...]
    verdict: Verdict
    results: int
    seeds: tuple[int, ...]
    runs: tuple[str, ...] = field(default=())
    small: bool = False

    @property
    def key(self) -> Key:
        """The claim, the reading and the backend."""
        return self.claim, self.reading, self.backend

    @property
    def stale(self) -> bool:
        """Whether it is of runs of another version of results than this program's. Without runs it never is."""
        return bool(self.runs) and self.results != _core.RESULTS


class Scorecard:
    """Rows by claim, reading and backend.

    Args:
        rows: them; of two of one key the later one stays.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows = {row.key: row for row in rows}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> list[Row]:
        """All rows, in a fixed order."""
        return [self._rows[key] for key in sorted(self._rows)]

    @property
    def stale(self) -> list[Row]:
        """The rows of other versions of results."""
        return [row for row in self.rows if row.stale]

    def of(self, claim: Claim) -> list[Row]:
        """The rows of one claim: its readings in their order, and within by backend."""
        keys = [(claim.id, reading, backend) for reading in claim.readings for backend in claim.backends]
        return [self._rows[key] for key in keys if key in self._rows]

    def main(self, claim: Claim) -> Row | None:
        """The row that a claim is judged by: ``stated``, by the first backend that has one; None without.

        The authors' own numbers are no answer of ours.
        """
        ours = (row for row in self.of(claim) if row.backend != AUTHORS)
        return next((row for row in ours if row.reading == claim.readings[0]), None)

    def verdict(self, claim: Claim) -> Verdict:
        """Returns the verdict on a claim, as stated."""
        if claim.experiment is None:
            return Verdict.CONTRADICTION if claim.contradicts else Verdict.CANNOT
        row = self.main(claim)
        return Verdict.ABSENT if row is None else row.verdict

    def totals(self, papers: Iterable[Paper]) -> Counter[Verdict]:
        """How many claims come to each verdict."""
        return Counter(self.verdict(claim) for paper in papers for claim in paper.claims)

    def put(self, row: Row) -> None:
        """Put a row in, in the place of that of the same key."""
        self._rows[row.key] = row

    def text(self) -> str:
        """The file, a line for each row, so that a change of one shows as one."""
        lines = ",\n".join(json.dumps(_plain(row), ensure_ascii=False) for row in self.rows)
        return f'{{"format": {FORMAT}, "rows": [\n{lines}\n]}}\n'

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        write_atomically(path, self.text().encode())

    @classmethod
    def parse(cls, text: str) -> "Scorecard":
        """A scorecard from the text of its file.

        Raises:
            ClaimsError: TC-K002: it is none, or of another version.
        """
        try:
            document = json.loads(text)
            if document["format"] != FORMAT:
                raise ValueError(f"format {document['format']}")
            return cls(_row(one) for one in document["rows"])
        except (ValueError, KeyError, TypeError) as error:
            raise ClaimsError(
                "TC-K002", f"this is no scorecard of this version: {error}", "make it again with `tailcut claims run`"
            ) from None

    @classmethod
    def shipped(cls) -> "Scorecard":
        """The scorecard that comes with Tailcut."""
        return cls.parse(_core.scorecard())


def _plain(row: Row) -> dict[str, Any]:
    found = asdict(row)
    found["verdict"] = row.verdict.value
    found["points"] = [
        {
            "at": dict(point.at),
            "number": None if point.number is None else _number(point.number),
            "verdict": point.verdict.value,
        }
        for point in row.points
    ]
    return found


def _number(number: Number) -> dict[str, Any]:
    shown = {name: value for name, value in asdict(number).items() if value is not None and value is not False}
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in shown.items()}


def _row(found: Mapping[str, Any]) -> Row:
    points = tuple(
        Point(
            one["at"],
            None if one["number"] is None else Number(**one["number"]),
            Verdict(one["verdict"]),
        )
        for one in found["points"]
    )
    plain = {**found, "points": points, "verdict": Verdict(found["verdict"])}
    return Row(**{**plain, "seeds": tuple(found["seeds"]), "runs": tuple(found["runs"])})
