"""What a person reads of the results on a terminal: a table, and some sentences that changed."""

from collections.abc import Sequence

from moses_io.errors import printable
from rerank.report.changes import MOSES, RERANKED, Change
from rerank.report.evaluation import REPORTED, Evaluation, Score

MAIN_REASONS = 4
"""Features named as reasons of a change: those with the largest parts."""


def table(evaluation: Evaluation) -> list[str]:
    """Return the lines of a table of systems and metrics, with its notes under it."""
    rows = cells(evaluation)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]).rstrip())
    return lines + notes(evaluation)


def notes(evaluation: Evaluation) -> list[str]:
    """Return what makes the table clear: signatures, what p is, and what the list says of the systems."""
    lines = [f"{name}: {text}" for name, text in evaluation.signatures.items()]
    if len(evaluation.scores) > 1 and lines:
        lines.append("p: how often systems that are no different would differ as much, by chance; 0.0001 at least")
    return lines + (evaluation.facts.lines() if evaluation.facts else [])


def cells(evaluation: Evaluation) -> list[list[str]]:
    """Return the head and the rows of the table, cell by cell; nothing where there are no metrics."""
    if not evaluation.signatures:
        return []
    rows = [["system", *(cell for metric in REPORTED for cell in (metric, "p"))]]
    rows += [[printable(name), *_numbers(scores)] for name, scores in evaluation.scores.items()]
    return rows + ([["best candidates", *_numbers(evaluation.best)]] if evaluation.best else [])


def summary(changes: Sequence[Change], sentences: int) -> str:
    """Return how many of `sentences` changed and, if that is known, in which direction."""
    gains = [change.gain for change in changes if change.gain is not None]
    up, down = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
    direction = f": sentence BLEU rose in {up} and fell in {down}" if gains else ""
    return f"{len(changes)} of {sentences} sentences changed{direction}"


def side_by_side(changes: Sequence[Change], most: int = 6) -> list[str]:
    """Return those that gained most in sentence BLEU and, one in three where so many did, those that lost most.

    Without references return those that were decided most clearly.
    """
    losses = [change for change in reversed(changes) if change.gain is not None and change.gain < 0][: most // 3]
    others = [change for change in changes if change.gain is None or change.gain > 0][: most - len(losses)]
    lines = []
    for change in others + losses:
        texts = {**change.texts, MOSES: change.before, RERANKED: change.after}
        lines += ["", change.title, *(f"  {name:<9}  {text}" for name, text in texts.items())]
        if change.reasons:
            main = sorted(change.reasons, key=lambda reason: -abs(reason[1]))[:MAIN_REASONS]
            lines.append("  why        " + ", ".join(f"{name} {part:+.2f}" for name, part in main))
        if change.expectation:
            lines.append(f"  expected   {change.expectation}")
    return lines


def _numbers(scores: dict[str, Score]) -> list[str]:
    numbers = []
    for score in (scores[metric] for metric in REPORTED):
        numbers += [f"{score.value:.2f}", "" if score.p_value is None else f"{score.p_value:.4f}"]
    return numbers
