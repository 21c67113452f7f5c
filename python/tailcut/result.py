"""Results as users have them: the frames of a directory, the page, and a notebook's view."""

from collections.abc import Sequence
from pathlib import Path

from tailcut import report
from tailcut.report import notebook
from tailcut.results import StoredResult


class Result(StoredResult):
    """The results of an experiment, as far as they are there."""

    def _repr_html_(self) -> str:
        """Returns a notebook's view: the findings in sentences, the summary and one figure."""
        return notebook.html(self)

    def report(self, path: str | Path | None = None, slow_flows: int = 0, slow_seeds: Sequence[int] = ()) -> list[Path]:
        """Write the page, by default ``report.html`` beside the results, and its figures; the page comes first.

        With ``slow_flows`` it tells so many of the slowest flows of each scheme, as ``tailcut explain`` does, at every
        point of the sweep with the first seed, or with ``slow_seeds``.
        """
        written = self.store.beside("report.html") if path is None else Path(path)
        return report.write(self, written, slow_flows, slow_seeds)


def open_results(directory: str | Path, *others: str | Path, with_unfaithful: bool = False) -> Result:
    """The results in ``directory``, as far as they are there.

    Args:
        directory: where they are.
        others: further directories, whose results are added: the plan then has the schemes, points and seeds of all,
            and as a further axis the key in which they differ, or the directory if that is more than one.
        with_unfaithful: whether the lab's runs that the machine could not carry in time are counted in; the summary
            and the page then say so.

    Raises:
        StoreError: one is not a directory of results, or they cannot be taken together (TC-S011, TC-S014, TC-S015).
    """
    return Result.open(directory, *others, with_unfaithful=with_unfaithful)
