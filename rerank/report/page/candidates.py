"""All that a page shows of the candidates of a sentence, and chunks of such sentences, unpacked when one is opened."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from moses_io.alignment import LinkNumbering, segmentation, segmentation_faults, word_alignment
from moses_io.errors import Fault, printable
from moses_io.hypothesis import Hypothesis
from moses_io.nbest import SentenceList
from moses_io.text import tokens
from rerank.analysis.listed import Listed, having
from rerank.linear.selection import Ranking
from rerank.report.changes import MOSES, RERANKED, Reranked, parts, weights_say
from rerank.report.page.sentences import digits, packed, readable
from rerank.systems.attention import Attentions

CHUNK = 20
"""Sentences of a chunk."""


class Chunks:
    """Packs what a page shows of the candidates of one sentence after the other, some sentences at a time.

    Attributes:
        places: of each sentence that was packed the number of its chunk.

    Args:
        reranked: the set.
        names: of the lists that its list was merged of; see `merged`.
        attention: what models attended to, if any did.
        stream: takes the chunks, and gives them back.
    """

    def __init__(self, reranked: Reranked, names: Sequence[str], attention: Attentions, stream: BinaryIO) -> None:
        self.places: dict[int, int] = {}
        self._reranked, self._names, self._attention, self._stream = reranked, names, attention, stream
        self._some: dict[int, dict[str, Any]] = {}
        self._count = 0
        self._numbering = LinkNumbering()

    def add(self, listed: Listed, ranking: Ranking, reasons: Sequence[tuple[str, float]]) -> None:
        """Add a sentence; the reasons are those for which its choice changed."""
        why = [(printable(name), digits(part)) for name, part in reasons]
        self._some[listed.candidates.sentence] = self._sentence(listed, ranking) | {"reasons": why}
        if len(self._some) == CHUNK:
            self._pack()

    def finish(self) -> None:
        """Pack the last sentences."""
        if self._some:
            self._pack()

    def elements(self) -> Iterator[str]:
        """Yield an element of a page for each chunk that is packed; nothing can be added any more."""
        self._stream.seek(0)
        for line in self._stream:
            yield line.decode().removesuffix("\n")

    def _pack(self) -> None:
        self._stream.write(f"{packed(f'chunk-{self._count}', self._some)}\n".encode())
        self.places |= dict.fromkeys(self._some, self._count)
        self._some = {}
        self._count += 1

    def _sentence(self, listed: Listed, ranking: Ranking) -> dict[str, Any]:
        """Return columns of the candidates in the order of the list, and what is known of both choices.

        `best`, and the `place` of a choice, are places in these columns; `parts` has a column a feature.
        """
        hypotheses, names = listed.candidates.hypotheses, self._names
        self._numbering.add_sentence(hypotheses)
        ranks = np.argsort(ranking.order)  # (candidates,)
        weighted = [parts(hypothesis, self._reranked.weights) for hypothesis in hypotheses]
        features = list(dict.fromkeys(name for row in weighted for name in row))
        return {
            "text": readable([hypothesis.text for hypothesis in hypotheses]),
            "rank": (ranks + 1).tolist(),
            "score": [digits(score) for score in ranking.scores.tolist()],
            "features": readable(features),
            "parts": [[digits(row.get(name, 0.0)) for row in weighted] for name in features],
            "lists": [", ".join(having(hypothesis, names)) for hypothesis in hypotheses] if names else [],
            "systems": _systems(self._reranked, listed.candidates, self._attention, self._numbering.counts_marks),
            **_quality(listed),
        }


def _quality(listed: Listed) -> dict[str, Any]:
    """Return the smoothed sentence BLEU of each candidate, 0 … 100, and the place of the best; without references none.

    Of equal candidates the first is the best one.
    """
    if not listed.judged:
        return {"bleu": [], "best": None}
    scores = 100 * listed.judged.quality  # (N,)
    return {"bleu": [round(score, 2) for score in scores.tolist()], "best": int(np.argmax(scores))}


def _systems(
    reranked: Reranked, candidates: SentenceList, attention: Attentions, counts_marks: bool | None
) -> dict[str, Any]:
    """Return what is known of the choice of each system; of equal choices that of Moses alone."""
    number = candidates.sentence
    lines = {MOSES: reranked.before[number], RERANKED: reranked.after[number]}
    if lines[MOSES] == lines[RERANKED]:
        del lines[RERANKED]
    source = len(tokens(reranked.source[number]))
    systems: dict[str, Any] = {}
    for name, line in lines.items():
        ours = name == RERANKED
        place = weights_say(candidates, line, reranked.weights) if ours else candidates.find(line)
        aligned = _aligned(None if place is None else candidates.hypotheses[place], source, counts_marks)
        attended = [
            {"model": printable(model), "weights": weights.astype(np.float64).round(4).tolist()}  # (J, I)
            for model, weights in attention.get((number, name), {}).items()
        ]
        systems[name] = {"place": place, "attention": attended, **aligned}
    return systems


def _aligned(hypothesis: Hypothesis | None, source: int, counts_marks: bool | None) -> Mapping[str, Any]:
    """Return Moses' links of words and its phrases, where the list has some that fit the sentence."""
    if hypothesis is None:
        return {"links": [], "phrases": []}
    target = len(tokens(hypothesis.text))
    try:
        links = word_alignment(hypothesis, source, target, counts_marks)
    except Fault:
        links = None
    phrases = segmentation(hypothesis) or []
    if segmentation_faults(phrases, source, target):
        phrases = []
    return {"links": sorted(links or ()), "phrases": phrases}
