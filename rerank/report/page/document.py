"""The page as a file: style, overview, data and script in one, which opens from disk and asks no network."""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

from rerank.report.charts.drawing import STYLE
from rerank.report.page.overview import Overview, overview
from rerank.report.page.packing import packed

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
