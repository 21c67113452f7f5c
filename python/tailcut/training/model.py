"""Language models by their sizes.

Parameters and operations are those of Narayanan et al., "Efficient Large-Scale Language Model Training on GPU
Clusters Using Megatron-LM" (arXiv 2104.04473), equations 2 and 3.
"""

import difflib
from dataclasses import dataclass, replace

from tailcut.errors import TailcutError


class StepError(TailcutError):
    """A training step that cannot be generated."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Model:
    """A model of equal transformer layers.

    Attributes:
        layers: the number of layers, l.
        hidden: the width of a layer, h.
        vocabulary: the number of tokens that the model knows, V.
        sequence: the tokens of a sequence, s.
    """

    layers: int
    hidden: int
    vocabulary: int = 51_200
    sequence: int = 2048

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not 1 <= value <= 10**7:
                raise StepError("TC-N001", f"{name} = {value}", "write a number from 1 to 10,000,000")

    @property
    def layer_parameters(self) -> int:
        """The parameters of a layer: 12h² + 13h."""
        return 12 * self.hidden**2 + 13 * self.hidden

    @property
    def embedding_parameters(self) -> int:
        """The parameters of the embeddings of tokens and positions: (V + s)h."""
        return (self.vocabulary + self.sequence) * self.hidden

    @property
    def parameters(self) -> int:
        """The parameters of the model (equation 2)."""
        return self.layers * self.layer_parameters + self.embedding_parameters

    def attention_operations(self, sequences: int) -> int:
        """Returns the floating-point operations of the attention of a layer, forward."""
        b, s, h = sequences, self.sequence, self.hidden
        return 8 * b * s * h**2 + 4 * b * s**2 * h

    def mlp_operations(self, sequences: int) -> int:
        """Returns the floating-point operations of the feed-forward part of a layer, forward."""
        return 16 * sequences * self.sequence * self.hidden**2

    def logits_operations(self, sequences: int) -> int:
        """Returns the floating-point operations of the logits, forward."""
        return 2 * sequences * self.sequence * self.hidden * self.vocabulary


MODELS = {
    "gpt-1.7b": Model(24, 2304),
    "gpt-7.5b": Model(36, 4096),
    "gpt-13b": Model(40, 5120),
    "gpt-18b": Model(40, 6144),
    "gpt-39b": Model(48, 8192),
    "gpt-76b": Model(60, 10_240),
    "gpt-3-175b": Model(96, 12_288),
    "llama-7b": Model(32, 4096, 32_000, 4096),
    "llama-13b": Model(40, 5120, 32_000, 4096),
}
"""Models by name. Those of GPT are rows of Narayanan et al., table 1, and GPT-3; Llama's have its layers and widths."""
CUSTOM = "custom"
"""The name of a model whose layers and width are given."""


def model(
    name: str,
    layers: int | None = None,
    hidden: int | None = None,
    vocabulary: int | None = None,
    sequence: int | None = None,
) -> Model:
    """Returns a model by name, with other sizes where these are given.

    Args:
        name: one of `MODELS`, or ``custom``, which needs layers and hidden.
        layers: the number of layers.
        hidden: the width of a layer.
        vocabulary: the number of tokens that the model knows.
        sequence: the tokens of a sequence.

    Raises:
        StepError: TC-N001: there is no such model, or a size is missing or out of its bounds.
    """
    given = {"layers": layers, "hidden": hidden, "vocabulary": vocabulary, "sequence": sequence}
    sizes = {key: value for key, value in given.items() if value is not None}
    if name == CUSTOM:
        if layers is None or hidden is None:
            raise StepError("TC-N001", "a custom model needs layers and hidden", "write --layers and --hidden")
        return Model(**sizes)
    if name not in MODELS:
        close = difflib.get_close_matches(name, MODELS, 1)
        hint = f"did you mean {close[0]}?" if close else f"models are {', '.join(MODELS)}, {CUSTOM}"
        raise StepError("TC-N001", f"there is no model {name!r}", hint)
    return replace(MODELS[name], **sizes)
