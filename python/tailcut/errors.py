"""Errors with stable codes, all of one base class: ``except tailcut.TailcutError`` catches every one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tailcut import _core

__all__ = [
    "BackendError",
    "ClaimsError",
    "ClusterError",
    "ExperimentError",
    "ExplainError",
    "ReportError",
    "RunError",
    "StoreError",
    "TailcutError",
]


class TailcutError(Exception):
    """The base class of all errors that are not a defect of Tailcut.

    Attributes:
        code: stable; listed in ``docs/reference/errors.md``.
        hint: what to do about it.
        exit_code: of the command line: 2 if what was asked is wrong, 1 if it went wrong.
    """

    exit_code = 1

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors pass between processes, whatever their classes are made from."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[TailcutError], args: tuple[Any, ...], attributes: dict[str, Any]) -> TailcutError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class ExperimentError(TailcutError, _core.ExperimentError):
    """An experiment, or a file that it names, is wrong.

    It is a ``ValueError``, too.

    Attributes:
        message: what is wrong, in one line; this and the following are of the first error.
        file: where it is: a file, the name of an experiment without one, or ``--set`` for an override.
        line: the line in it, from 1; None for what is in no line.
        column: the column, from 1; None for what is in no line.
        key: the dotted key.
        expected: what would be right there, if that can be said.
        rendered: all errors as the command line shows them.
        errors: all of them, each with these attributes as a dictionary.
    """

    exit_code = 2

    def __init__(self, found: _core.ExperimentError) -> None:
        super().__init__(found.code, str(found), found.hint)
        self.__dict__.update(found.__dict__)


@contextmanager
def checking_experiments() -> Iterator[None]:
    """Turns refusals of the core within the block into `ExperimentError`."""
    try:
        yield
    except _core.ExperimentError as found:
        raise ExperimentError(found) from None


class StoreError(TailcutError):
    """A directory of results cannot be used."""

    exit_code = 2


class BackendError(TailcutError):
    """A backend cannot realise a plan."""

    exit_code = 2


class ClusterError(TailcutError):
    """Workers cannot be reached, or cannot make the runs."""


class ReportError(TailcutError):
    """A report cannot be written from a directory."""


class ClaimsError(TailcutError):
    """Claims cannot be read, or a request about them cannot be fulfilled."""

    exit_code = 2


class ExplainError(TailcutError):
    """A flow cannot be explained."""

    exit_code = 2


class RunError(TailcutError):
    """Runs failed; whatever finished is in the store.

    Attributes:
        tracebacks: where in the code each run failed, by the run as a person refers to it; for those who look for a
            defect. Runs whose process died have none.
    """

    def __init__(
        self, code: str, message: str, hint: str | None = None, tracebacks: dict[str, str] | None = None
    ) -> None:
        super().__init__(code, message, hint)
        self.tracebacks = tracebacks or {}
