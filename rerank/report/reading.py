"""The scored list of a set, read once for all that its report says."""

from collections.abc import Sequence
from itertools import chain
from typing import BinaryIO, NamedTuple

from moses_io.streams import Lines
from rerank.analysis.listed import Chosen, merged, read_listed
from rerank.analysis.margins import Depths, Margins
from rerank.confidence.confidence import Confidence, Measured, Measuring
from rerank.linear.selection import LinearModel, Ranking
from rerank.report.changes import Change, Reranked, find_change, in_order
from rerank.report.evaluation import ListFacts, LookUp, Systems
from rerank.report.page.candidates import Chunks
from rerank.systems.attention import Attentions


class ListReading(NamedTuple):
    """What a list said; no candidates are held.

    Attributes:
        facts: the best candidates, and the places of both systems' choices.
        measured: what is expected of the choices.
        changes: the sentences whose choice differs.
        depths: what was chosen among the first candidates.
        margins: how sure Moses was.
        lists: those that it was merged of, perhaps none.
        chosen: from which of them the choices come, perhaps nothing.
        chunks: what the page shows of the candidates.
    """

    facts: ListFacts
    measured: Measured
    changes: Sequence[Change]
    depths: Depths
    margins: Margins
    lists: Sequence[str]
    chosen: Sequence[str]
    chunks: Chunks


def read(
    scored: str | Lines,
    reranked: Reranked,
    systems: Systems,
    confidence: Confidence,
    attention: Attentions,
    stream: BinaryIO,
) -> ListReading:
    """Read the list with all features; the lines of the systems are filtered, and the stream takes the chunks.

    Raises:
        InputError: the list cannot be read, or does not fit the weights, the confidence or the texts.
    """
    look_up = LookUp(reranked.references, systems)
    lists = read_listed(scored, reranked.references, look_up.size, reranked.filters)
    first = next(lists)
    names = merged(first.candidates)
    model = LinearModel(reranked.weights, "the weights")
    measuring = Measuring(confidence, reranked.references, reranked.filters)
    depths, margins, chosen = Depths(reranked.references), Margins(names), Chosen(names, reranked.after)
    chunks, changes = Chunks(reranked, names, attention, stream), list[Change]()
    for listed in map(reranked.with_moses_output, chain([first], lists)):
        ranking = Ranking(listed.candidates, model.scores(listed.candidates))
        estimate = measuring.add(ranking)
        change = find_change(listed.candidates, reranked, measuring.metric, estimate)
        changes += [change] if change else []
        look_up.add(listed)
        depths.add(listed, ranking.scores)
        margins.add(listed.candidates)
        chosen.add(listed.candidates)
        chunks.add(listed, ranking, change.reasons if change else ())
    chunks.finish()
    return ListReading(
        facts=look_up.facts,
        measured=measuring.measured(),
        changes=in_order(changes),
        depths=depths,
        margins=margins,
        lists=names,
        chosen=chosen.lines(),
        chunks=chunks,
    )
