r"""Upper envelopes of lines: the best candidate of each sentence at every point of a line of weights.

With weights w + x·d a candidate scores height + x · slope. Draw each candidate as a point, with the slope to the right
and the height upwards. The candidates that are best for some x are the corners of the upper hull. Most candidates lie
below the two chords from the best one at x = 0 to the smallest and the largest slope. They are dropped before sorting:

            best
           /   · \ ·
          / ·     \
    lowest   · ·  · highest
"""

from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.compiled import compiled
from rerank.metrics.formula import Parts, value

INSERTION_SORT_LIMIT = 64
"""With more candidates than this, merge sort is faster than insertion sort."""
ROUNDING = 1e-15
"""Relative tolerance for rounding: only a candidate that is further below a chord than this is dropped."""


class Line(NamedTuple):
    """A direction in weight space.

    Attributes:
        direction: (size,) d.
        slopes: (N,) change of each candidate's score per unit of x.
        lowest: (n,) candidate with the smallest slope of each sentence.
        highest: (n,) candidate with the largest slope of each sentence.
    """

    direction: Array
    slopes: Array
    lowest: Integers
    highest: Integers


class Point(NamedTuple):
    """A point in weight space, x = 0 of a line.

    Attributes:
        weights: (size,) w.
        heights: (N,) scores of the candidates.
        best: (n,) candidate with the highest score of each sentence.
    """

    weights: Array
    heights: Array
    best: Integers


class Envelopes(NamedTuple):
    """Upper envelopes of all sentences.

    Attributes:
        first: (n,) best candidate of each sentence for x → -∞.
        corners: (corners,) x of each corner, sentence by sentence.
        old: (corners,) best candidate left of the corner.
        new: (corners,) best candidate right of the corner.
    """

    first: Integers
    corners: Array
    old: Integers
    new: Integers


class Workspace(NamedTuple):
    """Working memory for the envelope of a sentence, reused for all sentences.

    Each array has one element more than the sentence with the most candidates.

    Attributes:
        mask: 1 for candidates that are not dropped, 0 for the others.
        remaining: indices of the candidates that are not dropped.
        stack: candidates on the envelope, from left to right.
        since: x from which each candidate on the stack is the best.
    """

    mask: Integers
    remaining: Integers
    stack: Integers
    since: Array


@compiled(nogil=True)
def outermost(slopes: Array, offsets: Integers) -> tuple[Integers, Integers]:
    """Return the candidates with the smallest and with the largest slope of each sentence, (n,) each."""
    sentences = len(offsets) - 1
    lowest, highest = np.empty(sentences, dtype=np.int64), np.empty(sentences, dtype=np.int64)
    for sentence in range(sentences):
        low = high = offsets[sentence]
        for candidate in range(low + 1, offsets[sentence + 1]):
            if slopes[candidate] < slopes[low]:
                low = candidate
            if slopes[candidate] > slopes[high]:
                high = candidate
        lowest[sentence], highest[sentence] = low, high
    return lowest, highest


@compiled(nogil=True)
def envelopes(line: Line, point: Point, offsets: Integers) -> Envelopes:
    """Return the upper envelope of each sentence's candidates. Of equal lines the first in the list is used."""
    sentences, slopes, heights = len(offsets) - 1, line.slopes, point.heights
    first, corners = np.empty(sentences, dtype=np.int64), np.empty(len(slopes))
    old, new = np.empty(len(slopes), dtype=np.int64), np.empty(len(slopes), dtype=np.int64)
    size = 1 + (offsets[1:] - offsets[:-1]).max()  # ()
    mask, remaining = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    stack, since = np.empty(size, dtype=np.int64), np.empty(size)
    workspace = Workspace(mask=mask, remaining=remaining, stack=stack, since=since)
    count = 0
    for sentence in range(sentences):
        number = _above_chords(line, point, sentence, offsets, workspace)
        if number > INSERTION_SORT_LIMIT:  # `_sort` needs only linear time afterwards
            remaining[:number] = remaining[:number][np.argsort(slopes[remaining[:number]], kind="mergesort")]
        _sort(slopes, remaining, number)
        size = _envelope(slopes, heights, number, workspace)
        first[sentence] = stack[0]
        for index in range(1, size):
            corners[count], old[count], new[count] = since[index], stack[index - 1], stack[index]
            count += 1
    return Envelopes(first=first, corners=corners[:count].copy(), old=old[:count].copy(), new=new[:count].copy())


@compiled(_nrt=False)
def _above_chords(line: Line, point: Point, sentence: int, offsets: Integers, workspace: Workspace) -> int:
    """Write the candidates that may be above a chord into `remaining`, in list order. Return their number."""
    start, end = offsets[sentence], offsets[sentence + 1]
    slopes, heights = line.slopes[start:end], point.heights[start:end]
    best, low, high = point.best[sentence] - start, line.lowest[sentence] - start, line.highest[sentence] - start
    slope, height = slopes[best], heights[best]
    run_left, rise_left = slope - slopes[low], height - heights[low]
    run_right, rise_right = slopes[high] - slope, heights[high] - height
    if run_left == 0:  # the best candidate has the outermost slope: a horizontal line replaces the chord
        run_left, rise_left = 1.0, 0.0
    if run_right == 0:
        run_right, rise_right = 1.0, 0.0
    # The best candidate is the highest point, so each chord, extended beyond it, is above all points of the other side.
    # Hence a point below both lines is below its own chord. No branches, so that the compiler can vectorize the loop.
    for index in range(end - start):
        run, rise = slopes[index] - slope, heights[index] - height
        point_left, chord_left = rise * run_left, run * rise_left
        point_right, chord_right = rise * run_right, run * rise_right
        left = chord_left - point_left > ROUNDING * (abs(chord_left) + abs(point_left))
        right = chord_right - point_right > ROUNDING * (abs(chord_right) + abs(point_right))
        workspace.mask[index] = not (left & right)
    number = 0
    for index in range(end - start):  # a candidate that is dropped is overwritten by the next one
        workspace.remaining[number] = start + index
        number += workspace.mask[index]
    return number


@compiled(_nrt=False)
def _sort(slopes: Array, remaining: Integers, number: int) -> None:
    """Sort the first `number` candidates by slope, stably, by insertion."""
    for index in range(1, number):
        candidate, hole = remaining[index], index
        while hole and slopes[remaining[hole - 1]] > slopes[candidate]:
            remaining[hole] = remaining[hole - 1]
            hole -= 1
        remaining[hole] = candidate


@compiled(_nrt=False)
def _envelope(slopes: Array, heights: Array, number: int, workspace: Workspace) -> int:
    r"""Put the envelope of the first `number` remaining candidates, sorted by slope, on the stack and return its size.

    The lines on the stack are the envelope so far. `since` is the x from which each is the best. A new line c is the
    steepest. If it crosses the top line b after since[b], c is best from there on (left plot). Otherwise b is never
    the best and is removed (right):

        a \       / c       a \   / c
           \_____/             \ /
              b            b ___________
    """
    stack, since, size = workspace.stack, workspace.since, 0
    for index in range(number):
        line, corner, hidden = workspace.remaining[index], -np.inf, False
        while size:
            top = stack[size - 1]
            if slopes[line] == slopes[top]:
                if heights[line] <= heights[top]:
                    hidden = True
                    break
            else:
                corner = (heights[top] - heights[line]) / (slopes[line] - slopes[top])
                if corner > since[size - 1]:
                    break
            size -= 1
            corner = -np.inf
        if not hidden:
            stack[size], since[size] = line, corner
            size += 1
    return size


@compiled(nogil=True)
def sweep(envelopes: Envelopes, order: Integers, statistics: Array, sums: Array, parts: Parts) -> Array:
    """Return the (corners + 1,) metric left of each corner, from left to right, and right of the last corner.

    The metric is -inf for the empty interval between two equal corners. `sums` follows from left to right. At each
    corner one candidate of a sentence replaces another:

        ────── a ──────┬────── b ──────┬────── c ────── x
             sums          + b - a         + c - b

    Args:
        envelopes: envelopes of all sentences.
        order: (corners,) indices that sort the corners by x.
        statistics: (N, formula.size) statistics of each candidate.
        sums: (formula.size,) summed statistics of `envelopes.first`. Changed in place.
        parts: formula of the metric.
    """
    corners, old, new = envelopes.corners, envelopes.old, envelopes.new
    metrics = np.empty(len(corners) + 1)
    for index in range(len(corners) + 1):
        last = index == len(corners)
        if not last and index and corners[order[index]] == corners[order[index - 1]]:
            metrics[index] = -np.inf
        else:
            metrics[index] = value(sums, parts, False)
        if not last:
            corner = order[index]
            for column in range(len(sums)):
                sums[column] += statistics[new[corner], column] - statistics[old[corner], column]
    return metrics
