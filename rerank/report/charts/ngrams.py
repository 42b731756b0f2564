"""Chart of n-grams that are right more often than before, and less often."""

from moses_io.errors import counted
from rerank.analysis.ngrams import Matched, NgramChanges
from rerank.report.charts.drawing import WIDTH, bar, cut, figure, label

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
