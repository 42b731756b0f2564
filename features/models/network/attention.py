"""Attention: score, window and terms together."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.network.encoder import Annotations
from features.models.network.source import Source
from features.models.network.terms import Carried, Term
from features.models.settings import Architecture
from features.models.tables import find

History = tuple[Carried, ...]
"""What each term hands to the next step."""


class Query(NamedTuple):
    """What a step asks with: (B, H) state of the decoder, (B, E) vector of the word before, (B, 1) its number j."""

    state: Tensor
    word: Tensor
    step: Tensor


class Attended(NamedTuple):
    """(B, K) annotations summed by weight, (B, S) the weights (where fine, their mean over K), the next history."""

    context: Tensor
    row: Tensor
    history: History


class Attention(nn.Module):
    """Where to look at a step, and what is seen there."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.score = find("score", architecture.score)(architecture)
        self.window = find("window", architecture.window)(architecture)
        self.terms = nn.ModuleDict({name: find("terms", name)(architecture) for name in architecture.terms})
        self.fine = architecture.granularity == "fine"

    def keys(self, annotations: Annotations, source_length: Tensor) -> Tensor:
        """(B, S, …) annotations projected once for all steps; `source_length` (B, 1) is I."""
        keys: Tensor = self.score.key(annotations.states)
        positions = torch.arange(keys.shape[1], device=keys.device, dtype=source_length.dtype)  # (S,)
        for term in self._terms():
            constant = term.constant(source_length, positions)
            keys = keys if constant is None else keys + constant
        return keys

    def start(self, source: Source) -> History:
        """Return the history before the first step."""
        return tuple(term.start(source.bias) for term in self._terms())

    def weights(self, query: Query, source: Source, history: History) -> Tensor:
        """(B, S), or (B, S, K) where fine: weights of the annotations, 0 where attention may not go."""
        terms = self._terms()
        added = [term(carried, query.step, query.word) for term, carried in zip(terms, history, strict=True)]
        weights: Tensor = self.window(self.score(query.state, source.keys, added), query.state, query.step, source)
        return weights

    def forward(self, query: Query, source: Source, history: History) -> Attended:
        """Attend once."""
        weights = self.weights(query, source, history)
        context = source.context(weights)  # (B, K)
        row = weights.mean(dim=-1) if self.fine else weights  # (B, S)
        after = tuple(term.update(carried, row) for term, carried in zip(self._terms(), history, strict=True))
        return Attended(context=context, row=row, history=after)

    def over(self, queries: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """(T, B, K) contexts and (T, B, S) rows of all steps at once, for queries (T, B, H).

        For a global window without terms, with one weight an annotation.
        """
        scores = self.score.over(queries.transpose(0, 1), source.keys)  # (B, T, S)
        rows = torch.softmax(scores + source.bias.unsqueeze(1), dim=2)  # (B, T, S)
        return torch.bmm(rows, source.states).transpose(0, 1), rows.transpose(0, 1)  # (T, B, K), (T, B, S)

    def _terms(self) -> list[Term]:
        return list(self.terms.values())  # type: ignore[arg-type]
