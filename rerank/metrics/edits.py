"""Number of edits for TER, including shifts: a compiled version of sacreBLEU's algorithm.

Tercom (Snover et al. 2006) shifts runs of words, one shift at a time, until no shift lowers the edit distance. This
module follows its limits, sacreBLEU's beam and sacreBLEU's order of preference among equal shifts exactly, so that the
number of edits equals the one of sacreBLEU's `translation_edit_rate`.

For J words, a beam of width W and S checked shifts (at most about `MAX_SHIFTS`), the time is O(S J W) and the memory
is O(J W).
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.ter import TER

from features.arrays import Integers
from features.compiled import compiled

MAX_SHIFT_LENGTH, MAX_SHIFT_DISTANCE, MAX_SHIFTS = 10, 50, 1000
"""Maximum length of a shifted run in words, maximum distance of a shift in words, and maximum number of shifts checked
per pair of sentences.
"""

BEAM = 25
"""Minimum number of reference positions before and after the diagonal that are in the table."""

KEEP, SUBSTITUTE, INSERT, DELETE = range(4)
"""Operations that turn the translation into the reference."""

_INFINITE = np.int64(2**40)


class Shift(NamedTuple):
    """A shift of the run of `length` words at `start` to before the word at `target`.

    Attributes:
        gain: decrease of the edit distance.
        length: number of words.
        start: index of the first word.
        target: index of the word before which the run moves.
    """

    gain: int
    length: int
    start: int
    target: int


class Table(NamedTuple):
    """Edit distances between prefixes of a translation and prefixes of a reference, near the diagonal.

    Cell (i, j) is about the first i words of the translation and the first j words of the reference. It is in column
    j - low[i] of row i, for low[i] <= j < high[i]. Row 0 is not filled: its distance is always j insertions.

    Attributes:
        costs: (J+1, width) number of edits.
        operations: (J+1, width) last operation of the cheapest edit sequence.
        low: (J+1,) first reference position of each row.
        high: (J+1,) one after the last reference position of each row.
    """

    costs: Integers
    operations: NDArray[np.int8]
    low: Integers
    high: Integers


def count_edits(words: Sequence[str], reference: Sequence[str]) -> int:
    """Return the number of insertions, deletions, substitutions and shifts that turn `words` into the reference."""
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
    checked: Any = np.int64(0)  # numba would compile `_best_shift` a second time for a literal
    while True:
        _fill(table, words, reference)
        shift, checked = _best_shift(table, words, reference, checked)
        if checked >= MAX_SHIFTS or shift.gain <= 0:
            return shifts + table.costs[-1, len(reference) - table.low[-1]]
        words = _shifted(words, shift)
        shifts += 1


@compiled()
def _bounds(words: int, reference: int) -> Table:
    """Return an empty table for a translation and a reference of these lengths, with the bounds of its beam.

    The beam follows the diagonal of the (words, reference) matrix. It is wider if the reference is more than twice
    `BEAM` times as long as the translation, so that the beams of neighbouring rows overlap.
    """
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
    """Fill a row of edit distances, given the row above.

    If costs are equal, keeping or substituting is preferred to deletion, and deletion to insertion.
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
    """Return the word alignment of the cheapest edit sequence.

    Returns:
        aligned: (reference,) index of the translation word that is aligned with each reference word. For an inserted
            reference word it is the index of the translation word before it, -1 if there is none.
        wrong: (J,) whether a translation word is deleted or substituted.
        missed: (reference,) whether a reference word is inserted or substituted.
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
    """Return the shift with the largest gain (gain 0 if there is none) and the number of shifts checked so far.

    A run is shifted only if it has a wrong word and matches a run of the reference that has a missed word. Of shifts
    with equal gains the longer run is preferred, then the earlier start, then the earlier target.
    """
    aligned, wrong, missed = _trace(table, len(reference))
    best, found = Shift(0, 0, 0, 0), False
    for start in range(len(words)):
        for position in range(max(0, start - MAX_SHIFT_DISTANCE), min(len(reference), start + MAX_SHIFT_DISTANCE + 1)):
            some_wrong = some_missed = False
            longest = min(MAX_SHIFT_LENGTH, len(words) - start, len(reference) - position)
            for length in range(1, longest + 1):
                last = length - 1
                if words[start + last] != reference[position + last]:
                    break
                some_wrong |= wrong[start + last]
                some_missed |= missed[position + last]
                # Skip a run whose reference position is aligned with a word of the run: it would move onto itself.
                if not (some_wrong and some_missed) or start <= aligned[position] < start + length:
                    continue
                before = -1
                for offset in range(-1, length):
                    target = 0 if position + offset == -1 else aligned[position + offset] + 1
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
                if checked >= MAX_SHIFTS:
                    return best, checked
    return best, checked


@compiled()
def _gain(table: Table, words: Integers, reference: Integers, shift: Shift) -> Any:
    """Return how much a shift lowers the edit distance.

    Only rows from the first moved word on are computed again, because the rows before it do not change.
    """
    first = min(shift.start, shift.target)
    moved = _shifted(words, shift)
    above = table.costs[first] if first else np.arange(len(reference) + 1)
    rows = np.empty((2, table.costs.shape[1]), dtype=np.int64)
    operations = np.empty(table.costs.shape[1], dtype=np.int8)
    for row in range(first + 1, len(words) + 1):
        costs = rows[row % 2]
        _fill_row(table, row, moved[row - 1], reference, above, costs, operations)
        above = costs
    last = len(reference) - table.low[-1]
    return table.costs[-1, last] - above[last]


@compiled()
def _shifted(words: Integers, shift: Shift) -> Integers:
    """Return the words after a shift: the run swaps with the words between the run and the target.

    As in sacreBLEU, a target inside the run or right after it moves the run forward by target - start words.
    """
    start, end, target = shift.start, shift.start + shift.length, shift.target
    if target < start:
        first, middle, last = target, start, end
    else:
        first, middle, last = start, end, min(len(words), target + (shift.length if target <= end else 0))
    moved, size = words.copy(), last - first
    for offset in range(size):
        moved[first + offset] = words[first + (offset + middle - first) % size]
    return moved


class FastTER(TER):
    """TER with sacreBLEU's tokenization and statistics, and compiled counting of edits."""

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        words, references = hypothesis.split(), ref_kwargs["ref_words"]
        edits = min(count_edits(words, reference) for reference in references)
        return [edits, sum(map(len, references)) / len(references)]
