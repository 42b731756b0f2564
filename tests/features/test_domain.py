"""Cross-entropy difference between in-domain and general text (Moore and Lewis 2010)."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from features.domain import Domain, perplexities

SENTENCES = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=8)


def cross_entropy(sentence: str, texts: Sequence[str], vocabulary: set[str]) -> float:
    """Return the cross-entropy by its definition: bigrams with Witten-Bell and unigrams with add-one smoothing."""

    def words(text: str) -> list[str]:
        return ["</s>", *(word if word in vocabulary else "<unk>" for word in text.split()), "</s>"]

    unigrams = Counter(word for text in texts for word in words(text)[1:])
    following: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for before, word in zip(words(text), words(text)[1:], strict=False):
            following[before][word] += 1
    size = len(vocabulary) + 2
    total = 0.0
    for before, word in zip(words(sentence), words(sentence)[1:], strict=False):
        unigram = (unigrams[word] + 1) / (unigrams.total() + size)
        seen = following[before]
        if seen:
            total -= math.log((seen[word] + len(seen) * unigram) / (seen.total() + len(seen)))
        else:
            total -= math.log(unigram)
    return total / (len(words(sentence)) - 1)


@given(SENTENCES, SENTENCES, SENTENCES)
def test_differences_equal_their_definition(inside: list[str], outside: list[str], sentences: list[str]) -> None:
    counts = Counter(word for sentence in inside for word in sentence.split())
    vocabulary = {word for word, count in counts.items() if count >= 2}
    expected = [
        cross_entropy(sentence, inside, vocabulary) - cross_entropy(sentence, outside, vocabulary)
        for sentence in sentences
    ]
    differences = np.concatenate(list(Domain(inside, outside).differences(sentences)))
    np.testing.assert_allclose(differences, expected, atol=1e-12)


@given(SENTENCES, SENTENCES, SENTENCES)
def test_perplexities_equal_their_definition(corpus: list[str], more: list[str], held_out: list[str]) -> None:
    counts = Counter(word for sentence in corpus for word in sentence.split())
    vocabulary = {word for word, count in counts.items() if count >= 2}
    lengths = [len(sentence.split()) + 1 for sentence in held_out]
    expected = []
    for texts in (corpus, corpus + more):
        values = [cross_entropy(sentence, texts, vocabulary) for sentence in held_out]
        expected.append(math.exp(np.average(values, weights=lengths)))
    np.testing.assert_allclose(perplexities(corpus, more, held_out), expected)


def test_blocks_do_not_change_the_values() -> None:
    domain = Domain(["a b", "a c"], ["d e", "d f"])
    sentences = ["a b c", "d e"] * 10_000
    first, *others = domain.differences(sentences)
    assert len(first) == 10_000
    assert all((part[:2] == first[:2]).all() for part in others)
