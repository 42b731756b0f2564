"""Attention: the scores, the windows, and the module that combines them with the terms.

A score measures how well a query (B, H) matches each annotation. `key` projects the annotations (B, S, K) to keys once
for all steps. `over` scores the queries (B, T, H) of all steps at once, without terms.

A window turns scores into weights, over all positions or over the positions around a centre. Scores and weights are
(B, S), or (B, S, K) with granularity `fine`. The weights of one step are its attention row.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.network.source import Source
from features.models.network.terms import Carried, Term
from features.models.settings import Architecture
from features.models.tables import find

SLICE = 2**20
"""Maximum number of hidden-layer elements that `Additive.over` computes at once, but at least one step."""


class Additive(nn.Module):
    """Additive score f = v' tanh(W_e e_i + W_h q + terms) (Bahdanau et al. 2015; Cohn eq. 5).

    tanh(x) is computed as 2 sigmoid(2x) - 1, which is equal and on a CPU three times as fast as torch's tanh. With
    granularity `fine`, v is a matrix with one row for each dimension of the annotation (Choi et al. 2018, AttY2D).

    Without terms this is the score `concat` of Luong et al. 2015 (eq. 7), v' tanh(W [q; e_i]), with W split into two
    parts. Luong et al. fixed the part for e_i at the identity (footnote 15), which gave poor results. Here it is
    learned.
    """

    scale = 2
    """Factor of the keys: the sum inside tanh is doubled once for the keys, not at every step."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.key = nn.Linear(architecture.annotation, architecture.attention_size, bias=False)
        self.query = nn.Linear(architecture.hidden_size, architecture.attention_size, bias=False)
        self.fine = architecture.granularity == "fine"
        self.out = nn.Linear(architecture.attention_size, architecture.annotation if self.fine else 1, bias=False)

    def forward(self, query: Tensor, source: Source, terms: list[Tensor]) -> Tensor:
        """Return scores (B, S), or (B, S, K) with granularity `fine`. Terms are broadcast to the keys."""
        hidden = self.query(query).unsqueeze(1)  # (B, 1, A)
        for term in terms:
            hidden = hidden + term
        halves = torch.sigmoid_(source.plus_keys(self.scale * hidden))  # (B, S, A)
        # v' tanh(x) = v' (2 sigmoid(2x) - 1) = 2 v' sigmoid(2x) - sum(v)
        scores: Tensor = 2 * self.out(halves) - self.out.weight.sum(dim=1)  # (B, S, K) or (B, S, 1)
        return scores if self.fine else scores.squeeze(-1)  # (B, S, K) or (B, S)

    def over(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return scores (B, T, S), a few steps at a time: without gradients this limits the memory."""
        steps = max(1, SLICE // keys.numel())
        return torch.cat([self._scores(part, keys) for part in torch.split(queries, steps, dim=1)], dim=1)  # (B, T, S)

    def _scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        hidden = keys.unsqueeze(1) + self.scale * self.query(queries).unsqueeze(2)  # (B, T, S, A)
        scores: Tensor = 2 * self.out(torch.sigmoid_(hidden)) - self.out.weight.sum()  # (B, T, S, 1)
        return scores.squeeze(-1)  # (B, T, S)


class Dot(nn.Module):
    """Dot product score f = q' e_i (Luong eq. 7)."""

    scale = 1

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.key: nn.Module = nn.Identity()

    def forward(self, query: Tensor, source: Source, terms: list[Tensor]) -> Tensor:
        """Return scores (B, S)."""
        return source.times_keys(query)

    def over(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return scores (B, T, S)."""
        return torch.bmm(queries, keys.transpose(1, 2))  # (B, T, S)


class General(Dot):
    """General score f = q' W e_i (Luong eq. 7)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        self.key = nn.Linear(architecture.annotation, architecture.hidden_size, bias=False)


class Location(nn.Module):
    """Location-based score f = W_a q (Luong eq. 8, footnote 6).

    W_a has one row for `<s>` and one for each of the next L positions. Later positions get no weight. Luong's
    early code computed the softmax over all L positions, so that the weights of short sentences summed to less than 1.
    Here the softmax covers the positions of the sentence only.
    """

    scale = 1

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.position = nn.Linear(architecture.hidden_size, architecture.max_positions + 1, bias=False)

    def key(self, states: Tensor) -> Tensor:
        """Return empty keys (B, S, 0): this score does not use the annotations."""
        return states[:, :, :0]  # (B, S, 0)

    def forward(self, query: Tensor, source: Source, terms: list[Tensor]) -> Tensor:
        """Return scores (B, S)."""
        return self.over(query, source.keys)

    def over(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return scores (…, S) of queries (…, H)."""
        scores: Tensor = self.position(queries)  # (…, L+1)
        missing = keys.shape[1] - scores.shape[-1]
        # A negative `missing` cuts the scores to S positions.
        return nn.functional.pad(scores, (0, missing), value=float("-inf"))  # (…, S)


class Global(nn.Module):
    """Global window: all positions."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()

    def forward(self, scores: Tensor, query: Tensor, step: Tensor, source: Source) -> Tensor:
        """Return weights in the shape of the scores. They sum to 1 over S."""
        return _softmax(scores, source.bias)


class LocalMonotonic(nn.Module):
    """Window `local-m`: positions within D of p_j = min(j, I) (Luong et al. 2015, 3.2).

    The paper has p_j = j. The minimum is from Luong's code, for j > I.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.radius = architecture.window_radius

    def forward(self, scores: Tensor, query: Tensor, step: Tensor, source: Source) -> Tensor:
        """Return weights in the shape of the scores. They sum to 1 over S. `step` (B, 1) is j."""
        distance = _positions(source) - torch.minimum(step, source.source_length)  # (B, S)
        return _softmax(scores, _within(source, distance, self.radius))


class LocalPredictive(nn.Module):
    """Window `local-p`: positions within D of p_j = I · sigmoid(v' tanh(W q)), weighted by a Gaussian (Luong eq. 9-10).

    The standard deviation is D / 2. As in the paper, the weights are not renormalized, so they sum to less than 1.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.radius = architecture.window_radius
        self.hidden = nn.Linear(architecture.hidden_size, architecture.attention_size, bias=False)
        self.out = nn.Linear(architecture.attention_size, 1, bias=False)

    def forward(self, scores: Tensor, query: Tensor, step: Tensor, source: Source) -> Tensor:
        """Return weights in the shape of the scores. They sum to less than 1 over S."""
        centre = source.source_length * torch.sigmoid(self.out(torch.tanh(self.hidden(query))))  # (B, 1)
        distance = _positions(source) - centre  # (B, S)
        weights = _softmax(scores, _within(source, distance.detach(), self.radius))
        return weights * _like(torch.exp(-distance.square() / (2 * (self.radius / 2) ** 2)), scores)


def _positions(source: Source) -> Tensor:
    return torch.arange(source.bias.shape[1], device=source.bias.device, dtype=source.source_length.dtype)  # (S,)


def _within(source: Source, distance: Tensor, radius: int) -> Tensor:
    return source.bias.masked_fill(distance.abs() > radius, float("-inf"))


def _softmax(scores: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax(scores + _like(bias, scores), dim=1)  # (B, S) or (B, S, K)


def _like(values: Tensor, scores: Tensor) -> Tensor:
    """Return (B, S) values, with an additional last axis if the scores have the axis K."""
    return values if scores.dim() == 2 else values.unsqueeze(-1)  # (B, S) or (B, S, 1)


History = tuple[Carried, ...]
"""State of all terms between two steps, one entry for each term."""


class Query(NamedTuple):
    """Input of attention at one step.

    Attributes:
        state: (B, H) state of the decoder.
        word: (B, E) vector of the previous word.
        step: (B, 1) number j of the step, from 1.
    """

    state: Tensor
    word: Tensor
    step: Tensor


class Attended(NamedTuple):
    """Result of attention at one step.

    Attributes:
        context: (B, K) sum of the annotations, weighted by attention.
        row: (B, S) attention weights, or with granularity `fine` their mean over K.
        history: state of the terms for the next step.
    """

    context: Tensor
    row: Tensor
    history: History


class Attention(nn.Module):
    """Attention of a decoder: a score, a window, and optional terms."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.score = find("attention_score", architecture.attention_score)(architecture)
        self.window = find("attention_window", architecture.attention_window)(architecture)
        self.terms = nn.ModuleDict(
            {name: find("attention_terms", name)(architecture) for name in architecture.attention_terms}
        )
        self.fine = architecture.granularity == "fine"

    def keys(self, annotations: Tensor, source_length: Tensor) -> Tensor:
        """Return keys (B, S, …): annotations (B, S, K) projected once for all steps, plus the terms' constant parts.

        They are multiplied by the `scale` of the score.
        `source_length` (B, 1) is I.
        """
        keys: Tensor = self.score.key(annotations)
        positions = torch.arange(keys.shape[1], device=keys.device, dtype=source_length.dtype)  # (S,)
        for term in self._terms():
            constant = term.constant(source_length, positions)
            keys = keys if constant is None else keys + constant
        return keys if self.score.scale == 1 else keys * self.score.scale

    def start(self, source: Source) -> History:
        """Return the history before the first step."""
        return tuple(term.start(source.bias) for term in self._terms())

    def weights(self, query: Query, source: Source, history: History) -> Tensor:
        """Return attention weights (B, S), or (B, S, K) with granularity `fine`. Masked positions have weight 0."""
        terms = self._terms()
        added = [term(carried, query.step, query.word) for term, carried in zip(terms, history, strict=True)]
        row: Tensor = self.window(self.score(query.state, source, added), query.state, query.step, source)
        return row

    def forward(self, query: Query, source: Source, history: History) -> Attended:
        """Attend once: return the context, the weights and the history for the next step."""
        weights = self.weights(query, source, history)
        context = source.summed(weights, source.states)  # (B, K)
        row = weights.mean(dim=-1) if self.fine else weights  # (B, S)
        after = tuple(term.update(carried, row) for term, carried in zip(self._terms(), history, strict=True))
        return Attended(context=context, row=row, history=after)

    def over(self, queries: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Return contexts (T, B, K) and weights (T, B, S) of all steps at once, from queries (T, B, H).

        Supports only a global window without terms, with granularity `word`.
        """
        scores = self.score.over(queries.transpose(0, 1), source.keys)  # (B, T, S)
        rows = torch.softmax(scores + source.bias.unsqueeze(1), dim=2)  # (B, T, S)
        return torch.bmm(rows, source.states).transpose(0, 1), rows.transpose(0, 1)  # (T, B, K), (T, B, S)

    def _terms(self) -> list[Term]:
        return list(self.terms.values())  # type: ignore[arg-type]
