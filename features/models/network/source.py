"""Encoded source sentences, and the one way in which rows of anything are gathered."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from features.models.network.cells import Layer

Gathered = TypeVar("Gathered")
"""A tensor, a tuple or a record of such, however deep."""


def gather(value: Gathered, rows: Tensor) -> Gathered:
    """Return the value with row `rows[n]` of its tensors at n."""
    gathered: Gathered = _each([value], lambda tensors: tensors[0].index_select(0, rows))  # (rows, …)
    return gathered


def put(value: Gathered, rows: Tensor, part: Gathered) -> None:
    """Write row n of the part's tensors into row `rows[n]` of the value's."""
    _each([value, part], lambda tensors: tensors[0].index_copy_(0, rows, tensors[1]))  # (rows, …)


def join(values: Sequence[Gathered]) -> Gathered:
    """Return a value whose tensors have the rows of each behind those of the one before."""
    return values[0] if len(values) == 1 else _each(values, torch.cat)  # (all rows, …)


def _views(value: Gathered, rows: Tensor) -> Gathered:
    """Return what `gather` returns of a value with one row, without a copy."""
    gathered: Gathered = _each([value], lambda tensors: tensors[0].expand(len(rows), *tensors[0].shape[1:]))
    return gathered


def _each(values: Sequence[Any], function: Callable[[list[Tensor]], Tensor]) -> Any:
    """Call the function with the tensors that stand at the same place in each value."""
    if isinstance(values[0], Tensor):
        return function(list(values))
    parts = [_each(each, function) for each in zip(*values, strict=True)]
    return tuple(parts) if type(values[0]) is tuple else type(values[0])(*parts)


class Source(NamedTuple):
    """Encoded source sentences with all that does not change from step to step.

    Positions count the sentinels: `<s>` is 0, words are 1 … I, `</s>` is I+1.
    """

    states: Tensor  # (B, S, K) annotations, or products of them (`members.fold`), or both (`transformer`)
    keys: Tensor  # (B, S, …) projected annotations, with the constant part of the terms
    bias: Tensor  # (B, S) 0 where attention may go, minus infinity elsewhere
    source_length: Tensor  # (B, 1) I, the number of words without sentinels
    last: tuple[Layer, ...]  # what the decoder's first state is made of
    gate: tuple[Tensor, ...]  # (B, E) mask on the target's word vectors; empty unless the model is contextual
    counts: tuple[int, ...] = ()  # rows that share each annotation, one after the other; empty if each has its own
    lexicon: tuple[Tensor, ...] = ()  # what `Lexicon.look_up` returns, shared as annotations are; empty without lexicon

    def spread(self, rows: Tensor, counts: tuple[int, ...]) -> "Source":
        """Return the source for queries that share it: `rows` ascend, and `counts` says how often each occurs.

        All but the annotations are copied to the rows; these are the largest part, and stay one for all, but on a GPU,
        where one product over a copy is faster than a small one a sentence. Of a single source nothing is copied.
        """
        if self.states.is_cuda:
            return gather(self._replace(last=()), rows)
        copies = _views if len(counts) == 1 else gather
        own = (self.keys, self.bias, self.source_length, self.gate, self.lexicon[1:])
        keys, bias, length, gate, words = copies(own, rows)
        shared = self._replace(keys=keys, bias=bias, source_length=length, last=(), gate=gate, counts=counts)
        return shared._replace(lexicon=(*self.lexicon[:1], *words))

    def context(self, weights: Tensor) -> Tensor:
        """(B, K) annotations summed by weights (B, S), or (B, S, K) for a weight in each dimension."""
        return self.summed(weights, self.states)

    def summed(self, weights: Tensor, states: Tensor) -> Tensor:
        """(B, K) sums of states (B, S, K) by weights (B, S), or (B, S, K) for a weight in each dimension.

        Where states are shared, laid out by columns as `cells.columns` does:

            weights of the rows of source   0 0 0 | 1 | 2 2     counts (3, 1, 2)
            times states of source          0     | 1 | 2
        """
        if not self.counts:
            return _weighted(weights, states)
        sums = weights.new_empty(states.shape[2], len(weights))  # (K, B)
        counts = list(self.counts)
        parts, places = torch.split(weights, counts), torch.split(sums, counts, dim=1)  # (count, S), (K, count)
        for part, own, place in zip(parts, states.unbind(0), places, strict=True):  # own (S, K)
            if weights.dim() == 3:
                place.copy_(_weighted(part, own).t())  # (K, count)
            elif len(part):
                torch.mm(own.t(), part.t(), out=place)  # (K, count)
        return sums.t()  # (B, K)

    @property
    def source_mask(self) -> Tensor:
        """(B, S) true on the words, false on sentinels and padding."""
        positions = torch.arange(self.bias.shape[1], device=self.bias.device)  # (S,)
        return (positions > 0) & (positions <= self.source_length)


def _weighted(weights: Tensor, states: Tensor) -> Tensor:
    if weights.dim() == 3:
        return (weights * states).sum(dim=1)  # (B, K)
    return torch.bmm(weights.unsqueeze(1), states).squeeze(1)  # (B, K)
