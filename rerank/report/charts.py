"""Charts of the page of a report: figures of inline SVG."""

from collections.abc import Sequence

import numpy as np

from moses_io.files.errors import counted
from rerank.confidence.confidence import Fit
from rerank.confidence.fitting import Outcome
from rerank.report.analysis import BIN_WIDTH, Analysis, Frequency, Gains, NgramChanges
from rerank.report.breakdown import QUARTERS, Bin, Depth
from rerank.report.drawing import (
    KINDS,
    WIDTH,
    Scale,
    across_lines,
    bar,
    curves,
    cut,
    dot,
    figure,
    label,
    legend,
    upright,
    upright_lines,
)  # fmt: skip
from rerank.report.tables import DEV
from rerank.tuning.ablation import BASE, Ablation, against
from rerank.tuning.gain import Gain, RelativeWeight


def charts(analysis: Analysis, ablation: Ablation | None, gain: Gain, lists: Sequence[str]) -> list[str]:
    """Return the figures for which there are enough results.

    `lists` has the names of the lists that the list was merged from, if any.
    """
    judged, depths = analysis.judged, analysis.depths
    figures = [ablation_chart(ablation, gain.metric)] if ablation else []
    figures += [weights_chart(gain.relative_weights)] if gain.relative_weights else []
    if judged:
        changed = judged.gains.rose + judged.gains.fell
        figures += [gains_chart(judged.gains)] if changed else []
        figures += [length_chart(judged.lengths)] if len(judged.lengths) > 1 else []
        figures += [margin_chart(judged.margins)] if len(judged.margins) > 1 else []
    figures += [depth_chart(depths, analysis.sentences, lists)] if len(depths) > 1 else []
    if judged:
        figures += [frequency_chart(judged.words)] if len(judged.words) > 1 else []
        figures += [ngrams_chart(judged.ngrams)] if judged.ngrams.won or judged.ngrams.lost else []
    return figures


MAX_ROWS = 24
"""Maximum number of rows of a chart."""

LEFT, RIGHT, TOP, LABEL = 142, WIDTH - 56, 8, 21
"""Edges of the drawing area, and the maximum number of characters of a row label."""


def ablation_chart(table: Ablation, metric: str) -> str:
    """Draw the score of each set of features on each set of sentences, as bars relative to Moses' own features."""
    on_dev = table.columns["dev"]
    rows = sorted(list(on_dev)[1:], key=lambda name: -abs(on_dev[name].score - on_dev[against(name)].score))[:MAX_ROWS]
    names = [name for name in on_dev if name == BASE or name in rows]
    columns = {DEV if of == "dev" else of: column for of, column in table.columns.items()}
    above = [column[name].score - column[BASE].score for column in columns.values() for name in names]
    axis = Scale([0.0, *above], LEFT, RIGHT, 5)
    height = 6 + 13 * len(columns)
    bottom = TOP + height * len(names)
    parts = upright_lines(axis, TOP, bottom)
    for row, name in enumerate(names):
        top = TOP + height * row
        parts.append(label(LEFT - 8, round(top + height / 2 + 4, 1), cut(name, LABEL), "end"))
        for number, (kind, (of, column)) in enumerate(zip(KINDS, columns.items(), strict=False)):
            score, down = column[name].score, top + 3 + 13 * number
            left, right = sorted((axis(0), axis(score - column[BASE].score)))
            parts.append(bar(kind, left, down, right - left, 10, f"{name}, {of}: {score:.2f}"))
            parts.append(label(WIDTH - 4, down + 9, f"{score:.2f}", "end"))
    parts.append(label((LEFT + RIGHT) / 2, bottom + 30, f"{metric} minus that of {BASE}", "middle"))
    parts += legend(list(columns), 8, bottom + 52)
    fewer = f" (the {len(rows)} of {len(on_dev) - 1} that differ most)" if len(rows) < len(on_dev) - 1 else ""
    where = " and ".join(columns)
    caption = f"{metric} of sets of features{fewer} on {where}. Bars show the difference from {BASE}."
    return figure("Ablation of features", caption, bottom + 62, parts)


def weights_chart(relative_weights: Sequence[RelativeWeight]) -> str:
    """Draw the relative weight of each feature, and its relative weights in cross-validation."""
    largest = sorted(relative_weights, key=lambda each: -abs(each.value))[:MAX_ROWS]
    rows = [each for each in relative_weights if each in largest]
    axis = Scale([0.0, *(100 * value for each in rows for value in (each.value, *each.folds))], LEFT, RIGHT, 5)
    height = 17
    bottom = TOP + height * len(rows)
    parts = upright_lines(axis, TOP, bottom)
    for row, each in enumerate(rows):
        down = TOP + height * (row + 0.5)
        parts.append(label(LEFT - 8, round(down + 4, 1), cut(each.name, LABEL), "end"))
        folds = [axis(100 * value) for value in each.folds]
        if folds:
            parts.append(f'<path class="two line" d="M{min(folds):.1f} {down:.1f}H{max(folds):.1f}"/>')
            parts += [f'<path class="two line" d="M{x:.1f} {down - 4:.1f}v8"/>' for x in folds]
        parts.append(dot("one", axis(100 * each.value), down, f"{each.name}: {100 * each.value:+.1f} %", 4))
        parts.append(label(WIDTH - 4, round(down + 4, 1), f"{100 * each.value:+.1f}", "end"))
    parts.append(label((LEFT + RIGHT) / 2, bottom + 30, "% of the dense weights", "middle"))
    left_out = len(rows[0].folds)
    spread = f" Strokes show {left_out} tunings, each without one fold of dev." if left_out else ""
    fewer = f" (the {len(rows)} largest of {len(relative_weights)})" if len(rows) < len(relative_weights) else ""
    caption = (
        "Dots show the weight times the standard deviation of the feature within a sentence of dev, in % of the sum of "
        f"the absolute products{fewer}.{spread}"
    )
    return figure("Relative weights of features", caption, bottom + 40, parts)


def gains_chart(gains: Gains) -> str:
    """Draw a histogram of gains in sentence BLEU, without sentences that have no gain or loss."""
    left, right, top, bottom = 44, WIDTH - 20, 12, 226
    axis = Scale([0, max(*gains.counts, 5)], bottom, top)
    step = (right - left) / len(gains.counts)
    parts = [*across_lines(axis, left, right), upright(12, (top + bottom) / 2, "sentences")]
    for index, (lower, count) in enumerate(zip(gains.lower, gains.counts, strict=True)):
        hint = f"{lower:+d} to {lower + BIN_WIDTH:+d}: {counted(count, 'sentence')}"
        if count:
            kind = "one" if lower < 0 else "two"
            parts.append(bar(kind, left + step * index + 1, axis(count), step - 2, bottom - axis(count), hint))
    middle = left + (right - left) / 2
    parts.append(f'<path class="zero" d="M{middle:g} {top}V{bottom}"/>')
    parts += [
        label(left + step * (value + 100) / BIN_WIDTH, bottom + 15, f"{value:+d}" if value else "0", "middle")
        for value in range(-100, 101, 50)
    ]
    parts.append(label(middle, bottom + 33, "gain in sentence BLEU, reranked minus moses", "middle"))
    caption = (
        f"Of {counted(gains.rose + gains.fell + gains.stayed, 'sentence')}, {gains.rose} have a higher sentence BLEU "
        f"and {gains.fell} a lower one. The other {gains.stayed} are not shown."
    )
    return figure("Gains in sentence BLEU", caption, bottom + 42, parts)


def ngrams_chart(changes: NgramChanges) -> str:
    """Draw one row per n-gram, with its matches before and after and a link to an example sentence."""
    largest = max((abs(each.after - each.before) for each in (*changes.won, *changes.lost)), default=1)
    parts, down = [], 4
    for kind, title, rows in (("two", "won", changes.won), ("one", "lost", changes.lost)):
        if not rows:
            continue
        parts.append(label(0, down + 14, f"{title}: matches moses → reranked, example"))
        down += 22
        for each in rows:
            difference = each.after - each.before
            length = (WIDTH - 2) * abs(difference) / largest
            parts += [
                label(0, down + 11, cut(each.ngram, 40)),
                label(WIDTH - 58, down + 11, f"{each.before} → {each.after}", "end"),
                f'<a href="#s{each.sentence}">{label(WIDTH - 2, down + 11, each.sentence, "end")}</a>',
                bar(f"{kind} faint", 0, down + 15, length, 6, f"{each.ngram}: {difference:+d}"),
            ]
            down += 26
        down += 12
    caption = (
        "N-grams of 1 to 4 words that match the references more or less often after reranking, largest differences "
        f"first, on {counted(changes.sentences, 'sentence')}."
    )
    return figure("N-grams won and lost", caption, down, parts, role="group")


def length_chart(bins: Sequence[Bin]) -> str:
    """Draw BLEU by source length. There must be at least one bin."""
    sentences = counted(sum(each.sentences for each in bins), "sentence")
    return curves(
        "BLEU by length of the source",
        f"BLEU of both systems by length of the source, on {sentences}. The second row has numbers of sentences.",
        [(each.span, str(each.sentences)) for each in bins],
        {name: [each.scores[name] for each in bins] for name in bins[0].scores},
        ("BLEU", "words of the source"),
    )


def margin_chart(quarters: Sequence[Bin]) -> str:
    """Draw BLEU by Moses' margin. There must be at least one quarter."""
    sentences = counted(sum(each.sentences for each in quarters), "sentence")
    return curves(
        "BLEU by margin of Moses' total",
        "BLEU of both systems by the difference of Moses' total between its choice and the next candidate with another "
        f"text, in quarters of the {sentences} that have one.",
        [(name, str(each.sentences)) for name, each in zip(QUARTERS, quarters, strict=False)],
        {name: [each.scores[name] for each in quarters] for name in quarters[0].scores},
        ("BLEU", "margin of Moses' choice (sentences)"),
    )


def depth_chart(depths: Sequence[Depth], sentences: int, lists: Sequence[str]) -> str:
    """Draw BLEU of the choices among the first candidates, and of the oracle.

    Without references, draw the percentage of choices that lie deeper. `lists` has the names of the lists that the list
    was merged from, if any.
    """
    columns = [(str(each.candidates), "") for each in depths]
    below, of = "first candidates of each sentence", counted(sentences, "sentence")
    later = f" Candidates that {lists[0]} does not have come after its own." if lists else ""
    choices = [each.reranked for each in depths if each.reranked is not None]
    if not choices:
        return curves(
            "Choices beyond the first candidates",
            f"Percentage of the choices for {of} that are not among the first 1, 2, 5, … candidates.{later}",
            columns,
            {"choices beyond": [100 * each.deeper for each in depths]},
            ("% of sentences", below),
        )
    return curves(
        "BLEU by number of candidates",
        f"BLEU of the reranked choices among the first candidates of {of}, and of their oracle.{later}",
        columns,
        {"reranked": choices, "oracle": [each.oracle for each in depths if each.oracle is not None]},
        ("BLEU", below),
        KINDS[1:],
    )


def frequency_chart(bins: Sequence[Frequency]) -> str:
    """Draw F1 of words by their frequency in the training text. There must be at least one bin."""
    words = counted(sum(each.words for each in bins), "word")
    return curves(
        "F1 of words by frequency",
        f"F1 of words of both systems, by frequency in the training text, on {words} of the references.",
        [(each.name, str(each.words)) for each in bins],
        {name: [each.scores[name] for each in bins] for name in bins[0].scores},
        ("F1 of words", "frequency in the training text, words of the references"),
    )


ACROSS = Scale([0, 100], 48, 368, 5)
DOWN = Scale([0, 100], 332, 12, 5)
"""Scales of expected scores (`ACROSS`) and actual scores (`DOWN`) in the confidence chart."""


def confidence_chart(outcome: Outcome, dev: Fit, metric: str, name: str) -> str:
    """Draw a dot per sentence of a set, means of the quarters of the set and of dev, and the line of equal scores.

    Scores below 0 are drawn at 0, because TER can be worse than that.
    """
    left, right, top, bottom = ACROSS(0), ACROSS(100), DOWN(100), DOWN(0)
    parts = []
    for tick in ACROSS.ticks:
        x, y = ACROSS(tick), DOWN(tick)
        parts += [
            f'<path class="grid" d="M{x:g} {top:g}v{bottom - top:g}M{left:g} {y:g}h{right - left:g}"/>',
            label(x, bottom + 14, f"{tick:g}", "middle"),
            label(left - 6, y + 4, f"{tick:g}", "end"),
        ]
    expected, actual = (np.clip(values, 0, 100).tolist() for values in (outcome.expected, outcome.actual))  # (n,)
    parts += [
        f'<path class="equal" d="M{left:g} {bottom:g}L{right:g} {top:g}"/>',
        label((left + right) / 2, bottom + 32, f"expected {metric}", "middle"),
        upright(14, (top + bottom) / 2, f"actual {metric}"),
        f'<g class="two dots">{_dots(expected, actual, 2)}</g>',
    ]
    for kind, quarters, radius in (("one", dev.quarters, 7), ("two", outcome.fit().quarters, 5)):
        estimated = [part.expected for part in quarters]
        means = [max(0.0, part.actual) for part in quarters]
        points = " ".join(f"{ACROSS(one):.1f},{DOWN(other):.1f}" for one, other in zip(estimated, means, strict=True))
        line = f'<polyline class="{kind} line" points="{points}"/>'
        parts.append(f'{line}<g class="{kind}">{_dots(estimated, means, radius)}</g>')
    caption = (
        f"Expected and actual {metric} of {counted(len(expected), 'sentence')} of {name}: a small dot for each. "
        "Large dots are means of quarters."
    )
    title = f"{metric} of the sentences of {name}: expected and actual"
    return figure(title, caption, bottom + 62, [*parts, *legend([DEV, name], left, bottom + 52)])


def _dots(expected: Sequence[float], actual: Sequence[float], radius: int) -> str:
    positions = [(ACROSS(one), DOWN(other)) for one, other in zip(expected, actual, strict=True)]
    return "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in positions)
