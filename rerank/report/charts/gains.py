"""Charts of the sentences and n-grams that gained and lost."""

from moses_io.errors import counted
from rerank.analysis.gains import WIDTH as BIN
from rerank.analysis.gains import Gains, Matched, NgramChanges
from rerank.report.charts.drawing import WIDTH, across_lines, bar, cut, figure, label, scale, upright


def histogram(gains: Gains) -> str:
    """Draw the gains in sentence BLEU of the sentences that rose or fell."""
    left, right, top, bottom = 44, WIDTH - 20, 12, 226
    axis = scale([0, max(*gains.counts, 5)], bottom, top)
    step = (right - left) / len(gains.counts)
    parts = [*across_lines(axis, left, right), upright(12, (top + bottom) / 2, "sentences")]
    for place, (lower, count) in enumerate(zip(gains.lower, gains.counts, strict=True)):
        hint = f"{lower:+d} to {lower + BIN:+d}: {counted(count, 'sentence')}"
        if count:
            kind = "one" if lower < 0 else "two"
            parts.append(bar(kind, left + step * place + 1, axis(count), step - 2, bottom - axis(count), hint))
    middle = left + (right - left) / 2
    parts.append(f'<path class="zero" d="M{middle:g} {top}V{bottom}"/>')
    parts += [
        label(left + step * (value + 100) / BIN, bottom + 15, f"{value:+d}" if value else "0", "middle")
        for value in range(-100, 101, 50)
    ]
    parts.append(label(middle, bottom + 33, "gain in sentence BLEU, reranked minus moses", "middle"))
    caption = (
        f"Of {counted(gains.rose + gains.fell + gains.stayed, 'sentence')} "
        f"{gains.rose} rose, {gains.fell} fell, and {gains.stayed}, which are not drawn, stayed."
    )
    return figure("Gains in sentence BLEU", caption, bottom + 42, parts)


ROW, BAR = 26, 6


def ngrams(changes: NgramChanges) -> str:
    """Draw the n-grams as rows, each with its matches before and after and a link to a sentence with it."""
    largest = max((abs(each.after - each.before) for each in (*changes.won, *changes.lost)), default=1)
    parts, down = [], 4
    for kind, title, rows in (("two", "won", changes.won), ("one", "lost", changes.lost)):
        if rows:
            parts.append(label(0, down + 14, f"{title}: matches moses → reranked, example"))
            parts += [
                line
                for place, each in enumerate(rows)
                for line in _row(kind, each, down + 22 + ROW * place, abs(each.after - each.before) / largest)
            ]
            down += 34 + ROW * len(rows)
    caption = (
        "Runs of 1 to 4 words that stand in the references and that reranking gets right more often, or less often, "
        f"than Moses, the largest differences first, on {counted(changes.sentences, 'sentence')}."
    )
    return figure("N-grams won and lost", caption, down, parts, role="group")


def _row(kind: str, each: Matched, top: float, share: float) -> list[str]:
    """Return the n-gram, its numbers and its example, with a bar below."""
    return [
        label(0, top + 11, cut(each.ngram, 40)),
        label(WIDTH - 58, top + 11, f"{each.before} → {each.after}", "end"),
        f'<a href="#s{each.sentence}">{label(WIDTH - 2, top + 11, each.sentence, "end")}</a>',
        bar(f"{kind} faint", 0, top + 15, (WIDTH - 2) * share, BAR, f"{each.ngram}: {each.after - each.before:+d}"),
    ]
