"""Errors with stable codes. What an experiment file can get wrong is `tailcut.ExperimentError`."""

from tailcut._core import ExperimentError

__all__ = ["BackendError", "ClusterError", "ExperimentError", "RunError", "StoreError", "TailcutError"]


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


class ClusterError(TailcutError):
    """Those who should make runs cannot be reached, or cannot make them."""


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
