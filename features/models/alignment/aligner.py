"""Word alignments of given sentence pairs by the attention of models."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from features.arrays import AttentionRows
from features.models.alignment.rows import sentinel_rows
from features.models.config import read_config
from features.models.device import find_device, within_memory
from features.models.folder import Model, load_model
from features.models.scoring.alone import SentencePair, score_pairs
from moses_io.alignment import Alignment, turned
from moses_io.errors import InputError
from moses_io.symmetrize import SYMMETRIZATIONS

DEFAULT = "grow-diag-final-and"
"""How the links of both directions are joined where nothing is said."""


class Aligned(NamedTuple):
    """The alignment of a sentence pair."""

    links: Alignment
    attention: AttentionRows  # (J, I) of target words on source words, the mean of all models


class Aligner:
    """One model, or several, of one direction or both.

    The attention of models of one direction is averaged, word by word, whatever their vocabularies and the order in
    which they say words. A forward model then links each target word with the source word that has most of its
    attention (Luong et al. 2015, 5.4), a backward one each source word with a target word. Ties go to the first word. A
    word whose attention is highest on a sentinel, or 0 everywhere, stays without a link; in the paper all words have
    one.

    Attributes:
        signature: of the models and of how their links are joined.

    Raises:
        InputError: a folder that is no model, or one without attention; `symmetrize` without both directions.
    """

    def __init__(self, folders: Sequence[str], device: str, symmetrize: str | None = None) -> None:
        configs = {folder: read_config(Path(folder)) for folder in folders}
        directions = {config.direction for config in configs.values()}
        if symmetrize and len(directions) == 1:
            raise InputError(f"--symmetrize needs a forward and a backward model; found {directions.pop()} ones alone")
        for folder, config in configs.items():
            if config.architecture.wiring == "none":
                raise InputError(f"{folder}: a model with wiring 'none' has no attention to align with")
        self._join = SYMMETRIZATIONS[symmetrize or DEFAULT]
        place = find_device(device)
        self._folders, self._models = folders, [load_model(Path(folder), place) for folder in folders]
        joined = f"|symmetrize:{symmetrize or DEFAULT}" if len(directions) > 1 else ""
        self.signature = "|".join([model.signature for model in self._models]) + joined

    def align(self, pairs: Sequence[SentencePair]) -> list[Aligned]:
        """Align pairs of source and target; one with an empty side has no links.

        Raises:
            InputError: the memory does not suffice, or attention is not finite.
        """
        places = [number for number, pair in enumerate(pairs) if all(pair)]
        full = [pairs[number] for number in places]
        aligned = [Aligned(frozenset(), np.zeros((len(target), len(source)), np.float32)) for source, target in pairs]
        directions = {model.config.direction: list[list[AttentionRows]]() for model in self._models}
        with within_memory("a sentence pair is too long for these models"):
            for folder, model in zip(self._folders, self._models, strict=True):
                directions[model.config.direction].append(_attention(model, full, folder))
        means = {direction: [_mean(rows) for rows in zip(*each, strict=True)] for direction, each in directions.items()}
        for number, *rows in zip(places, *means.values(), strict=True):
            aligned[number] = self._joined(dict(zip(means, rows, strict=True)))
        return aligned

    def _joined(self, rows: dict[str, AttentionRows]) -> Aligned:
        """Join what there is of forward rows (J, I+2) and backward rows (I, J+2) of a pair."""
        links, attention = [], []
        if "forward" in rows:
            links.append(turned(most_attended(rows["forward"])))
            attention.append(rows["forward"][:, 1:-1])  # (J, I)
        if "backward" in rows:
            links.append(most_attended(rows["backward"]))
            attention.append(rows["backward"][:, 1:-1].T)  # (J, I)
        return Aligned(self._join(*links) if len(links) > 1 else links[0], _mean(attention))


def most_attended(rows: AttentionRows) -> Alignment:
    """Return (word, word that it attends to most) of rows (J, I+2) with sentinels first and last, where I is not 0."""
    words = rows[:, 1:-1]  # (J, I)
    weights, sentinels = words.max(axis=1), np.maximum(rows[:, 0], rows[:, -1])  # (J,) both
    linked = np.flatnonzero((weights > 0) & (weights >= sentinels))
    return frozenset(zip(linked.tolist(), words.argmax(axis=1)[linked].tolist(), strict=True))


def _attention(model: Model, pairs: Sequence[SentencePair], folder: str) -> list[AttentionRows]:
    """Return the (J, I+2) rows of words of each pair, without an empty side; of a backward model, (I, J+2)."""
    found: dict[int, AttentionRows] = {}
    for numbers, scores in score_pairs([model], pairs):
        batch = scores.attention.float().cpu().numpy()  # (B, J'+1, I'+2), padded behind
        if not np.isfinite(batch).all():
            raise InputError(f"{folder}: the attention of this model is not finite")
        for number, rows in zip(numbers, batch, strict=True):
            pair = pairs[number]
            source, target = pair[::-1] if model.config.direction == "backward" else pair
            own = rows[: len(model.target.encode(target)) + 1, : len(model.source.encode(source)) + 2]
            found[number] = sentinel_rows(model, source, target, own)
    return [found[number] for number in range(len(pairs))]


def _mean(several: Sequence[AttentionRows]) -> AttentionRows:
    mean: AttentionRows = np.mean(several, axis=0, dtype=np.float32)
    return mean
