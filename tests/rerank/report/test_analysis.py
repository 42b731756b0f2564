from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from moses_io.files.text import tokens
from moses_io.filters import Filters
from rerank.report.analysis import (
    MAX_NGRAMS,
    Analysis,
    analyse,
    by_frequency,
    count_words,
    find_gains,
    ngram_changes,
    vocabulary,
)
from rerank.report.breakdown import Depths, statistics
from rerank.report.charts import charts
from rerank.report.listed import read_listed
from rerank.report.tables import analysis_sections
from rerank.tuning.gain import Gain

GAIN = Gain("BLEU", 1.0, 2.0, "", None, None, None, "", (), "", ())


def analysed(folder: Path, source: str, reference: str, line: str, filters: Filters) -> Analysis:
    """Analyse a list of one candidate, which is the output of both systems."""
    (folder / "list").write_text(f"0 ||| {line} ||| F= 1 ||| 0\n")
    references = [[reference]]
    depths = Depths(references)
    for listed in read_listed(str(folder / "list"), references, 1, filters):
        depths.add(listed, np.ones(1))
    systems = {"moses": [line], "reranked": [line]}
    return analyse(depths, {}, [source], references, systems, str(folder / "train"), filters)


@pytest.mark.parametrize(("filtered", "known"), [("", {"0": 4}), ("debpe", {"0": 3, "2-4": 1})])
def test_training_words_are_counted_after_filtering(tmp_path: Path, filtered: str, known: dict[str, int]) -> None:
    (tmp_path / "train").write_text("wo@@ rd\nwo@@ rd\n")
    analysis = analysed(tmp_path, "Wort", "word is not known", "word", Filters(filtered))
    assert analysis.judged and {each.name: each.words for each in analysis.judged.words} == known


def test_a_list_with_a_single_candidate_has_no_charts(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("a\n")
    analysis = analysed(tmp_path, "x", "b c d e", "a b c d", Filters(""))
    assert charts(analysis, None, GAIN, []) == []
    (section,) = analysis_sections(analysis)
    # BLEU has the smoothing of sacreBLEU.
    assert section.rows == [["candidates", "1"], ["reranked", "59.46"], ["oracle", "59.46"]]


TRAIN = ["the the the the the", "the old house", "old ."]


def test_f1_of_words_by_frequency() -> None:
    """In the training text, `new` is unknown, `house` occurs once, `old` twice and `the` six times."""
    references, systems = (
        [["the new house", "the old one"]],
        {"a": ["the house", "the old old"], "b": ["the new", "one"]},
    )
    wanted = vocabulary([*references, *systems.values()])
    counts = count_words(TRAIN, wanted)
    assert counts == {"the": 6, "old": 2, "house": 1}
    bins = by_frequency(counts, references, systems)
    assert [(each.name, each.words) for each in bins] == [("0", 2), ("1", 1), ("2-4", 1), ("5-9", 2)]
    assert [each.scores["a"] for each in bins] == pytest.approx([0, 100, 200 / 3, 100])
    assert [each.scores["b"] for each in bins] == pytest.approx([100, 0, 0, 200 / 3])


def test_every_word_of_the_references_is_in_one_bin() -> None:
    references = [["a b c", "d d"], ["a b", "e"]]
    counts = {"a": 2000, "b": 999, "c": 100, "d": 99, "e": 9}
    bins = by_frequency(counts, references, {"one": ["a b c", "d d"]})
    assert [(each.name, each.words) for each in bins] == [
        ("5-9", 1), ("10-99", 2), ("100-999", 3), ("1000+", 2),
    ]  # fmt: skip
    assert bins[-1].scores == {"one": 100} and bins[1].scores["one"] == pytest.approx(200 * 2 / (2 + 4))


def test_missing_references_are_excluded_from_word_counts() -> None:
    """Three reference words, and `a` three times in the output with two matches: F1 is 2 · 2 / (3 + 3)."""
    bins = by_frequency({}, [["a", "b"], ["a", ""]], {"one": ["a", "a"]})
    assert [(each.name, each.words) for each in bins] == [("0", 3)]
    assert bins[0].scores["one"] == pytest.approx(200 * 2 / (3 + 3))


def simple_counts(references: list[list[str]], lines: list[str]) -> Counter[str]:
    matches = Counter[str]()
    for index, line in enumerate(lines):
        padded = [f" {' '.join(tokens(each[index]))} " for each in references]
        words = tokens(line)
        own = Counter(" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, min(i + 4, len(words)) + 1))
        for ngram, count in own.items():
            most = max(sum(each.startswith(f" {ngram} ", start) for start in range(len(each))) for each in padded)
            matches[ngram] += min(count, most)
    return matches


@pytest.mark.parametrize("number", [1, 2])
def test_ngram_changes_equal_a_simple_count(number: int) -> None:
    rng = np.random.default_rng(number)
    one, other, *references = [
        [" ".join(rng.choice(list("abcd"), rng.integers(0, 9))) for _ in range(30)] for _ in range(2 + number)
    ]
    changes, before, after = (
        ngram_changes(references, one, other),
        simple_counts(references, one),
        simple_counts(references, other),
    )
    gained = {ngram: after[ngram] - before[ngram] for ngram in before | after}
    for matched, sign in ((changes.won, 1), (changes.lost, -1)):
        found = [sign * (each.after - each.before) for each in matched]
        assert found == sorted((d * sign for d in gained.values() if d * sign > 0), reverse=True)[:MAX_NGRAMS]
        for each in matched:
            assert (each.before, each.after) == (before[each.ngram], after[each.ngram])
            index = each.sentence
            own = [
                simple_counts([[lines[index]] for lines in references], [text[index]])[each.ngram]
                for text in (one, other)
            ]
            assert sign * (own[1] - own[0]) > 0
    assert changes.sentences == 30


def test_the_longer_ngram_is_first_among_equal_differences() -> None:
    changes = ngram_changes([["a b c", "x"]], ["", "x"], ["a b", "y"])
    assert [(each.ngram, each.before, each.after, each.sentence) for each in changes.won] == [
        ("a b", 0, 1, 0), ("a", 0, 1, 0), ("b", 0, 1, 0),
    ]  # fmt: skip
    assert [(each.ngram, each.sentence) for each in changes.lost] == [("x", 1)]


def test_equal_scores_neither_rise_nor_fall() -> None:
    """Both scores are 18/5040, as products 6 · 3 · 1 · 1 and 9 · 2 · 1 · 1 with smoothing."""
    before, after = ([[5, 9, 2, 8, 0, 7, 0, 6, 10]], [[8, 9, 1, 8, 0, 7, 0, 6, 10]])
    found = find_gains(np.array(before, dtype=float), np.array(after, dtype=float))
    assert (found.rose, found.fell, found.stayed) == (0, 0, 1)


def test_sentence_bleu_gains() -> None:
    """Smoothed BLEU of `a x` for `a b` is (2/3 · 1/2 · 1 · 1)^(1/4) = 0.76, and of `x x` (1/3 · 1/2)^(1/4) = 0.64."""
    before, after = statistics(
        [["a b"] * 5], {"before": ["a x", "a b", "x x", "a b", "b b"], "after": ["a b", "a x", "a x", "a b", "b b"]}
    ).values()
    found = find_gains(before, after)
    assert (found.rose, found.fell, found.stayed) == (2, 1, 2)
    counts = {lower: count for lower, count in zip(found.lower, found.counts, strict=True) if count}
    assert counts == {-30: 1, 10: 1, 20: 1}
    assert (found.lower[0], found.lower[-1], len(found.lower)) == (-100, 90, 20)
