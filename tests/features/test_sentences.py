import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.ragged import Ragged
from features.sentences import Sentences, TokenPairs

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=12)
TOKENS = st.lists(st.lists(st.sampled_from(["a", "b", "\udce9", "日本"]), max_size=4), max_size=12)


@given(ROWS, st.data())
def test_ragged_arrays_equal_lists(rows: list[list[int]], data: st.DataObject) -> None:
    ragged = Ragged.of(rows)
    assert (len(ragged), list(ragged), [ragged[n] for n in range(len(rows))]) == (len(rows), rows, rows)
    assert list(ragged.reversed()) == [row[::-1] for row in rows]
    start, stop = data.draw(st.integers(0, 12)), data.draw(st.integers(0, 12))
    assert list(ragged.part(slice(start, stop))) == rows[start:stop]
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9)) if rows else []
    assert list(ragged.take(np.array(chosen, np.int64))) == [rows[n] for n in chosen]
    kept = np.array([len(row) > 1 for row in rows], np.bool_)
    assert list(ragged.select(kept)) == [row for row in rows if len(row) > 1]
    assert list(Ragged.joined([ragged, ragged.part(slice(1, 3))])) == rows + rows[1:3]


@given(TOKENS)
def test_sentences_equal_lists(sentences: list[list[str]]) -> None:
    packed = Sentences.of(sentences)
    assert (list(packed), [packed[n] for n in range(len(sentences))]) == (sentences, sentences)
    assert list(packed[1:3]) == sentences[1:3]
    words = [word for sentence in sentences[1:3] for word in sentence]
    assert packed[1:3].counts() == {word: words.count(word) for word in words}


@given(TOKENS)
def test_the_digest_of_pairs_equals_the_digest_of_their_lines(sentences: list[list[str]]) -> None:
    pairs = TokenPairs.of(zip(sentences, sentences[::-1], strict=True))
    assert list(pairs) == list(zip(sentences, sentences[::-1], strict=True))
    lines = "".join(f"{' '.join(left)}\t{' '.join(right)}\n" for left, right in pairs)
    assert pairs.digest is not None
    assert pairs.digest.digest() == hashlib.sha256(lines.encode("utf-8", "surrogateescape")).digest()


FEW = [["a", "b", "a"], [], ["c"]]
MORE = [["d", "a"], ["c"], []]


def test_sentences_with_other_words_are_joined() -> None:
    both = Sentences.of(FEW).joined(Sentences.of(MORE))
    assert list(both) == FEW + MORE and both.words == ["a", "b", "c", "d"]


def test_a_word_is_inserted_before_each_sentence() -> None:
    for word in ("a", "new"):
        assert list(Sentences.of(FEW).with_first_word(word)) == [[word, *sentence] for sentence in FEW]


def test_pairs_are_repeated() -> None:
    pairs = TokenPairs.of(zip(FEW, MORE, strict=True))
    assert list(pairs.repeated(3)) == 3 * list(pairs) and pairs.repeated(1) is pairs


def test_a_slice_with_a_step_is_an_error() -> None:
    with pytest.raises(ValueError, match="step"):
        Sentences.of([["a"], ["b"], ["c"]])[::2]
