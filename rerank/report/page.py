"""The HTML page of a report: all sentences of a set in one file, which opens from disk and needs no network.

The page has:

* an overview of the set,
* an index with the text of all sentences, which is read when the page opens,
* chunks of candidates, each decompressed when one of its sentences is opened,
* a style and a script, whose parts are in the folder `explorer`.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, BinaryIO

import numpy as np

from moses_io.alignment import LinkNumbering, segmentation, segmentation_faults, word_alignment
from moses_io.files.errors import Fault, printable
from moses_io.files.text import tokens
from moses_io.hypothesis import Hypothesis
from moses_io.nbest import SentenceList
from rerank.confidence.fitting import MeasuredEstimates
from rerank.linear.ranking import Ranking
from rerank.metrics.evaluation import Evaluation
from rerank.report.changes import MOSES, RERANKED, Change, Reranked, contributions, find_chosen
from rerank.report.drawing import safe
from rerank.report.listed import Listed, lists_containing
from rerank.report.tables import Section, cells, notes
from rerank.systems.attention import Attentions

CHUNK = 20
"""Number of sentences per chunk."""

EXPLORER = files(__package__) / "explorer"

SCRIPTS = (
    "elements", "data", "words", "sorting", "list", "bars", "candidates", "heat", "sentence", "saving", "keyboard",
    "start",
)  # fmt: skip
"""Parts of the script, in order. The last one has the code that runs at once."""


def page(name: str, above: Iterable[str], chunks: Iterable[str], columns: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of the page of a set. Equal content gives equal bytes.

    Args:
        name: name of the set.
        above: lines from `overview`.
        chunks: elements from `Chunks`.
        columns: columns of all sentences from `index`.
    """
    script = "\n".join(_part(f"{part}.js") for part in SCRIPTS)
    yield "<!doctype html>"
    yield f'<html lang="en"><head><meta charset="utf-8"><title>{_title(name)}</title>'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_allowed(script)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
    yield f"<style>{_part('charts.css')}{_part('style.css')}</style></head><body>"
    yield from above
    yield _part("explorer.html")
    yield from chunks
    yield _compressed("index", columns)
    yield f'<script type="module">{script}</script></body></html>'


def overview(
    name: str,
    result: str,
    evaluation: Evaluation,
    chosen: Iterable[str],
    sections: Iterable[Section],
    charts: Iterable[str],
) -> Iterator[str]:
    """Yield the HTML lines of the overview of a set.

    Args:
        name: name of the set.
        result: the result in one sentence.
        evaluation: scores of all systems.
        chosen: for a merged list, a line with the lists that the choices come from, else empty.
        sections: further tables.
        charts: HTML of the charts, each a `<figure>` of inline SVG.
    """
    yield '<section id="overview">'
    yield f"<h1>{_title(name)}</h1>"
    yield f'<p id="result">{safe(result)} <a href="#sentences">All sentences</a></p>'
    yield from (f"<p>{safe(line)}</p>" for line in chosen)
    yield from _table(cells(evaluation), notes(evaluation))
    yield '<div class="tables">'
    for section in sections:
        yield f"<section><h3>{safe(section.title)}</h3>"
        yield from _table(section.rows, section.notes)
        yield "</section>"
    yield "</div>"
    yield '<div class="charts" id="charts">'
    yield from charts
    yield "</div></section>"


def _table(rows: Sequence[Sequence[str]], below: Sequence[str]) -> Iterator[str]:
    """Yield a table, if it has rows, and the lines below it."""
    if rows:
        lines = (_row("td" if number else "th", row) for number, row in enumerate(rows))
        yield f'<div class="scroll"><table class="systems">{"".join(lines)}</table></div>'
    if below:
        yield f"<p><small>{'<br>'.join(map(safe, below))}</small></p>"


def _title(name: str) -> str:
    return f"moses-rerank: {safe(name)}"


def _row(tag: str, row: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{safe(cell)}</{tag}>" for cell in row) + "</tr>"


def _part(name: str) -> str:
    return (EXPLORER / name).read_text(encoding="utf-8")


def _allowed(script: str) -> str:
    """Return a content security policy that allows this script and no other, whatever the texts contain."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"


def _compressed(name: str, values: object) -> str:
    """Return an HTML element with compressed values and an id.

    Its content is base64, so no text of a list can end the element.
    """
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    content = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'<script type="application/octet-stream" id="{name}">{content}</script>'


def index(
    reranked: Reranked, measured: MeasuredEstimates, changes: Sequence[Change], chunks: Mapping[int, int]
) -> dict[str, Any]:
    """Return columns of all sentences, with one row per sentence id.

    Gains and expected scores are in points, 0 … 100. A column without any value is empty. In rows of unchanged
    sentences `gain`, `helped` and `score_gain` are None.

    Args:
        reranked: the set.
        measured: estimates of the sentences.
        changes: changed sentences.
        chunks: number of the chunk of each sentence that has candidates, by sentence id.
    """
    ids, by_id = range(len(reranked.source)), {change.sentence: change for change in changes}
    estimates = [measured.estimates.get(number) for number in ids]
    changed = [by_id.get(number) for number in ids]
    return {
        "metric": printable(measured.metric),
        "source": _readable(reranked.source),
        "references": [_readable(lines) for lines in reranked.references],
        "before": _readable(reranked.before),
        "after": _readable(reranked.after),
        "gain": _column((each.gain if each else None for each in changed), lambda gain: round(100 * gain, 2)),
        "expected": _column((each.expected if each else None for each in estimates), partial(round, ndigits=2)),
        "helped": _column((each.helped if each else None for each in estimates), partial(round, ndigits=4)),
        "score_gain": _column((each.score_gain if each else None for each in changed), _digits),
        "chunk": [chunks.get(number) for number in ids],
    }


def _column(values: Iterable[float | None], rounded: Callable[[float], float]) -> list[float | None]:
    column = [None if value is None else rounded(value) for value in values]
    return column if any(value is not None for value in column) else []


def _readable(lines: Sequence[str]) -> list[str]:
    """Return lines of text with control characters escaped."""
    return [printable(line) for line in lines]


def _digits(value: float) -> float:
    """Return a value with five significant digits."""
    return float(f"{value:.5g}")


class Chunks:
    """Compresses the candidates of a page, `CHUNK` sentences at a time.

    Attributes:
        chunk_numbers: number of the chunk of each compressed sentence, by sentence id.

    Args:
        reranked: the set.
        names: names of the lists that the list was merged from, see `merged_list_names`.
        attention: attention of models, empty if there is none.
        stream: file in which the chunks wait until `elements` reads them.
    """

    def __init__(self, reranked: Reranked, names: Sequence[str], attention: Attentions, stream: BinaryIO) -> None:
        self.chunk_numbers: dict[int, int] = {}
        self._reranked, self._names, self._attention, self._stream = reranked, names, attention, stream
        self._some: dict[int, dict[str, Any]] = {}
        self._count = 0
        self._numbering = LinkNumbering()

    def add(self, listed: Listed, ranking: Ranking, reasons: Sequence[tuple[str, float]]) -> None:
        """Add a sentence, with the reasons for which its choice changed."""
        rounded_reasons = [(printable(name), _digits(part)) for name, part in reasons]
        self._some[listed.candidates.sentence] = self._sentence(listed, ranking) | {"reasons": rounded_reasons}
        if len(self._some) == CHUNK:
            self._compress()

    def finish(self) -> None:
        """Compress the last sentences."""
        if self._some:
            self._compress()

    def elements(self) -> Iterator[str]:
        """Yield one HTML element per chunk. After this call no sentence can be added."""
        self._stream.seek(0)
        for line in self._stream:
            yield line.decode().removesuffix("\n")

    def _compress(self) -> None:
        self._stream.write(f"{_compressed(f'chunk-{self._count}', self._some)}\n".encode())
        self.chunk_numbers |= dict.fromkeys(self._some, self._count)
        self._some = {}
        self._count += 1

    def _sentence(self, listed: Listed, ranking: Ranking) -> dict[str, Any]:
        """Return columns of the candidates in the order of the list, and details of both choices.

        `oracle`, and `index` of a choice, are indices of candidates. `parts` has one column per feature.
        """
        hypotheses, names = listed.candidates.hypotheses, self._names
        self._numbering.add_sentence(hypotheses)
        ranks = np.argsort(ranking.order)  # (candidates,), the inverse of the order
        weighted = [contributions(hypothesis, self._reranked.weights) for hypothesis in hypotheses]
        features = list(dict.fromkeys(name for row in weighted for name in row))
        return {
            "text": _readable([hypothesis.text for hypothesis in hypotheses]),
            "rank": (ranks + 1).tolist(),
            "score": [_digits(score) for score in ranking.scores.tolist()],
            "features": _readable(features),
            "parts": [[_digits(row.get(name, 0.0)) for row in weighted] for name in features],
            "lists": [", ".join(lists_containing(hypothesis, names)) for hypothesis in hypotheses] if names else [],
            "systems": self._systems(listed.candidates),
            **_quality(listed),
        }

    def _systems(self, candidates: SentenceList) -> dict[str, Any]:
        """Return details of the choice of each system. If both choices are equal, only Moses' choice is included."""
        number, reranked = candidates.sentence, self._reranked
        before, after = reranked.before[number], reranked.after[number]
        indices = {MOSES: candidates.find(before)}
        if after != before:
            indices[RERANKED] = find_chosen(candidates, after, reranked.weights)
        source = len(tokens(reranked.source[number]))
        systems: dict[str, Any] = {}
        for name, index in indices.items():
            chosen = None if index is None else candidates.hypotheses[index]
            attended = [
                {"model": printable(model), "weights": weights.astype(np.float64).round(4).tolist()}  # (J, I)
                for model, weights in self._attention.get((number, name), {}).items()
            ]
            aligned = _aligned(chosen, source, self._numbering.counts_bos_eos)
            systems[name] = {"index": index, "attention": attended, **aligned}
        return systems


def _quality(listed: Listed) -> dict[str, Any]:
    """Return the smoothed sentence BLEU of each candidate, 0 … 100, and the index of the highest one.

    On a tie this is the first one. Without references there are no scores, and the index is None.
    """
    if not listed.judged:
        return {"bleu": [], "oracle": None}
    scores = 100 * listed.judged.quality  # (N,)
    return {"bleu": [round(score, 2) for score in scores.tolist()], "oracle": int(np.argmax(scores))}


def _aligned(hypothesis: Hypothesis | None, source: int, counts_bos_eos: bool | None) -> Mapping[str, Any]:
    """Return Moses' word alignment and phrases of a candidate, empty if the list has none that fit the sentence."""
    if hypothesis is None:
        return {"links": [], "phrases": []}
    target = len(tokens(hypothesis.text))
    try:
        links = word_alignment(hypothesis, source, target, counts_bos_eos)
    except Fault:
        links = None
    phrases = segmentation(hypothesis) or []
    if segmentation_faults(phrases, source, target):
        phrases = []
    return {"links": sorted(links or ()), "phrases": phrases}
