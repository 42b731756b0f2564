"""Parity with Moses' kbmira, compared with a slow implementation in the terms of Moses' C++ code."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from rerank.linear.candidates import Candidates
from rerank.tuners.moses import seen_by_kbmira
from rerank.tuners.problem import Problem
from rerank.tuners.table import run
from rerank.tuning.tune import make_tuning

Make = Callable[..., Problem]

MASK = 2**64 - 1
BUCKETS = 16
"""Number of buckets of boost's hash set in kbmira, see `rerank.tuners.moses`."""


def combined(seed: int, value: int) -> int:
    """Return `boost::hash_combine` for 64 bits."""
    factor = 0xC6A4A7935BD1E995
    value = value * factor & MASK
    value ^= value >> 47
    value = value * factor & MASK
    return ((seed ^ value) * factor + 0xE6546B64) & MASK


def mixed(key: int) -> int:
    """Return Wang's hash of 64 bits, with which boost's unordered containers select a bucket."""
    key = (~key + (key << 21)) & MASK
    key ^= key >> 24
    key = key * 265 & MASK
    key ^= key >> 14
    key = key * 21 & MASK
    key ^= key >> 28
    return key * (1 + 2**31) & MASK


def bucket(features: Sequence[float]) -> int:
    """Return the bucket of a candidate: the hash of its dense features, then that of its sparse features (none)."""
    row = 0
    for value in np.array(features, dtype=np.float32):
        row = combined(row, 0 if value == 0 else int(value.view(np.uint32)))
    return mixed(combined(combined(0, row), 0)) % BUCKETS


def seen(candidates: Candidates) -> list[list[int]]:
    """Return the rows of each sentence, without those whose bucket has a candidate already."""
    sentences = []
    for start, end in zip(candidates.offsets[:-1], candidates.offsets[1:], strict=True):
        first: dict[int, int] = {}
        for row in range(start, end):
            first.setdefault(bucket(candidates.dense[row].tolist()), row)
        sentences.append(sorted(first.values()))
    return sentences


def bleu(statistics: Sequence[float]) -> float:
    """Return BLEU of matches and counts of four orders, and the length of the reference."""
    matches, counts, length = statistics[0:8:2], statistics[1:8:2], statistics[8]
    logs = sum(math.log(matched / count) for matched, count in zip(matches, counts, strict=True)) / 4
    return math.exp(logs + min(0, 1 - length / counts[0]))


def kbmira(problem: Problem, epochs: int, max_step: float = 0.01, decay: float = 0.999) -> list[list[float]]:
    """Return the average weights after each epoch of `kbmira --no-shuffle`."""
    dense, statistics = problem.candidates.dense.tolist(), problem.statistics.tolist()
    weights = problem.initial.tolist()
    total, updates, background, averages = list(weights), 0, [1.0] * 9, []
    for _ in range(epochs):
        for rows in seen(problem.candidates):
            lead, score = {}, {}
            for row in rows:
                summed = [one + other for one, other in zip(statistics[row], background, strict=True)]
                lead[row] = bleu(summed) * summed[8]
                score[row] = sum(weight * value for weight, value in zip(weights, dense[row], strict=True))
            hope = max(rows, key=lambda row: score[row] + lead[row])
            fear = max(rows, key=lambda row: score[row] - lead[row])
            if hope == fear or lead[hope] <= lead[fear]:
                continue
            difference = [one - other for one, other in zip(dense[hope], dense[fear], strict=True)]
            loss = lead[hope] - lead[fear] - (score[hope] - score[fear])
            norm = sum(value * value for value in difference)
            if loss > 0 and norm > 0:
                step, updates = min(max_step, loss / norm), updates + 1
                weights = [weight + step * value for weight, value in zip(weights, difference, strict=True)]
                total = [one + other for one, other in zip(total, weights, strict=True)]
            background = [decay * one + other for one, other in zip(background, statistics[hope], strict=True)]
        averages.append([value / max(1, updates) for value in total])
    return averages


def test_candidates_in_an_occupied_bucket_are_not_seen(make_problem: Make) -> None:
    candidates = make_problem(0, sentences=3, candidates=60).candidates
    candidates.dense[::7, 1] = 0
    candidates.dense[::14, 1] = -0.0
    rows = seen(candidates)
    assert seen_by_kbmira(candidates).tolist() == [row for each in rows for row in each]
    assert max(map(len, rows)) <= BUCKETS < 60


@pytest.mark.parametrize("seed", range(4))
def test_weights_with_parity_equal_those_of_a_slow_kbmira(make_problem: Make, seed: int) -> None:
    """The best epoch by BLEU of the seen candidates is returned."""
    problem = replace(make_problem(seed, sentences=12, candidates=30), initial=np.array([-0.1, 0.2, 0.3]))
    averages = kbmira(problem, epochs=6)
    rows = seen(problem.candidates)
    metrics = []
    for weights in averages:
        scores = problem.candidates.dense @ weights
        chosen = [max(each, key=lambda row: scores[row]) for each in rows]
        metrics.append(bleu(problem.statistics[chosen].sum(axis=0).tolist()))
    tuned = run(problem, make_tuning({"parity": "moses", "iterations": 6}))
    np.testing.assert_allclose(tuned.weights, averages[int(np.argmax(metrics))], rtol=1e-4, atol=1e-5)
