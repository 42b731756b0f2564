"""Features of pretrained models."""

import importlib
from collections.abc import Sequence

from features.arrays import Array
from features.feature import ModelFeature, ModelReader, Need, Reading, Sentence
from moses_io.files.errors import InputError


class HuggingFace(ModelFeature):
    """One value: log-probability of the candidate, summed over the subwords of the model's tokenizer, `</s>` included.

    A sequence-to-sequence model scores p(candidate|source), a causal language model p(candidate), or with a template
    p(candidate|prompt). The folder contains a model and its tokenizer, and nothing is downloaded.
    """

    def __init__(self, argument: str, readers: Sequence[ModelReader]) -> None:
        self.signature = readers[0].signature

    @classmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return one need for one model. Raises `InputError` if a package is not installed."""
        require_transformers()
        return [Need((argument,), ("logprob",), reader="features.models.pretrained.reader:Pretrained")]

    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """Return the values, (N, 1)."""
        return readings[0].values["logprob"][:, None]  # (N, 1)


def require_transformers() -> None:
    """Raise `InputError` with the way to install them if packages that read pretrained models are missing."""
    for name in ("transformers", "langcodes"):
        try:
            importlib.import_module(name)
        except ImportError:
            raise InputError(f"feature 'hf' needs the package {name}: pip install 'moses-rerank[hf]'") from None
