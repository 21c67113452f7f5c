"""What cannot be explained."""

from tailcut.errors import TailcutError


class ExplainError(TailcutError):
    """A flow cannot be explained."""

    exit_code = 2
