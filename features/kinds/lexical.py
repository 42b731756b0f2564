"""Lexical scores: each word of one side comes from any word of the other, or from none."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from features.arrays import Array
from features.feature import CheckedFeature, Resources, Sentence
from features.kinds.surface import Tokens, two_files
from features.progress import log
from features.table import FEATURES
from features.translation_table import ITERATIONS, NULL, Table, estimate, read_table
from moses_io.files.errors import InputError
from moses_io.files.streams import digest
from moses_io.files.text import read_parallel, tokens

SMALLEST = 1e-7
"""Probability of a pair that a table does not have: its last printed decimal."""


FEWEST_WORDS, FEWEST_FOUND = 5, 0.1
"""Minimum number of words for the check; minimum share of them with a pair in the table.

With the tables of the training corpus it is 45 % of the words of a Quechua list, the poorest, and 81 % to 99 % of five
others; with their columns reversed at most 4 %.
"""


class _Tables(CheckedFeature):
    """Tables that should have some of the words of a list.

    Counts how many words have a pair in a table, among the first candidates of the sentences. Only pairs of different
    words with letters count: punctuation and names are the same in both languages, and are found also if the columns of
    a table are reversed.
    """

    def __init__(self, name: str, expected: str) -> None:
        self._name, self._expected = name, expected
        self._words = self._with_pair = 0

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(N, values)."""
        for each in sentences:
            self._count(*self._checked(each.source, each.hypotheses[0]))
        return super().__call__(sentences)

    @abstractmethod
    def _checked(self, source: Tokens, hypothesis: Tokens) -> tuple[Table[str], Tokens, Tokens]:
        """Return a table, the words that it predicts, and those that it predicts them from."""

    def _count(self, table: Table[str], predicted: Tokens, condition: Tokens) -> None:
        others = [word for word in condition if any(map(str.isalpha, word))]
        for word in filter(lambda word: any(map(str.isalpha, word)), predicted):
            self._words += 1
            self._with_pair += any(word != other and word in table.get(other, ()) for other in others)

    def end(self) -> None:
        """Warn if almost no word has a pair, and begin to count anew."""
        words, with_pair = self._words, self._with_pair
        self._words = self._with_pair = 0
        if words >= FEWEST_WORDS and with_pair < FEWEST_FOUND * words:
            found = f"{with_pair} of {words}" if with_pair else f"none of {words}"
            log.warning(f"feature '{self._name}': {found} words of the list have a pair in the table; {self._expected}")


class Lexical(_Tables):
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
        words = "source word, target word" if self._predicts_source else "target word, source word"
        columns = f"expected lines '{words}, probability'; its columns may be reversed, or hold word numbers"
        super().__init__(f"lexical:{argument}", columns)
        self._table = read_table(argument)
        self.signature = f"lexical|{marks[0]}|sha256:{digest(Path(argument))}"

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Predict the side that the table does."""
        return [model1(*self._checked(source, hypothesis))]

    def _checked(self, source: Tokens, hypothesis: Tokens) -> tuple[Table[str], Tokens, Tokens]:
        return (self._table, source, hypothesis) if self._predicts_source else (self._table, hypothesis, source)


class Estimated(_Tables):
    """Two values, log p(candidate|source) and log p(source|candidate), by tables estimated from a corpus.

    Five iterations of EM from equal probabilities.

    Raises:
        InputError: no two files of as many lines, or a side without words.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        super().__init__(
            f"ibm1:{argument}", "expected SOURCE,TARGET; the two may be reversed, or be of other languages"
        )
        source, target = two_files(argument, "ibm1")
        pairs = [(tokens(left), tokens(right)) for left, right in read_parallel(source, target)]
        for path, side in zip((source, target), zip(*pairs, strict=True), strict=True):
            if not any(side):
                raise InputError(f"{path}: all lines are blank; expected words to estimate from")
        self._forward = estimate(pairs, NULL)
        self._backward = estimate([(right, left) for left, right in pairs], NULL)
        self.signature = f"ibm1|iterations:{ITERATIONS}|sha256:{digest(Path(source))},{digest(Path(target))}"

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Predict both sides."""
        return [model1(self._forward, hypothesis, source), model1(self._backward, source, hypothesis)]

    def _checked(self, source: Tokens, hypothesis: Tokens) -> tuple[Table[str], Tokens, Tokens]:
        return self._forward, hypothesis, source


def model1(table: Table[str], predicted: Sequence[str], condition: Sequence[str]) -> float:
    """Return log p(predicted|condition) without the probability of the length."""
    rows = [table.get(word, {}) for word in (NULL, *condition)]
    means = (sum(row.get(word, 0.0) for row in rows) / len(rows) for word in predicted)
    return sum(math.log(max(mean, SMALLEST)) for mean in means)
