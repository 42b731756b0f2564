"""What a person reads of the results: a table, and sentences that changed."""

from collections.abc import Sequence

import numpy as np

from moses_io.text import tokens
from rerank.bleu import SentenceReferences, sentence_bleu
from rerank.evaluation import METRICS, Evaluation, Score


def table(evaluation: Evaluation) -> list[str]:
    """Return the lines of a table of systems and metrics, with the signatures under it."""
    rows = [["system", *(cell for metric in METRICS for cell in (metric, "p"))]]
    rows += [[name, *_cells(scores)] for name, scores in evaluation.scores.items()]
    if evaluation.best:
        rows.append(["best candidates", *_cells(evaluation.best)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return [*(line.rstrip() for line in lines), *(f"{name}: {text}" for name, text in evaluation.signatures.items())]


def changed_sentences(
    source: Sequence[str], reference: Sequence[str], before: Sequence[str], after: Sequence[str], most: int = 6
) -> list[str]:
    """Return sentences that changed, side by side: those that gained most in sentence BLEU, and those that lost most.

    One in three of those shown lost, where so many did.
    """
    gains = [
        (_sentence_bleu(after[number], reference[number]) - _sentence_bleu(before[number], reference[number]), number)
        for number in range(len(before))
        if before[number] != after[number]
    ]
    gains.sort(key=lambda item: (-item[0], item[1]))
    losses = [item for item in reversed(gains) if item[0] < 0][: most // 3]
    shown = [item for item in gains if item[0] > 0][: most - len(losses)] + losses
    up, down = sum(gain > 0 for gain, _ in gains), sum(gain < 0 for gain, _ in gains)
    lines = [f"{len(gains)} of {len(before)} sentences changed: sentence BLEU rose in {up} and fell in {down}"]
    for gain, number in shown:
        lines += [
            "",
            f"sentence {number}, sentence BLEU {100 * gain:+.1f}",
            f"  source     {source[number]}",
            f"  reference  {reference[number]}",
            f"  before     {before[number]}",
            f"  after      {after[number]}",
        ]
    return lines


def _cells(scores: dict[str, Score]) -> list[str]:
    cells = []
    for metric in METRICS:
        score = scores[metric]
        cells += [f"{score.value:.2f}", "" if score.p_value is None else f"{score.p_value:.3f}"]
    return cells


def _sentence_bleu(hypothesis: str, reference: str) -> float:
    statistics = SentenceReferences([tokens(reference)]).statistics(tokens(hypothesis))
    return float(sentence_bleu(np.array(statistics, dtype=np.float64)))
