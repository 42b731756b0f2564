"""Evaluation with sacreBLEU's BLEU, chrF and TER, their signatures, and paired randomization tests."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from features.arrays import Array
from features.progress import with_bar
from moses_io.files.errors import InputError, counted, shown
from moses_io.files.text import has_marks, missing_as_none
from moses_io.nbest import MARKS
from rerank import __version__
from rerank.metrics.significance import SEED, TRIALS, p_value

REPORTED = ("BLEU", "chrF", "TER")
"""Names of the reported metrics, as in sacreBLEU."""

MAX_TOKENS = 10_000
"""Maximum number of tokens per line. TER of a line of this length takes two seconds."""

Systems = Mapping[str, Sequence[str]]
"""Output lines of each system by its name. The first system is the baseline."""

References = Sequence[str | None]
"""Lines of a reference file in sacreBLEU's form, with None for a missing reference."""

_OTHER_BLANK = re.compile(r"(?! )\s")


@dataclass(frozen=True)
class Score:
    """Score of a system.

    Attributes:
        value: as printed by sacreBLEU.
        p_value: p-value of the difference from the first system, None for the first system itself.
    """

    value: float
    p_value: float | None = None


@dataclass(frozen=True)
class ListFacts:
    """Facts about systems that come from an n-best list.

    Attributes:
        oracle: for each sentence, the text of the candidate with the highest smoothed sentence BLEU, or an empty line
            if there are no candidates. Empty without references.
        ranks: for each system, the rank in the list of each of its translations, from 1. None if the translation is
            not in the list.
    """

    oracle: list[str]
    ranks: dict[str, list[int | None]]

    def lines(self) -> list[str]:
        """Return one line of text per system."""
        lines = []
        for name, ranks in self.ranks.items():
            known = [rank for rank in ranks if rank is not None]
            mean = f", mean rank {np.mean(known):.1f}, median rank {np.median(known):g}" if known else ""
            counts = f"{len(known)} of {len(ranks)} translations are in the list, {known.count(1)} with rank 1"
            lines.append(f"{name}: {counts}{mean}")
        return lines


@dataclass(frozen=True)
class Evaluation:
    """Scores of systems.

    Attributes:
        scores: scores by system and metric. Without references no system has scores.
        signatures: signature of each metric.
        oracle: scores of the oracle by metric, None without a list or without references.
        facts: facts from the n-best list, None if there is no list.
    """

    scores: dict[str, dict[str, Score]]
    signatures: dict[str, str]
    oracle: dict[str, Score] | None = None
    facts: ListFacts | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the evaluation as values for JSON."""
        systems = [{"system": name, **_plain(scores)} for name, scores in self.scores.items()]
        result = {"systems": systems, "signatures": self.signatures, "version": __version__}
        ranks = {"ranks": self.facts.ranks} if self.facts else {}
        return result | ({"oracle": _plain(self.oracle)} if self.oracle else {}) | ranks


def evaluate(
    systems: Systems,
    references: Sequence[Sequence[str]],
    tokenize: str = "none",
    facts: ListFacts | None = None,
    filtered: str = "",
) -> Evaluation:
    """Score systems against references. Without references, return only the facts.

    * BLEU with `tokenize` "none" splits only at the ASCII space, as Moses does. sacreBLEU would also split at other
      blanks, so the signature has `tok:space`, not sacreBLEU's `tok:none`.
    * chrF ignores all blanks, as in sacreBLEU.
    * TER splits at every blank, as in sacreBLEU.

    A blank line in one of several references is a missing reference. sacreBLEU gets None for it and ignores it.

    Args:
        systems: output lines by system.
        references: lines of each reference.
        tokenize: sacreBLEU's tokenizer for BLEU.
        facts: facts from an n-best list, for oracle scores and ranks.
        filtered: part that is added to signatures and names the filters.

    Raises:
        InputError: the lengths of a system and the references differ, a line is too long for TER, a system has
            segmentation marks in its text, or the tokenizer is unknown or cannot be loaded.
    """
    if not references:
        return Evaluation({name: {} for name in systems}, {}, facts=facts)
    check_lengths(systems, references)
    check_marks(systems)
    scores: dict[str, dict[str, Score]] = {name: {} for name in systems}
    signatures, oracle = {}, {}
    scorers = _scorers(tokenize)
    present = list(zip(*map(missing_as_none, zip(*references, strict=True)), strict=True))
    for metric, scorer in with_bar("measure", scorers.items(), len(scorers)):
        prepare = _keep_blanks if metric == "BLEU" and tokenize == "none" else str
        prepared_references = [[line if line is None else prepare(line) for line in lines] for lines in present]
        prepared = {name: [prepare(line) for line in lines] for name, lines in systems.items()}
        signature, by_name = _compare(scorer, prepared, prepared_references)
        signatures[metric] = signature + filtered
        for name, score in by_name.items():
            scores[name][metric] = score
        if facts:
            oracle[metric] = Score(
                scorer.corpus_score([prepare(line) for line in facts.oracle], prepared_references).score
            )
    return Evaluation(scores, signatures, oracle or None, facts)


def check_marks(systems: Systems) -> None:
    """Raise `InputError` if a translation has Moses' segmentation marks."""
    for name, lines in systems.items():
        for number, line in enumerate(lines, start=1):
            if has_marks(line):
                raise InputError(f"{name}:{number}: {MARKS}")


def check_lengths(systems: Systems, references: Sequence[Sequence[str]]) -> None:
    """Raise `InputError` if a system and the references differ in length, or a line is too long for TER."""
    if not references[0]:
        raise InputError("the reference is empty")
    named = ((f"reference {number}", lines) for number, lines in enumerate(references, start=1))
    for name, lines in (*systems.items(), *named):
        for number, line in enumerate(lines, start=1):
            # Counting characters is quicker than splitting the line, which TER does at every blank.
            if len(line) > MAX_TOKENS and len(line.split()) > MAX_TOKENS:
                raise InputError(f"{name}:{number}: more than {MAX_TOKENS:,} tokens, too many for TER")
    for name, lines in systems.items():
        if len(lines) != len(references[0]):
            raise InputError(f"{name} has {counted(len(lines), 'line')}, the reference has {len(references[0]):,}")


def _scorers(tokenize: str) -> dict[str, Any]:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    from rerank.metrics.edits import FastTER

    if tokenize not in BLEU.TOKENIZERS:
        raise InputError(f"tokenize {shown(tokenize)}: expected one of {', '.join(sorted(BLEU.TOKENIZERS))}")
    try:
        bleu = BLEU(tokenize=tokenize, force=True)
    except (RuntimeError, ImportError, OSError) as error:
        raise InputError(f"tokenize {shown(tokenize)}: {' '.join(str(error).split())}") from None
    if tokenize == "none":
        bleu.tokenizer_signature = "space"
    return {"BLEU": bleu, "chrF": CHRF(), "TER": FastTER()}


def _compare(scorer: Any, systems: Systems, references: Sequence[References]) -> tuple[str, dict[str, Score]]:
    """Return the signature of a metric and the score of each system, with p-values against the first system.

    sacreBLEU's own randomization test ignores trials whose difference equals the observed one. Two systems that differ
    in one sentence would then get the smallest possible p-value. Here such trials count, and the signature has
    `ties:counted`.
    """
    statistics = {
        name: np.array(scorer._extract_corpus_statistics(lines, references), dtype=np.float64)  # (n, size)
        for name, lines in systems.items()
    }
    values = _scores(scorer, np.stack([rows.sum(axis=0) for rows in statistics.values()]))  # (systems,)
    scores = {name: Score(float(value)) for name, value in zip(systems, values, strict=True)}
    (_, baseline), *others = statistics.items()
    for name, other in others:
        scores[name] = Score(scores[name].value, p_value(partial(_scores, scorer), baseline, other))
    signature = scorer.get_signature()
    if others:
        signature.info |= {"ar": TRIALS, "seed": SEED, "ties": "counted"}
    return str(signature), scores


def _scores(scorer: Any, sums: Array) -> Array:
    """Return the (sums,) scores of (sums, size) summed statistics."""
    return np.array([scorer._compute_score_from_stats(row).score for row in sums.tolist()])


def _keep_blanks(line: str) -> str:
    """Replace each blank other than the ASCII space by a private-use character, at which sacreBLEU does not split."""
    return _OTHER_BLANK.sub(lambda blank: chr(0xF0000 + ord(blank[0])), line)


def _plain(scores: dict[str, Score]) -> dict[str, dict[str, float]]:
    return {
        metric: {"score": score.value} | ({} if score.p_value is None else {"p_value": score.p_value})
        for metric, score in scores.items()
    }
