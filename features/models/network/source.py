"""Encoded source sentences, and functions that gather the rows of nested tensors."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from features.models.network.cells import Layer

Gathered = TypeVar("Gathered")
"""A tensor, or a tuple or record of tensors, nested to any depth."""


def gather(value: Gathered, rows: Tensor) -> Gathered:
    """Return the value with row `rows[n]` of each tensor at index n."""
    gathered: Gathered = _each([value], lambda tensors: tensors[0].index_select(0, rows))  # (rows, …)
    return gathered


def put(value: Gathered, rows: Tensor, part: Gathered) -> None:
    """Write row n of each tensor of `part` into row `rows[n]` of the same tensor of `value`."""
    _each([value, part], lambda tensors: tensors[0].index_copy_(0, rows, tensors[1]))  # (rows, …)


def join(values: Sequence[Gathered]) -> Gathered:
    """Return a value whose tensors are the concatenated rows of all values."""
    return values[0] if len(values) == 1 else _each(values, torch.cat)  # (all rows, …)


def _views(value: Gathered, rows: Tensor) -> Gathered:
    """Return the result of `gather` for a value with one row, as views instead of copies."""
    gathered: Gathered = _each([value], lambda tensors: tensors[0].expand(len(rows), *tensors[0].shape[1:]))
    return gathered


def _each(values: Sequence[Any], function: Callable[[list[Tensor]], Tensor]) -> Any:
    """Apply the function to the tensors at the same position in all values, and return the results as one value."""
    if isinstance(values[0], Tensor):
        return function(list(values))
    parts = [_each(each, function) for each in zip(*values, strict=True)]
    return tuple(parts) if type(values[0]) is tuple else type(values[0])(*parts)


class Source(NamedTuple):
    """Encoded source sentences, with everything that does not change from step to step.

    Positions count `<s>` and `</s>`: `<s>` is 0, words are 1 … I, `</s>` is I+1.
    """

    # (B, S, …) annotations, or after `fuse_context_weights` their products with the context weights. In a transformer,
    # keys and values of each layer follow the annotations.
    states: Tensor
    keys: Tensor  # (B, S, …) projected annotations, with the constant part of the terms, see `Attention.keys`
    bias: Tensor  # (B, S) 0 where attention is allowed, minus infinity elsewhere
    source_length: Tensor  # (B, 1) I, the number of words without `<s>` and `</s>`
    last: tuple[Layer, ...]  # final encoder states, from which the decoder's first state is made
    gate: tuple[Tensor, ...]  # (B, E) mask on target word vectors, empty unless the model is contextual
    counts: tuple[int, ...] = ()  # number of consecutive rows that share states and keys, empty if each has its own
    lexicon: tuple[Tensor, ...] = ()  # result of `Lexicon.entries`, its table shared like annotations, else empty

    def repeated_for(self, rows: Tensor, counts: tuple[int, ...]) -> "Source":
        """Return the source for several queries per source sentence.

        `rows` are the source indices of the queries, ascending. `counts` is the number of queries of each source.
        Annotations, keys and the lexicon's table, the largest tensors, stay shared. The other tensors are copied to the
        rows. With a single source nothing is copied. On a GPU everything is copied: one product over a copy is faster
        than a small product for each sentence.
        """
        if self.states.is_cuda:
            return gather(self._replace(last=()), rows)
        copies = _views if len(counts) == 1 else gather
        copied = (self.bias, self.source_length, self.gate, self.lexicon[1:])
        bias, length, gate, words = copies(copied, rows)
        shared = self._replace(bias=bias, source_length=length, last=(), gate=gate, counts=counts)
        return shared._replace(lexicon=(*self.lexicon[:1], *words))

    def plus_keys(self, hidden: Tensor) -> Tensor:
        """Return keys plus `hidden` (B, S or 1, A), in (B, S, A)."""
        if not self.counts:
            return self.keys + hidden
        sums = hidden.new_empty(len(hidden), *self.keys.shape[1:])  # (B, S, A)
        for part, keys, output in self._by_source(hidden, self.keys, sums):
            torch.add(part, keys, out=output)  # (count, S, A)
        return sums

    def times_keys(self, queries: Tensor) -> Tensor:
        """Return the products of queries (B, A) and keys (B, S, A), in (B, S)."""
        if not self.counts:
            return torch.bmm(self.keys, queries.unsqueeze(-1)).squeeze(-1)  # (B, S)
        products = queries.new_empty(len(queries), self.keys.shape[1])  # (B, S)
        for part, keys, output in self._by_source(queries, self.keys, products):
            torch.mm(part, keys.t(), out=output)  # (count, S)
        return products

    def _by_source(self, rows: Tensor, shared: Tensor, results: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """For each source that has rows, yield them, the tensor that they share, and their rows of the results."""
        counts = list(self.counts)
        for part, tensor, output in zip(
            torch.split(rows, counts), shared.unbind(0), torch.split(results, counts), strict=True
        ):
            if len(part):
                yield part, tensor, output

    def summed(self, weights: Tensor, states: Tensor) -> Tensor:
        """Return states (B, S, K) summed with weights (B, S), or (B, S, K) for one weight per dimension: (B, K).

        If states are shared, the result is laid out in memory by columns, like that of `cells.columns`:

            source of each row of weights   0 0 0 | 1 | 2 2     counts (3, 1, 2)
            source of the states            0     | 1 | 2
        """
        if not self.counts:
            return _weighted(weights, states)
        sums = weights.new_empty(states.shape[2], len(weights))  # (K, B)
        for part, source_states, output in self._by_source(weights, states, sums.t()):
            if weights.dim() == 3:
                output.copy_(_weighted(part, source_states))  # (count, K)
            else:
                torch.mm(source_states.t(), part.t(), out=output.t())  # (K, count)
        return sums.t()  # (B, K)

    @property
    def source_mask(self) -> Tensor:
        """Mask (B, S): true on words, false on `<s>`, `</s>` and padding."""
        positions = torch.arange(self.bias.shape[1], device=self.bias.device)  # (S,)
        return (positions > 0) & (positions <= self.source_length)


def _weighted(weights: Tensor, states: Tensor) -> Tensor:
    if weights.dim() == 3:
        return (weights * states).sum(dim=1)  # (B, K)
    return torch.bmm(weights.unsqueeze(1), states).squeeze(1)  # (B, K)
