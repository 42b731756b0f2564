"""Chart of how many sentences gained and lost how much."""

from moses_io.errors import counted
from rerank.analysis.gains import WIDTH as BIN
from rerank.analysis.gains import Gains
from rerank.report.charts.drawing import WIDTH, across_lines, bar, figure, label, scale, upright


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
