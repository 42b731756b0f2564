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
from rerank.confidence.file import read_confidence
from rerank.confidence.measured import measure
from rerank.metrics.filters import Filters
from rerank.report.attention import Attentions, read_attention
from rerank.report.changes import find_changes
from rerank.report.estimates import as_json
from rerank.report.estimates import lines as estimate_lines
from rerank.report.evaluation import evaluate_files
from rerank.report.origins import lines as origin_lines
from rerank.report.page import page
from rerank.report.picture import picture
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

    @property
    def attentions(self) -> Attentions:
        """What models attended to, by sentence and system, `moses` and `reranked`; read as it is asked for."""
        return read_attention(self.attention) if self.attention else {}


def write_report(files: RerankingFiles, filters: Filters, outputs: Sequence[str]) -> None:
    """Write the report as text, as a page of HTML and, without the sentences, as JSON.

    The first lines of the text, up to an empty one, say all in short. Without references there are no scores: the
    report says what changed.
    """
    systems = {"moses": files.before, "reranked": files.after}
    evaluation = evaluate_files(systems, files.references, files.nbest, filters)
    source, before, after = (read_lines(path) for path in (files.source, files.before, files.after))
    references = [[filters(line) for line in lines] for lines in read_references(files.references)]
    weights, confidence = read_weights(files.weights), read_confidence(files.confidence)
    measured = measure(confidence, files.scored, weights, references, filters)
    outcome = measured.outcome
    fits = {files.name: outcome.fit()} if outcome else {}
    drawn = picture(outcome, confidence.dev, measured.metric, files.name) if outcome else ""
    changes = find_changes(files.scored, weights, source, references, before, after, filters, measured)
    worth = worth_lines(read_worth(files.ablation)) if files.ablation else []
    estimated = estimate_lines(confidence, fits)
    gain = read_gain(files.gain)
    tuned = [*tuned_lines(gain), *kept_start(files.weights)]
    beside = [*tuned, "", *worth, *([""] if worth else []), *estimated]
    text = [
        *table(evaluation),
        summary(changes, len(source)),
        *origin_lines(files.scored, after),
        "",
        *beside,
        *side_by_side(changes),
    ]
    html = page(evaluation, changes, len(source), [*tuned, "", *worth, "", *estimated], drawn)
    counts = {"sentences": len(source), "changed": len(changes), "confidence": as_json(confidence, fits)}
    counts |= {"tuning": asdict(gain)}
    plain = json.dumps(evaluation.as_json() | counts, indent=2)
    for path, content in zip(outputs, ("\n".join(map(printable, text)), html, plain), strict=True):
        with open_output(path) as stream:
            stream.write(encode(content + "\n"))
    note(f"every changed sentence, and why: {outputs[1]}")
