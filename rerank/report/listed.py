"""Reading of a list, one sentence at a time, with scores against references and with facts about systems."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from features.arrays import Array
from features.progress import log, with_bar
from moses_io.files.streams import Lines, name_of
from moses_io.files.text import read_lines, tokens
from moses_io.filters import Filters, Forms, advice
from moses_io.hypothesis import Hypothesis
from moses_io.merge import INDICATOR, LIST_NAME, describe_origins
from moses_io.nbest import SentenceList, check_id, read_nbest, without_marks
from rerank.metrics.evaluation import Evaluation, ListFacts, Systems, check_lengths, evaluate
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric


class JudgedCandidates(NamedTuple):
    """Scores of the N candidates of a sentence against references.

    Attributes:
        statistics: (N, 9) BLEU statistics.
        quality: (N,) smoothed sentence BLEU, 0 … 1.
    """

    statistics: Array
    quality: Array


class Listed(NamedTuple):
    """A sentence of a list.

    Attributes:
        candidates: the candidates, unfiltered.
        texts: filtered texts of the candidates.
        judged: scores of the candidates, None without references.
    """

    candidates: SentenceList
    texts: Sequence[str]
    judged: JudgedCandidates | None


def read_listed(
    nbest: str | Lines, references: Sequence[Sequence[str]], size: int, filters: Filters
) -> Iterator[Listed]:
    """Yield the sentences of a list, one at a time.

    Args:
        nbest: list to read.
        references: sets of references, if any, already filtered.
        size: number of lines of the references or translations.
        filters: filters for the candidates.

    Raises:
        InputError: the list cannot be read, has segmentation marks that no filter removes, or has an id beyond `size`.
    """
    bleu, kind = Metric("bleu"), "reference" if references else "translation"
    lists = read_nbest(nbest) if filters.marks else without_marks(read_nbest(nbest))
    for candidates in with_bar("read candidates", lists, size):
        check_id(candidates, size, kind)
        texts, judged = [filters(hypothesis.text) for hypothesis in candidates.hypotheses], None
        if references:
            count = bleu.counter([lines[candidates.sentence] for lines in references])
            statistics = np.array([count(text) for text in texts], dtype=np.float64)  # (N, 9)
            quality = np.round(bleu.formula.smoothed(statistics), DECIMALS)  # (N,)
            judged = JudgedCandidates(statistics=statistics, quality=quality)
        yield Listed(candidates, texts, judged)


class OriginCounter:
    """Counts the chosen candidates by the lists that contain them, one sentence at a time.

    Args:
        names: names of the lists, see `merged_list_names`.
        texts: chosen text of each sentence, by sentence id.
    """

    def __init__(self, names: Sequence[str], texts: Sequence[str]) -> None:
        self._names, self._texts = names, texts
        self._counts = Counter[tuple[str, ...]]()

    def add(self, candidates: SentenceList) -> None:
        """Add a sentence. Only its first line with the chosen text counts: all such lines have equal indicators."""
        text = self._texts[candidates.sentence]
        chosen = next((hypothesis for hypothesis in candidates.hypotheses if hypothesis.text == text), None)
        if chosen:
            self._counts[lists_containing(chosen, self._names)] += 1

    def lines(self) -> list[str]:
        """Return a line with the counts by list, or an empty list if the list is not a merged one."""
        return (
            [f"lists of the reranked translations: {describe_origins(self._names, self._counts)}"]
            if self._names
            else []
        )


def lists_containing(hypothesis: Hypothesis, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the lists that contain a candidate."""
    values = dict(hypothesis.dense)
    return tuple(name for name in names if values[f"{INDICATOR}{name}"] == (1.0,))


def merged_list_names(sentence_list: SentenceList) -> list[str]:
    """Return the names of the lists that a list was merged from, empty if it has fewer than two indicators.

    Indicators are features `FromNAME` whose values are 0 or 1.
    """
    dense = [dict(hypothesis.dense) for hypothesis in sentence_list.hypotheses]
    labels = [name for name in dense[0] if all(values[name] in ((0.0,), (1.0,)) for values in dense)]
    names = [label.removeprefix(INDICATOR) for label in labels if label.startswith(INDICATOR)]
    lists = [name for name in names if LIST_NAME.fullmatch(name)]
    return lists if len(lists) > 1 else []


class ListLookup:
    """Finds the oracle of each sentence, and the ranks of the systems' choices in the list, one sentence at a time.

    References, if any, and the lines of at least one system are already filtered.

    Attributes:
        size: number of lines of the references or systems.
        facts: oracle and ranks found so far.

    Raises:
        InputError: a system and the references differ in their number of lines.
    """

    def __init__(self, references: Sequence[Sequence[str]], systems: Systems) -> None:
        if references:
            check_lengths(systems, references)
        self.size = len(references[0] if references else next(iter(systems.values())))
        self._systems = systems
        self.facts = ListFacts(
            oracle=[""] * self.size if references else [], ranks={name: [None] * self.size for name in systems}
        )

    def add(self, listed: Listed) -> None:
        """Add a sentence."""
        number = listed.candidates.sentence
        if listed.judged:
            self.facts.oracle[number] = listed.texts[int(np.argmax(listed.judged.quality))]  # ()
        for name, lines in self._systems.items():
            line = tokens(lines[number])
            ranks = (rank for rank, text in enumerate(listed.texts, start=1) if tokens(text) == line)
            self.facts.ranks[name][number] = next(ranks, None)


def find_in_list(nbest: str, references: Sequence[Sequence[str]], systems: Systems, filters: Filters) -> ListFacts:
    """Return the oracle of each sentence, if there are references, and the ranks of the systems' choices in a list.

    The filters are for the list. Raises `InputError` if a file cannot be read, or a system and the references
    differ in length.
    """
    found = ListLookup(references, systems)
    for listed in read_listed(nbest, references, found.size, filters):
        found.add(listed)
    return found.facts


def evaluate_files(
    systems: Mapping[str, str | Lines],
    references: Sequence[str | Lines],
    nbest: str | None,
    filters: Filters,
    tokenize: str = "none",
) -> Evaluation:
    """Score files of systems, with one line per sentence.

    Without references, only look up their lines in the list. Raises `InputError` if a file cannot be read or the files
    differ in length.
    """
    reference_lines = filters.references(references)
    lines = {name: [filters(line) for line in read_lines(path)] for name, path in systems.items()}
    facts = find_in_list(nbest, reference_lines, lines, filters) if nbest else None
    if reference_lines:
        texts = lines | ({name_of(nbest): facts.oracle} if nbest and facts else {})
        for message in advice({name: Forms(each) for name, each in texts.items()}, Forms(chain(*reference_lines))):
            log.warning(message)
    return evaluate(lines, reference_lines, tokenize, facts, filters.signature)
