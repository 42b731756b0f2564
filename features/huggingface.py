"""A local sequence-to-sequence model of Hugging Face's transformers, such as opus-mt or NLLB."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from features.feature import Array, Candidates, Resources
from moses_io.errors import InputError
from moses_io.streams import digest

BATCH = 64


class HuggingFace:
    """One value: log p(candidate|source), summed over the pieces of its tokenizer, end of sentence included.

    The folder holds a model with its tokenizer; nothing is fetched. Texts are joined with spaces, as Moses has them.

    Raises:
        InputError: transformers is not installed, or the folder holds no such model.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        try:
            transformers = importlib.import_module("transformers")
        except ImportError:
            raise InputError("feature 'hf' needs transformers: pip install moses-rerank[hf]") from None
        scorer = importlib.import_module("features.models.transformer")
        try:
            self._scorer: Any = scorer.Scorer(transformers, argument, resources.device)
        except (OSError, ValueError) as error:
            raise InputError(f"{argument}: no model that transformers reads ({str(error).splitlines()[0]})") from None
        content = [digest(path) for path in sorted(Path(argument).glob("*.safetensors"))]
        self.signature = f"hf|sha256:{','.join(content)}"

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 1)."""
        pairs = [(" ".join(each.source), " ".join(text)) for each in sentences for text in each.hypotheses]
        distinct = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
        order = sorted(distinct, key=lambda pair: (len(pair[1]), len(pair[0])))
        values = np.empty(len(distinct))
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            values[[distinct[pair] for pair in part]] = self._scorer(part)
        return values[[distinct[pair] for pair in pairs], None]
