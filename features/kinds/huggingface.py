"""A local sequence-to-sequence model of Hugging Face's transformers, such as opus-mt or NLLB."""

import hashlib
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from features.arrays import Array
from features.feature import Resources, Sentence
from features.request import split_values
from moses_io.errors import InputError, shown
from moses_io.streams import digest

BATCH = 64


class HuggingFace:
    """One value: log p(candidate|source), summed over the pieces of its tokenizer, end of sentence included.

    The folder holds a model with its tokenizer; nothing is fetched. Texts are joined with spaces, as Moses has them. A
    model of many languages, such as NLLB, needs those of source and target: `hf:DIR[deu_Latn,eng_Latn]`.

    Raises:
        InputError: transformers is not installed, or the folder holds no such model.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        folder, languages = split_values(argument)
        try:
            transformers = importlib.import_module("transformers")
        except ImportError:
            raise InputError("feature 'hf' needs transformers: pip install moses-rerank[hf]") from None
        scorer = importlib.import_module("features.models.transformer")
        try:
            self._scorer: Any = scorer.TransformerScorer(transformers, folder, languages, resources)
        except InputError:
            raise
        except Exception as error:  # transformers, torch and safetensors have many kinds for what is damaged
            raise InputError(f"{folder}: no model that transformers reads ({shown(str(error))})") from None
        content = [digest(path) for path in sorted(Path(folder).iterdir()) if path.is_file()]
        self.signature = f"hf|{','.join(languages)}|sha256:{hashlib.sha256(''.join(content).encode()).hexdigest()[:12]}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(N, 1)."""
        pairs = [(_clean(each.source), _clean(text)) for each in sentences for text in each.hypotheses]
        distinct = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
        order = sorted(distinct, key=lambda pair: (len(pair[1]), len(pair[0])))
        values = np.empty(len(distinct))
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            values[[distinct[pair] for pair in part]] = self._scorer(part)
        return values[[distinct[pair] for pair in pairs], None]


def _clean(tokens: Sequence[str]) -> str:
    """Join tokens; bytes that are no UTF-8 become question marks."""
    return " ".join(tokens).encode(errors="surrogateescape").decode(errors="replace")
