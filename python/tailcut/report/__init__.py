"""The report: one page that works offline, and the same figures as files for a paper."""

from collections.abc import Sequence
from pathlib import Path

from altair.utils import schemapi

from tailcut.errors import ReportError
from tailcut.report import export, page
from tailcut.report.figures import Data
from tailcut.report.study import Study
from tailcut.report.theme import theme_for
from tailcut.report.timelines import timelines
from tailcut.results import StoredResult
from tailcut.results.store import write_atomically

__all__ = ["ReportError", "write"]


def write(result: StoredResult | Path, path: Path, slow_flows: int = 0, seeds: Sequence[int] = ()) -> list[Path]:
    """Writes the page and, into the folder ``figures`` next to it, every figure as SVG and PNG.

    The figures of a page that is not called ``report.html`` are in a directory named after it, so that pages in one
    place do not write over each other's.

    The files follow from the results alone: the same results give the same bytes.

    Args:
        result: the results, or the directory that holds them.
        path: the page, a file ending in ``.html``.
        slow_flows: how many of the slowest flows of each scheme the page tells packet by packet; their runs are made
            again for it, at every point of the sweep while there is room.
        seeds: with which; without any the first that is there.

    Returns:
        The page, then the figures.

    Raises:
        StoreError: the directory holds no results.
        ReportError: it holds a plan but nothing has finished.
        ExplainError: a slow flow cannot be told.
    """
    # That charts keep the schema of Vega-Lite is tested; Altair would ask it of every part of each.
    with schemapi.debug_mode(arg=False):
        return _write(StoredResult.open(result) if isinstance(result, Path) else result, path, slow_flows, seeds)


def _write(opened: StoredResult, path: Path, slow_flows: int, seeds: Sequence[int]) -> list[Path]:
    study = Study.of(opened)
    data = Data.of(study)
    interactive = theme_for(study.schemes, study.baseline, interactive=True)
    slow = timelines(opened, slow_flows, interactive, seeds) if slow_flows else None
    figures = path.with_name("figures" if path.name == "report.html" else f"{path.stem}-figures")
    html = page.render(study, data, interactive, slow, figures.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, html.encode())
    theme = theme_for(study.schemes, study.baseline, interactive=False)
    return [path, *export.write(study, data, theme, figures)]
