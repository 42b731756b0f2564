"""The log-probability of a trained model."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from features.feature import Array, Candidates
from features.models.device import find_device
from features.models.folder import load_model
from features.models.scoring import score_pairs


class Neural:
    """One value: sum of log p over the words of the model's target with `</s>`, in nats.

    A forward model gives p(hypothesis|source), a backward model p(source|hypothesis). Candidates that are the same
    words are scored once.
    """

    def __init__(self, argument: str, device: str) -> None:
        self._model = load_model(Path(argument), find_device(device))
        self.signature = f"neural|{self._model.signature}"

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 1)."""
        pairs = [(candidates.source, hypothesis) for candidates in sentences for hypothesis in candidates.hypotheses]
        distinct = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        sums = np.empty(len(distinct))
        for numbers, scores in score_pairs(self._model, list(distinct)):
            sums[numbers] = scores.log_probs.double().sum(dim=1).cpu().numpy()
        return sums[[distinct[pair] for pair in pairs]][:, None]
