"""What stands above the sentences: how good the systems are, what made the difference, and charts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rerank.report.charts.drawing import safe
from rerank.report.evaluation import Evaluation
from rerank.report.terminal import cells, notes


class Overview(NamedTuple):
    """What is said of a whole set.

    Attributes:
        name: of the set.
        evaluation: of both systems.
        summary: how many sentences changed.
        chosen: from which lists of a merged one the choices come, perhaps nothing.
        lines: how weights were found, what features are worth, and how well estimates fit.
        charts: each a `<figure>` of inline SVG, in HTML.
    """

    name: str
    evaluation: Evaluation
    summary: str
    chosen: Sequence[str]
    lines: Sequence[str]
    charts: Sequence[str]

    @property
    def title(self) -> str:
        """What the page is, in HTML."""
        return f"moses-rerank: {safe(self.name)}"


def overview(content: Overview) -> Iterator[str]:
    """Yield the lines of HTML."""
    evaluation = content.evaluation
    rows = (_row("td" if number else "th", row) for number, row in enumerate(cells(evaluation)))
    yield '<section id="overview">'
    yield f"<h1>{content.title}</h1>"
    yield f'<p>{safe(content.summary)}. <a href="#sentences">Look at them below</a></p>'
    yield from (f"<p>{safe(line)}</p>" for line in content.chosen)
    yield f'<div class="scroll"><table class="systems">{"".join(rows)}</table></div>'
    yield f"<p><small>{'<br>'.join(map(safe, notes(evaluation)))}</small></p>"
    yield f"<pre>{chr(10).join(map(safe, content.lines))}</pre>"
    yield '<div class="charts" id="charts">'
    yield from content.charts
    yield "</div></section>"


def _row(tag: str, row: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{safe(cell)}</{tag}>" for cell in row) + "</tr>"
