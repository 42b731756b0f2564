"""Comparison of translations of models with the output of Moses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from features.feature import Resources
from moses_io.filters import Filters
from moses_io.nbest import read_nbest
from rerank.systems.comparison import Comparison, bleu_of, compare_translations
from rerank.systems.translations import CandidateRequest

Compare = Callable[..., dict[str, Any]]


@pytest.fixture
def compare(sample: Path, models: dict[str, Path], tmp_path: Path) -> Compare:
    """Return a function that compares a barely trained model with Moses on dev of the sample."""

    def run(nbest: str = str(sample / "dev.nbest.gz"), moses_output: str = "") -> dict[str, Any]:
        request = CandidateRequest("forward", (str(models["forward"]),), 2)
        files = (nbest, str(sample / "dev.de"), [str(sample / "dev.en")], moses_output)
        output = tmp_path / "comparison.json"
        compare_translations(*files, [request], str(output), Filters(), Resources("cpu"))
        result: dict[str, Any] = json.loads(output.read_text())
        return result

    return run


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_bleu_equals_sacrebleu(sample: Path) -> None:
    references, texts = (
        lines_of(sample / "dev.en"),
        [each.moses_text for each in read_nbest(str(sample / "dev.nbest.gz"))],
    )
    expected = sacrebleu.corpus_bleu(texts, [references], tokenize="none").score
    assert bleu_of(texts, [[line] for line in references]) == pytest.approx(expected)


def test_a_barely_trained_model_is_worse_than_moses(compare: Compare) -> None:
    result = compare()
    assert result["sentences"] == 200 and result["models"]["forward"] < 10 < result["moses"]


@pytest.mark.parametrize(
    ("moses", "models", "added"),
    [(30.0, {"a": 5.0, "b": 27.5}, True), (30.0, {"a": 26.5, "b": 5.0}, False), (0.0, {"a": 0.0}, False)],
)
def test_translations_are_added_if_a_model_is_nearly_as_good_as_moses(
    moses: float, models: dict[str, float], added: bool
) -> None:
    assert Comparison(200, moses, models).added is added


def test_only_sentences_in_the_list_are_compared(sample: Path, tmp_path: Path, compare: Compare) -> None:
    lists = {each.sentence: each for each in read_nbest(str(sample / "dev.nbest.gz"))}
    short = tmp_path / "short.nbest"
    short.write_bytes(b"".join(line.line for number in (7, 300, 301) for line in lists[number].hypotheses))
    references = lines_of(sample / "dev.en")
    expected = bleu_of([lists[number].moses_text for number in (7, 300, 301)], [[references[n]] for n in (7, 300, 301)])
    result = compare(str(short))
    assert (result["sentences"], result["moses"]) == (3, pytest.approx(expected))


def test_the_moses_output_is_used_if_given(sample: Path, compare: Compare) -> None:
    assert compare(moses_output=str(sample / "dev.en"))["moses"] == pytest.approx(100)
