"""What stands above the sentences: how good the systems are, what made the difference, and charts."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from moses_io.errors import printable
from rerank.report.evaluation import Evaluation
from rerank.report.terminal import cells


class Overview(NamedTuple):
    """What is said of a whole set.

    Attributes:
        evaluation: of both systems.
        summary: how many sentences changed.
        lines: how weights were found, what features are worth, and how well estimates fit.
        charts: each a `<figure>` of inline SVG, in HTML.
    """

    evaluation: Evaluation
    summary: str
    lines: Sequence[str]
    charts: Sequence[str]


def overview(content: Overview) -> Iterator[str]:
    """Yield the lines of HTML."""
    evaluation = content.evaluation
    rows = (_row("td" if number else "th", row) for number, row in enumerate(cells(evaluation)))
    small = [f"{name}: {text}" for name, text in evaluation.signatures.items()]
    small += evaluation.facts.lines() if evaluation.facts else []
    yield '<section id="overview">'
    yield "<h1>moses-rerank</h1>"
    yield f'<p>{_escaped(content.summary)}. <a href="#sentences">Look at them below</a></p>'
    yield f'<div class="scroll"><table class="systems">{"".join(rows)}</table></div>'
    yield f"<p><small>{'<br>'.join(map(_escaped, small))}</small></p>"
    yield f"<pre>{chr(10).join(map(_escaped, content.lines))}</pre>"
    yield '<div class="charts" id="charts">'
    yield from content.charts
    yield "</div></section>"


def _escaped(text: str) -> str:
    """Return a line of text as HTML; what steers a terminal is nothing that a page may hold either."""
    return escape(printable(text))


def _row(tag: str, row: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_escaped(cell)}</{tag}>" for cell in row) + "</tr>"
