"""Minimum Bayes risk decoding over a list."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from moses_io.nbest import read_nbest
from rerank.cli import main
from rerank.linear.mbr import expected_chrf, pairwise_chrf
from rerank.linear.ranking import Ranking

Write = Callable[[str, "str | bytes"], Path]
Command = Callable[..., tuple[int, bytes, str]]

TEXTS = ["the house is old .", "the house is very old .", "house old", "this is the old house .", "", "a"]


@given(st.lists(st.text("ab c\u00e4.", max_size=12), min_size=1, max_size=5))
def test_pairwise_chrf_equals_sacrebleu(texts: list[str]) -> None:
    expected = [[sacrebleu.sentence_chrf(text, [reference]).score for reference in texts] for text in texts]
    np.testing.assert_allclose(pairwise_chrf(texts), expected, atol=1e-9)


def listed(write: Write) -> Path:
    lines = [f"0 ||| {text} ||| A= {number} ||| -{number}\n" for number, text in enumerate(TEXTS)]
    return write("nbest", "".join(lines))


def test_equal_probabilities_give_the_scores_of_the_package_mbrs() -> None:
    """Expected scores: mbrs 0.1.8, DecoderMBR with MetricChrF, with the candidates as references."""
    by_mbrs = [39.539505, 40.540421, 30.244371, 35.788685, 0.0, 16.666667]
    np.testing.assert_allclose(pairwise_chrf(TEXTS).mean(axis=1), by_mbrs, atol=1e-5)


@pytest.mark.parametrize("scale", [0.0, 0.5, 3.0])
def test_expected_chrf_equals_sacrebleu(write: Write, scale: float) -> None:
    (candidates,) = read_nbest(str(listed(write)))
    scores = np.array([0.5, 0.1, -0.3, 0.2, 2.0, -1.0])
    found = expected_chrf(Ranking(candidates, scores), scale).scores
    probabilities = np.exp(scale * scores) / np.exp(scale * scores).sum()
    for text, value in zip(TEXTS, found, strict=True):
        gains = [sacrebleu.sentence_chrf(text, [reference]).score for reference in TEXTS]
        assert value == pytest.approx(float(np.dot(gains, probabilities)), abs=1e-9)


def test_rerank_with_mbr(write: Write, command: Command, tmp_path: Path) -> None:
    words = ["rerank", listed(write), "--weights", write("weights", "A= 1\n"), "--sentences", 1]
    assert command(*words)[1] == b"a\n"
    status, output, errors = command(*words, "--mbr", "chrf", "--mbr-scale", 0, "--nbest", tmp_path / "again")
    assert (status, output) == (0, b"the house is very old .\n")
    assert "|mbr:chrf|scale:0|" in errors
    (again,) = read_nbest(str(tmp_path / "again"))
    totals = [each.total for each in again.hypotheses]
    assert totals == sorted(totals, reverse=True)
    assert command(*words, "--mbr", "chrf", "--mbr-scale", 100)[1] == b"a\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mbr", "bleu"], "invalid choice: 'bleu'"),
        (["--mbr", "chrf", "--mbr-scale", "-1"], "expected a number from 0, found '-1'"),
        (["--mbr", "chrf", "--mbr-scale", "nan"], "expected a number from 0, found 'nan'"),
    ],
)
def test_wrong_options_are_errors(
    write: Write, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    words = ["rerank", listed(write), "--weights", write("weights", "A= 1\n"), "--sentences", 1]
    with pytest.raises(SystemExit, match="2"):
        main([*map(str, words), *options])
    assert message in capsys.readouterr().err
