"""IBM model 1 (Brown et al. 1993): each word of one side comes from any word of the other, or from none."""

import collections
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from features.feature import CandidateFeature, Resources
from features.kinds.length import two_files
from features.progress import progress_bar
from moses_io.errors import InputError, shown
from moses_io.streams import digest, name_of, numbered_lines
from moses_io.text import decode, number, read_parallel, tokens, without_line_end

NULL = "NULL"
SMALLEST = 1e-7
"""Probability of a pair that a table does not have: its last printed decimal."""
ITERATIONS = 5

Table = dict[str, dict[str, float]]
"""By condition, then by predicted word: its probability."""


class Lexical(CandidateFeature):
    """One value: sum over the predicted side of the log of the mean of p(word|other word), NULL among the others.

    `lex.f2e` predicts the candidate from the source, `lex.e2f` the source from the candidate; the name of the file says
    which it is.

    Raises:
        InputError: a line is not `word word probability`, or the name holds neither `f2e` nor `e2f`.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        name = Path(argument).name
        if ("f2e" in name) == ("e2f" in name):
            raise InputError(f"{argument}: expected f2e or e2f in the name, which tells what the table predicts")
        self._predicts_source = "e2f" in name
        self._table: Table = collections.defaultdict(dict)
        for line, raw in numbered_lines(argument):
            text = decode(without_line_end(raw))
            parts = tokens(text)
            value = number(parts[2]) if len(parts) == 3 else None
            if value is None:
                raise InputError(f"{name_of(argument)}:{line}: expected 'word word probability', found {shown(text)}")
            self._table[parts[1]][parts[0]] = value
        self.signature = f"lexical|{'e2f' if self._predicts_source else 'f2e'}|sha256:{digest(Path(argument))}"

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
        self._forward = estimate(pairs)
        self._backward = estimate([(right, left) for left, right in pairs])
        self.signature = f"ibm1|iterations:{ITERATIONS}|sha256:{digest(Path(source))},{digest(Path(target))}"

    def row(self, source: Sequence[str], hypothesis: Sequence[str]) -> list[float]:
        """Predict both sides."""
        return [model1(self._forward, hypothesis, source), model1(self._backward, source, hypothesis)]


def model1(table: Table, predicted: Sequence[str], condition: Sequence[str]) -> float:
    """Return log p(predicted|condition) without the probability of the length."""
    rows = [table.get(word, {}) for word in (NULL, *condition)]
    means = (sum(row.get(word, 0.0) for row in rows) / len(rows) for word in predicted)
    return sum(math.log(max(mean, SMALLEST)) for mean in means)


def estimate(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Table:
    """Estimate p(target word|source word) from pairs of sentences by EM, all links of the corpus as one array."""
    known: tuple[dict[str, int], dict[str, int]] = ({NULL: 0}, {})
    numbered = []
    for left, right in pairs:
        sides = zip(known, ((NULL, *left), right), strict=True)
        numbered.append([np.array([side.setdefault(word, len(side)) for word in text]) for side, text in sides])
    size = len(known[1])
    # One key for each (source word, target word) of each pair, target by target; `places` numbers the distinct keys.
    keys = np.concatenate([np.add.outer(left * size, right).T.ravel() for left, right in numbered if len(right)])
    links, places = np.unique(keys, return_inverse=True)
    lengths = np.concatenate([np.full(len(right), len(left)) for left, right in numbered if len(right)])  # (targets,)
    starts, probability = np.concatenate([[0], np.cumsum(lengths)[:-1]]), np.ones(len(links))
    with progress_bar("IBM model 1", ITERATIONS) as bar:
        for _ in range(ITERATIONS):
            share = probability[places]  # (keys,)
            share /= np.repeat(np.add.reduceat(share, starts), lengths)
            counts = np.bincount(places, weights=share, minlength=len(links))  # (links,)
            probability = counts / np.bincount(links // size, weights=counts)[links // size]
            bar.advance(1, "")
    names = [list(side) for side in known]
    table: Table = collections.defaultdict(dict)
    for link, value in zip(links.tolist(), probability.tolist(), strict=True):
        table[names[0][link // size]][names[1][link % size]] = value
    return dict(table)
