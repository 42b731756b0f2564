"""What a model says of a candidate, each value a sum over its tokens or made of such sums."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from features.models.network.objectives import log_density

FLOOR = 0.01
"""Least attention that the coverage penalty takes a source word to have: windows may never come to a word."""
WORST = 3
"""Tokens of which the lowest log-probabilities are kept."""


class Sums(NamedTuple):
    """Sums over the tokens of N candidates, or of N prefixes, `</s>` included where the candidate ends."""

    log_probs: Tensor  # (N,) natural log of p(token)
    known: Tensor  # (N,) the same over the tokens of the vocabulary alone
    unknown: Tensor  # (N,) tokens that are not in the vocabulary
    entropy: Tensor  # (N,) nats, of the attention at every token
    attention: Tensor  # (N, S) that each source position got
    worst: Tensor  # (N, WORST) lowest log-probabilities of tokens, the lowest first; 0 where there are fewer tokens

    def plus(self, other: "Sums") -> "Sums":
        """Add single tokens row by row."""
        added = [mine + theirs for mine, theirs in zip(self[:-1], other[:-1], strict=True)]
        token, lowest = other.log_probs, []
        for column in self.worst.unbind(-1):  # (N,) each
            lowest.append(torch.minimum(column, token))
            token = torch.maximum(column, token)
        return Sums._make([*added, torch.stack(lowest, dim=-1)])  # (N, WORST)


class SourceWords(NamedTuple):
    """The source words of N candidates."""

    mask: Tensor  # (N, S) true on words
    fertility: tuple[Tensor, ...] = ()  # (N, S) mean and variance of the attention due to a word; empty if not needed


def of_tokens(log_probs: Tensor, unknown: Tensor, attention: Tensor) -> Sums:
    """Return the sums of single tokens (…), of which `attention` is (…, S), in float64."""
    log_probs, rows = log_probs.double(), attention.double()
    nothing = torch.zeros_like(log_probs).unsqueeze(-1)  # (…, 1)
    return Sums(
        log_probs=log_probs,
        known=log_probs * ~unknown,
        unknown=unknown.double(),
        entropy=torch.special.entr(rows).sum(dim=-1),  # (…)
        attention=rows,
        worst=torch.cat([log_probs.unsqueeze(-1), *[nothing] * (WORST - 1)], dim=-1),  # (…, WORST)
    )


def total(tokens: Sums) -> Sums:
    """Add single tokens (N, J) up to (N,)."""
    lowest = tokens.log_probs.sort(dim=1).values[:, :WORST]  # (N, at most WORST)
    padded = torch.nn.functional.pad(lowest, (0, WORST - lowest.shape[1]))  # (N, WORST)
    return Sums._make([*(part.sum(dim=1) for part in tokens[:-1]), padded])


def logprob(sums: Sums, source: SourceWords) -> Tensor:
    """(N,) log p of all tokens."""
    return sums.log_probs


def known(sums: Sums, source: SourceWords) -> Tensor:
    """(N,) log p of the tokens of the vocabulary."""
    return sums.known


def unknown(sums: Sums, source: SourceWords) -> Tensor:
    """(N,) number of tokens outside the vocabulary."""
    return sums.unknown


def worst(sums: Sums, source: SourceWords) -> Tensor:
    """(N,) lowest log p of a token."""
    return sums.worst[:, 0]


def worst3(sums: Sums, source: SourceWords) -> Tensor:
    """(N,) sum of the `WORST` lowest log p of tokens, or of all where there are fewer, divided by `WORST`."""
    return sums.worst.mean(dim=1)  # (N,)


def entropy(sums: Sums, source: SourceWords) -> Tensor:
    """(N,) nats."""
    return sums.entropy


def coverage(sums: Sums, source: SourceWords) -> Tensor:
    """(N,) sum_i log min(1, sum_j alpha[j, i]) (Wu et al. 2016)."""
    return (sums.attention.clamp(FLOOR, 1).log() * source.mask).sum(dim=1)  # (N,)


def deviation(sums: Sums, source: SourceWords) -> Tensor:
    """(N,) -sum_i (1 - sum_j alpha[j, i])² (Xu et al. 2015)."""
    return -((1 - sums.attention).square() * source.mask).sum(dim=1)  # (N,)


def fertility(sums: Sums, source: SourceWords) -> Tensor:
    """(N,) log-density of the fertilities by the model (Cohn et al. 2016, 3.3)."""
    mean, variance = source.fertility
    return log_density(sums.attention, mean, variance, source.mask)


def select(names: Sequence[str], sums: Sums, source: SourceWords) -> Tensor:
    """(N, names) values of rows of `features.models.tables.VALUES`, by the functions of their names, in float64."""
    columns = [globals()[name](sums, source).double() for name in names]
    return torch.stack(columns, dim=1) if columns else sums.log_probs.new_empty(len(sums.log_probs), 0)
