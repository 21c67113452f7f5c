"""Tailcut: cut the latency tail of data-centre flows.

One experiment file, several backends, one table of results::

    import tailcut

    experiment = tailcut.load("experiments/quickstart.toml")
    result = tailcut.run(experiment)
    result.flows  # a Polars frame, one row per flow
    result.summary()  # means and percentiles per scheme, load and flow class
"""

from importlib.metadata import version

__version__ = version("tailcut")
