"""Word alignment of given sentence pairs by attention, and attention of models as rows of words."""

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
from features.models.scoring.pairs import SentencePair, score_pairs
from features.models.settings import rows_ahead
from moses_io.alignment import Alignment, swapped
from moses_io.files.errors import InputError
from moses_io.symmetrize import SYMMETRIZATIONS

DEFAULT = "grow-diag-final-and"
"""Default symmetrization of the links of both directions."""


class Aligned(NamedTuple):
    """The alignment of a sentence pair.

    Attributes:
        links: links of words.
        attention: (J, I) attention of target words on source words, the mean over the models of each direction, then
            over the directions.
    """

    links: Alignment
    attention: AttentionRows


class Aligner:
    """Word alignment by one or several models of one direction or both.

    * The attention of models of one direction is averaged, word by word. The models may differ in vocabulary and order
      of words.
    * A forward model links each target word to the source word with most of its attention (Luong et al. 2015, 5.4). A
      backward model links each source word to a target word in this way. Ties go to the first word.
    * A word has no link if its attention is highest on `<s>` or `</s>`, or 0 on all words. In the paper all words have
      a link.
    * The links of both directions are symmetrized.

    Attributes:
        signature: signature of the models and of the symmetrization.

    Raises:
        InputError: a folder is not a model, a model has no attention, or `symmetrize` without models of both
            directions.
    """

    def __init__(self, folders: Sequence[str], device: str, symmetrize: str | None = None) -> None:
        configs = {folder: read_config(Path(folder)) for folder in folders}
        directions = {config.direction for config in configs.values()}
        if symmetrize and len(directions) == 1:
            raise InputError(f"--symmetrize needs a forward and a backward model, found only {directions.pop()} models")
        for folder, config in configs.items():
            if not config.architecture.attends:
                raise InputError(f"{folder}: a model without attention to the source cannot align")
        self._join = SYMMETRIZATIONS[symmetrize or DEFAULT]
        torch_device = find_device(device)
        self._folders, self._models = folders, [load_model(Path(folder), torch_device) for folder in folders]
        joined = f"|symmetrize:{symmetrize or DEFAULT}" if len(directions) > 1 else ""
        self.signature = "|".join([model.signature for model in self._models]) + joined

    def align(self, pairs: Sequence[SentencePair]) -> list[Aligned]:
        """Align pairs of source and target. A pair with an empty side has no links.

        Raises:
            InputError: there is not enough memory, or attention is not finite.
        """
        indices = [number for number, pair in enumerate(pairs) if all(pair)]
        full = [pairs[number] for number in indices]
        aligned = [Aligned(frozenset(), np.zeros((len(target), len(source)), np.float32)) for source, target in pairs]
        directions = {model.config.direction: list[list[AttentionRows]]() for model in self._models}
        with within_memory("A sentence pair is too long for these models"):
            for folder, model in zip(self._folders, self._models, strict=True):
                directions[model.config.direction].append(_attention(model, full, folder))
        means = {direction: [_mean(rows) for rows in zip(*each, strict=True)] for direction, each in directions.items()}
        for number, *rows in zip(indices, *means.values(), strict=True):
            aligned[number] = self._joined(dict(zip(means, rows, strict=True)))
        return aligned

    def _joined(self, rows: dict[str, AttentionRows]) -> Aligned:
        """Combine the forward rows (J, I+2) and backward rows (I, J+2) of a pair, either of which may be missing."""
        links, attention = [], []
        if "forward" in rows:
            links.append(swapped(most_attended(rows["forward"])))
            attention.append(rows["forward"][:, 1:-1])  # (J, I)
        if "backward" in rows:
            links.append(most_attended(rows["backward"]))
            attention.append(rows["backward"][:, 1:-1].T)  # (J, I)
        return Aligned(self._join(*links) if len(links) > 1 else links[0], _mean(attention))


def most_attended(rows: AttentionRows) -> Alignment:
    """Return links (word, attended word), indices from 0, from each word to the word with most of its attention.

    Args:
        rows: (J, I+2) attention, with `<s>` first and `</s>` last, I > 0.
    """
    words = rows[:, 1:-1]  # (J, I)
    weights, boundaries = words.max(axis=1), np.maximum(rows[:, 0], rows[:, -1])  # (J,) both
    linked = np.flatnonzero((weights > 0) & (weights >= boundaries))
    return frozenset(zip(linked.tolist(), words.argmax(axis=1)[linked].tolist(), strict=True))


def _attention(model: Model, pairs: Sequence[SentencePair], folder: str) -> list[AttentionRows]:
    """Return the attention rows (J, I+2) of each pair, (I, J+2) for a backward model. No side may be empty."""
    found: dict[int, AttentionRows] = {}
    for numbers, scores in score_pairs([model], pairs):
        batch = scores.attention.float().cpu().numpy()  # (B, J'+1, I'+2), padded behind
        if not np.isfinite(batch).all():
            raise InputError(f"{folder}: the attention of this model is not finite")
        for number, rows in zip(numbers, batch, strict=True):
            pair = pairs[number]
            source, target = pair[::-1] if model.config.direction == "backward" else pair
            own = rows[: len(model.target.encode(target)) + 1, : len(model.source.encode(source)) + 2]
            found[number] = boundary_rows(model, source, target, own)
    return [found[number] for number in range(len(pairs))]


def _mean(several: Sequence[AttentionRows]) -> AttentionRows:
    mean: AttentionRows = np.mean(several, axis=0, dtype=np.float32)
    return mean


def word_rows(model: Model, source: Sequence[str], target: Sequence[str], rows: AttentionRows) -> AttentionRows:
    """Return the rows of `boundary_rows` without the columns of `<s>` and `</s>`, (J, I).

    The rows are not renormalized, so a row sums to less than 1 if the word also attends to `<s>` or `</s>`.
    """
    return boundary_rows(model, source, target, rows)[:, 1:-1]  # (J, I)


def boundary_rows(model: Model, source: Sequence[str], target: Sequence[str], rows: AttentionRows) -> AttentionRows:
    """Return the attention of target words, in text order, on source words and on `<s>` and `</s>`.

    Source and target are the sides of the network: the source of a backward model is the translation. The row of a word
    is the mean over its subwords. Attention on a word is the sum over its subwords.

    A token has the attention of the step that predicts it, even for a content-based score after the step. For this
    score Luong et al. 2015, footnote 14, take the next step, which has read the token. In our models without guided
    alignment, however, attention searches for the word that is about to be predicted (docs/reference/models.md). A
    model with guided alignment has the row that guided alignment trained (`rows_ahead`).

    Args:
        model: model that the rows come from.
        source: I words, as the model read them.
        target: J words that the model predicted, in text order.
        rows: (J'+1, I'+2) attention. Rows are the J' target tokens and `</s>`, in the order of prediction. Columns are
            `<s>`, the I' source tokens, and `</s>`.

    Returns:
        (J, I+2), `<s>` first and `</s>` last.

    Raises:
        ValueError: the shape of the rows does not match the tokens of these words.
    """
    # Tokens of a word are adjacent, so `reduceat` from the first token of each word sums over words.
    widths = [len(subwords) for subwords in model.source.encode_each(source)]
    heights = [len(subwords) for subwords in model.target.encode_each(target)]
    tokens = sum(heights)
    if rows.shape != (tokens + 1, sum(widths) + 2):
        raise ValueError(f"rows {rows.shape} of {sum(widths)} source and {tokens} target tokens")
    start = rows_ahead(model.config.architecture) if model.config.training.guided_alignment else 0
    attention = rows[start : start + tokens]  # (J', I'+2)
    # Steps run from right to left, text order from left to right.
    attention = attention[::-1] if model.config.right_to_left else attention
    columns: AttentionRows = np.add.reduceat(attention, _starts([1, *widths, 1]), axis=1)  # (J', I+2)
    if not heights:
        return columns
    sums: AttentionRows = np.add.reduceat(columns, _starts(heights), axis=0)  # (J, I+2)
    return sums / np.array(heights, dtype=np.float32)[:, None]


def _starts(sizes: Sequence[int]) -> list[int]:
    return list(accumulate(sizes[:-1], initial=0))


def dimension_rows(model: Model, pair: SentencePair) -> AttentionRows:
    """Return the attention of target words on source words in each dimension of the annotations, (J, I, K).

    The mean over K equals `word_rows`. Source and target are the sides of the network, as in `boundary_rows`.

    Args:
        model: model with granularity `fine`.
        pair: source and translation, neither empty.

    Raises:
        InputError: there is not enough memory.
    """
    steps: list[Tensor] = []  # (1, S, K) each
    attention = model.network.decoder.attention

    def keep(window: nn.Module, inputs: tuple[Tensor, ...], weights: Tensor) -> None:
        steps.append(weights)

    hook = attention.window.register_forward_hook(keep)
    try:
        with within_memory("The sentence pair is too long for this model"):
            list(score_pairs([model], [pair]))
    finally:
        hook.remove()
    weights = np.stack([step[0].float().cpu().numpy() for step in steps], axis=2)  # (S, K, J'+1)
    source, target = pair[::-1] if model.config.direction == "backward" else pair
    return np.stack([word_rows(model, source, target, own.T) for own in weights.swapaxes(0, 1)], axis=2)  # (J, I, K)
