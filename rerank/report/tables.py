"""Tables of results in plain text, for `evaluate` and the reports, and the sentences with the largest changes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from features.progress import aligned
from moses_io.files.errors import counted, printable
from rerank.metrics.evaluation import REPORTED, Evaluation, Score
from rerank.metrics.metric import Metric
from rerank.report.breakdown import QUARTERS
from rerank.report.changes import Change

if TYPE_CHECKING:
    from rerank.confidence.confidence import Confidence, Fit, Part
    from rerank.report.analysis import Analysis
    from rerank.tuning.gain import Gain

MAIN_REASONS = 4
"""Number of features named as reasons of a change: the ones with the largest contributions."""

DEV = "dev, out of fold"
"""Name of dev when its values are cross-validated."""


def table(evaluation: Evaluation) -> list[str]:
    """Return the lines of a table of systems and metrics, followed by its notes."""
    return aligned(cells(evaluation)) + notes(evaluation)


def notes(evaluation: Evaluation) -> list[str]:
    """Return notes that explain the table: signatures, the meaning of p, and facts about the systems from the list."""
    lines = [f"{name}: {text}" for name, text in evaluation.signatures.items()]
    if len(evaluation.scores) > 1 and lines:
        lines.append("p: how often systems that are no different would differ as much, by chance; 0.0001 at least")
    return lines + (evaluation.facts.lines() if evaluation.facts else [])


def cells(evaluation: Evaluation) -> list[list[str]]:
    """Return the cells of the table, head first. The result is empty without metrics."""
    if not evaluation.signatures:
        return []
    rows = [["system", *(cell for metric in REPORTED for cell in (metric, "p"))]]
    rows += [[printable(name), *_numbers(scores)] for name, scores in evaluation.scores.items()]
    return rows + ([["best candidates", *_numbers(evaluation.best)]] if evaluation.best else [])


def _numbers(scores: dict[str, Score]) -> list[str]:
    """Return the cells of a row: score and p-value of each metric of `REPORTED`."""
    numbers = []
    for score in (scores[metric] for metric in REPORTED):
        numbers += [f"{score.value:.2f}", "" if score.p_value is None else f"{score.p_value:.4f}"]
    return numbers


def summary(changes: Sequence[Change], sentences: int) -> str:
    """Return how many of `sentences` changed and, with references, in which direction."""
    gains = [change.gain for change in changes if change.gain is not None]
    up, down = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
    direction = f": sentence BLEU rose in {up} and fell in {down}" if gains else ""
    return f"{len(changes)} of {sentences} sentences changed{direction}"


def side_by_side(changes: Sequence[Change], most: int = 6) -> list[str]:
    """Return the changes with the largest gains and losses in sentence BLEU, at most `most` of them.

    Up to a third are losses. The changes must be in the order of `in_order`. Without references the result is the
    changes with the clearest decisions.
    """
    losses = [change for change in reversed(changes) if change.gain is not None and change.gain < 0][: most // 3]
    others = [change for change in changes if change.gain is None or change.gain > 0][: most - len(losses)]
    lines = []
    for change in others + losses:
        lines += ["", change.title, *(f"  {name:<9}  {text}" for name, text in change.texts.items())]
        if change.reasons:
            main = sorted(change.reasons, key=lambda reason: -abs(reason[1]))[:MAIN_REASONS]
            lines.append("  why        " + ", ".join(f"{name} {part:+.2f}" for name, part in main))
        if change.expectation:
            lines.append(f"  expected   {change.expectation}")
    return lines


def tuning_lines(gain: "Gain") -> list[str]:
    """Return how the way to tune was chosen, and the gain on dev: tuned on all of dev, and cross-validated."""
    name = gain.metric
    listed = [f"How weights are tuned: {name} {gain.where}; p against the mean"] if gain.tried else []
    listed += aligned(
        [
            [way.name, f"{way.score:6.2f}", f"{way.p:.4f}", "chosen" if way.name == gain.chosen else ""]
            for way in gain.tried
        ]
    )
    unseen = ""
    if gain.old is not None and gain.new is not None:
        nested = ", nested" if gain.tried else ""
        unseen = f"; {gain.where}{nested} {gain.old:.2f} -> {gain.new:.2f} (p {gain.p:.4f})"
    return [*listed, f"{name} on dev, with weights tuned on it, {gain.before:.2f} -> {gain.after:.2f}{unseen}"]


def analysis_lines(analysis: "Analysis") -> list[str]:
    """Return one table by depth of the list, and one by margin. The result is empty without references."""
    if not analysis.judged:
        return []
    depths, margins = analysis.depths, analysis.judged.margins
    lines = [
        f"BLEU by depth   {''.join(f'{each.candidates:>7}' for each in depths)}",
        f"chosen          {''.join(f'{each.choice:7.2f}' for each in depths)}",
        f"best            {''.join(f'{each.best:7.2f}' for each in depths)}",
    ]
    if margins:
        ranked = counted(sum(each.sentences for each in margins), "sentence")
        rows = [["BLEU by margin", *QUARTERS[: len(margins)], f"(of Moses' total, quarters of {ranked})"]]
        rows += [[of, *(f"{each.scores[of]:10.2f}" for each in margins), ""] for of in margins[0].scores]
        lines += ["", *aligned(rows)]
    return lines


def estimate_lines(confidence: "Confidence", tests: "Mapping[str, Fit]") -> list[str]:
    """Return a table of how well the estimates fit, on dev and on test sets, by their names."""
    name, fits = Metric(confidence.metric).formula.name, {DEV: confidence.dev, **tests}
    rows = [["", "r", "alone", ""]]
    rows += [[of, f"{fit.correlation:5.3f}", f"{fit.alone:5.3f}", _means(fit.quarters, 1)] for of, fit in fits.items()]
    changes = [[f"{of:<{max(map(len, fits))}}", _means(fit.changes, 100)] for of, fit in fits.items() if fit.changes]
    return [
        f"Confidence: expected {name} of a sentence > what it reached, means of quarters, least sure first",
        *aligned(rows, left=(0, 3)),
        f"r: with what was reached; alone: of the single predictor {confidence.alone!r}",
        "Changes that made a difference: probability that they helped > share that did, quarters",
        *aligned(changes, left=(0, 1)),
    ]


def _means(parts: "tuple[Part, ...]", times: int) -> str:
    return "  ".join(f"{times * part.estimated:5.1f} > {times * part.reached:5.1f}" for part in parts)
