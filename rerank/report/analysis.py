"""What the lists and choices of a set are like: numbers, as lines of a report and as charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from features.progress import with_bar
from moses_io.errors import counted
from moses_io.text import input_lines
from rerank.analysis.bleu import statistics
from rerank.analysis.gains import (
    Frequency,
    Gains,
    NgramChanges,
    by_frequency,
    count_words,
    find_gains,
    ngram_changes,
    vocabulary,
)
from rerank.analysis.lengths import Bin, by_length
from rerank.analysis.margins import QUARTERS, Depth, Depths, Margins, Quarter
from rerank.metrics.filters import Filters
from rerank.report.charts import features, scores
from rerank.report.charts.gains import histogram, ngrams
from rerank.tuning.ablation import Worth
from rerank.tuning.gain import Gain


@dataclass(frozen=True)
class Judged:
    """What only references tell."""

    gains: Gains
    lengths: list[Bin]
    margins: list[Quarter]
    words: list[Frequency]
    ngrams: NgramChanges


@dataclass(frozen=True)
class Analysis:
    """Numbers of a list and of what was chosen from it before and after; `judged` is None without references."""

    sentences: int
    depths: list[Depth]
    judged: Judged | None


def analyse(
    depths: Depths,
    margins: Margins,
    source: Sequence[str],
    references: Sequence[Sequence[str]],
    systems: Mapping[str, Sequence[str]],
    train_target: str,
    filters: Filters,
) -> Analysis:
    """Analyse a list and the lines of two systems, that before and that after.

    Args:
        depths: what was chosen among the first candidates of the list.
        margins: how sure Moses was of its choices.
        source: n lines.
        references: of each set of references n lines, filtered.
        systems: of each system n lines, filtered, by its name.
        train_target: a text, in which words are counted.
        filters: what is done to that text before.
    """
    table = depths.table()
    if not references:
        return Analysis(depths.sentences, table, None)
    before, after = systems.values()
    of_lines = statistics(references, systems)
    wanted = vocabulary([*references, before, after])
    counts = count_words((filters(line) for line in with_bar("count words", input_lines(train_target))), wanted)
    judged = Judged(
        gains=find_gains(*of_lines.values()),
        lengths=by_length(source, of_lines),
        margins=margins.quarters(of_lines),
        words=by_frequency(counts, references, systems),
        ngrams=ngram_changes(references, before, after),
    )
    return Analysis(depths.sentences, table, judged)


def lines(analysis: Analysis) -> list[str]:
    """Return a table by depth of the list, and one by margins; nothing without references."""
    if not analysis.judged:
        return []
    depths, margins = analysis.depths, analysis.judged.margins
    table = [
        f"BLEU by depth   {''.join(f'{each.candidates:>7}' for each in depths)}",
        f"chosen          {''.join(f'{each.choice:7.2f}' for each in depths)}",
        f"best            {''.join(f'{each.best:7.2f}' for each in depths)}",
    ]
    if margins:
        head = "".join(f"{name:>12}" for name in QUARTERS[: len(margins)])
        ranked = counted(sum(each.sentences for each in margins), "sentence")
        table += ["", f"BLEU by margin{head}  (of Moses' total, quarters of {ranked})"]
        for system in margins[0].scores:
            table.append(f"{system:<14}{''.join(f'{each.scores[system]:12.2f}' for each in margins)}")
    return table


def charts(analysis: Analysis, worth: Worth | None, gain: Gain, lists: Sequence[str]) -> list[str]:
    """Return the figures of what there is enough of; the list was merged of some lists, or of none."""
    judged, depths = analysis.judged, analysis.depths
    figures = [features.worth(worth, gain.metric)] if worth else []
    figures += [features.weights(gain.shares)] if gain.shares else []
    if judged:
        changed = judged.gains.rose + judged.gains.fell
        figures += [histogram(judged.gains)] if changed else []
        figures += [scores.lengths(judged.lengths)] if len(judged.lengths) > 1 else []
        figures += [scores.margins(judged.margins)] if len(judged.margins) > 1 else []
    figures += [scores.depth(depths, analysis.sentences, lists)] if len(depths) > 1 else []
    if judged:
        figures += [scores.frequency(judged.words)] if len(judged.words) > 1 else []
        figures += [ngrams(judged.ngrams)] if judged.ngrams.won or judged.ngrams.lost else []
    return figures
