"""Errors with stable codes. What an experiment file can get wrong is `tailcut.ExperimentError`."""

from tailcut._core import ExperimentError

__all__ = ["BackendError", "ExperimentError", "RunError", "StoreError", "TailcutError"]


class TailcutError(Exception):
    """Something went wrong that is not a defect of Tailcut.

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


class StoreError(TailcutError):
    """A directory of results cannot be used."""

    exit_code = 2


class BackendError(TailcutError):
    """A backend cannot realise a plan."""

    exit_code = 2


class RunError(TailcutError):
    """Runs failed; whatever finished is in the store."""
