"""Sentences whose translation changed, with the contribution of each feature to the change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from moses_io.files.text import without_missing
from moses_io.filters import Filters
from moses_io.hypothesis import Hypothesis
from moses_io.nbest import SentenceList
from moses_io.weights import Weights, weighted
from rerank.linear.ranking import Estimate
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric
from rerank.report.listed import Listed

MOSES, RERANKED = "moses", "reranked"
"""Names of the two systems."""


@dataclass(frozen=True)
class Change:
    """A sentence whose translation changed.

    Attributes:
        sentence: sentence id.
        texts: texts to compare, by their names: source, the first reference that is not missing, if any, and the
            choices before and after reranking.
        gain: smoothed sentence BLEU after minus before, -1 … 1, None without references.
        reasons: by feature, its weighted contribution to the model score, after minus before, largest first. Empty if
            one of the two choices is not in the list.
        expectation: estimate for the new choice as text, empty if there is none.
    """

    sentence: int
    texts: Mapping[str, str]
    gain: float | None
    reasons: tuple[tuple[str, float], ...]
    expectation: str

    @property
    def score_gain(self) -> float | None:
        """How clear the decision was: model score after minus before, None if one of the choices is not in the list."""
        return sum(part for _, part in self.reasons) if self.reasons else None

    @property
    def title(self) -> str:
        """Sentence id, with the gain or, without references, the difference in model score."""
        if self.gain is not None:
            return f"sentence {self.sentence}, sentence BLEU gain {100 * self.gain:+.1f}"
        score = "" if self.score_gain is None else f", model score {self.score_gain:+.3g}"
        return f"sentence {self.sentence}{score}"


@dataclass(frozen=True)
class Reranked:
    """A reranked set.

    Attributes:
        source: one line per sentence.
        references: sets of references, if any, already filtered.
        before: Moses' choices, one line per sentence.
        after: choices after reranking.
        weights: weights of the reranker.
        filters: filters for candidates before they are compared with references.
    """

    source: Sequence[str]
    references: Sequence[Sequence[str]]
    before: Sequence[str]
    after: Sequence[str]
    weights: Weights
    filters: Filters

    def with_moses_output(self, listed: Listed) -> Listed:
        """Return a sentence with Moses' choice set as Moses' output."""
        candidates = listed.candidates
        return listed._replace(candidates=replace(candidates, moses_output=self.before[candidates.sentence]))


def find_change(candidates: SentenceList, reranked: Reranked, metric: str, estimate: Estimate | None) -> Change | None:
    """Return the change of a sentence of the scored list, None if its translation did not change.

    The estimate, if any, is of the named metric.
    """
    number, filters = candidates.sentence, reranked.filters
    before, after = reranked.before[number], reranked.after[number]
    if before == after:
        return None
    sentence_references = [lines[number] for lines in reranked.references]
    reference = {"reference": without_missing(sentence_references)[0]} if sentence_references else {}
    return Change(
        sentence=number,
        texts={"source": reranked.source[number], **reference, MOSES: before, RERANKED: after},
        gain=_gain(sentence_references, filters(before), filters(after)) if sentence_references else None,
        reasons=_reasons(candidates, reranked.weights, before, after),
        expectation=in_words(metric, estimate),
    )


def in_words(metric: str, estimate: Estimate | None) -> str:
    """Return an estimate of a metric as text, empty without an estimate."""
    if estimate is None:
        return ""
    probability = "" if estimate.helped is None else f", better than Moses with probability {estimate.helped:.2f}"
    return f"{metric} {estimate.expected:.1f}{probability}"


def sorted_changes(changes: Iterable[Change]) -> list[Change]:
    """Return changes sorted by gain in sentence BLEU or, without references, by score_gain, highest first."""
    return sorted(
        changes, key=lambda each: (-((each.score_gain or 0.0) if each.gain is None else each.gain), each.sentence)
    )


def _gain(references: Sequence[str], before: str, after: str) -> float:
    bleu = Metric("bleu")
    count = bleu.counter(references)
    new, old = bleu.formula.smoothed(np.array([count(after), count(before)])).tolist()  # (2, formula.size) -> (2,)
    return round(float(new - old), DECIMALS)


def _reasons(sentence_list: SentenceList, weights: Weights, before: str, after: str) -> tuple[tuple[str, float], ...]:
    indices = sentence_list.find(before), find_chosen(sentence_list, after, weights)
    if None in indices:
        return ()
    old, new = (contributions(sentence_list.hypotheses[index], weights) for index in indices if index is not None)
    differences = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in old | new}
    return tuple(sorted(differences.items(), key=lambda item: -item[1]))


def find_chosen(candidates: SentenceList, line: str, weights: Weights) -> int | None:
    """Return the index of the candidate with the text that the weights chose.

    Of several candidates with this text, it is the one with the highest model score. It is None if there is no such
    candidate.
    """
    matching = [(index, each) for index, each in enumerate(candidates.hypotheses) if each.text == line]
    return max(matching, key=lambda item: sum(weighted(item[1], weights).values()), default=(None, None))[0]


def contributions(hypothesis: Hypothesis, weights: Weights) -> dict[str, float]:
    """Return the weighted value of each feature. All sparse features are summed under the name `sparse`."""
    by_name = weighted(hypothesis, weights)
    sparse = [by_name.pop(name) for name in hypothesis.sparse]
    return by_name | ({"sparse": sum(sparse)} if sparse else {})
