"""Edits of TER, shifts included, by the algorithm of sacreBLEU, compiled.

Tercom (Snover et al. 2006) shifts runs of words as long as that lowers the edit distance, one shift after the other.
Its limits, sacreBLEU's beam and its order of preference among equal shifts are followed exactly, so that the number of
edits is that of sacreBLEU's `translation_edit_rate`.

For J words, a beam of width W and S shifts that are checked (about `MOST_SHIFTS` at most), the time is O(S J W) and the
memory O(J W).
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.ter import TER

from features.arrays import Integers
from features.compiled import compiled

LONGEST_SHIFT, FARTHEST_SHIFT, MOST_SHIFTS = 10, 50, 1000
"""Words that are shifted together; between a run and where the reference has it; shifts that are checked in all."""

BEAM = 25
"""Reference positions before and after the diagonal that are looked at; see `_bounds`."""

KEEP, SUBSTITUTE, INSERT, DELETE = range(4)
"""Operations that turn the translation into the reference."""

_INFINITE = np.int64(2**40)


class Shift(NamedTuple):
    """A run of words that moves before the word at `target`; `gain` is by how much it lowers the edit distance."""

    gain: int
    length: int
    start: int
    target: int


class Table(NamedTuple):
    """Edit distances between the first i words of a translation and the first j of a reference, near the diagonal.

    Row 0, j insertions, is not in the arrays. Cell (i, j) is in column j - low[i], for low[i] <= j < high[i].

    Attributes:
        costs: (J+1, width) edits.
        operations: (J+1, width) the last operation.
        low: (J+1,) first reference position of each row.
        high: (J+1,) the position after the last.
    """

    costs: Integers
    operations: NDArray[np.int8]
    low: Integers
    high: Integers


def count_edits(words: Sequence[str], reference: Sequence[str]) -> int:
    """Return the number of insertions, deletions, substitutions and shifts from words to a reference."""
    numbers: dict[str, int] = {}
    rows = [
        np.array([numbers.setdefault(word, len(numbers)) for word in each], np.int64) for each in (words, reference)
    ]
    return int(_edits(*rows))


@compiled()
def _edits(words: Integers, reference: Integers) -> Any:
    if len(words) == 0 or len(reference) == 0:
        return len(words) + len(reference)
    table = _bounds(len(words), len(reference))
    shifts = 0
    checked: Any = np.int64(0)  # for a literal numba would compile `_best_shift` a second time
    while True:
        _fill(table, words, reference)
        shift, checked = _best_shift(table, words, reference, checked)
        if checked >= MOST_SHIFTS or shift.gain <= 0:
            return shifts + table.costs[-1, len(reference) - table.low[-1]]
        words = _shifted(words, shift)
        shifts += 1


@compiled()
def _bounds(words: int, reference: int) -> Table:
    """Return a table with its bounds: rows follow the diagonal of a matrix of these two lengths, at a distance."""
    ratio = reference / words
    beam = math.ceil(ratio / 2 + BEAM) if ratio / 2 > BEAM else BEAM
    low, high = np.zeros(words + 1, dtype=np.int64), np.empty(words + 1, dtype=np.int64)
    for row in range(1, words + 1):
        diagonal = math.floor(row * ratio)
        low[row] = max(0, diagonal - beam)
        high[row] = min(reference + 1, diagonal + beam)
    high[0] = high[words] = reference + 1
    costs = np.empty((words + 1, 2 * beam), dtype=np.int64)
    return Table(costs, np.empty((words + 1, 2 * beam), dtype=np.int8), low, high)


@compiled()
def _fill(table: Table, words: Integers, reference: Integers) -> None:
    above = np.arange(len(reference) + 1)
    for row in range(1, len(words) + 1):
        _fill_row(table, row, words[row - 1], reference, above, table.costs[row], table.operations[row])
        above = table.costs[row]


@compiled(_nrt=False)
def _fill_row(
    table: Table,
    row: int,
    word: int,
    reference: Integers,
    above: Integers,
    costs: Integers,
    operations: NDArray[np.int8],
) -> None:
    """Fill a row of edit distances from the one above it.

    Of equal costs, keeping or substituting comes before deletion, and deletion before insertion.
    """
    low, before, end = table.low[row], table.low[row - 1], table.high[row - 1]
    left = _INFINITE
    for j in range(low, table.high[row]):
        if j == 0:
            best, operation = above[0] + 1, DELETE
        else:
            best, operation = _INFINITE, KEEP
            if before < j <= end:
                same = word == reference[j - 1]
                best, operation = above[j - 1 - before] + (0 if same else 1), KEEP if same else SUBSTITUTE
            if before <= j < end and above[j - before] + 1 < best:
                best, operation = above[j - before] + 1, DELETE
            if left + 1 < best:
                best, operation = left + 1, INSERT
        costs[j - low] = left = best
        operations[j - low] = operation


@compiled()
def _trace(table: Table, reference: int) -> Any:
    """Return, by the operations of the cheapest way, how the words of both sides are aligned.

    Returns:
        aligned: (reference,) position of the last word of the translation at or before each word of the reference,
            -1 before the first.
        wrong: (J,) whether a word of the translation is deleted or substituted.
        missed: (reference,) whether a word of the reference is inserted or substituted.
    """
    i, j = len(table.low) - 1, reference
    aligned, missed = np.zeros(j, dtype=np.int64), np.zeros(j, dtype=np.bool_)
    wrong = np.zeros(i, dtype=np.bool_)
    while i > 0 or j > 0:
        operation = INSERT if i == 0 else table.operations[i, j - table.low[i]]
        if operation != DELETE:
            aligned[j - 1] = i - 1
            missed[j - 1] = operation != KEEP
        if operation != INSERT:
            wrong[i - 1] = operation != KEEP
            i -= 1
        if operation != DELETE:
            j -= 1
    return aligned, wrong, missed


@compiled()
def _best_shift(table: Table, words: Integers, reference: Integers, checked: int) -> Any:
    """Return the shift that gains most, gain 0 if there is none, and the number of shifts that were checked so far.

    Only wrong words are shifted, to where the reference has words that are missed. Of equal gains the longer run comes
    first, then the one that starts earlier, then the earlier target.
    """
    aligned, wrong, missed = _trace(table, len(reference))
    best, found = Shift(0, 0, 0, 0), False
    for start in range(len(words)):
        for place in range(max(0, start - FARTHEST_SHIFT), min(len(reference), start + FARTHEST_SHIFT + 1)):
            some_wrong = some_missed = False
            longest = min(LONGEST_SHIFT, len(words) - start, len(reference) - place)
            for length in range(1, longest + 1):
                last = length - 1
                if words[start + last] != reference[place + last]:
                    break
                some_wrong |= wrong[start + last]
                some_missed |= missed[place + last]
                if not (some_wrong and some_missed) or start <= aligned[place] < start + length:
                    continue
                before = -1
                for offset in range(-1, length):
                    target = 0 if place + offset == -1 else aligned[place + offset] + 1
                    if target == before:
                        continue
                    before = target
                    gain = _gain(table, words, reference, Shift(0, length, start, target))
                    checked += 1
                    if not found or (gain, length, -start, -target) > (
                        best.gain,
                        best.length,
                        -best.start,
                        -best.target,
                    ):
                        best, found = Shift(gain, length, start, target), True
                if checked >= MOST_SHIFTS:
                    return best, checked
    return best, checked


@compiled()
def _gain(table: Table, words: Integers, reference: Integers, shift: Shift) -> Any:
    """Return by how much a shift lowers the edit distance; rows of words before it stay as they are."""
    first = min(shift.start, shift.target)
    moved = _shifted(words, shift)
    above = table.costs[first] if first else np.arange(len(reference) + 1)
    rows = np.empty((2, table.costs.shape[1]), dtype=np.int64)
    operations = np.empty(table.costs.shape[1], dtype=np.int8)
    for row in range(first + 1, len(words) + 1):
        own = rows[row % 2]
        _fill_row(table, row, moved[row - 1], reference, above, own, operations)
        above = own
    last = len(reference) - table.low[-1]
    return table.costs[-1, last] - above[last]


@compiled()
def _shifted(words: Integers, shift: Shift) -> Integers:
    """Return words with a run shifted, which changes places with the words between it and the target.

    A target within the run, or at its end, stands for as many words behind the run.
    """
    start, end, target = shift.start, shift.start + shift.length, shift.target
    if target < start:
        first, middle, last = target, start, end
    else:
        first, middle, last = start, end, min(len(words), target + (shift.length if target <= end else 0))
    moved, size = words.copy(), last - first
    for place in range(size):
        moved[first + place] = words[first + (place + middle - first) % size]
    return moved


class FastTER(TER):
    """TER of sacreBLEU; texts are tokenized by sacreBLEU."""

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        words, references = hypothesis.split(), ref_kwargs["ref_words"]
        edits = min(count_edits(words, reference) for reference in references)
        return [edits, sum(map(len, references)) / len(references)]
