"""The report: one page that works offline, and the same figures as files for a paper."""

from pathlib import Path

from tailcut import results
from tailcut.report import export, page
from tailcut.report.figures import Data
from tailcut.report.study import ReportError, Study
from tailcut.report.theme import theme_for
from tailcut.results import Result
from tailcut.results.store import write_atomically

__all__ = ["ReportError", "write"]


def write(result: Result | Path, path: Path) -> list[Path]:
    """Writes the page and, in ``figures`` beside it, every figure as SVG and PNG.

    The files follow from the results alone: the same results give the same bytes.

    Args:
        result: the results, or the directory that holds them.
        path: the page, a file ending in ``.html``.

    Returns:
        The page, then the figures.

    Raises:
        StoreError: the directory holds no results.
        ReportError: it holds a plan but nothing has finished.
    """
    study = Study.of(results.open(result) if isinstance(result, Path) else result)
    data = Data.of(study)
    html = page.render(study, data, theme_for(study.schemes, study.baseline, interactive=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, html.encode())
    theme = theme_for(study.schemes, study.baseline, interactive=False)
    return [path, *export.write(study, data, theme, path.parent / "figures")]
