from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.feature import Resources, Sentence
from features.feature_set import FeatureSet
from features.formulas import ORDER, count_ngrams
from features.kinds.consensus import counts_of_ngrams, posterior
from features.request import FeatureRequest
from moses_io.files.errors import InputError
from moses_io.hypothesis import parse_line


@given(st.lists(st.one_of(st.text("ab", max_size=7), st.lists(st.sampled_from(["the", "a", "an"]), max_size=7))))
def test_ngram_counts_equal_those_of_single_texts(texts: list[str | list[str]]) -> None:
    """For each n-gram length, an n-gram has the same index in all texts."""
    alone = [count_ngrams(list(text)) for text in texts]
    for length, own in enumerate(counts_of_ngrams(texts, ORDER), 1):
        rows: dict[int, dict[int, int]] = {}
        for candidate, ngram, count in zip(own.candidates, own.ngrams, own.counts, strict=True):
            rows.setdefault(int(ngram), {})[int(candidate)] = int(count)
        wanted: dict[tuple[str, ...], dict[int, int]] = {}
        for candidate, counts in enumerate(alone):
            for ngram, count in counts.items():
                if len(ngram) == length:
                    wanted.setdefault(ngram, {})[candidate] = count
        assert sorted(rows) == list(range(own.size)) and own.size == len(wanted)
        key = Counter(str(sorted(row.items())) for row in rows.values())
        assert key == Counter(str(sorted(row.items())) for row in wanted.values())


def test_chrf_by_hand() -> None:
    """`ab` and `b` have the probabilities 3/4 and 1/4, so the expected counts are 0.75 `a`, 1 `b` and 0.75 `ab`.

    chrF averages over the n-gram orders.
    """
    lines = tuple(
        parse_line(line, 1) for line in (b"0 ||| a b ||| L= 1 ||| 1.0986122886681098", b"0 ||| b ||| L= 1 ||| 0")
    )
    sentence = Sentence(0, (), (("a", "b"), ("b",)), lines)
    features = FeatureSet([FeatureRequest("X", "consensus", "chrf")], Resources("cpu"))
    both, second = features.score([sentence]).columns[0].values[:, 0]
    precision, recall = (1.75 / 2 + 0.75 / 1) / 2, 1.0
    assert both == pytest.approx(5 * precision * recall / (4 * precision + recall))
    precision, recall = 1.0, 1 / 1.75
    assert second == pytest.approx(5 * precision * recall / (4 * precision + recall))


@pytest.mark.parametrize(("total", "found"), [("-inf", ", found '-inf'$"), ("", "$")])
def test_a_line_without_a_total_is_an_error(total: str, found: str) -> None:
    line = parse_line(f"0 ||| a ||| L= 1 ||| {total}".encode(), 7)
    sentence = Sentence(0, ("x",), (("a",),), lines=(line,), path="list")
    message = "list:7: the features consensus and posteriors need a total: no total in the fourth field"
    with pytest.raises(InputError, match=message + found):
        posterior(sentence, 1.0)
