"""Evaluation: BLEU, chrF and TER by sacreBLEU, with signatures and paired bootstrap tests."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moses_io.errors import InputError
from moses_io.nbest import check_id, read_nbest, without_marks
from moses_io.text import has_marks, read_lines, tokens
from rerank import __version__
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric

METRICS = ("BLEU", "chrF", "TER")
SAMPLES = 1000
"""Resamples of the paired bootstrap test."""

_OTHER_BLANK = re.compile(r"(?! )\s")


@dataclass(frozen=True)
class Score:
    """A metric of a system, as sacreBLEU prints it, and its p-value against the first system."""

    value: float
    p_value: float | None = None


@dataclass(frozen=True)
class ListFacts:
    """What a list says of systems.

    Attributes:
        best: the candidate of each sentence with the highest smoothed sentence BLEU, empty where there is none.
        ranks: by system, for each line of the reference the place in the list of what it says, from 1, or None.
    """

    best: list[str]
    ranks: dict[str, list[int | None]]

    def told(self) -> list[str]:
        """Return a line a system."""
        lines = []
        for name, ranks in self.ranks.items():
            found = sorted(rank for rank in ranks if rank is not None)
            mean = f", place {np.mean(found):.1f} in the mean, {found[len(found) // 2]} in the median" if found else ""
            first = sum(rank == 1 for rank in found)
            lines.append(f"{name}: {len(found)} of {len(ranks)} lines are in the list, {first} first in it{mean}")
        return lines


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found.

    Attributes:
        scores: of each system, by name, each metric.
        signatures: of each metric.
        best: scores of the best candidates of an n-best list, if one was given; chosen by smoothed sentence BLEU.
        facts: what that list says of the systems.
    """

    scores: dict[str, dict[str, Score]]
    signatures: dict[str, str]
    best: dict[str, Score] | None = None
    facts: ListFacts | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        systems = [{"system": name, **_plain(scores)} for name, scores in self.scores.items()]
        result = {"systems": systems, "signatures": self.signatures, "version": __version__}
        ranks = {"ranks": self.facts.ranks} if self.facts else {}
        return result | ({"best_candidates": _plain(self.best)} if self.best else {}) | ranks


def evaluate(
    systems: Sequence[tuple[str, Sequence[str]]],
    references: Sequence[Sequence[str]],
    tokenize: str = "none",
    facts: ListFacts | None = None,
    filtered: str = "",
) -> Evaluation:
    """Score systems, each a name and its lines, against references with as many lines.

    With `tokenize` none BLEU counts the tokens that Moses sees: blanks other than the ASCII space, at which
    sacreBLEU splits, are kept inside their tokens.

    Raises:
        InputError: a system has another number of lines than the references, or segmentation marks in its text.
    """
    if not references[0]:
        raise InputError("the reference is empty")
    _check_lengths(systems, references)
    for name, lines in systems:
        for number, line in enumerate(lines, start=1):
            if has_marks(line):
                raise InputError(f"{name}:{number}: segmentation marks such as |0-1| in the text; decode without -t")
    scores: dict[str, dict[str, Score]] = {name: {} for name, _ in systems}
    signatures, oracle = {}, {}
    for metric, scorer in _metrics(tokenize).items():
        keep = metric == "BLEU" and tokenize == "none"
        texts = [(name, _keep_blanks(lines) if keep else list(lines)) for name, lines in systems]
        answers = [_keep_blanks(lines) if keep else list(lines) for lines in references]
        signature, found = _compare(scorer, texts, answers)
        signatures[metric] = signature + filtered
        for (name, _), score in zip(texts, found, strict=True):
            scores[name][metric] = score
        if facts:
            best = _keep_blanks(facts.best) if keep else facts.best
            oracle[metric] = Score(scorer.corpus_score(best, answers).score)
    return Evaluation(scores, signatures, oracle or None, facts)


def _check_lengths(systems: Sequence[tuple[str, Sequence[str]]], references: Sequence[Sequence[str]]) -> None:
    for name, lines in systems:
        if len(lines) != len(references[0]):
            raise InputError(f"{name} has {len(lines)} lines, the reference has {len(references[0])}")


def look_up(
    nbest: str, references: Sequence[Sequence[str]], systems: Sequence[tuple[str, Sequence[str]]], filters: Filters
) -> ListFacts:
    """Find in a list the best candidate of each sentence, and the place of what each system chose.

    Args:
        nbest: list, whose text goes through the filters.
        references: lines of each, filtered.
        systems: name and filtered lines of each.
        filters: what is done to candidates.
    """
    bleu, best = Metric("bleu"), [""] * len(references[0])
    _check_lengths(systems, references)
    ranks: dict[str, list[int | None]] = {name: [None] * len(best) for name, _ in systems}
    for sentence_list in read_nbest(nbest) if filters.marks else without_marks(read_nbest(nbest)):
        check_id(sentence_list, len(best), "reference")
        count = bleu.counter([lines[sentence_list.sentence] for lines in references])
        texts = [filters(hypothesis.text) for hypothesis in sentence_list.hypotheses]
        scores = bleu.formula.smoothed(np.array([count(text) for text in texts]))
        best[sentence_list.sentence] = texts[int(np.argmax(scores))]
        for name, lines in systems:
            line = " ".join(tokens(lines[sentence_list.sentence]))
            places = [place for place, text in enumerate(texts, start=1) if " ".join(tokens(text)) == line]
            ranks[name][sentence_list.sentence] = places[0] if places else None
    return ListFacts(best, ranks)


def read_systems(paths: Sequence[str], filters: Filters) -> list[tuple[str, list[str]]]:
    """Read the outputs of systems, each named by its path."""
    if len(set(paths)) != len(paths):
        raise InputError("a system is named twice")
    return [(path, [filters(line) for line in read_lines(path)]) for path in paths]


def _metrics(tokenize: str) -> dict[str, Any]:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if tokenize not in BLEU.TOKENIZERS:
        raise InputError(f"--tokenize {tokenize}: sacreBLEU knows {', '.join(sorted(BLEU.TOKENIZERS))}")
    try:
        bleu = BLEU(tokenize=tokenize, force=True)
    except (RuntimeError, ImportError, OSError) as error:
        raise InputError(f"--tokenize {tokenize}: {' '.join(str(error).split())}") from None
    return {"BLEU": bleu, "chrF": CHRF(), "TER": TER()}


def _compare(
    scorer: Any, systems: Sequence[tuple[str, Sequence[str]]], references: Sequence[Sequence[str]]
) -> tuple[str, list[Score]]:
    """Return sacreBLEU's signature and the score of each system; the test runs where there are two or more.

    A system with the lines of the first has p 1; sacreBLEU would say 0.001, since no resampled difference is above 0.
    """
    if len(systems) == 1:
        value = scorer.corpus_score(systems[0][1], references).score
        return str(scorer.get_signature()), [Score(value)]
    from sacrebleu.significance import PairedTest

    test: Any = PairedTest(list(systems), {"metric": scorer}, references, test_type="bs", n_samples=SAMPLES)
    signatures, columns = test()
    (name,) = signatures
    found = [Score(result.score, result.p_value) for result in columns[name]]
    same = [number > 0 and list(lines) == list(systems[0][1]) for number, (_, lines) in enumerate(systems)]
    return str(signatures[name]), [
        replace(score, p_value=1.0) if equal else score for score, equal in zip(found, same, strict=True)
    ]


def _keep_blanks(lines: Sequence[str]) -> list[str]:
    return [_OTHER_BLANK.sub("\ue000", line) for line in lines]


def _plain(scores: dict[str, Score]) -> dict[str, dict[str, float]]:
    return {
        metric: {"score": score.value} | ({} if score.p_value is None else {"p_value": score.p_value})
        for metric, score in scores.items()
    }
