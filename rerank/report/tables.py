"""Tables of results in plain text, for `evaluate` and the reports, and the sentences with the largest changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from features.progress import aligned
from moses_io.files.errors import counted, printable
from rerank.metrics.evaluation import REPORTED, Evaluation, Score
from rerank.metrics.metric import Metric
from rerank.report.breakdown import QUARTERS
from rerank.report.changes import MOSES, RERANKED, Change

if TYPE_CHECKING:
    from rerank.confidence.confidence import Confidence, Fit, Part
    from rerank.report.analysis import Analysis
    from rerank.tuning.gain import Gain

MAIN_REASONS = 4
"""Number of features named as reasons of a change: the ones with the largest contributions."""

DEV = "dev, cross-validated"
"""Name of dev when its values are cross-validated."""


SIGNIFICANT = 0.05
"""Differences with a larger p-value are reported as not significant."""


@dataclass(frozen=True)
class Section:
    """A table of a report with its title and notes.

    Attributes:
        title: heading.
        rows: cells of the table, head first. May be empty.
        notes: lines below the table.
    """

    title: str
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """The section as plain text."""
        return [self.title, *aligned(self.rows), *self.notes]


def table(evaluation: Evaluation) -> list[str]:
    """Return the lines of a table of systems and metrics, followed by its notes."""
    return aligned(cells(evaluation)) + notes(evaluation)


def notes(evaluation: Evaluation) -> list[str]:
    """Return notes that explain the table: signatures, the meaning of p, and facts about the systems from the list."""
    lines = [f"{name}: {text}" for name, text in evaluation.signatures.items()]
    if len(evaluation.scores) > 1 and lines:
        lines.append("p: two-sided p-value of a paired randomization test against the first system, at least 0.0001")
    return lines + (evaluation.facts.lines() if evaluation.facts else [])


def cells(evaluation: Evaluation) -> list[list[str]]:
    """Return the cells of the table, head first. The result is empty without metrics."""
    if not evaluation.signatures:
        return []
    rows = [["system", *(cell for metric in REPORTED for cell in (metric, "p"))]]
    rows += [[printable(name), *_numbers(scores)] for name, scores in evaluation.scores.items()]
    return rows + ([["oracle", *_numbers(evaluation.oracle)]] if evaluation.oracle else [])


def _numbers(scores: dict[str, Score]) -> list[str]:
    """Return the cells of a row: score and p-value of each metric of `REPORTED`."""
    numbers = []
    for score in (scores[metric] for metric in REPORTED):
        numbers += [f"{score.value:.2f}", "" if score.p_value is None else f"{score.p_value:.4f}"]
    return numbers


def headline(name: str, evaluation: Evaluation, changes: Sequence[Change], sentences: int) -> str:
    """Return the result of a set in one sentence: BLEU of both systems, if there are references, and the changes."""
    changed = f"{len(changes)} of {counted(sentences, 'sentence')} changed"
    if not evaluation.signatures:
        return f"{changed[0].upper()}{changed[1:]}. Without references, translations are not scored."
    before, after = (evaluation.scores[system]["BLEU"] for system in (MOSES, RERANKED))
    difference, p = after.value - before.value, after.p_value
    gains = [change.gain for change in changes if change.gain is not None]
    up, down = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
    changed += f", {up} with a higher sentence BLEU and {down} with a lower one" if gains else ""
    if f"{difference:.2f}" in ("0.00", "-0.00"):
        return f"BLEU on {name} stays {before.value:.2f}: {changed}."
    verb = "rises" if difference > 0 else "falls"
    significance = "" if p is None or p < SIGNIFICANT else ", not significant"
    shown = "" if p is None else f", p = {p:.4f}"
    scores = f"from {before.value:.2f} to {after.value:.2f} ({difference:+.2f}{shown}{significance})"
    return f"BLEU on {name} {verb} {scores}: {changed}."


def side_by_side(changes: Sequence[Change], limit: int = 6) -> list[str]:
    """Return the changes with the largest gains and losses in sentence BLEU, at most `limit` of them.

    Up to a third are losses. The changes must be in the order of `sorted_changes`. Without references the result is the
    changes with the clearest decisions.
    """
    losses = [change for change in reversed(changes) if change.gain is not None and change.gain < 0][: limit // 3]
    others = [change for change in changes if change.gain is None or change.gain > 0][: limit - len(losses)]
    lines = []
    for change in others + losses:
        lines += ["", change.title, *(f"  {name:<9}  {text}" for name, text in change.texts.items())]
        if change.reasons:
            main = sorted(change.reasons, key=lambda reason: -abs(reason[1]))[:MAIN_REASONS]
            lines.append("  why        " + ", ".join(f"{name} {part:+.2f}" for name, part in main))
        if change.expectation:
            lines.append(f"  expected   {change.expectation}")
    return lines


def tuning_section(gain: "Gain", kept: Sequence[str]) -> Section:
    """Return the comparison of tuners, if any, and the gain on dev.

    Args:
        gain: results of the tuning.
        kept: lines that explain why the initial weights were kept, if they were.
    """
    name = gain.metric
    rows = [
        [each.name, f"{each.score:.2f}", f"{each.p_value:.4f}", "chosen" if each.name == gain.chosen else ""]
        for each in gain.compared
    ]
    rows = [["tuner", name, "p", ""], *rows] if rows else []
    compared = [f"p: against the mean of tuners, {name} {gain.measured}"] if rows else []
    unseen = ""
    if gain.old is not None and gain.new is not None:
        nested = " (nested)" if gain.compared else ""
        unseen = f", {gain.old:.2f} -> {gain.new:.2f} {gain.measured}{nested} (p {gain.p_value:.4f})"
    tuned = f"{name} on dev: {gain.before:.2f} -> {gain.after:.2f} with weights tuned on dev{unseen}"
    return Section("Tuning on dev", rows, [*compared, tuned, *kept])


def analysis_sections(analysis: "Analysis") -> list[Section]:
    """Return a table by list size, and one by margin. The result is empty without references."""
    if not analysis.judged:
        return []
    depths, margins = analysis.depths, analysis.judged.margins
    rows = [
        ["candidates", *(str(each.candidates) for each in depths)],
        ["reranked", *(f"{each.reranked:.2f}" for each in depths)],
        ["oracle", *(f"{each.oracle:.2f}" for each in depths)],
    ]
    sections = [Section("BLEU by number of candidates per sentence, in the order of the list", rows)]
    if margins:
        ranked = counted(sum(each.sentences for each in margins), "sentence")
        rows = [["margin", *QUARTERS[: len(margins)]]]
        rows += [[system, *(f"{each.scores[system]:.2f}" for each in margins)] for system in margins[0].scores]
        sections.append(Section(f"BLEU by margin of Moses' total, quarters of {ranked}", rows))
    return sections


def confidence_sections(confidence: "Confidence", tests: "Mapping[str, Fit]") -> list[Section]:
    """Return tables of how well the estimates fit, on dev and on test sets, by their names."""
    name, fits = Metric(confidence.metric).formula.name, {DEV: confidence.dev, **tests}
    rows = [
        [data_set, f"{fit.correlation:.3f}", f"{fit.best_predictor:.3f}", *_means(fit.quarters, 1)]
        for data_set, fit in fits.items()
    ]
    note = (
        f"r: correlation of expected and actual {name}, and of the best single predictor, {confidence.best_predictor!r}"
    )
    sections = [
        Section(
            f"Confidence estimation: expected > actual {name} of a sentence, means of quarters",
            [["", "r", "best predictor", *QUARTERS], *rows],
            [note],
        )
    ]
    if changes := [[data_set, *_means(fit.changes, 100)] for data_set, fit in fits.items() if fit.changes]:
        title = "Changed translations: probability of improvement > percentage that improved, means of quarters"
        sections.append(Section(title, [["", *QUARTERS], *changes]))
    return sections


def _means(parts: "tuple[Part, ...]", scale: int) -> list[str]:
    """Return one cell per quarter. There are fewer parts than quarters if there are fewer sentences."""
    shown = [f"{scale * part.expected:.1f} > {scale * part.actual:.1f}" for part in parts]
    return shown + [""] * (len(QUARTERS) - len(shown))
