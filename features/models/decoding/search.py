"""Beam search: the best prefixes of each source are extended word by word, until enough of them have ended.

    sources   active prefixes, one per row      best next words of each prefix     kept
    0         the house | a house               is, was, </s> | is, has, was       for each source, the best of all
    1         there                             is, are, was                       options that fit into its beam

A finished translation keeps its slot in the beam (as in Bahdanau et al. 2015). So a beam of 1 is greedy search, and a
beam that is large enough to drop nothing finds all translations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from features.arrays import Array, Integers
from features.models.device import on_device
from features.models.folder import Model
from features.models.scoring.pairs import mean_log
from features.models.scoring.walk import Walk
from features.models.vocabulary import BEGIN, END, PADDING, UNKNOWN

LOGITS = {"cpu": 2**22, "cuda": 2**28}
"""Maximum number of log-probabilities of next words in memory at once."""


@dataclass(frozen=True)
class Beam:
    """Settings of the search.

    Attributes:
        size: maximum number of prefixes and finished translations kept for each source, at least 1.
        best: number of translations to return, at most `size`.
        normalize: compare translations by log p / tokens instead of log p, counting `</s>`.
        unknown: whether `<unk>` may be predicted.
    """

    size: int
    best: int = 1
    normalize: bool = False
    unknown: bool = True

    def value(self, log_prob: float, tokens: int) -> float:
        """Return the value by which translations are compared, higher is better. `tokens` counts `</s>`."""
        return log_prob / tokens if self.normalize else log_prob


class Ended(NamedTuple):
    """A finished translation: its tokens in the model's order, without `</s>`, and its log p in nats, with `</s>`."""

    tokens: list[int]
    log_prob: float


class _End(NamedTuple):
    """The end of a finished translation."""

    value: float
    log_prob: float
    depth: int  # number of tokens, without `</s>`
    prefix: int  # row of its last prefix among the active prefixes of that depth


class _Prefixes(NamedTuple):
    """N active prefixes of one length, ordered by source, then by log p."""

    sources: Integers  # (N,) index of the source
    words: Integers  # (N,) last token, initially `<s>`
    parents: Integers  # (N,) row of the prefix that is one token shorter, initially the source
    log_probs: Array  # (N,) natural log

    def at(self, rows: Integers) -> "_Prefixes":
        """Return the prefixes of these rows."""
        return _Prefixes._make(part[rows] for part in self)


def search(
    models: Sequence[Model], sources: Sequence[tuple[str, ...]], limits: Sequence[int], beam: Beam
) -> list[list[Ended]]:
    """Return the best translations of each source by the mean of the models' distributions, the best first.

    Args:
        models: forward models with the same target vocabulary and word order. They may be prepared by
            `preparation.prepare`.
        sources: tokens of the sources.
        limits: maximum number of tokens of each translation. After them only `</s>` is allowed.
        beam: settings of the search.

    Returns:
        `beam.best` translations of each source, or fewer if no more were found.
    """
    with torch.inference_mode():
        walks = [Walk(model, sources) for model in models]
        forbidden = [PADDING, BEGIN, *([] if beam.unknown else [UNKNOWN])]
        numbers, longest = np.arange(len(sources)), np.array(limits)
        active = _Prefixes(numbers, np.full_like(numbers, BEGIN), numbers, np.zeros(len(sources)))
        past: list[_Prefixes] = []
        ends: list[list[_End]] = [[] for _ in sources]
        while len(active.words):
            past.append(active)
            remaining = longest[active.sources] - len(past) + 1  # (N,) number of tokens still allowed before `</s>`
            options = _options(walks, active, remaining, beam.size, forbidden)
            free_slots = np.array([beam.size - len(each) for each in ends])  # (sources,)
            selected = _select(options, free_slots)
            for row in np.flatnonzero(selected.words == END).tolist():
                log_prob = float(selected.log_probs[row])
                end = _End(beam.value(log_prob, len(past)), log_prob, len(past) - 1, int(selected.parents[row]))
                ends[selected.sources[row]].append(end)
            active = _prune(selected.at(np.flatnonzero(selected.words != END)), ends, longest, beam)
    return [[_trace(past, end) for end in _best(each, beam)] for each in ends]


def _options(
    walks: Sequence[Walk], active: _Prefixes, remaining: Integers, size: int, forbidden: list[int]
) -> _Prefixes:
    """Return the `size` best next tokens of each prefix, only `</s>` at the length limit, and advance the walks."""
    words_known = len(walks[0].network.target_embedding.weight)
    rows = max(1, min(LOGITS[walks[0].source.bias.device.type] // words_known, *(walk.max_prefixes for walk in walks)))
    states, tops = [], []
    for start in range(0, len(active.words), rows):
        part = active.at(np.arange(start, min(start + rows, len(active.words))))
        steps = [walk.step(part.sources, part.words, part.parents) for walk in walks]
        distributions = [
            walk.network.softmax.all_log_probs(step.outputs, step.lexical)
            for walk, step in zip(walks, steps, strict=True)
        ]
        tops.append(_best_words(mean_log(distributions), remaining[start : start + rows], size, forbidden))
        states.append([step.state for step in steps])
    for walk, parts in zip(walks, zip(*states, strict=True), strict=True):
        walk.advance(parts)
    log_probs, words = (np.concatenate(parts) for parts in zip(*tops, strict=True))  # (N, size) both
    prefixes, ranks = np.nonzero(np.isfinite(log_probs))  # (M,) both
    return _Prefixes(
        sources=active.sources[prefixes],
        words=words[prefixes, ranks],
        parents=prefixes,
        log_probs=active.log_probs[prefixes] + log_probs[prefixes, ranks],
    )


def _best_words(log_probs: Tensor, remaining: Integers, size: int, forbidden: list[int]) -> tuple[Array, Integers]:
    """Return log p of the best words, (N, size), and their indices, from log p (N, V) of all words.

    `log_probs` is changed in place. The order of ties is undefined.
    """
    for word in forbidden:
        log_probs[:, word] = float("-inf")
    full = on_device(np.flatnonzero(remaining == 0), log_probs.device)  # (n,) prefixes at their length limit
    ends = log_probs[full, END]  # (n,)
    log_probs[full] = float("-inf")
    log_probs[full, END] = ends
    best, words = log_probs.topk(min(size, log_probs.shape[1]), dim=1)  # (N, size) both
    return best.double().cpu().numpy(), words.cpu().numpy()


def _select(options: _Prefixes, free_slots: Integers) -> _Prefixes:
    """Return the most probable options of each source, as many as it has free slots (sources,), on ties the first."""
    order = np.lexsort((-options.log_probs, options.sources))  # (M,) source by source, best first
    sources = options.sources[order]  # (M,) ascending
    ranks = np.arange(len(order)) - np.searchsorted(sources, sources)  # (M,) rank among the options of the same source
    return options.at(order[ranks < free_slots[sources]])


def _prune(active: _Prefixes, ends: list[list[_End]], longest: Integers, beam: Beam) -> _Prefixes:
    """Drop prefixes that can no longer be among the best.

    log p only falls with each token. log p / tokens is at most the present log p divided by the maximum number of
    tokens.
    """
    # lowest value among the best ends of each source
    lowest = [best[-1].value if len(best := _best(each, beam)) == beam.best else -np.inf for each in ends]
    values = [
        beam.value(log_prob, int(longest[source]) + 1)
        for log_prob, source in zip(active.log_probs.tolist(), active.sources.tolist(), strict=True)
    ]
    return active.at(np.flatnonzero(np.array(values) > np.array(lowest)[active.sources]))


def _best(ends: list[_End], beam: Beam) -> list[_End]:
    return sorted(ends, key=lambda end: -end.value)[: beam.best]


def _trace(past: Sequence[_Prefixes], end: _End) -> Ended:
    """Return the tokens of a translation, by following its prefixes back from the end."""
    tokens, row = [], end.prefix
    for prefixes in past[end.depth : 0 : -1]:
        tokens.append(int(prefixes.words[row]))
        row = int(prefixes.parents[row])
    return Ended(tokens[::-1], end.log_prob)
