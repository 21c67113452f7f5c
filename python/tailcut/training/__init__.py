"""Training steps: the messages and computations of one step of a large language model, as an experiment."""

from tailcut.training.files import write
from tailcut.training.model import MODELS, Model, model
from tailcut.training.step import Counts, StepError, TensorTraffic, TrainingStep

__all__ = ["MODELS", "Counts", "Model", "StepError", "TensorTraffic", "TrainingStep", "model", "write"]
