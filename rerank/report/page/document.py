"""The page as a file: style, overview, data and script in one, which opens from disk and asks no network."""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from rerank.report.charts.drawing import STYLE, safe
from rerank.report.evaluation import Evaluation
from rerank.report.page.sentences import packed
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


EXPLORER = files(__package__) / "explorer"

SCRIPTS = (
    "elements", "data", "words", "sorting", "list", "bars", "candidates", "heat", "sentence", "saving", "keyboard",
    "start",
)  # fmt: skip
"""Parts of the script in their order: what runs at once stands in the last one."""


def page(content: Overview, chunks: Iterable[str], index: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of the page, as `Chunks` has packed the candidates; the same content gives the same bytes."""
    script = "\n".join(_part(f"{name}.js") for name in SCRIPTS)
    yield "<!doctype html>"
    yield f'<html lang="en"><head><meta charset="utf-8"><title>{content.title}</title>'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_allowed(script)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
    yield f"<style>{STYLE}{_part('style.css')}</style></head><body>"
    yield from overview(content)
    yield _part("explorer.html")
    yield from chunks
    yield packed("index", index)
    yield f'<script type="module">{script}</script></body></html>'


def _part(name: str) -> str:
    return (EXPLORER / name).read_text(encoding="utf-8")


def _allowed(script: str) -> str:
    """Return what the browser may load and run: this script and nothing else, whatever a text of the list says."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
