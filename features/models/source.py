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
        counts: rows that share each of the annotations, one after the other; empty if each row has its own.
    """

    states: Tensor
    keys: Tensor
    bias: Tensor
    words: Tensor
    last: tuple[Layer, ...]
    gate: tuple[Tensor, ...]
    counts: tuple[int, ...] = ()

    def spread(self, rows: Tensor, counts: tuple[int, ...]) -> "Source":
        """Return the source for queries that share it: `rows` ascend, and `counts` says how often each occurs.

        All but the annotations are copied to the rows; these are the largest part, and stay one for all.
        """
        keys, bias, words, gate = gather((self.keys, self.bias, self.words, self.gate), rows)
        return Source(self.states, keys, bias, words, (), gate, counts)

    def context(self, weights: Tensor) -> Tensor:
        """(B, K) annotations summed by weights (B, S), or (B, S, K) for a weight in each dimension."""
        if not self.counts:
            return _weighted(weights, self.states)
        parts = zip(torch.split(weights, list(self.counts)), self.states.unbind(0), strict=True)
        return torch.cat([_weighted(part, states.unsqueeze(0)) for part, states in parts if len(part)])

    @property
    def real(self) -> Tensor:
        """(B, S) true on the words, false on sentinels and padding."""
        positions = torch.arange(self.bias.shape[1], device=self.bias.device)
        return (positions > 0) & (positions <= self.words)


def _weighted(weights: Tensor, states: Tensor) -> Tensor:
    if weights.dim() == 3:
        return (weights * states).sum(dim=1)
    if len(states) == 1:
        return weights @ states[0]
    return torch.bmm(weights.unsqueeze(1), states).squeeze(1)
