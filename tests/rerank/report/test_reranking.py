"""A report reads its list once."""

from io import BytesIO
from typing import Any

import pytest

from moses_io.files.errors import InputError
from moses_io.files.streams import Lines
from moses_io.files.text import read_lines
from moses_io.filters import Filters
from moses_io.nbest import read_nbest
from moses_io.weights import WeightFile, read_weights
from rerank.confidence.confidence import read_confidence
from rerank.linear.ranking import LinearModel, Ranking
from rerank.report.changes import Reranked, in_words
from rerank.report.listed import find_in_list
from rerank.report.reranking import ListReading


def read_once(fitted: Any, sentences: int, references: list[list[str]]) -> tuple[ListReading, Reranked]:
    """Read the first sentences of a list from an iterator, which cannot be read again."""
    weights = read_weights(str(fitted.weights))
    model = LinearModel(WeightFile(weights), "weights")
    ranked = [Ranking(each, model.scores(each)) for each in read_nbest(str(fitted.nbest))]
    reranked = Reranked(
        source=["source"] * sentences,
        references=references,
        before=[each.candidates.hypotheses[each.candidates.highest_total].text for each in ranked][:sentences],
        after=[each.best.text for each in ranked][:sentences],
        weights=weights,
        filters=Filters(""),
    )
    systems = {"moses": reranked.before, "reranked": reranked.after}
    lines = Lines("the list", iter(read_lines(str(fitted.nbest))))
    reading = ListReading(lines, reranked, systems, read_confidence(str(fitted.confidence)), {}, BytesIO())
    return reading, reranked


def test_the_list_is_read_in_one_pass(fitted: Any) -> None:
    references = [read_lines(str(fitted.reference))]
    reading, reranked = read_once(fitted, 80, references)
    systems = {"moses": reranked.before, "reranked": reranked.after}
    measured = reading.estimate_collector.measured()
    assert reading.listed.facts == find_in_list(str(fitted.nbest), references, systems, Filters(""))
    assert {each.sentence for each in reading.changes} == {
        number for number in range(80) if reranked.before[number] != reranked.after[number]
    }
    assert all(each.expectation == in_words("BLEU", measured.estimates[each.sentence]) for each in reading.changes)
    assert measured.outcome and len(measured.outcome.actual) == 80
    assert (reading.depths.sentences, reading.depths.table()[-1].candidates, reading.chosen.lines()) == (80, 5, [])
    assert len(list(reading.chunks.elements())) == 4 and list(reading.chunks.chunk_numbers) == list(range(80))


def test_a_list_with_more_sentences_than_the_texts_is_an_error(fitted: Any) -> None:
    with pytest.raises(InputError, match="the list:396: sentence 79 is beyond the translation, which has 79 lines"):
        read_once(fitted, 79, [])
