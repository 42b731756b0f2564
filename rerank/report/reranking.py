"""The report of a reranking: how good it is, what each feature is worth, and every sentence that changed."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from features.progress import note
from moses_io.errors import printable
from moses_io.streams import open_output
from moses_io.text import encode, read_lines, read_references
from moses_io.weights import read_weights
from rerank.metrics.filters import Filters
from rerank.report.changes import find_changes
from rerank.report.evaluation import evaluate_files
from rerank.report.page import page
from rerank.report.terminal import side_by_side, summary, table


class RerankingFiles(NamedTuple):
    """What a reranking read and made.

    `before` and `after` have a line for each sentence of `source`, `scored` is the list with all features, `ablation`
    the table of what each of them is worth, or nothing.
    """

    before: str
    after: str
    source: str
    references: tuple[str, ...]
    nbest: str
    scored: str
    weights: str
    ablation: str


def write_report(files: RerankingFiles, filters: Filters, outputs: Sequence[str]) -> None:
    """Write the report as text, as a page of HTML and, without the sentences, as JSON."""
    systems = {"moses": files.before, "reranked": files.after}
    evaluation = evaluate_files(systems, files.references, files.nbest, filters)
    source, before, after = (read_lines(path) for path in (files.source, files.before, files.after))
    references = [[filters(line) for line in lines] for lines in read_references(files.references)]
    changes = find_changes(files.scored, read_weights(files.weights), source, references, before, after, filters)
    worth = read_lines(files.ablation) if files.ablation else []
    text = [*table(evaluation), "", *worth, "", summary(changes, len(source)), *side_by_side(changes)]
    html, plain = page(evaluation, changes, len(source), worth), json.dumps(evaluation.as_json(), indent=2)
    for path, content in zip(outputs, ("\n".join(map(printable, text)), html, plain), strict=True):
        with open_output(path) as stream:
            stream.write(encode(content + "\n"))
    note(f"every changed sentence, and why: {outputs[1]}")
