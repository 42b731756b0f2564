"""Log-probabilities of trained models."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from features.feature import Array, Candidates
from features.models.device import find_device
from features.models.folder import Model, load_model
from features.models.scoring import log_probabilities, score_pairs
from moses_io.errors import InputError

GROUP = 4096
"""Candidates that share a prefix tree's levels, at most."""


class Neural:
    """One value: sum of log p over the words of the model's target with `</s>`, in nats.

    A forward model gives p(hypothesis|source), a backward model p(source|hypothesis). Candidates that are the same
    words are scored once.
    """

    def __init__(self, argument: str, device: str) -> None:
        self._models = [load_model(Path(argument), find_device(device))]
        self.signature = f"neural|{self._models[0].signature}"

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 1)."""
        if self._models[0].config.direction == "backward":
            return self.alone(sentences)
        starts = np.cumsum([0, *(len(candidates.hypotheses) for candidates in sentences)])
        values = np.empty((starts[-1], 1))
        for group in _groups(sentences):
            rows = np.concatenate([np.arange(starts[number], starts[number + 1]) for number in group])
            chosen = [(sentences[number].source, sentences[number].hypotheses) for number in group]
            values[rows, 0] = log_probabilities(self._models, chosen)
        return values

    def alone(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 1), each candidate from its first word, without sharing prefixes."""
        pairs = [(candidates.source, hypothesis) for candidates in sentences for hypothesis in candidates.hypotheses]
        distinct = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        sums = np.empty(len(distinct))
        for numbers, scores in score_pairs(self._models, list(distinct)):
            sums[numbers] = scores.log_probs.double().sum(dim=1).cpu().numpy()
        return sums[[distinct[pair] for pair in pairs]][:, None]


def _groups(sentences: Sequence[Candidates]) -> list[list[int]]:
    """Cut sentences into groups of sources of similar length; of several, with `GROUP` candidates at most."""
    groups: list[list[int]] = []
    held = 0
    for number in sorted(range(len(sentences)), key=lambda number: len(sentences[number].source)):
        held += len(sentences[number].hypotheses)
        if not groups or held > GROUP:
            groups.append([])
            held = len(sentences[number].hypotheses)
        groups[-1].append(number)
    return groups


class Ensemble(Neural):
    """The same for several models: log of the mean of their distributions of the next word.

    The mean is that of the probabilities, word by word. Neither Luong et al. 2015 nor Cohn et al. 2016 say how they
    combine; the other way is one feature `neural` a model.

    Raises:
        InputError: a single model, or models that do not say the same words in the same order.
    """

    def __init__(self, argument: str, device: str) -> None:
        folders = argument.split(",")
        if len(folders) < 2:
            raise InputError(f"feature 'ensemble:{argument}': expected several models, separated by commas")
        self._models = [load_model(Path(folder), find_device(device)) for folder in folders]
        for folder, model in zip(folders[1:], self._models[1:], strict=True):
            reason = _difference(self._models[0], model)
            if reason:
                raise InputError(f"{folder}: {reason} than {folders[0]}; use one feature 'neural' a model")
        self.signature = "ensemble|" + "|".join(model.signature for model in self._models)


def _difference(first: Model, other: Model) -> str:
    if other.config.direction != first.config.direction:
        return "another direction"
    if other.config.right_to_left != first.config.right_to_left:
        return "another order of words"
    return "" if other.target == first.target else "another target vocabulary"
