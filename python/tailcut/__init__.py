"""Tailcut: cut the latency tail of data-centre flows.

One experiment file, several backends, one table of results::

    import tailcut

    experiment = tailcut.load("experiments/quickstart.toml")
    result = tailcut.run(experiment)
    result.flows  # a Polars frame, one row per flow
    result.summary()  # means and percentiles per scheme, load and flow class
    result.report("quickstart.html")
"""

from importlib.metadata import version

__version__ = version("tailcut")

from tailcut.api import Experiment, load, run
from tailcut.backends import Capture
from tailcut.errors import BackendError, ExperimentError, RunError, StoreError, TailcutError
from tailcut.results import Result
from tailcut.results import open as open_results

__all__ = [
    "BackendError",
    "Capture",
    "Experiment",
    "ExperimentError",
    "Result",
    "RunError",
    "StoreError",
    "TailcutError",
    "__version__",
    "load",
    "open_results",
    "run",
]
