"""What a model says of a candidate, each value a sum over its tokens or made of such sums."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

FLOOR = 0.01
"""Least attention that the coverage penalty takes a source word to have: windows may never come to a word."""


class Sums(NamedTuple):
    """Sums over the tokens of N candidates, or of N prefixes, `</s>` included where the candidate ends.

    Attributes:
        log_probs: (N,) natural log of p(token).
        known: (N,) the same over the tokens of the vocabulary alone.
        unknown: (N,) tokens that are not in the vocabulary.
        entropy: (N,) nats, of the attention at every token.
        attention: (N, S) that each source position got.
    """

    log_probs: Tensor
    known: Tensor
    unknown: Tensor
    entropy: Tensor
    attention: Tensor

    def plus(self, other: "Sums") -> "Sums":
        """Add row by row."""
        return Sums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def of_tokens(log_probs: Tensor, unknown: Tensor, attention: Tensor) -> Sums:
    """Return the sums of single tokens (…), of which `attention` is (…, S), in float64."""
    log_probs, rows = log_probs.double(), attention.double()
    return Sums(log_probs, log_probs * ~unknown, unknown.double(), torch.special.entr(rows).sum(dim=-1), rows)


def _coverage(sums: Sums, real: Tensor) -> Tensor:
    return (sums.attention.clamp(FLOOR, 1).log() * real).sum(dim=1)


VALUES: dict[str, tuple[str, Callable[[Sums, Tensor], Tensor]]] = {
    "logprob": ("log-probability, </s> included", lambda sums, _: sums.log_probs),
    "known": ("the same without tokens that the model does not know", lambda sums, _: sums.known),
    "unknown": ("number of tokens that the model does not know", lambda sums, _: sums.unknown),
    "entropy": ("entropy of the attention, summed over the tokens", lambda sums, _: sums.entropy),
    "coverage": ("sum over source words of log min(1, attention) (Wu et al. 2016)", _coverage),
}
"""Name of each value, what it is, and how it is made of the sums and of what is a source word (N, S)."""


def select(names: Sequence[str], sums: Sums, real: Tensor) -> Tensor:
    """(N, names) values of candidates; `real` (N, S) is true on the words of their sources."""
    return torch.stack([VALUES[name][1](sums, real) for name in names], dim=1)
