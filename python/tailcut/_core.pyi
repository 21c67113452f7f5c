"""The Rust side: experiment files in, plans out; runs in, flow tables out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

class ExperimentError(ValueError):
    """An experiment file says something that cannot be run.

    ``rendered`` holds the whole message with the line of the file, as a compiler would show it.
    """

    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    key: str | None
    expected: str | None
    hint: str | None
    rendered: str

def load(path: str, overrides: Sequence[tuple[str, str]] = ...) -> str: ...
def run(
    plan_run_json: str,
    on_progress: Callable[[int, int, int], None] | None = ...,
    capture: Any | None = ...,
) -> Mapping[str, Any]: ...
def schema() -> str: ...
def describe() -> str: ...
