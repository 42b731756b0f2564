"""Encoded source sentences, and the one way in which rows of anything are gathered."""

from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from features.models.cells import Layer

Rows = TypeVar("Rows")


def gather(value: Rows, rows: Tensor) -> Rows:
    """Return a tensor, or tuples of tensors however deep, with row `rows[n]` at n."""
    taken: Any
    if isinstance(value, Tensor):
        taken = value.index_select(0, rows)
    else:
        assert isinstance(value, tuple)
        parts = [gather(part, rows) for part in value]
        taken = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return taken  # type: ignore[no-any-return]


class Source(NamedTuple):
    """Encoded source sentences with all that does not change from step to step.

    Positions count the sentinels: `<s>` is 0, words are 1 … I, `</s>` is I+1.

    Attributes:
        states: (B, S, K) annotations.
        keys: (B, S, …) projected annotations, with the constant part of the terms.
        bias: (B, S) 0 where attention may go, minus infinity elsewhere.
        words: (B, 1) I, the number of words without sentinels.
        last: what the decoder's first state is made of.
        gate: (B, E) mask on the target's word vectors; empty unless the model is contextual.
    """

    states: Tensor
    keys: Tensor
    bias: Tensor
    words: Tensor
    last: tuple[Layer, ...]
    gate: tuple[Tensor, ...]

    @property
    def real(self) -> Tensor:
        """(B, S) true on the words, false on sentinels and padding."""
        positions = torch.arange(self.bias.shape[1], device=self.bias.device)
        return (positions > 0) & (positions <= self.words)
