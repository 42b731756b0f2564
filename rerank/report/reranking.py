"""The report of a reranking: how good it is, if that is known, what each feature is worth, and all that changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

from features.progress import note
from moses_io.errors import printable
from moses_io.streams import open_output
from moses_io.text import encode, read_lines, read_references
from moses_io.weights import read_weights
from rerank.analysis.listed import read_listed
from rerank.confidence.file import read_confidence
from rerank.confidence.measured import measure
from rerank.metrics.filters import Filters
from rerank.report.analysis import Analysis, analyse, charts
from rerank.report.analysis import lines as analysis_lines
from rerank.report.attention import Attentions, read_attention
from rerank.report.changes import find_changes
from rerank.report.charts.confidence import confidence as draw
from rerank.report.estimates import as_json
from rerank.report.estimates import lines as estimate_lines
from rerank.report.evaluation import evaluate_files
from rerank.report.origins import lines as origin_lines
from rerank.report.page.document import page
from rerank.report.page.overview import Overview
from rerank.report.page.sentences import AFTER, BEFORE, Explored
from rerank.report.terminal import side_by_side, summary, table
from rerank.report.tuned import lines as tuned_lines
from rerank.report.worth import lines as worth_lines
from rerank.tuning.ablation import read_worth
from rerank.tuning.gain import read_gain
from rerank.weights import kept_start


class RerankingFiles(NamedTuple):
    """What a reranking read and made.

    Attributes:
        before: a line for each sentence of the source.
        after: the same, reranked.
        source: text.
        references: texts, perhaps none.
        nbest: the list without new features.
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
    nbest: str
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
    report says what changed.
    """
    evaluation = evaluate_files({BEFORE: files.before, AFTER: files.after}, files.references, files.nbest, filters)
    confidence, explored = read_confidence(files.confidence), _explored(files, filters)
    changes, outcome = explored.changes, explored.measured.outcome
    fits = {files.name: outcome.fit()} if outcome else {}
    worth, gain = read_worth(files.ablation) if files.ablation else None, read_gain(files.gain)
    analysis = _analysis(files, filters, explored)
    drawn = charts(analysis, worth, gain)
    drawn += [draw(outcome, confidence.dev, explored.measured.metric, files.name)] if outcome else []
    parts = [[*tuned_lines(gain), *kept_start(files.weights)], worth_lines(worth) if worth else []]
    parts += [analysis_lines(analysis), estimate_lines(confidence, fits)]
    beside = [line for part in parts if part for line in ("", *part)]
    changed = summary(changes, len(explored.source))
    chosen = origin_lines(files.scored, explored.after)
    text = [*table(evaluation), changed, *chosen, *beside, *side_by_side(changes)]
    html = page(Overview(files.name, evaluation, changed, chosen, beside[1:], drawn), explored)
    counts = {"sentences": len(explored.source), "changed": len(changes), "confidence": as_json(confidence, fits)}
    counts |= {"tuning": asdict(gain), "analysis": asdict(analysis)}
    plain = json.dumps(evaluation.as_json() | counts, indent=2)
    for path, lines in zip(outputs, (map(printable, text), html, [plain]), strict=True):
        with open_output(path) as stream:
            stream.writelines(encode(f"{line}\n") for line in lines)
    note(f"every sentence, and why it changed: {outputs[1]}")


def _analysis(files: RerankingFiles, filters: Filters, explored: Explored) -> Analysis:
    """Analyse the list and the choices of both systems."""
    listed = read_listed(files.scored, explored.weights, explored.references, filters)
    systems = {BEFORE: explored.before, AFTER: explored.after}
    lines = {name: [filters(line) for line in own] for name, own in systems.items()}
    return analyse(listed, explored.source, explored.references, lines, files.train_target, filters)


def _explored(files: RerankingFiles, filters: Filters) -> Explored:
    """Read the texts of a set, and find what changed and what is expected of it."""
    source, before, after = (read_lines(path) for path in (files.source, files.before, files.after))
    references = [[filters(line) for line in lines] for lines in read_references(files.references)]
    weights = read_weights(files.weights)
    measured = measure(read_confidence(files.confidence), files.scored, weights, references, filters)
    return Explored(
        nbest=files.scored,
        weights=weights,
        source=source,
        references=references,
        before=before,
        after=after,
        filters=filters,
        measured=measured,
        changes=find_changes(files.scored, weights, source, references, before, after, filters, measured),
        attention=files.attentions,
    )
