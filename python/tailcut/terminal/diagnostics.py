"""Errors as a person meets them: the text as it was rendered, with colour where there is a terminal."""

import re

from rich.text import Text

from tailcut.errors import ExperimentError, TailcutError

_STYLES = (
    (r"(?m)^error(\[[^\]]+\])?", "bold red"),
    (r"(?m)^\s*(=\s*)?(hint|help):", "bold cyan"),
    (r"(?m)^\s*(=\s*)?(expected|note):", "bold"),
    (r"(?m)^\s*-->", "bold blue"),
    (r"(?m)^\s*\d*\s*\|", "bold blue"),
    (r"\^+", "bold red"),
)


def coloured(rendered: str) -> Text:
    """A rendered diagnostic with its parts marked; the characters are the same."""
    text = Text(rendered)
    for pattern, style in _STYLES:
        for match in re.finditer(pattern, rendered):
            text.stylize(style, match.start(), match.end())
    return text


def rendered(error: TailcutError) -> str:
    """An error as text, with its hint; that of an experiment shows its lines."""
    if isinstance(error, ExperimentError):
        return error.rendered
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return f"error[{error.code}]: {error}{hint}"
