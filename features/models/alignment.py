"""Attention of models as rows of words, and the word alignments of given sentence pairs by it."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import Tensor, nn

from features.arrays import AttentionRows
from features.models.config import read_config
from features.models.device import find_device, within_memory
from features.models.folder import Model, load_model
from features.models.scoring.alone import SentencePair, score_pairs
from features.models.settings import rows_ahead
from moses_io.alignment import Alignment, turned
from moses_io.files.errors import InputError
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


def word_rows(model: Model, source: Sequence[str], target: Sequence[str], rows: AttentionRows) -> AttentionRows:
    """Return what `sentinel_rows` does without the columns of the sentinels, (J, I).

    The rows are not normalized again: a word that looks at sentinels has a row that sums to less than 1.
    """
    return sentinel_rows(model, source, target, rows)[:, 1:-1]  # (J, I)


def sentinel_rows(model: Model, source: Sequence[str], target: Sequence[str], rows: AttentionRows) -> AttentionRows:
    """Return the attention of target words, in the order of the text, on source words and sentinels.

    The direction is the model's own: the source of a backward model is the translation. The row of a word is the mean
    of those of its pieces, attention on a word the sum over its pieces.

    A token is told of by the row of the step that says it, also with a content-based score after the step. There Luong
    et al. 2015, footnote 14, take the row of the next step, which has read the token; but in our models, if nobody
    guides it, attention looks for the word that is about to be said (docs/models.md). Of a model that was trained with
    guidance it is the row that guidance trained (`rows_ahead`).

    Args:
        model: whose rows they are.
        source: I words, as the model read them.
        target: J words, as the model said them, in the order of the text.
        rows: (J'+1, I'+2) attention of the J' tokens that the model makes of the target and of `</s>`, in the order in
            which it says them, on `<s>`, the I' tokens of the source, and `</s>`.

    Returns:
        (J, I+2), `<s>` first and `</s>` last.

    Raises:
        ValueError: the rows are of other tokens than those of these words.
    """
    widths = [len(pieces) for pieces in model.source.cut(source)]
    heights = [len(pieces) for pieces in model.target.cut(target)]
    tokens = sum(heights)
    if rows.shape != (tokens + 1, sum(widths) + 2):
        raise ValueError(f"rows {rows.shape} of {sum(widths)} source and {tokens} target tokens")
    start = rows_ahead(model.config.architecture) if model.config.training.guidance else 0
    told = rows[start : start + tokens]  # (J', I'+2)
    told = told[::-1] if model.config.right_to_left else told
    columns: AttentionRows = np.add.reduceat(told, _starts([1, *widths, 1]), axis=1)  # (J', I+2)
    if not heights:
        return columns
    sums: AttentionRows = np.add.reduceat(columns, _starts(heights), axis=0)  # (J, I+2)
    return sums / np.array(heights, dtype=np.float32)[:, None]


def _starts(sizes: Sequence[int]) -> list[int]:
    return list(accumulate(sizes[:-1], initial=0))


def dimension_rows(model: Model, pair: SentencePair) -> AttentionRows:
    """Return the attention of the words that a model says on those that it reads, in each dimension, (J, I, K).

    The mean over K is what `word_rows` makes of the model's rows. The direction is the model's own: a backward model
    reads the translation.

    Args:
        model: with granularity `fine`.
        pair: source and translation, neither empty.

    Raises:
        InputError: the memory does not suffice.
    """
    steps: list[Tensor] = []  # (1, S, K) each
    attention = model.network.decoder.attention

    def keep(window: nn.Module, inputs: tuple[Tensor, ...], weights: Tensor) -> None:
        steps.append(weights)

    hook = attention.window.register_forward_hook(keep)
    try:
        with within_memory("the sentence pair is too long for this model"):
            list(score_pairs([model], [pair]))
    finally:
        hook.remove()
    weights = np.stack([step[0].float().cpu().numpy() for step in steps], axis=2)  # (S, K, J'+1)
    source, target = pair[::-1] if model.config.direction == "backward" else pair
    return np.stack([word_rows(model, source, target, own.T) for own in weights.swapaxes(0, 1)], axis=2)  # (J, I, K)
