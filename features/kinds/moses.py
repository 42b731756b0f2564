"""Features of Moses' output: phrases, unaligned words, and the part of the total that the list does not print."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from features.arrays import Array
from features.feature import Resources, Sentence
from features.progress import log
from moses_io.alignment import Alignment, Phrase, fitted, printed_alignment, segmentation, segmentation_faults
from moses_io.files.errors import Fault, InputError, at
from moses_io.files.streams import digest
from moses_io.hypothesis import Hypothesis, no_total
from moses_io.weights import Weights, read_weight_file, weighted


class Phrases:
    """Five values: phrases, mean words per phrase, unaligned source words, unaligned target words, monotone steps.

    Phrases come from the segmentation field. Without this field they are the connected components of the word
    alignment. Monotone steps are the fraction of phrases that begin right after the source of the previous phrase.
    Numbers of unaligned words are negative. Without word alignment both are 0.

    Raises:
        InputError: the list has neither field, or a segmentation does not fit the source and the translation.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self.signature = "phrases"
        self._reader = LinkReader()

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, 5)."""
        pairs = [(each, pair) for each in sentences for pair in zip(each.hypotheses, each.lines, strict=True)]
        rows = [_row(each, hypothesis, line, self._reader) for each, (hypothesis, line) in pairs]
        return np.array(rows, dtype=np.float64).reshape(-1, 5)  # (N, 5)


class LinkReader:
    """Reader of word alignments that warns once for each list with links beyond the end of a sentence."""

    def __init__(self) -> None:
        self._warned = set[str]()

    def links(self, sentence: Sentence, hypothesis: Sequence[str], line: Hypothesis) -> Alignment | None:
        """Return the links of a candidate, or None if its line has no alignment field.

        Raises:
            InputError: a link is so far beyond the end of a sentence that no decoder prints it.
        """
        printed = printed_alignment(line)
        if printed is None:
            return None
        with at(f"{sentence.place(line)}: "):
            links, dropped = fitted(printed, len(sentence.source), len(hypothesis), sentence.counts_bos_eos)
        if dropped and sentence.path not in self._warned:
            self._warned.add(sentence.path)
            beyond = "links beyond the end of the source or translation are ignored, here and in later lines"
            log.warning(f"{sentence.place(line)}: {beyond}. `moses-rerank validate` counts them")
        return links


def _row(sentence: Sentence, hypothesis: Sequence[str], line: Hypothesis, reader: LinkReader) -> list[float]:
    alignment, phrases = reader.links(sentence, hypothesis, line), segmentation(line)
    if alignment is None and phrases is None:
        hint = "Decode with -print-alignment-info-in-n-best or -include-segmentation-in-n-best"
        raise InputError(f"{sentence.place(line)}: feature 'phrases': no alignment here. {hint}")
    if phrases is None:
        phrases = _connected(alignment or frozenset())
    elif faults := segmentation_faults(phrases, len(sentence.source), len(hypothesis)):
        lengths = f"the {len(sentence.source)} source and {len(hypothesis)} target words"
        expected = f"expected phrases within {lengths}, no word in two of them"
        raise InputError(f"{sentence.place(line)}: segmentation with {faults[0]}, {expected}")
    count = len(phrases)
    before = [Phrase(0, -1, 0, 0), *phrases]
    steps = sum(after.source_start == last.source_end + 1 for last, after in zip(before, phrases, strict=False))
    sources = targets = 0
    if alignment is not None:
        sources = len(sentence.source) - len({i for i, _ in alignment})
        targets = len(hypothesis) - len({j for _, j in alignment})
    mean = len(hypothesis) / count if count else 0.0
    return [count, mean, -sources, -targets, steps / count if count else 1.0]


def _connected(alignment: Alignment) -> list[Phrase]:
    """Return the spans of the connected components of an alignment, in target order."""
    if not alignment:
        return []
    from scipy.sparse import coo_array  # slow import, not needed with segmentations
    from scipy.sparse.csgraph import connected_components

    links = np.array(sorted(alignment))  # (links, 2)
    targets = links[:, 1] + links[:, 0].max() + 1  # (links,) target nodes follow the source nodes
    graph = coo_array((np.ones(len(links)), (links[:, 0], targets)), shape=(targets.max() + 1,) * 2)
    groups = connected_components(graph, directed=False)[1][links[:, 0]]  # (links,)
    order = np.argsort(groups, kind="stable")  # (links,)
    own = np.split(links[order], np.flatnonzero(np.diff(groups[order])) + 1)  # (links of the group, 2) each
    phrases = [Phrase(*(int(end) for side in each.T for end in (side.min(), side.max()))) for each in own]
    return sorted(phrases, key=lambda phrase: phrase.target_start)


ROUNDING = 0.01
"""Values below this are rounding errors, as Moses prints six digits."""


class Rest:
    """One value: the total minus the weighted features that the list prints.

    With weight 1, next to the decoder's weights, it restores the total. Rounding errors below `ROUNDING` become 0.

    Raises:
        InputError: the file does not contain weights.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        content = read_weight_file(argument)
        for warning in content.warnings:
            log.warning(warning)
        self._path, self._content = argument, content
        self.signature = f"rest|sha256:{','.join(digest(Path(path)) for path in content.files)}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, 1)."""
        return np.array([[value] for each in sentences for value in self._rests(each)])

    def _rests(self, sentence: Sentence) -> list[float]:
        dense = [(name, len(values)) for name, values in sentence.lines[0].dense]
        weights = self._content.further_weights(dense) | self._content.weights
        return [self._rest(sentence, line, weights) for line in sentence.lines]

    def _rest(self, sentence: Sentence, line: Hypothesis, weights: Weights) -> float:
        if line.total is None:
            raise InputError(f"{sentence.place(line)}: feature 'rest': {no_total(line)}")
        if not any(name in self._content.weights for name, _ in line.dense):
            lacking = f"no feature of the list has a weight in {self._path}. Are these the decoder's weights?"
            raise InputError(f"{sentence.place(line)}: feature 'rest': {lacking}")
        try:
            rest = line.total - sum(weighted(line, weights).values())
        except Fault as fault:
            raise InputError(f"{sentence.place(line)}: feature 'rest': {fault} in {self._path}") from None
        return rest if abs(rest) >= ROUNDING else 0.0
