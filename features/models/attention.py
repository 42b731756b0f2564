"""Attention: a score of the query against every key, and terms that look at the attention so far.

Axes: B batch, S source positions, A attention, H hidden. Source positions count the sentinels: `<s>` is 0, words are
1 … I, `</s>` is I+1.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.encoder import Annotations
from features.models.settings import Architecture

NEIGHBOURS = 1
"""k, the source positions on each side that the Markov and fertility terms see (Cohn et al. are silent; as mantis)."""

History = tuple[Tensor, ...]
"""What each term carries to the next step; every tensor has B rows."""


class Source(NamedTuple):
    """Encoded source sentences with all that does not change from step to step. Rows can be gathered.

    Attributes:
        states: (B, S, 2H) annotations.
        keys: (B, S, A) projected annotations, with the constant part of the terms.
        bias: (B, S) 0 on real positions, minus infinity on padding.
        first: (B, H) what the decoder's first state is made of.
    """

    states: Tensor
    keys: Tensor
    bias: Tensor
    first: Tensor

    def gather(self, rows: Tensor) -> "Source":
        """Return the source with row `rows[n]` at n."""
        return Source(*(tensor.index_select(0, rows) for tensor in self))


class Term(Protocol):
    """A term inside the additive score; `state` is what it remembers of the steps before."""

    def constant(self, mask: Tensor) -> Tensor | None:
        """(B, S, A) what does not change from step to step, added to the keys."""

    def start(self, bias: Tensor) -> Tensor:
        """(B, …) the state before the first step."""

    def __call__(self, state: Tensor) -> Tensor:
        """(B, S or 1, A) what is added at this step."""

    def update(self, state: Tensor, row: Tensor) -> Tensor:
        """(B, …) the state after a step that attended by `row` (B, S)."""


class Position(nn.Module):
    """Position bias: log(1+j), log(1+i), log(1+I) of target step, source position, source words (Cohn eq. 6)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.target = nn.Linear(1, architecture.attention, bias=False)
        self.source = nn.Linear(2, architecture.attention, bias=False)

    def constant(self, mask: Tensor) -> Tensor:
        """Return what only the source sets; I leaves the two sentinels out."""
        dtype = self.source.weight.dtype
        words = mask.sum(dim=1, keepdim=True).to(dtype) - 2
        positions = torch.arange(mask.shape[1], device=mask.device, dtype=dtype).expand_as(mask)
        values = torch.stack([positions, words.expand_as(mask)], dim=-1)
        projected: Tensor = self.source(torch.log1p(values))
        return projected

    def start(self, bias: Tensor) -> Tensor:
        """(B, 1, 1) the number of the step, from 1."""
        return bias.new_ones(bias.shape[0], 1, 1)

    def forward(self, state: Tensor) -> Tensor:
        """(B, 1, A)."""
        projected: Tensor = self.target(torch.log1p(state))
        return projected

    def update(self, state: Tensor, row: Tensor) -> Tensor:
        """Count the step."""
        return state + 1


class Markov(nn.Module):
    """Markov condition: the attention of the step before, around each position (Cohn eq. 7)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.window = nn.Linear(2 * NEIGHBOURS + 1, architecture.attention, bias=False)

    def constant(self, mask: Tensor) -> None:
        """Return nothing: all of it is history."""
        return

    def start(self, bias: Tensor) -> Tensor:
        """(B, S) no attention yet."""
        return torch.zeros_like(bias)

    def forward(self, state: Tensor) -> Tensor:
        """(B, S, A) of the windows state[i-k … i+k], 0 outside the sentence."""
        padded = functional.pad(state, (NEIGHBOURS, NEIGHBOURS))
        shifted = [padded[:, k : k + state.shape[1]] for k in range(2 * NEIGHBOURS + 1)]
        projected: Tensor = self.window(torch.stack(shifted, dim=-1))
        return projected

    def update(self, state: Tensor, row: Tensor) -> Tensor:
        """Keep the last row."""
        return row


class Fertility(Markov):
    """Local fertility: the sum of the attention of all steps before, around each position (Cohn 3.3)."""

    def update(self, state: Tensor, row: Tensor) -> Tensor:
        """Add the row."""
        return state + row


class Additive(nn.Module):
    """f = v' tanh(W_e e_i + W_h q + terms) (Bahdanau et al. 2015; Cohn eq. 5)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.key = nn.Linear(2 * architecture.hidden, architecture.attention, bias=False)
        self.query = nn.Linear(architecture.hidden, architecture.attention, bias=False)
        self.out = nn.Linear(architecture.attention, 1, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """(B, S, A)."""
        projected: Tensor = self.key(states)
        return projected

    def forward(self, query: Tensor, keys: Tensor, extra: list[Tensor]) -> Tensor:
        """(B, S) from a query (B, H), keys (B, S, A) and terms that broadcast to the keys."""
        hidden = self.query(query).unsqueeze(1)
        for term in extra:
            hidden = hidden + term
        scores: Tensor = self.out(torch.tanh(keys + hidden)).squeeze(-1)
        return scores


class Attention(nn.Module):
    """Score and terms together: where to look at this step, and what is seen there."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.score = SCORES[architecture.score](architecture)
        self.terms = nn.ModuleDict({name: TERMS[name](architecture) for name in architecture.terms})

    def source(self, annotations: Annotations, mask: Tensor) -> Source:
        """Project the annotations once for all steps; `mask` (B, S) is true on real positions."""
        keys = self.score.keys(annotations.states)
        for term in self._terms():
            constant = term.constant(mask)
            keys = keys if constant is None else keys + constant
        bias = keys.new_zeros(mask.shape).masked_fill(~mask, float("-inf"))
        return Source(annotations.states, keys, bias, annotations.first)

    def start(self, source: Source) -> History:
        """Return the history before the first step."""
        return tuple(term.start(source.bias) for term in self._terms())

    def forward(self, query: Tensor, source: Source, history: History) -> tuple[Tensor, Tensor, History]:
        """Attend once.

        Returns:
            (B, 2H) context, (B, S) row of attention that sums to 1 and is 0 on padding, and the next history.
        """
        terms = self._terms()
        extra = [term(state) for term, state in zip(terms, history, strict=True)]
        row = torch.softmax(self.score(query, source.keys, extra) + source.bias, dim=-1)
        context = torch.bmm(row.unsqueeze(1), source.states).squeeze(1)
        return context, row, tuple(term.update(state, row) for term, state in zip(terms, history, strict=True))

    def _terms(self) -> list[Term]:
        return list(self.terms.values())  # type: ignore[arg-type]


SCORES = {"additive": Additive}
TERMS: dict[str, type[Position] | type[Markov] | type[Fertility]] = {
    "position": Position,
    "markov": Markov,
    "fertility": Fertility,
}
