"""Rows of attention of a model's own tokens, as rows of words."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from features.arrays import AttentionRows
from features.models.folder import Model
from features.models.settings import rows_ahead


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
