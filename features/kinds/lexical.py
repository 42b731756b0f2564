"""Lexical scores: each word of one side comes from any word of the other, or from none."""

import math
from collections.abc import Sequence
from pathlib import Path

from features.feature import CandidateFeature, Resources
from features.kinds.length import two_files
from features.table import FEATURES
from features.translation_table import ITERATIONS, NULL, Table, estimate, read_table
from moses_io.errors import InputError
from moses_io.streams import digest
from moses_io.text import read_parallel, tokens

SMALLEST = 1e-7
"""Probability of a pair that a table does not have: its last printed decimal."""


class Lexical(CandidateFeature):
    """One value: sum over the predicted side of the log of the mean of p(word|other word), NULL among the others.

    `lex.f2e` predicts the candidate from the source, `lex.e2f` the source from the candidate; the name of the file says
    which it is.

    Raises:
        InputError: a line is not `word word probability`, or the name holds neither `f2e` nor `e2f`.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        marks = FEATURES["lexical"].marks_of(argument)
        if len(marks) != 1:
            raise InputError(f"{argument}: expected f2e or e2f in the name, which tells what the table predicts")
        self._predicts_source = marks == ("e2f",)
        self._table = read_table(argument)
        self.signature = f"lexical|{marks[0]}|sha256:{digest(Path(argument))}"

    def row(self, source: Sequence[str], hypothesis: Sequence[str]) -> list[float]:
        """Predict the side that the table does."""
        predicted, condition = (source, hypothesis) if self._predicts_source else (hypothesis, source)
        return [model1(self._table, predicted, condition)]


class Estimated(CandidateFeature):
    """Two values, log p(candidate|source) and log p(source|candidate), by tables estimated from a corpus.

    Five iterations of EM from equal probabilities.

    Raises:
        InputError: no two files of as many lines, or a side without words.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        source, target = two_files(argument, "ibm1")
        pairs = [(tokens(left), tokens(right)) for left, right in read_parallel(source, target)]
        for path, side in zip((source, target), zip(*pairs, strict=True), strict=True):
            if not any(side):
                raise InputError(f"{path}: all lines are blank; expected words to estimate from")
        self._forward = estimate(pairs, NULL)
        self._backward = estimate([(right, left) for left, right in pairs], NULL)
        self.signature = f"ibm1|iterations:{ITERATIONS}|sha256:{digest(Path(source))},{digest(Path(target))}"

    def row(self, source: Sequence[str], hypothesis: Sequence[str]) -> list[float]:
        """Predict both sides."""
        return [model1(self._forward, hypothesis, source), model1(self._backward, source, hypothesis)]


def model1(table: Table[str], predicted: Sequence[str], condition: Sequence[str]) -> float:
    """Return log p(predicted|condition) without the probability of the length."""
    rows = [table.get(word, {}) for word in (NULL, *condition)]
    means = (sum(row.get(word, 0.0) for row in rows) / len(rows) for word in predicted)
    return sum(math.log(max(mean, SMALLEST)) for mean in means)
