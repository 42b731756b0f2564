"""The report of a reranking: how good it is, if that is known, what each feature is worth, and all that changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

from features.progress import note
from moses_io.errors import printable
from moses_io.streams import open_between, open_output
from moses_io.text import encode, input_lines, read_lines
from moses_io.weights import read_weights
from rerank.confidence.file import read_confidence
from rerank.linear.weights import kept_start
from rerank.metrics.filters import Filters
from rerank.report.analysis import analyse, charts
from rerank.report.analysis import lines as analysis_lines
from rerank.report.changes import MOSES, RERANKED, Reranked
from rerank.report.charts.confidence import confidence as draw
from rerank.report.estimates import as_json
from rerank.report.estimates import lines as estimate_lines
from rerank.report.evaluation import evaluate
from rerank.report.page.document import Overview, page
from rerank.report.page.sentences import index
from rerank.report.reading import read
from rerank.report.terminal import side_by_side, summary, table
from rerank.report.tuned import lines as tuned_lines
from rerank.report.worth import lines as worth_lines
from rerank.systems.attention import Attentions, read_attention
from rerank.tuning.ablation import read_worth
from rerank.tuning.gain import read_gain


class RerankingFiles(NamedTuple):
    """What a reranking read and made.

    Attributes:
        before: a line for each sentence of the source.
        after: the same, reranked.
        source: text.
        references: texts, perhaps none.
        scored: the list with all features.
        weights: those that chose.
        ablation: what each feature is worth on dev and here, by the name of the set; see `read_worth`.
        confidence: what estimates how good each choice is.
        gain: how the weights were found, and what they gain on dev.
        attention: what models attended to while they read both; empty where none has attention.
        name: of the set.
        train_target: the target side of the training corpus.
    """

    before: str
    after: str
    source: str
    references: tuple[str, ...]
    scored: str
    weights: str
    ablation: Mapping[str, str]
    confidence: str
    gain: str
    attention: str
    name: str
    train_target: str

    @property
    def attentions(self) -> Attentions:
        """What models attended to, by sentence and system, `moses` and `reranked`; read as it is asked for."""
        return read_attention(self.attention) if self.attention else {}


def write_report(files: RerankingFiles, filters: Filters, outputs: Sequence[str]) -> None:
    """Write the report as text, as a page of HTML to explore and, without the sentences, as JSON.

    The first lines of the text, up to an empty one, say all in short. Without references there are no scores: the
    report says what changed. The list is read once; what the page shows of its candidates waits on disk.
    """
    reranked, confidence = _reranked(files, filters), read_confidence(files.confidence)
    own = {MOSES: reranked.before, RERANKED: reranked.after}
    systems = {name: [filters(line) for line in lines] for name, lines in own.items()}
    with open_between(outputs[1]) as stream:
        reading = read(files.scored, reranked, systems, confidence, files.attentions, stream)
        evaluation = evaluate(systems, reranked.references, facts=reading.facts, filtered=filters.signature)
        changes, outcome = reading.changes, reading.measured.outcome
        fits = {files.name: outcome.fit()} if outcome else {}
        worth, gain = read_worth(files.ablation) if files.ablation else None, read_gain(files.gain)
        analysis = analyse(
            reading.depths, reading.margins, reranked.source, reranked.references, systems, files.train_target, filters
        )
        drawn = charts(analysis, worth, gain, reading.lists)
        drawn += [draw(outcome, confidence.dev, reading.measured.metric, files.name)] if outcome else []
        parts = [[*tuned_lines(gain), *kept_start(files.weights)], worth_lines(worth) if worth else []]
        parts += [analysis_lines(analysis), estimate_lines(confidence, fits)]
        beside = [line for part in parts if part for line in ("", *part)]
        changed = summary(changes, len(reranked.source))
        text = [*table(evaluation), changed, *reading.chosen, *beside, *side_by_side(changes)]
        content = Overview(files.name, evaluation, changed, reading.chosen, beside[1:], drawn)
        chunks = reading.chunks.elements()
        html = page(content, chunks, index(reranked, reading.measured, changes, reading.chunks.places))
        counts = {"sentences": len(reranked.source), "changed": len(changes), "confidence": as_json(confidence, fits)}
        counts |= {"tuning": asdict(gain), "analysis": asdict(analysis)}
        plain = json.dumps(evaluation.as_json() | counts, indent=2)
        for path, lines in zip(outputs, (map(printable, text), html, [plain]), strict=True):
            with open_output(path) as output:
                output.writelines(encode(f"{line}\n") for line in lines)
    note(f"every sentence, and why it changed: {outputs[1]}")


def _reranked(files: RerankingFiles, filters: Filters) -> Reranked:
    before, after = (read_lines(path) for path in (files.before, files.after))
    return Reranked(
        source=list(input_lines(files.source)),
        references=filters.references(files.references),
        before=before,
        after=after,
        weights=read_weights(files.weights),
        filters=filters,
    )
