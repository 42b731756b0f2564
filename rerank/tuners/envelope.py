r"""Upper envelopes of lines: who is the best candidate of a sentence, wherever weights go on a line.

Along weights w + x·d a candidate scores height + x · slope. Seen as points, with the slope to the right and the height
upwards, those that are best for some x are the corners of the upper hull. Most candidates lie below the two chords
from the best one at x = 0 to the outermost slopes, and are left out before anything is sorted:

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

MANY = 64
"""Candidates that insertion sort is no longer the fastest for."""
ROUNDING = 1e-15
"""How far below a chord, in shares of the products compared, no rounding can have brought a candidate."""


class Line(NamedTuple):
    """A direction of weights, (size,), how fast candidates gain by it, (N,), and who does least and most, (n,)."""

    direction: Array
    slopes: Array
    lowest: Integers
    highest: Integers


class Point(NamedTuple):
    """Weights, (size,), what candidates score under them, (N,), and the best candidate of each sentence, (n,)."""

    weights: Array
    heights: Array
    best: Integers


class Envelopes(NamedTuple):
    """Of each sentence the best candidate far to the left, (n,); x of each corner, who is best before it, and after."""

    first: Integers
    corners: Array
    old: Integers
    new: Integers


class Room(NamedTuple):
    """Where the envelope of one sentence after the other is reckoned; as long as the longest of them, and one more.

    Attributes:
        keep: 1 for candidates that are kept, 0 for the others.
        kept: the candidates that are kept.
        stack: those on the envelope, from left to right.
        since: x where each of them begins to be the best.
    """

    keep: Integers
    kept: Integers
    stack: Integers
    since: Array


@compiled(nogil=True)
def outermost(slopes: Array, offsets: Integers) -> tuple[Integers, Integers]:
    """Return the candidate of each sentence with the smallest slope, (n,), and that with the largest."""
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
    """Return the upper envelopes of the candidates' lines; of those that are one line the first in the list counts."""
    sentences, slopes, heights = len(offsets) - 1, line.slopes, point.heights
    first, corners = np.empty(sentences, dtype=np.int64), np.empty(len(slopes))
    old, new = np.empty(len(slopes), dtype=np.int64), np.empty(len(slopes), dtype=np.int64)
    size = 1 + (offsets[1:] - offsets[:-1]).max()  # ()
    keep, kept = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    stack, since = np.empty(size, dtype=np.int64), np.empty(size)
    room = Room(keep=keep, kept=kept, stack=stack, since=since)
    count = 0
    for sentence in range(sentences):
        number = _above_chords(line, point, sentence, offsets, room)
        if number > MANY:
            kept[:number] = kept[:number][np.argsort(slopes[kept[:number]], kind="mergesort")]
        _sort(slopes, kept, number)
        size = _envelope(slopes, heights, number, room)
        first[sentence] = stack[0]
        for place in range(1, size):
            corners[count], old[count], new[count] = since[place], stack[place - 1], stack[place]
            count += 1
    return Envelopes(first=first, corners=corners[:count].copy(), old=old[:count].copy(), new=new[:count].copy())


@compiled(_nrt=False)
def _above_chords(line: Line, point: Point, sentence: int, offsets: Integers, room: Room) -> int:
    """Put the candidates that are not surely below the chords into `kept`, in order, and return their number."""
    start, end = offsets[sentence], offsets[sentence + 1]
    slopes, heights = line.slopes[start:end], point.heights[start:end]
    best, low, high = point.best[sentence] - start, line.lowest[sentence] - start, line.highest[sentence] - start
    slope, height = slopes[best], heights[best]
    run_left, rise_left = slope - slopes[low], height - heights[low]
    run_right, rise_right = slopes[high] - slope, heights[high] - height
    if run_left == 0:  # beside an end there is no chord; who is lower is below
        run_left, rise_left = 1.0, 0.0
    if run_right == 0:
        run_right, rise_right = 1.0, 0.0
    for place in range(end - start):  # without branches: several at once
        run, rise = slopes[place] - slope, heights[place] - height
        own_left, chord_left = rise * run_left, run * rise_left
        own_right, chord_right = rise * run_right, run * rise_right
        left = chord_left - own_left > ROUNDING * (abs(chord_left) + abs(own_left))
        right = chord_right - own_right > ROUNDING * (abs(chord_right) + abs(own_right))
        room.keep[place] = not (left & right)
    number = 0
    for place in range(end - start):
        room.kept[number] = start + place
        number += room.keep[place]
    return number


@compiled(_nrt=False)
def _sort(slopes: Array, kept: Integers, number: int) -> None:
    """Sort the first of them by slope; equal ones stay in order."""
    for place in range(1, number):
        candidate, hole = kept[place], place
        while hole and slopes[kept[hole - 1]] > slopes[candidate]:
            kept[hole] = kept[hole - 1]
            hole -= 1
        kept[hole] = candidate


@compiled(_nrt=False)
def _envelope(slopes: Array, heights: Array, number: int, room: Room) -> int:
    r"""Put the envelope of the lines that were kept and sorted on the stack, and return how many they are.

    The lines on the stack are the envelope so far; `since` is where each begins. A new line c is the steepest. Where it
    meets b before b begins, b is highest nowhere and taken off (right); else c begins there (left):

        a \       / c       a \   / c
           \_____/             \ /
              b            b ___________
    """
    stack, since, size = room.stack, room.since, 0
    for place in range(number):
        line, corner, hidden = room.kept[place], -np.inf, False
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
    """(corners + 1,) the metric left of each corner, in this order, and right of the last.

    Minus infinity where two corners meet. Changes the sums, (formula.size,), which go along from left to right; at each
    corner one candidate of a sentence takes the place of another:

        ────── a ──────┬────── b ──────┬────── c ────── x
             sums          + b - a         + c - b
    """
    corners, old, new = envelopes.corners, envelopes.old, envelopes.new
    metrics = np.empty(len(corners) + 1)
    for place in range(len(corners) + 1):
        last = place == len(corners)
        if not last and place and corners[order[place]] == corners[order[place - 1]]:
            metrics[place] = -np.inf
        else:
            metrics[place] = value(sums, parts, False)
        if not last:
            corner = order[place]
            for column in range(len(sums)):
                sums[column] += statistics[new[corner], column] - statistics[old[corner], column]
    return metrics
