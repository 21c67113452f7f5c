"""Tailcut: cut the latency tail of data-centre flows.

One experiment file, several backends, one table of results::

    import tailcut

    experiment = tailcut.load("experiments/quickstart.toml")
    result = tailcut.run(experiment)
    result.flows  # a Polars frame, one row per flow
    result.summary()  # means and percentiles per scheme, load and flow class
    result.report("quickstart.html")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailcut import api as api
    from tailcut import results as results
    from tailcut.api import Experiment, load, loads, run
    from tailcut.backends import Capture
    from tailcut.backends.lab import Lab
    from tailcut.errors import (
        BackendError,
        ClaimsError,
        ClusterError,
        ExperimentError,
        ExplainError,
        ReportError,
        RunError,
        StoreError,
        TailcutError,
    )
    from tailcut.result import Result, open_results

    __version__: str

__all__ = [
    "BackendError",
    "Capture",
    "ClaimsError",
    "ClusterError",
    "Experiment",
    "ExperimentError",
    "ExplainError",
    "Lab",
    "ReportError",
    "Result",
    "RunError",
    "StoreError",
    "TailcutError",
    "__version__",
    "load",
    "loads",
    "open_results",
    "run",
]

# Where each name is from. It is fetched when it is asked for, so that `tailcut --help` does not
# wait for Polars.
_HOMES = {
    "api": ("Experiment", "load", "loads", "run"),
    "backends": ("Capture",),
    "backends.lab": ("Lab",),
    "errors": (
        "BackendError",
        "ClaimsError",
        "ClusterError",
        "ExperimentError",
        "ExplainError",
        "ReportError",
        "RunError",
        "StoreError",
        "TailcutError",
    ),
    "result": ("Result", "open_results"),
    "results": (),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        from importlib.metadata import version

        return version("tailcut")
    if name in _HOMES:
        return import_module(f"tailcut.{name}")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"tailcut.{home}"), name)
    raise AttributeError(f"module 'tailcut' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_HOMES])
