"""What a model says of a candidate, each value a sum over its tokens or made of such sums."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from features.models.network.objectives import log_density

FLOOR = 0.01
"""Least attention that the coverage penalty takes a source word to have: windows may never come to a word."""
WORST = 3
"""Tokens of which the lowest log-probabilities are kept."""


class Sums(NamedTuple):
    """Sums over the tokens of N candidates, or of N prefixes, `</s>` included where the candidate ends.

    Attributes:
        log_probs: (N,) natural log of p(token).
        known: (N,) the same over the tokens of the vocabulary alone.
        unknown: (N,) tokens that are not in the vocabulary.
        entropy: (N,) nats, of the attention at every token.
        attention: (N, S) that each source position got.
        worst: (N, WORST) lowest log-probabilities of tokens, the lowest first; 0 where there are fewer tokens.
    """

    log_probs: Tensor
    known: Tensor
    unknown: Tensor
    entropy: Tensor
    attention: Tensor
    worst: Tensor

    def plus(self, other: "Sums") -> "Sums":
        """Add single tokens row by row."""
        added = [mine + theirs for mine, theirs in zip(self[:-1], other[:-1], strict=True)]
        token, worst = other.log_probs, []
        for column in self.worst.unbind(-1):
            worst.append(torch.minimum(column, token))
            token = torch.maximum(column, token)
        return Sums._make([*added, torch.stack(worst, dim=-1)])


class Words(NamedTuple):
    """The source words of N candidates.

    Attributes:
        real: (N, S) true on words.
        fertility: mean and variance, (N, S) each, of how much attention a word should get; empty if not asked for.
    """

    real: Tensor
    fertility: tuple[Tensor, ...] = ()


def of_tokens(log_probs: Tensor, unknown: Tensor, attention: Tensor) -> Sums:
    """Return the sums of single tokens (…), of which `attention` is (…, S), in float64."""
    log_probs, rows = log_probs.double(), attention.double()
    entropy = torch.special.entr(rows).sum(dim=-1)
    worst = torch.cat([log_probs.unsqueeze(-1), *[torch.zeros_like(log_probs).unsqueeze(-1)] * (WORST - 1)], dim=-1)
    return Sums(log_probs, log_probs * ~unknown, unknown.double(), entropy, rows, worst)


def total(tokens: Sums) -> Sums:
    """Add single tokens (N, J) up to (N,)."""
    lowest = tokens.log_probs.sort(dim=1).values[:, :WORST]
    worst = torch.nn.functional.pad(lowest, (0, WORST - lowest.shape[1]))
    return Sums._make([*(part.sum(dim=1) for part in tokens[:-1]), worst])


def _coverage(sums: Sums, words: Words) -> Tensor:
    return (sums.attention.clamp(FLOOR, 1).log() * words.real).sum(dim=1)


def _deviation(sums: Sums, words: Words) -> Tensor:
    return -((1 - sums.attention).square() * words.real).sum(dim=1)


def _fertility(sums: Sums, words: Words) -> Tensor:
    mean, variance = words.fertility
    return log_density(sums.attention, mean, variance, words.real)


_MAKERS: dict[str, Callable[[Sums, Words], Tensor]] = {
    "logprob": lambda sums, _: sums.log_probs,
    "known": lambda sums, _: sums.known,
    "unknown": lambda sums, _: sums.unknown,
    "worst": lambda sums, _: sums.worst[:, 0],
    "worst3": lambda sums, _: sums.worst.mean(dim=1),
    "entropy": lambda sums, _: sums.entropy,
    "coverage": _coverage,
    "deviation": _deviation,
    "fertility": _fertility,
}


def select(names: Sequence[str], sums: Sums, words: Words) -> Tensor:
    """(N, names) values, of those in `features.feature.VALUES`."""
    columns = [_MAKERS[name](sums, words).double() for name in names]
    return torch.stack(columns, dim=1) if columns else sums.log_probs.new_empty(len(sums.log_probs), 0)
