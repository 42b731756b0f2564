"""Envelopes of the candidates' lines, compared with a search over all candidates."""

import itertools

import numpy as np
import pytest

from rerank.tuners.envelope import INSERTION_SORT_LIMIT, Envelopes, Line, Point, envelopes, outermost


def envelopes_of(slopes: np.ndarray, heights: np.ndarray, offsets: np.ndarray) -> Envelopes:
    lowest, highest = outermost(slopes, offsets)
    best = start_of(heights, offsets)
    line = Line(direction=np.zeros(1), slopes=slopes, lowest=lowest, highest=highest)
    return envelopes(line, Point(weights=np.zeros(1), heights=heights, best=best), offsets)


def start_of(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return np.array([start + np.argmax(scores[start:end]) for start, end in itertools.pairwise(offsets)])


def lines(shape: str, rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes and heights of random lines."""
    whole = shape in ("flat", "few")
    slopes = rng.integers(-2, 3, size) if whole else rng.normal(size=size)
    heights = {
        "cloud": rng.normal(size=size),
        "ridge": 5 * slopes + 0.1 * rng.normal(size=size),
        "arch": -(slopes**2),
        "beam": 3 * slopes + 0.1,
        "flat": np.zeros(size),
        "few": rng.integers(-2, 3, size),
    }
    return slopes.astype(float), heights[shape].astype(float)


@pytest.mark.parametrize("shape", ["cloud", "ridge", "arch", "beam", "flat", "few"])
@pytest.mark.parametrize("seed", range(3))
def test_the_envelope_has_the_best_candidate_of_each_interval(shape: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, 1, 2, 5, 30, INSERTION_SORT_LIMIT + 40])
    slopes, heights = lines(shape, rng, offsets[-1])
    found = envelopes_of(slopes, heights, offsets)
    owners = np.searchsorted(offsets, found.old, side="right")
    for sentence, (start, end) in enumerate(itertools.pairwise(offsets)):
        of_sentence = owners == sentence + 1
        corners, chain = found.corners[of_sentence], np.append(found.first[sentence], found.new[of_sentence])
        assert (chain[:-1] == found.old[of_sentence]).all() and (np.diff(corners) > 0).all()
        ends = np.concatenate([[-1e3], corners, [1e3]])
        for candidate, x in zip(chain, (ends[:-1] + ends[1:]) / 2, strict=True):
            scores = heights[start:end] + x * slopes[start:end]
            assert scores[candidate - start] >= scores.max() - 1e-9


def test_the_first_of_equal_lines_is_used() -> None:
    for size in (6, 2 * INSERTION_SORT_LIMIT):
        slopes, heights = np.tile([2.0, -1.0, 0.0], size), np.tile([0.0, 0.0, 1.0], size)
        found = envelopes_of(slopes, heights, np.array([0, 3 * size]))
        assert (found.first.tolist(), found.old.tolist(), found.new.tolist()) == ([1], [1, 2], [2, 0])


@pytest.mark.parametrize(("height", "chosen"), [(1e300, {0, 2, 3}), (1e-300, {0, 1, 2}), (np.inf, {3})])
def test_no_candidate_is_lost_by_overflow_or_underflow(height: float, chosen: set[int]) -> None:
    slopes, heights = np.array([-1.0, 0.0, 1.0, 0.5]), np.array([0.0, 1.0, 0.0, height])
    found = envelopes_of(slopes, heights, np.array([0, 4]))
    assert {*found.first, *found.new} >= chosen
