"""Output where the terminal or file cannot encode it: similar text in ASCII, and never an error."""

import codecs
import sys
import unicodedata
from io import TextIOWrapper

NAME = "tailcut.plain"
PLAIN = {
    "—": "--", "–": "-", "−": "-", "×": "x", "≥": ">=", "≤": "<=", "≈": "~", "±": "+-", "→": "->", "…": "...",
    "µ": "u", "μ": "u", "“": '"', "”": '"', "‘": "'", "’": "'", "•": "*", "·": ".", "°": " deg", "ß": "ss",
    "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ",
}  # fmt: skip
"""The characters outside ASCII that Tailcut prints, with their substitutes."""


def plain_where_needed() -> None:
    """Makes standard output and standard error replace characters that they cannot encode."""
    codecs.register_error(NAME, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=NAME)


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """Handles encoding errors: bytes of file names are written unchanged, everything else becomes ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    if "\udc80" <= character <= "\udcff":
        return bytes([ord(character) - 0xDC00]), error.start + 1
    return _plain(character), error.start + 1


def _plain(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    if "\u2500" <= character <= "\u257f":  # what tables and bars are drawn with
        return "-" if "HORIZONTAL" in unicodedata.name(character) else "|"
    parts = unicodedata.normalize("NFKD", character)
    return "".join(part for part in parts if part.isascii()) or ("" if unicodedata.combining(character) else "?")
