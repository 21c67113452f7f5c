"""Results in notebooks."""

import io
from html import escape

from rich.console import Console

from tailcut.errors import ReportError
from tailcut.report import export, words
from tailcut.report.figures import Data
from tailcut.report.study import Study
from tailcut.report.theme import theme_for
from tailcut.results import StoredResult
from tailcut.terminal.table import summary_table

COLUMNS = 140
PRE = '<pre style="line-height: 1.25; white-space: pre; overflow-x: auto">{code}</pre>'


def html(result: StoredResult) -> str:
    """Returns the findings in sentences, the summary as the terminal prints it, and one figure.

    It is the page's first figure that is drawn from the summary alone: the runs' tables are not read.
    """
    try:
        study = Study.of(result)
    except ReportError as error:
        return f"<p>{escape(str(error))}: <code>{escape(error.hint or '')}</code></p>"
    data = Data.of_summary(study)
    sentences = [words.headline(study, data.curves)]
    sentences += [v.sentence for v in words.verdicts(study, data.curves) if v.sentence not in sentences]
    if study.missing:
        sentences.append(f"{study.missing} of {len(result.plan['runs'])} runs are missing.")
    if study.lab.unfaithful and not study.lab.with_unfaithful:
        sentences.append(f"{words.unfaithful(study)}, and left out.")
    screen = Console(file=io.StringIO(), record=True, width=COLUMNS, force_jupyter=False)
    screen.print(summary_table(result.plan, result.summary(), result.totals(), result.bus_bandwidths()))
    theme = theme_for(study.schemes, study.baseline, interactive=False)
    figures = []
    for figure, spec in export.sheets(study, data, theme):
        caption = escape(f"{figure.title}. {figure.caption}")
        figures.append(f"<figure>{export.svg(spec)}<figcaption>{caption}</figcaption></figure>")
        break
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    table = screen.export_html(inline_styles=True, code_format=PRE)
    return "".join([said, table, *figures])
