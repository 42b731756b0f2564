"""Attention: scores, windows, and both together with terms.

Scores say how well a query (B, H) fits each annotation: `key` projects annotations (B, S, K), once for all steps, and
`over` scores the queries (B, T, H) of all steps at once, without terms. Windows make weights of scores, over all
positions or those around one. Scores are (B, S), or (B, S, K) where fine.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.network.source import Source
from features.models.network.terms import Carried, Term
from features.models.settings import Architecture
from features.models.tables import find

SLICE = 2**20
"""Numbers of the hidden layer of the additive score that are reckoned at once, where all steps are scored."""


class Additive(nn.Module):
    """f = v' tanh(W_e e_i + W_h q + terms) (Bahdanau et al. 2015; Cohn eq. 5).

    Reckoned as v' (2 sigmoid(2x) - 1), which is the same and on a CPU three times as fast as torch's tanh. With
    granularity `fine`, v is a matrix with a row for each dimension of the annotation (Choi et al. 2018, AttY2D).

    Without terms it is the score `concat` of Luong et al. 2015 (eq. 7), v' tanh(W [q; e_i]) with W cut in two. They
    held the half of W on e_i at the identity (footnote 15), which did badly; here it is learned.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.key = nn.Linear(architecture.annotation, architecture.attention, bias=False)
        self.query = nn.Linear(architecture.hidden, architecture.attention, bias=False)
        self.fine = architecture.granularity == "fine"
        self.out = nn.Linear(architecture.attention, architecture.annotation if self.fine else 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, terms: list[Tensor]) -> Tensor:
        """(B, S), or (B, S, K) where fine; terms broadcast to the keys."""
        hidden = self.query(query).unsqueeze(1)  # (B, 1, A)
        for term in terms:
            hidden = hidden + term
        halves = torch.sigmoid_((keys + hidden).mul_(2))  # (B, S, A)
        scores: Tensor = 2 * self.out(halves) - self.out.weight.sum(dim=1)  # (B, S, K) or (B, S, 1)
        return scores if self.fine else scores.squeeze(-1)  # (B, S, K) or (B, S)

    def over(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(B, T, S), some steps at a time."""
        steps = max(1, SLICE // keys.numel())
        return torch.cat([self._scores(part, keys) for part in torch.split(queries, steps, dim=1)], dim=1)  # (B, T, S)

    def _scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        hidden = keys.unsqueeze(1) + self.query(queries).unsqueeze(2)  # (B, T, S, A)
        scores: Tensor = 2 * self.out(torch.sigmoid_(hidden.mul_(2))) - self.out.weight.sum()  # (B, T, S, 1)
        return scores.squeeze(-1)  # (B, T, S)


class Dot(nn.Module):
    """f = q' e_i (Luong eq. 7)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.key: nn.Module = nn.Identity()

    def forward(self, query: Tensor, keys: Tensor, terms: list[Tensor]) -> Tensor:
        """(B, S)."""
        return torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1)  # (B, S)

    def over(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(B, T, S)."""
        return torch.bmm(queries, keys.transpose(1, 2))  # (B, T, S)


class General(Dot):
    """f = q' W e_i (Luong eq. 7)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        self.key = nn.Linear(architecture.annotation, architecture.hidden, bias=False)


class Location(nn.Module):
    """f = W_a q, a row of W_a for `<s>` and for each of the next L positions (Luong eq. 8, footnote 6).

    Positions past L get none. Luong's early code took the softmax over all L, so that rows of short sentences summed
    below 1; here it runs over the sentence.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.position = nn.Linear(architecture.hidden, architecture.positions + 1, bias=False)

    def key(self, states: Tensor) -> Tensor:
        """(B, S, 0) nothing: the score does not look at annotations."""
        return states[:, :, :0]  # (B, S, 0)

    def forward(self, query: Tensor, keys: Tensor, terms: list[Tensor]) -> Tensor:
        """(B, S)."""
        return self.over(query, keys)

    def over(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(…, S)."""
        scores: Tensor = self.position(queries)  # (…, L+1)
        missing = keys.shape[1] - scores.shape[-1]
        return nn.functional.pad(scores, (0, missing), value=float("-inf"))  # (…, S)


class Global(nn.Module):
    """All positions."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()

    def forward(self, scores: Tensor, query: Tensor, step: Tensor, source: Source) -> Tensor:
        """Weights like the scores, which sum to 1 over S."""
        return _softmax(scores, source.bias)


class LocalMonotonic(nn.Module):
    """local-m: positions within D of p_j = min(j, I) (Luong et al. 2015, 3.2, and Luong's code for j > I)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.reach = architecture.reach

    def forward(self, scores: Tensor, query: Tensor, step: Tensor, source: Source) -> Tensor:
        """Weights like the scores, which sum to 1 over S; `step` (B, 1) is j."""
        distance = _positions(source) - torch.minimum(step, source.source_length)  # (B, S)
        return _softmax(scores, _within(source, distance, self.reach))


class LocalPredictive(nn.Module):
    """local-p: positions within D of p_j = I · sigmoid(v' tanh(W q)), weighted by a Gaussian (Luong eq. 9-10).

    The deviation is D / 2. The weights are not renormalized, as in the paper, and sum below 1.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.reach = architecture.reach
        self.hidden = nn.Linear(architecture.hidden, architecture.attention, bias=False)
        self.out = nn.Linear(architecture.attention, 1, bias=False)

    def forward(self, scores: Tensor, query: Tensor, step: Tensor, source: Source) -> Tensor:
        """Weights like the scores."""
        centre = source.source_length * torch.sigmoid(self.out(torch.tanh(self.hidden(query))))  # (B, 1)
        distance = _positions(source) - centre  # (B, S)
        weights = _softmax(scores, _within(source, distance.detach(), self.reach))
        return weights * _like(torch.exp(-distance.square() / (2 * (self.reach / 2) ** 2)), scores)


def _positions(source: Source) -> Tensor:
    return torch.arange(source.bias.shape[1], device=source.bias.device, dtype=source.source_length.dtype)  # (S,)


def _within(source: Source, distance: Tensor, reach: int) -> Tensor:
    return source.bias.masked_fill(distance.abs() > reach, float("-inf"))


def _softmax(scores: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax(scores + _like(bias, scores), dim=1)  # (B, S) or (B, S, K)


def _like(values: Tensor, scores: Tensor) -> Tensor:
    """Give (B, S) values the axis K if the scores have it."""
    return values if scores.dim() == 2 else values.unsqueeze(-1)  # (B, S) or (B, S, 1)


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

    def keys(self, annotations: Tensor, source_length: Tensor) -> Tensor:
        """(B, S, …) annotations (B, S, K) projected once for all steps; `source_length` (B, 1) is I."""
        keys: Tensor = self.score.key(annotations)
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
        row: Tensor = self.window(self.score(query.state, source.keys, added), query.state, query.step, source)
        return row

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
