"""The report of a reranking: scores, if there are references, ablation of features, and all changes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

from features.progress import log
from moses_io.files.errors import printable
from moses_io.files.streams import Lines, open_output, open_temporary
from moses_io.files.text import encode, input_lines, read_lines
from moses_io.filters import Filters
from moses_io.weights import WeightFile, read_weights
from rerank.confidence.confidence import Confidence, Fit, read_confidence
from rerank.confidence.fitting import EstimateCollector
from rerank.linear.ranking import LinearModel, Ranking
from rerank.linear.weights import kept_initial_weights
from rerank.metrics.evaluation import Systems, evaluate
from rerank.report.analysis import analyse
from rerank.report.breakdown import Depths, margin
from rerank.report.changes import MOSES, RERANKED, Change, Reranked, find_change, sorted_changes
from rerank.report.charts import charts, confidence_chart
from rerank.report.listed import Listed, ListLookup, OriginCounter, merged_list_names, read_listed
from rerank.report.page import Chunks, index, overview, page
from rerank.report.tables import (
    Section,
    analysis_sections,
    confidence_sections,
    headline,
    side_by_side,
    table,
    tuning_section,
)
from rerank.systems.attention import Attentions, read_attention
from rerank.tuning.ablation import ablation_cells, ablation_notes, ablation_title, read_ablation
from rerank.tuning.gain import read_gain


class RerankingFiles(NamedTuple):
    """Input and output files of a reranking.

    Attributes:
        before: choices of Moses, one line per sentence of the source.
        after: choices after reranking.
        source: source text.
        references: reference texts, may be empty.
        scored: list with all features.
        weights: weights that were used.
        ablation: results of the ablation on dev and on this set, by the name of the set, see `read_ablation`. May be
            empty.
        confidence: confidence model.
        gain: how the weights were found, and their gain on dev.
        attention: attention of models on both choices, empty if no model has attention.
        name: name of the set.
        train_target: target side of the training corpus.
        translations: translations by models that add candidates, by the names of their lists.
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
    translations: Mapping[str, str]


class ListReading:
    """Results of reading the scored list of a set once, for all parts of its report. No candidates stay in memory.

    Attributes:
        listed: the oracle, and the ranks of both systems' choices.
        estimate_collector: estimates of the choices.
        changes: sentences whose choice differs.
        depths: choices among the first candidates.
        margins: Moses' margin by sentence id, for sentences that have one, see `margin`.
        lists: names of the lists that the list was merged from, empty if it is not a merged list.
        chosen: lists that the choices come from.
        chunks: candidates for the page.

    Args:
        scored: list with all features.
        reranked: the set.
        systems: filtered lines of both systems.
        confidence: confidence model.
        attention: attention of models, empty if there is none.
        stream: file in which the chunks wait.

    Raises:
        InputError: the list cannot be read, or does not fit the weights, the confidence model or the texts.
    """

    def __init__(
        self,
        scored: str | Lines,
        reranked: Reranked,
        systems: Systems,
        confidence: Confidence,
        attention: Attentions,
        stream: BinaryIO,
    ) -> None:
        self.listed = ListLookup(reranked.references, systems)
        lists = read_listed(scored, reranked.references, self.listed.size, reranked.filters)
        first = next(lists)  # its indicators show whether the list is a merged one
        self.lists = merged_list_names(first.candidates)
        self.estimate_collector = EstimateCollector(confidence, reranked.references, reranked.filters)
        self.depths = Depths(reranked.references)
        self.margins: dict[int, float] = {}
        self.chosen = OriginCounter(self.lists, reranked.after)
        self.chunks = Chunks(reranked, self.lists, attention, stream)
        self._reranked, self._model = reranked, LinearModel(WeightFile(reranked.weights), "the weights")
        found = [self._add(reranked.with_moses_output(listed)) for listed in chain([first], lists)]
        self.changes = sorted_changes(change for change in found if change)
        self.chunks.finish()

    def _add(self, listed: Listed) -> Change | None:
        """Add a sentence and return its change, if any."""
        ranking = Ranking(listed.candidates, self._model.scores(listed.candidates))
        estimate = self.estimate_collector.add(ranking)
        change = find_change(listed.candidates, self._reranked, self.estimate_collector.metric, estimate)
        if (moses_margin := margin(listed.candidates, self.lists)) is not None:
            self.margins[listed.candidates.sentence] = moses_margin
        self.listed.add(listed)
        self.depths.add(listed, ranking.scores)
        self.chosen.add(listed.candidates)
        self.chunks.add(listed, ranking, change.reasons if change else ())
        return change


def write_report(files: RerankingFiles, filters: Filters, outputs: Sequence[str]) -> None:
    """Write the report as text, as an HTML page to explore, and as JSON without the sentences.

    The first lines of the text, up to an empty line, are a summary. Without references the report has no scores. The
    list is read once. Candidates for the page wait in a temporary file.

    Args:
        files: input and output files of the reranking.
        filters: filters for candidates and references.
        outputs: paths of text, HTML and JSON, in this order.
    """
    reranked, confidence = _reranked(files, filters), read_confidence(files.confidence)
    lines_by_system = {MOSES: reranked.before, RERANKED: reranked.after}
    systems = {name: [filters(line) for line in lines] for name, lines in lines_by_system.items()}
    attention = read_attention(files.attention) if files.attention else {}
    with open_temporary(outputs[1]) as stream:
        reading = ListReading(files.scored, reranked, systems, confidence, attention, stream)
        compared = systems | {
            f"translations of {name}": [filters(line) for line in read_lines(path)]
            for name, path in files.translations.items()
        }
        facts = reading.listed.facts
        evaluation = evaluate(compared, reranked.references, facts=facts, filtered=filters.signature)
        changes = reading.changes
        measured = reading.estimate_collector.measured()
        chosen = reading.chosen.lines()
        fits = {files.name: measured.outcome.fit()} if measured.outcome else {}
        ablation, gain = read_ablation(files.ablation) if files.ablation else None, read_gain(files.gain)
        analysis = analyse(
            reading.depths, reading.margins, reranked.source, reranked.references, systems, files.train_target, filters
        )
        drawn = charts(analysis, ablation, gain, reading.lists)
        if measured.outcome:
            drawn.append(confidence_chart(measured.outcome, confidence.dev, measured.metric, files.name))
        sections = [tuning_section(gain, kept_initial_weights(files.weights))]
        if ablation:
            sections.append(Section(ablation_title(ablation), ablation_cells(ablation), ablation_notes(ablation)))
        sections += [*analysis_sections(analysis), *confidence_sections(confidence, fits)]
        result = headline(files.name, evaluation, changes, len(reranked.source))
        section_lines = [line for section in sections for line in ("", *section.lines)]
        text = [result, *table(evaluation), *chosen, *section_lines, *side_by_side(changes)]
        overview_lines = overview(files.name, result, evaluation, chosen, sections, drawn)
        columns = index(reranked, measured, changes, reading.chunks.chunk_numbers)
        html = page(files.name, overview_lines, reading.chunks.elements(), columns)
        counts = {"sentences": len(reranked.source), "changed": len(changes), "confidence": _as_json(confidence, fits)}
        counts |= {"tuning": asdict(gain), "analysis": asdict(analysis)}
        plain = json.dumps(evaluation.as_json() | counts, indent=2)
        for path, lines in zip(outputs, (map(printable, text), html, [plain]), strict=True):
            with open_output(path) as output:
                output.writelines(encode(f"{line}\n") for line in lines)
    log.info(f"all sentences, with reasons of changes: {outputs[1]}")


def _reranked(files: RerankingFiles, filters: Filters) -> Reranked:
    return Reranked(
        before=read_lines(files.before),
        after=read_lines(files.after),
        source=list(input_lines(files.source)),
        references=filters.references(files.references),
        weights=read_weights(files.weights),
        filters=filters,
    )


def _as_json(confidence: Confidence, tests: Mapping[str, Fit]) -> dict[str, Any]:
    """Return, as plain values, how well the estimates fit."""
    return {
        "metric": confidence.metric,
        "best_predictor": confidence.best_predictor,
        "sets": {name: asdict(fit) for name, fit in {"dev": confidence.dev, **tests}.items()},
    }
