"""Comparison of models' translations with Moses'."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import sacrebleu

from features.feature import Resources, Sentence
from features.models.decoding.translator import Translation
from moses_io.nbest import read_nbest
from rerank.metrics.filters import Filters
from rerank.systems.comparison import LEAST, translate_well
from rerank.systems.translations import CandidateRequest

Translate = Callable[[int], str]


@pytest.fixture
def compared(sample: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Translate], bool]:
    """Compare Moses' translations of the sample with those of a function of the number of the sentence."""

    def compare(translate: Translate) -> bool:
        class Merger:
            def __init__(self, requests: Sequence[CandidateRequest], resources: Resources) -> None: ...

            def translate(self, sentences: Sequence[Sentence]) -> dict[str, list[list[Translation]]]:
                texts = [translate(each.sentence) for each in sentences]
                return {"own": [[Translation(tuple(text.split()), -1.0, -1.0)] if text else [] for text in texts]}

        monkeypatch.setattr("rerank.systems.comparison.CandidateMerger", Merger)
        source, reference, nbest = (str(sample / f"dev.{name}") for name in ("de", "en", "nbest.gz"))
        return translate_well([], nbest, source, [reference], Filters(), Resources("cpu"))

    return compare


def test_only_translations_that_are_nearly_as_good_as_those_of_moses_count(
    sample: Path, compared: Callable[[Translate], bool]
) -> None:
    moses = {each.sentence: each.moses_text for each in read_nbest(str(sample / "dev.nbest.gz"))}
    assert compared(lambda number: moses[number])
    assert not compared(lambda number: moses[number] if number % 3 else "")
    assert not compared(lambda number: "")


def test_scores_are_those_of_sacrebleu(
    sample: Path,
    compared: Callable[[Translate], bool],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("rerank.systems.comparison.SENTENCES", 5)
    references = (sample / "dev.en").read_text(encoding="utf-8").split("\n")[:400]
    moses = {each.sentence: each.moses_text for each in read_nbest(str(sample / "dev.nbest.gz"))}
    with caplog.at_level("INFO"):
        assert compared(lambda number: references[number]) and LEAST < 1
    places = [0, 99, 199, 299, 399]
    texts, answers = [moses[place] for place in places], [[references[place] for place in places]]
    expected = sacrebleu.corpus_bleu(texts, answers, tokenize="none").score
    assert f"BLEU of translations of 5 sentences of dev: Moses {expected:.1f}, own 100.0." in caplog.text
