"""Log-probabilities of candidates, which share prefixes.

The candidates of a sentence form a tree of tokens. Where it branches, all prefixes of the same length are computed
together, one token after the other. The rest of a candidate after its last branch is computed at once.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from features.arrays import Array, Integers
from features.feature import Steps
from features.models.device import is_out_of_memory, on_device
from features.models.pretrained.network import Network, padded
from features.progress import log
from moses_io.files.errors import InputError

CALL = 64
"""Cost of one call of the network, as a number of tokens (`docs/lab/speed.md`)."""

TOLERANCE = 1e-3
"""Relative difference of values in float32 that are equal."""

Candidate = tuple[int, tuple[int, ...]]
"""Index of a sentence, and the tokens of one of its candidates."""


@torch.inference_mode()
def score_prefixes(
    network: Network, sources: Sequence[Sequence[int]], candidates: Sequence[Candidate], size: int
) -> tuple[Array, Steps]:
    """Return the log-probabilities of N candidates, (N,), and the decoder steps that were taken.

    Args:
        network: the network.
        sources: tokens of the source of each sentence.
        candidates: different candidates. Those of a sentence are neighbours and sorted by their tokens.
        size: maximum number of tokens, with padding, in a batch of suffixes (the tokens of a candidate after its last
            shared prefix).
    """
    walk = _Walk(network, sources, candidates)
    while len(walk.active):
        walk.advance(size)
    return walk.scores, Steps(computed=walk.computed, separate=sum(len(tokens) for _, tokens in candidates))


@torch.inference_mode()
def score_separately(network: Network, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Array:
    """Return the log-probability of the second of each pair given the first, (n,), in one batch without a cache."""
    logits, targets, mask = logits_of(network, pairs)  # (n, L, V), (n, L), (n, L)
    values: Array = (_log_probs(logits, targets).double() * mask).sum(dim=1).cpu().numpy()  # (n,)
    return values


def logits_of(network: Network, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the logits of each target token (n, L, V) given the first of each pair, targets and their mask (n, L)."""
    targets, mask = padded([target for _, target in pairs], network.device)  # (n, L) each
    starts = torch.tensor([[network.start(source)] for source, _ in pairs], device=network.device)  # (n, 1)
    logits = network.whole([source for source, _ in pairs], torch.cat([starts, targets[:, :-1]], dim=1))  # (n, L, V)
    return logits, targets, mask


class Abilities(NamedTuple):
    """Optimizations that a network supports without changing values."""

    shares: bool  # sharing the prefixes of candidates
    pads: bool  # scoring padded batches


def find_abilities(network: Network, sizes: tuple[int, int], tolerance: float) -> Abilities:
    """Find out whether prefixes can be shared, and padded batches scored, without changing values.

    Args:
        network: the network.
        sizes: number of tokens that it knows in source and target.
        tolerance: relative difference of values that are equal.

    Raises:
        InputError: the value of a token depends on later tokens.
    """
    known = min(sizes)
    sources = [tuple(token % known for token in source) for source in ((3, 2), (3, 5, 2))]
    targets = [(0, (4, 5, 2)), (0, (4, 6, 7, 2)), (0, (4, 6, 8, 2)), (1, (4, 2)), (1, (5, 6, 2))]
    candidates = sorted({(number, tuple(token % known for token in target)) for number, target in targets})
    pairs = [(sources[number], target) for number, target in candidates]
    separate = [score_separately(network, [pair])[0] for pair in pairs]
    if any(_depends_on_later(network, source, target, tolerance) for source, target in pairs):
        raise InputError("not a causal language model, as tokens depend on later ones")
    pads = np.allclose(score_separately(network, pairs), separate, rtol=tolerance)
    try:
        shared, _ = score_prefixes(network, sources, candidates, size=4)
    except Exception as error:  # networks raise many types
        if is_out_of_memory(error):
            raise
        log.debug(str(error))
        shared = np.full(len(candidates), np.nan)
    return Abilities(np.allclose(shared, separate, rtol=tolerance), pads)


@torch.inference_mode()
def _depends_on_later(network: Network, source: Sequence[int], target: Sequence[int], tolerance: float) -> bool:
    """Return whether the distribution of a token changes with a later token, by more than a relative tolerance."""
    inputs = torch.tensor([[network.start(source), *target[:-1]]], device=network.device)  # (1, L)
    changed = inputs.clone()
    changed[0, -1] = network.start(source)
    one, other = (network.whole([source], each)[:, :-1].log_softmax(dim=-1) for each in (inputs, changed))
    return not torch.allclose(one, other, rtol=tolerance, atol=tolerance)


class _Walk:
    """A walk through the trees of some sentences, from shorter to longer prefixes.

    Attributes:
        scores: (N,) log-probabilities of the candidates' tokens so far.
        computed: number of decoder steps that were computed.
        active: (active,) candidates that are longer than the current prefixes.
    """

    def __init__(self, network: Network, sources: Sequence[Sequence[int]], candidates: Sequence[Candidate]) -> None:
        self.scores, self.computed = np.zeros(len(candidates)), 0
        self._network, self._depth = network, 0
        self._lengths = np.array([len(tokens) for _, tokens in candidates], dtype=np.int64)  # (N,)
        self._tokens = np.zeros((len(candidates), max(self._lengths, default=0)), dtype=np.int64)  # (N, longest)
        for row, (_, tokens) in enumerate(candidates):
            self._tokens[row, : len(tokens)] = tokens
        self.active = np.flatnonzero(self._lengths)  # (active,)
        # Index of the prefix of each active candidate, and of each prefix its last token and the row of its parent in
        # the state. At first, the prefixes are the start tokens of the sentences.
        sentences = {sentence: row for row, sentence in enumerate(dict.fromkeys(each for each, _ in candidates))}
        self._prefixes = np.array([sentences[each] for each, _ in candidates], dtype=np.int64)[self.active]  # (active,)
        self._state, starts = network.begin([sources[each] for each in sentences])
        self._last, self._parents = np.array(starts, dtype=np.int64), np.arange(len(starts))  # (prefixes,) each

    def advance(self, size: int) -> None:
        """Score the next token of active candidates, and all tokens of those whose prefix no other one has."""
        unshared = np.bincount(self._prefixes)[self._prefixes] == 1  # (active,)
        candidates, prefixes = self.active[unshared], self._prefixes[unshared]  # (n,) each
        order = np.argsort(-self._lengths[candidates], kind="stable")  # (n,), longest first
        for part in _batches(self._lengths[candidates[order]] - self._depth, size):
            self._score_suffixes(candidates[order[part]], prefixes[order[part]])
        self.active, self._prefixes = self.active[~unshared], self._prefixes[~unshared]
        if len(self.active):
            self._branch()

    def _score_suffixes(self, candidates: Integers, prefixes: Integers) -> None:
        """Score the remaining tokens of candidates, given their prefixes, (n,) each."""
        suffixes = [self._tokens[each, self._depth : self._lengths[each]] for each in candidates]
        targets, mask = padded([suffix.tolist() for suffix in suffixes], self._network.device)  # (n, L) each
        last = on_device(self._last[prefixes], self._network.device)  # (n,)
        inputs = torch.cat([last.unsqueeze(1), targets[:, :-1]], dim=1)  # (n, L)
        rows = on_device(self._parents[prefixes], self._network.device)  # (n,)
        logits, _ = self._network.step(self._state, rows, inputs, keep=False)  # (n, L, V)
        self.scores[candidates] += (_log_probs(logits, targets).double() * mask).sum(dim=1).cpu().numpy()
        self.computed += int(mask.sum())

    def _branch(self) -> None:
        """Score the next token of all active candidates, and make the longer prefixes current."""
        prefixes, prefix_indices = np.unique(self._prefixes, return_inverse=True)  # (prefixes,), (active,)
        rows, inputs = on_device(self._parents[prefixes], self._network.device), self._last[prefixes]
        logits, self._state = self._network.step(
            self._state, rows, on_device(inputs[:, None], self._network.device), keep=True
        )  # (prefixes, 1, V)
        self.computed += len(prefixes)
        following = self._tokens[self.active, self._depth]  # (active,)
        self.scores[self.active] += _chosen(logits[:, 0], prefix_indices, following)
        self._depth += 1
        longer = self._lengths[self.active] > self._depth  # (active,)
        self.active, prefix_indices, following = self.active[longer], prefix_indices[longer], following[longer]
        _, first, self._prefixes = np.unique(prefix_indices << 32 | following, return_index=True, return_inverse=True)
        self._parents, self._last = prefix_indices[first], following[first]  # (prefixes,) each


def _batches(lengths: Integers, size: int) -> Iterator[slice]:
    """Yield batches of candidates, so that padding and calls of the network take the least time.

    Args:
        lengths: (n,) number of tokens of each candidate, in descending order.
        size: maximum number of tokens in a batch with several candidates, with padding.
    """
    if not len(lengths):
        return
    # A batch ends where the length changes.
    boundaries = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(lengths)]
    costs, starts = [0], [0]  # least cost of the candidates before each boundary, and start of their last batch
    for end in boundaries[1:]:
        options = [
            (cost + CALL + (end - boundary) * int(lengths[boundary]), number)
            for number, (cost, boundary) in enumerate(zip(costs, boundaries, strict=False))
        ]
        cost, start = min(options)
        costs.append(cost)
        starts.append(start)
    number, batches = len(boundaries) - 1, []
    while number:
        batches.append((boundaries[starts[number]], boundaries[number]))
        number = starts[number]
    for start, end in batches:
        rows = max(1, size // int(lengths[start]))
        yield from (slice(first, min(first + rows, end)) for first in range(start, end, rows))


def _at_least_float32(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()


def _log_probs(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the log-probability of each target, (n, L), from logits (n, L, V)."""
    logits = _at_least_float32(logits)
    return logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(dim=-1)  # (n, L)


def _chosen(logits: Tensor, rows: Integers, tokens: Integers) -> Array:
    """Return the log-probabilities of some tokens, (n,), from logits (rows, V)."""
    logits = _at_least_float32(logits)
    row_indices = on_device(rows, logits.device)  # (n,)
    found = logits[row_indices, on_device(tokens, logits.device)] - logits.logsumexp(dim=-1)[row_indices]  # (n,)
    values: Array = found.double().cpu().numpy()
    return values
