"""All that a page shows of the candidates of a sentence, and chunks of such sentences, unpacked when one is opened."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from features.progress import progress_bar
from moses_io.alignment import segmentation, word_alignment
from moses_io.errors import Fault, printable
from moses_io.hypothesis import Hypothesis
from moses_io.nbest import SentenceList, read_nbest
from moses_io.text import tokens
from rerank.collecting import collect
from rerank.metrics.metric import Metric
from rerank.report.attention import Attention
from rerank.report.changes import parts
from rerank.report.origins import having, merged
from rerank.report.page.sentences import AFTER, BEFORE, Explored, digits, readable
from rerank.selection import Ranking

CHUNK = 20
"""Sentences of a chunk."""

Chunk = dict[int, dict[str, Any]]
"""Sentences by their ids, as `_sentence` has them."""


def chunks(explored: Explored) -> Iterator[Chunk]:
    """Yield the sentences of the list in its order, some at a time."""
    names, lists = merged(next(read_nbest(explored.nbest))), read_nbest(explored.nbest)
    reasons = {change.sentence: change.reasons for change in explored.changes}
    with progress_bar("page", len(explored.source)) as bar:
        while some := list(islice(lists, CHUNK)):
            yield {
                each.sentence: _sentence(explored, each, names)
                | {"reasons": [(printable(name), digits(part)) for name, part in reasons.get(each.sentence, ())]}
                for each in some
            }
            bar.advance(len(some), "")


def _sentence(explored: Explored, sentence_list: SentenceList, names: Sequence[str]) -> dict[str, Any]:
    """Return columns of the candidates in the order of the list, and what is known of both choices.

    `best`, and the `place` of a choice, are places in these columns; `parts` has a column a feature.
    """
    candidates = collect([sentence_list])
    ranking = Ranking(sentence_list, candidates.scores(candidates.space.vector(explored.weights)))
    ranks = np.argsort(ranking.order)  # (candidates,)
    hypotheses = sentence_list.hypotheses
    weighted = [parts(hypothesis, explored.weights) for hypothesis in hypotheses]
    features = list(dict.fromkeys(name for row in weighted for name in row))
    return {
        "text": readable([hypothesis.text for hypothesis in hypotheses]),
        "rank": (ranks + 1).tolist(),
        "score": [digits(score) for score in ranking.scores.tolist()],
        "features": readable(features),
        "parts": [[digits(row.get(name, 0.0)) for row in weighted] for name in features],
        "lists": [", ".join(having(hypothesis, names)) for hypothesis in hypotheses] if names else [],
        "systems": _systems(explored, sentence_list),
        **_judged(explored, sentence_list),
    }


def _judged(explored: Explored, sentence_list: SentenceList) -> dict[str, Any]:
    """Return the smoothed sentence BLEU of each candidate, 0 … 100, and the place of the best; without references none.

    Of equal candidates the first is the best one.
    """
    if not explored.references:
        return {"bleu": [], "best": None}
    metric = Metric("bleu")
    count = metric.counter([lines[sentence_list.sentence] for lines in explored.references])
    statistics = np.array([count(explored.filters(each.text)) for each in sentence_list.hypotheses])  # (N, size)
    scores = 100 * metric.formula.smoothed(statistics)  # (N,)
    return {"bleu": [round(score, 2) for score in scores.tolist()], "best": int(np.argmax(scores))}


def _systems(explored: Explored, sentence_list: SentenceList) -> dict[str, Any]:
    """Return what is known of the choice of each system; of equal choices that of Moses alone."""
    number = sentence_list.sentence
    lines = {BEFORE: explored.before[number], AFTER: explored.after[number]}
    if lines[BEFORE] == lines[AFTER]:
        del lines[AFTER]
    source = len(tokens(explored.source[number]))
    texts = [hypothesis.text for hypothesis in sentence_list.hypotheses]
    systems: dict[str, Any] = {}
    for name, line in lines.items():
        place = texts.index(line) if line in texts else None
        aligned = _aligned(None if place is None else sentence_list.hypotheses[place], source)
        attended = [_rows(each) for each in explored.attention.get((number, name), ())]
        systems[name] = {"place": place, "attention": attended, **aligned}
    return systems


def _rows(attention: Attention) -> Mapping[str, Any]:
    """Return the model's name and its weights (J, I) with four decimals."""
    rows = attention.weights.astype(np.float64).round(4).tolist()
    return {"model": printable(attention.model), "weights": rows}


def _aligned(hypothesis: Hypothesis | None, source: int) -> Mapping[str, Any]:
    """Return Moses' links of words and its phrases, where the list has some that fit the sentence."""
    if hypothesis is None:
        return {"links": [], "phrases": []}
    try:
        links = word_alignment(hypothesis, source, len(tokens(hypothesis.text)))
    except Fault:
        links = None
    return {"links": sorted(links or ()), "phrases": segmentation(hypothesis) or []}
