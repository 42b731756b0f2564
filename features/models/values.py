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


_MAKERS: dict[str, Callable[[Sums, Tensor], Tensor]] = {
    "logprob": lambda sums, _: sums.log_probs,
    "known": lambda sums, _: sums.known,
    "unknown": lambda sums, _: sums.unknown,
    "entropy": lambda sums, _: sums.entropy,
    "coverage": _coverage,
}


def select(names: Sequence[str], sums: Sums, real: Tensor) -> Tensor:
    """(N, names) values, of those in `features.feature.VALUES`; `real` (N, S) is true on the words of the sources."""
    return torch.stack([_MAKERS[name](sums, real) for name in names], dim=1)
