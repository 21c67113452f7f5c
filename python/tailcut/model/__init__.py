"""RepFlow's queueing analysis (Xu and Li, INFOCOM 2014, section IV): one path as an M/G/1 queue.

`equations` holds the paper's equations 1 to 14, one function each; `sizes` the flow-size integrals that they
need; `predict` puts both together into a mean and a 99th percentile per size class.
"""

from tailcut.model.predict import PAPER_SHORT_BYTE_SHARE, ModelInput, Statistic, predict
from tailcut.model.sizes import FlowSizes

__all__ = ["PAPER_SHORT_BYTE_SHARE", "FlowSizes", "ModelInput", "Statistic", "predict"]
