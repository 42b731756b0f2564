"""Scores: how well a query (B, H) fits each annotation. `key` projects annotations (B, S, K), once for all steps.

`over` scores the queries (B, T, H) of all steps at once, without terms.
"""

import torch
from torch import Tensor, nn

from features.models.settings import Architecture

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
