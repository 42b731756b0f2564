from pathlib import Path

import pytest

from moses_io.filters import Filters
from moses_io.nbest import read_nbest
from rerank.linear.ranking import Estimate
from rerank.metrics.evaluation import Evaluation, Score
from rerank.report.changes import Change, Reranked, find_change, sorted_changes
from rerank.report.tables import headline, side_by_side

REFERENCE = ["a b c", "a b c", "a b c", "d <e>"]
BEFORE = ["a b x", "a b c", "a b c", "d"]
AFTER = ["a b c", "a x c", "a b c", "d <e>"]
LIST = """\
0 ||| a b x ||| L= 1 T= 1 2 s_x= 1 ||| 0
0 ||| a b c ||| L= 2 T= 3 2 ||| 0
1 ||| a b c ||| L= 1 T= 1 1 ||| 0
1 ||| a x c ||| L= 1 T= 1 1 ||| 0
2 ||| a b c ||| L= 1 T= 1 1 ||| 0
3 ||| d <e> ||| L= 1 T= 1 1 ||| 0
"""


def find(folder: Path, references: list[list[str]]) -> list[Change]:
    (folder / "list").write_text(LIST)
    weights = {"L": (0.5,), "T": (-1.0, 1.0), "s_x": (0.25,)}
    reranked = Reranked(
        source=["s0", "s1", "s2", "s3"],
        references=references,
        before=BEFORE,
        after=AFTER,
        weights=weights,
        filters=Filters(""),
    )
    lists, estimates = read_nbest(str(folder / "list")), {0: Estimate(41.25, 0.75)}
    changes = [find_change(each, reranked, "chrf", estimates.get(each.sentence)) for each in lists]
    return sorted_changes(change for change in changes if change)


@pytest.fixture
def changes(tmp_path: Path) -> list[Change]:
    return find(tmp_path, [REFERENCE])


@pytest.fixture
def unscored(tmp_path: Path) -> list[Change]:
    return find(tmp_path, [])


def test_sentence_bleu_gains(changes: list[Change]) -> None:
    """1 - (3/4 · 2/3 · 1/2 · 1)^(1/4), then (3/4 · 1/3 · 1/2 · 1)^(1/4) - 1, then one of two words: exp(1 - 2/1)."""
    assert [change.sentence for change in changes] == [3, 0, 1]
    gains = [change.gain for change in changes]
    assert gains == pytest.approx([1 - 0.36787944, 1 - 0.125**0.25 * 2**0.25, 0.125**0.25 - 1])


def test_missing_references_are_ignored(tmp_path: Path, changes: list[Change]) -> None:
    found = find(tmp_path, [["", "", " ", "d <e>"], REFERENCE])
    assert [change.texts for change in found] == [change.texts for change in changes]
    assert [change.gain for change in found] == [change.gain for change in changes]


def test_reasons_for_repeated_texts_use_the_chosen_lines(tmp_path: Path) -> None:
    """If texts are equal, the line with the highest total (Moses) or the highest model score (reranked) is used."""
    lines = ("a b ||| L= 0 ||| -2", "a x ||| L= 1 ||| -1", "a x ||| L= 2 ||| -1.5", "a b ||| L= 5 ||| -3")
    (tmp_path / "list").write_text("".join(f"0 ||| {line}\n" for line in lines))
    reranked = Reranked(["s"], [], ["a x"], ["a b"], {"L": (1.0,)}, Filters(""))
    (candidates,) = read_nbest(str(tmp_path / "list"))
    change = find_change(candidates, reranked, "bleu", None)
    assert change is not None and change.reasons == (("L", 4.0),)


def test_reasons_are_weighted_differences_of_features(changes: list[Change]) -> None:
    assert changes[1].reasons == (("L", 0.5), ("sparse", -0.25), ("T", -2.0))
    assert changes[0].reasons == ()


def test_changes_as_text(changes: list[Change]) -> None:
    lines = side_by_side(changes)
    heads = [line for line in lines if line.startswith("sentence")]
    assert heads == [
        "sentence 3, sentence BLEU gain +63.2",
        "sentence 0, sentence BLEU gain +29.3",
        "sentence 1, sentence BLEU gain -40.5",
    ]
    assert "  moses      a b x" in lines
    assert "  reranked   a b c" in lines
    assert "  why        T -2.00, L +0.50, sparse -0.25" in lines
    assert lines[lines.index("  why        T -2.00, L +0.50, sparse -0.25") + 1] == (
        "  expected   chrf 41.2, better than Moses with probability 0.75"
    )
    assert len([line for line in side_by_side(changes, 2) if line.startswith("sentence")]) == 2


def evaluated(before: float, after: float, p_value: float | None) -> Evaluation:
    return Evaluation({"moses": {"BLEU": Score(before)}, "reranked": {"BLEU": Score(after, p_value)}}, {"BLEU": "s"})


@pytest.mark.parametrize(
    ("evaluation", "result"),
    [
        (evaluated(40, 42.5, 0.0001), "BLEU on test rises from 40.00 to 42.50 (+2.50, p = 0.0001): "),
        (evaluated(40, 40.5, 0.05), "BLEU on test rises from 40.00 to 40.50 (+0.50, p = 0.0500, not significant): "),
        (evaluated(40, 39, 0.01), "BLEU on test falls from 40.00 to 39.00 (-1.00, p = 0.0100): "),
        (evaluated(40, 40.001, 1.0), "BLEU on test stays 40.00: "),
        (evaluated(40, 39.999, 1.0), "BLEU on test stays 40.00: "),
    ],
)
def test_headline_with_references(changes: list[Change], evaluation: Evaluation, result: str) -> None:
    changed = "3 of 4 sentences changed, 2 with a higher sentence BLEU and 1 with a lower one."
    assert headline("test", evaluation, changes, 4) == result + changed


def test_headline_without_references(unscored: list[Change]) -> None:
    result = headline("news", Evaluation({"moses": {}, "reranked": {}}, {}), unscored, 4)
    assert result == "3 of 4 sentences changed. Without references, translations are not scored."


def test_without_references_changes_are_sorted_by_model_score(unscored: list[Change]) -> None:
    """Differences: 0 for sentence 1, 0.5 - 0.25 - 2 for sentence 0, unknown for 3, one text of which is not listed."""
    assert [(change.sentence, change.score_gain, change.gain) for change in unscored] == [
        (1, 0.0, None), (3, None, None), (0, -1.75, None),
    ]  # fmt: skip
    lines = side_by_side(unscored)
    heads = [line for line in lines if line.startswith("sentence")]
    assert heads == ["sentence 1, model score +0", "sentence 3", "sentence 0, model score -1.75"]
    assert lines[-5:] == [
        "  source     s0",
        "  moses      a b x",
        "  reranked   a b c",
        "  why        T -2.00, L +0.50, sparse -0.25",
        "  expected   chrf 41.2, better than Moses with probability 0.75",
    ]
    assert len([line for line in side_by_side(unscored, 2) if line.startswith("sentence")]) == 2
