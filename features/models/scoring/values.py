"""Values of a candidate by a model: sums over its tokens, or functions of such sums."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from features.models.network.objectives import log_density

FLOOR = 0.01
"""Minimum attention of a source word in the coverage penalty: a window may exclude a word, and log 0 is infinite."""
WORST = 3
"""Number of lowest token log-probabilities that are kept."""


class Sums(NamedTuple):
    """Sums over the tokens of N candidates, which include `</s>`, or of N prefixes."""

    log_probs: Tensor  # (N,) natural log of p(token)
    known: Tensor  # (N,) natural log of p(token), of tokens in the vocabulary only
    unknown: Tensor  # (N,) number of tokens that are not in the vocabulary
    entropy: Tensor  # (N,) entropy of the attention at each token, in nats
    attention: Tensor  # (N, S) attention on each source position
    worst: Tensor  # (N, WORST) lowest log-probabilities of tokens, ascending, filled up with 0

    def plus(self, other: "Sums") -> "Sums":
        """Add a single token in each row."""
        added = [mine + theirs for mine, theirs in zip(self[:-1], other[:-1], strict=True)]
        token, lowest = other.log_probs, []
        for column in self.worst.unbind(-1):  # (N,) each
            # Insertion into ascending values: the larger of both moves on to the next column.
            lowest.append(torch.minimum(column, token))
            token = torch.maximum(column, token)
        return Sums._make([*added, torch.stack(lowest, dim=-1)])  # (N, WORST)


class SourceWords(NamedTuple):
    """Source words of N candidates."""

    mask: Tensor  # (N, S) true on words
    fertility: tuple[Tensor, ...] = ()  # (N, S) mean and variance of expected attention, empty if not needed


def of_tokens(log_probs: Tensor, unknown: Tensor, attention: Tensor) -> Sums:
    """Return sums over single tokens (…), in float64. `attention` is (…, S)."""
    log_probs, rows = log_probs.double(), attention.double()
    nothing = torch.zeros_like(log_probs).unsqueeze(-1)  # (…, 1)
    return Sums(
        log_probs=log_probs,
        known=torch.where(unknown, 0.0, log_probs),
        unknown=unknown.double(),
        entropy=torch.special.entr(rows).sum(dim=-1),  # (…)
        attention=rows,
        worst=torch.cat([log_probs.unsqueeze(-1), *[nothing] * (WORST - 1)], dim=-1),  # (…, WORST)
    )


def total(tokens: Sums) -> Sums:
    """Add up single tokens (N, J) to sums (N,)."""
    lowest = tokens.log_probs.sort(dim=1).values[:, :WORST]  # (N, at most WORST)
    padded = torch.nn.functional.pad(lowest, (0, WORST - lowest.shape[1]))  # (N, WORST)
    return Sums._make([*(part.sum(dim=1) for part in tokens[:-1]), padded])  # (N,) or (N, S) each, (N, WORST)


def logprob(sums: Sums, source: SourceWords) -> Tensor:
    """Return log p of all tokens, (N,)."""
    return sums.log_probs


def known(sums: Sums, source: SourceWords) -> Tensor:
    """Return log p of the tokens in the vocabulary, (N,)."""
    return sums.known


def unknown(sums: Sums, source: SourceWords) -> Tensor:
    """Return the number of tokens outside the vocabulary, (N,)."""
    return sums.unknown


def worst(sums: Sums, source: SourceWords) -> Tensor:
    """Return the lowest log p of a token, (N,)."""
    return sums.worst[:, 0]


def worst3(sums: Sums, source: SourceWords) -> Tensor:
    """Return the sum of the `WORST` lowest log p of tokens, or of all if there are fewer, divided by `WORST`, (N,)."""
    return sums.worst.mean(dim=1)  # (N,)


def entropy(sums: Sums, source: SourceWords) -> Tensor:
    """Return the entropy of attention in nats, (N,)."""
    return sums.entropy


def coverage(sums: Sums, source: SourceWords) -> Tensor:
    """Return the coverage penalty sum_i log min(1, max(`FLOOR`, sum_j alpha[j, i])), (N,).

    Wu et al. 2016 have a factor beta and no floor.
    """
    return (sums.attention.clamp(FLOOR, 1).log() * source.mask).sum(dim=1)  # (N,)


def deviation(sums: Sums, source: SourceWords) -> Tensor:
    """Return -sum_i (1 - sum_j alpha[j, i])², (N,) (Xu et al. 2015)."""
    return -((1 - sums.attention).square() * source.mask).sum(dim=1)  # (N,)


def fertility(sums: Sums, source: SourceWords) -> Tensor:
    """Return the log-density of the fertilities by the model's global fertility, (N,) (Cohn et al. 2016, 3.3)."""
    mean, variance = source.fertility
    return log_density(sums.attention, mean, variance, source.mask)


def select(names: Sequence[str], sums: Sums, source: SourceWords) -> Tensor:
    """Return the values of these names, rows of `features.models.tables.VALUES`, (N, names) in float64.

    A name is also the name of a function of this module.
    """
    columns = [globals()[name](sums, source).double() for name in names]
    return torch.stack(columns, dim=1) if columns else sums.log_probs.new_empty(len(sums.log_probs), 0)
