"""Evaluation: BLEU, chrF and TER by sacreBLEU, with signatures and paired randomization tests."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from features.arrays import Array
from features.progress import with_bar
from moses_io.files.errors import InputError
from moses_io.files.text import has_marks, missing_as_none, tokens
from moses_io.nbest import MARKS
from rerank import __version__
from rerank.metrics.significance import SEED, TRIALS, p_value

REPORTED = ("BLEU", "chrF", "TER")
"""Metrics of the table, sacreBLEU's."""

MOST_TOKENS = 10_000
"""Tokens of a line, at most: TER of so many takes two seconds."""

Systems = Mapping[str, Sequence[str]]
"""Lines of each system, by its name; the first is compared with."""

References = Sequence[str | None]
"""Lines of a reference file as sacreBLEU takes them: None for a missing reference."""

_OTHER_BLANK = re.compile(r"(?! )\s")


@dataclass(frozen=True)
class Score:
    """A metric of a system, as sacreBLEU prints it, and its p-value against the first system."""

    value: float
    p_value: float | None = None


@dataclass(frozen=True)
class ListFacts:
    """What a list says of systems.

    `best` has the candidate of each sentence with the highest smoothed sentence BLEU, empty where there is none, and
    nothing without references; `ranks`, by system, for each of its lines the place in the list of what it says, from 1,
    or None.
    """

    best: list[str]
    ranks: dict[str, list[int | None]]

    def lines(self) -> list[str]:
        """Return a line a system."""
        lines = []
        for name, ranks in self.ranks.items():
            known = [rank for rank in ranks if rank is not None]
            mean = f", place {np.mean(known):.1f} in the mean, {np.median(known):g} in the median" if known else ""
            counts = f"{len(known)} of {len(ranks)} lines are in the list, {known.count(1)} first in it"
            lines.append(f"{name}: {counts}{mean}")
        return lines


@dataclass(frozen=True)
class Evaluation:
    """What systems reach: by system and metric; `best` by metric the best candidates of a list, if there is one.

    Without references there are no metrics, and each system has no scores.
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
    systems: Systems,
    references: Sequence[Sequence[str]],
    tokenize: str = "none",
    facts: ListFacts | None = None,
    filtered: str = "",
) -> Evaluation:
    """Score systems against references with as many lines; without references there are only the facts.

    With `tokenize` none BLEU counts the tokens that Moses sees: blanks other than the ASCII space, at which
    sacreBLEU splits, are kept inside their tokens. So its signature has `tok:space`, not sacreBLEU's `tok:none`. chrF
    is computed by sacreBLEU, without any blanks. TER has sacreBLEU's statistics and splits at each blank. A missing
    reference, a blank line in one of several files, does not count: sacreBLEU gets None for it.

    Raises:
        InputError: a system has another number of lines than the references, or segmentation marks in its text.
    """
    if not references:
        return Evaluation({name: {} for name in systems}, {}, facts=facts)
    check_lengths(systems, references)
    check_marks(systems)
    scores: dict[str, dict[str, Score]] = {name: {} for name in systems}
    signatures, oracle = {}, {}
    scorers = _scorers(tokenize)
    known = list(zip(*map(missing_as_none, zip(*references, strict=True)), strict=True))
    for metric, scorer in with_bar("measure", scorers.items(), len(scorers)):
        prepare = _keep_blanks if metric == "BLEU" and tokenize == "none" else str
        answers = [[line if line is None else prepare(line) for line in lines] for lines in known]
        prepared = {name: [prepare(line) for line in lines] for name, lines in systems.items()}
        signature, by_name = _compare(scorer, prepared, answers)
        signatures[metric] = signature + filtered
        for name, score in by_name.items():
            scores[name][metric] = score
        if facts:
            oracle[metric] = Score(scorer.corpus_score([prepare(line) for line in facts.best], answers).score)
    return Evaluation(scores, signatures, oracle or None, facts)


def check_marks(systems: Systems) -> None:
    """Refuse translations with Moses' segmentation marks, with an `InputError`."""
    for name, lines in systems.items():
        for number, line in enumerate(lines, start=1):
            if has_marks(line):
                raise InputError(f"{name}:{number}: {MARKS}")


def check_lengths(systems: Systems, references: Sequence[Sequence[str]]) -> None:
    """Refuse systems with another number of lines than the references, and lines too long for TER: an `InputError`."""
    if not references[0]:
        raise InputError("the reference is empty")
    for name, lines in (*systems.items(), *(("the reference", lines) for lines in references)):
        longest = max(range(len(lines)), key=lambda number: lines[number].count(" "), default=0)
        if lines and len(tokens(lines[longest])) > MOST_TOKENS:
            raise InputError(f"{name}: line {longest + 1} has more than {MOST_TOKENS:,} tokens, too many for TER")
    for name, lines in systems.items():
        if len(lines) != len(references[0]):
            raise InputError(f"{name} has {len(lines)} lines, the reference has {len(references[0])}")


def _scorers(tokenize: str) -> dict[str, Any]:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    from rerank.metrics.edits import FastTER

    if tokenize not in BLEU.TOKENIZERS:
        raise InputError(f"--tokenize {tokenize}: sacreBLEU knows {', '.join(sorted(BLEU.TOKENIZERS))}")
    try:
        bleu = BLEU(tokenize=tokenize, force=True)
    except (RuntimeError, ImportError, OSError) as error:
        raise InputError(f"--tokenize {tokenize}: {' '.join(str(error).split())}") from None
    if tokenize == "none":
        bleu.tokenizer_signature = "space"
    return {"BLEU": bleu, "chrF": CHRF(), "TER": FastTER()}


def _compare(scorer: Any, systems: Systems, references: Sequence[References]) -> tuple[str, dict[str, Score]]:
    """Return the signature and the score of each system; the others are tested against the first.

    sacreBLEU's own randomization test does not count trials that are equal to what was observed, so that two systems
    which differ in one sentence would be the surest difference of all; `ties:counted` tells ours from it.
    """
    statistics = {
        name: np.array(scorer._extract_corpus_statistics(lines, references), dtype=np.float64)  # (n, size)
        for name, lines in systems.items()
    }
    values = _scores(scorer, np.stack([rows.sum(axis=0) for rows in statistics.values()]))  # (systems,)
    scores = {name: Score(float(value)) for name, value in zip(systems, values, strict=True)}
    (_, one), *others = statistics.items()
    for name, other in others:
        scores[name] = Score(scores[name].value, p_value(partial(_scores, scorer), one, other))
    signature = scorer.get_signature()
    if others:
        signature.info |= {"ar": TRIALS, "seed": SEED, "ties": "counted"}
    return str(signature), scores


def _scores(scorer: Any, sums: Array) -> Array:
    """Return the scores (sums,) of summed statistics (sums, size)."""
    return np.array([scorer._compute_score_from_stats(row).score for row in sums.tolist()])


def _keep_blanks(line: str) -> str:
    """Put a letter of private use, each its own, for each blank other than the ASCII space."""
    return _OTHER_BLANK.sub(lambda blank: chr(0xF0000 + ord(blank[0])), line)


def _plain(scores: dict[str, Score]) -> dict[str, dict[str, float]]:
    return {
        metric: {"score": score.value} | ({} if score.p_value is None else {"p_value": score.p_value})
        for metric, score in scores.items()
    }
