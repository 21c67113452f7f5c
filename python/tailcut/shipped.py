"""Experiments and workloads that come with Tailcut, wherever it is installed."""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import PurePosixPath

from tailcut import _core

STARTER = "starter"
WORKLOAD = ".cdf"
SCHEMA = "#:schema "


def texts() -> Mapping[str, str]:
    """The files by name: experiments as below ``experiments/``, workloads with the suffix ``.cdf``.

    Experiments that need a file beside them are left out.
    """
    experiments, workloads = _core.shipped()
    starter = (files("tailcut") / "starter.toml").read_text(encoding="utf-8")
    alone = {name: _alone(text) for name, text in experiments if not _names_a_file(tomllib.loads(text))}
    return {STARTER: starter} | alone | {f"{name}{WORKLOAD}": text for name, text in workloads}


def unknown(name: str, known: Iterable[str]) -> str:
    """Returns the error for an unknown name: a similar name, or the further file that it needs."""
    if name in dict(_core.shipped()[0]):
        return f"{name!r} needs a further file: copy both from a checkout, where it is experiments/{name}.toml"
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}?" if close else "tailcut new --list names all"
    return f"Tailcut comes with no experiment or workload called {name!r}; {hint}"


def file_name(name: str) -> str:
    """Returns the name of a copy: ``papers/repflow/fig8`` is ``fig8.toml``."""
    last = PurePosixPath(name).name
    return last if last.endswith(WORKLOAD) else f"{last}.toml"


def summary(name: str, text: str) -> str:
    """Returns a file's subject in a line."""
    if name.endswith(WORKLOAD):
        return text.splitlines()[0].lstrip("# ").rstrip(",")
    return str(tomllib.loads(text)["title"])


def _names_a_file(value: object) -> bool:
    """Whether an experiment, or a part of it, names a further file."""
    if isinstance(value, dict):
        return "file" in value or any(_names_a_file(inner) for inner in value.values())
    return isinstance(value, list) and any(_names_a_file(inner) for inner in value)


def _alone(text: str) -> str:
    """An experiment for another place: the line that leads to the repository's schema is left out."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith(SCHEMA) else text
