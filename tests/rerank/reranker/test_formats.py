"""Rerankers of older formats.

`formats/formatN` has the manifest, the weights and the output of `apply` (`best`) of the last development version with
format N (commits 302e1e1e, 6d695d58, 1ddf829c and 29c707b6). All these rerankers have the table `formats/lex.f2e` and a
model of version 0.1.0. Format 2 introduced models that add candidates, format 4 shortlists.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.nbest import read_nbest

Command = Callable[..., tuple[int, bytes, str]]

FORMATS = Path(__file__).parent / "formats"
MODEL = Path(__file__).parents[2] / "features" / "models" / "format2"


ADDED = "the the the the the house the house the house the house the house"
"""A translation of the model."""


@pytest.mark.parametrize(
    ("number", "choices"),
    [(1, ["house", "a house"]), (2, [ADDED, "a house"]), (3, [ADDED, "a house"]), (4, [ADDED, "a"])],
)
def test_a_reranker_of_an_older_format_gives_the_same_choices(
    command: Command, tmp_path: Path, number: int, choices: list[str]
) -> None:
    """Its n-best list has the same features and totals, except for rounding."""
    old, reranker, best = FORMATS / f"format{number}", tmp_path / "reranker", tmp_path / "best"
    shutil.copytree(old, reranker, ignore=shutil.ignore_patterns("best"))
    shutil.copytree(MODEL, reranker / "models" / "forward")
    (reranker / "tables").mkdir()
    shutil.copy(FORMATS / "lex.f2e", reranker / "tables")
    status, out, err = command("apply", reranker, FORMATS / "list", "--source", FORMATS / "source", "--nbest", best)
    assert (status, "warning" in err) == (0, False), err
    made, expected = (list(read_nbest(str(path))) for path in (best, old / "best"))
    assert out.decode().splitlines() == choices
    for one, other in zip(made, expected, strict=True):
        assert [each.text for each in one.hypotheses] == [each.text for each in other.hypotheses]
        for line, same in zip(one.hypotheses, other.hypotheses, strict=True):
            assert line.total == pytest.approx(same.total, rel=1e-5)
            assert [name for name, _ in line.dense] == [name for name, _ in same.dense]
            for (_, values), (_, old_values) in zip(line.dense, same.dense, strict=True):
                assert values == pytest.approx(old_values, rel=1e-5, abs=1e-7)
