"""Traces: lists of flows as people have them, read exactly or refused."""

from tailcut.traces.experiment import Prepared, prepare
from tailcut.traces.parquet import read_table

__all__ = ["Prepared", "prepare", "read_table"]
