"""Edit counts of TER, compared with those of sacreBLEU."""

import random
import time

import pytest
from sacrebleu.metrics.lib_ter import translation_edit_rate
from sacrebleu.metrics.ter import TER

from rerank.metrics.edits import MAX_SHIFTS, FastTER, count_edits


def shifted(rng: random.Random, words: list[str], vocabulary: list[str]) -> list[str]:
    """Move some runs of words, then insert and delete some words."""
    moved = list(words)
    for _ in range(rng.randint(0, 4)):
        start = rng.randint(0, len(moved))
        end = min(len(moved), start + rng.randint(1, 12))
        rest = moved[:start] + moved[end:]
        target = rng.randint(0, len(rest))
        moved = rest[:target] + moved[start:end] + rest[target:]
    for _ in range(rng.randint(0, 5)):
        index = rng.randint(0, len(moved))
        moved[index : index + rng.randint(0, 1)] = [rng.choice(vocabulary)] * rng.randint(0, 1)
    return moved


def pairs(seed: int, count: int, shortest: int, longest: int) -> list[tuple[list[str], list[str]]]:
    """Make pairs of translation and reference. In two of three pairs, the translation is an edited reference."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        vocabulary = [f"w{word}" for word in range(rng.choice([2, 5, 20, 60]))]
        one, other = (rng.choices(vocabulary, k=rng.randint(shortest, longest)) for _ in range(2))
        made.append((shifted(rng, other, vocabulary) if number % 3 else one, other))
    return made


def assert_as_sacrebleu(pairs: list[tuple[list[str], list[str]]]) -> None:
    for words, reference in pairs:
        assert count_edits(words, reference) == translation_edit_rate(words, reference)[0], (words, reference)


def test_edits_of_short_sentences_equal_sacrebleu() -> None:
    assert_as_sacrebleu(pairs(1, 900, 0, 12))


def test_sentences_with_shifts() -> None:
    assert_as_sacrebleu(pairs(2, 100, 12, 40))


@pytest.mark.slow
def test_long_sentences_with_shifts() -> None:
    assert_as_sacrebleu(pairs(3, 40, 20, 50) + pairs(4, 1, 80, 120))


def test_the_limit_on_checked_shifts() -> None:
    """With a vocabulary of two words, sacreBLEU reaches its limit and omits the shift found last."""
    rng = random.Random(5)
    words, reference = (rng.choices("ab", k=60) for _ in range(2))
    assert sum(a == b for a in words for b in reference) > MAX_SHIFTS
    assert_as_sacrebleu([(words, reference)])


@pytest.mark.parametrize("longer", [0, 1, 49, 50, 51, 99, 100, 101, 260])
@pytest.mark.parametrize("shorter", [1, 2, 3, 5])
def test_sentences_of_very_different_lengths(longer: int, shorter: int) -> None:
    """The beam is wider if one sentence is at least 50 times longer."""
    rng = random.Random(longer)
    long, short = rng.choices("abc", k=longer), rng.choices("abc", k=shorter)
    assert_as_sacrebleu([(long, short), (short, long)])


def test_a_shift_and_a_substitution() -> None:
    """`d e` moves before `a`, which is one shift. Then `x` is substituted for `c`."""
    assert count_edits(list("abxde"), list("deabc")) == 2


def test_scores_and_signature_equal_sacrebleu() -> None:
    texts = ["The cat sat on the mat .", "b c a", ""]
    references = [["the Cat on the mat sat .", "a b c", "x"], ["a cat", None, ""]]
    fast, slow = FastTER(), TER()
    ours, theirs = (scorer.corpus_score(texts, references) for scorer in (fast, slow))
    assert (ours.score, ours.num_edits, ours.ref_length) == (theirs.score, theirs.num_edits, theirs.ref_length)
    assert str(fast.get_signature()) == str(slow.get_signature())


@pytest.mark.parametrize("vocabulary", [5, 1000])
@pytest.mark.parametrize("moved", [False, True])
def test_2000_words_take_at_most_seconds(vocabulary: int, moved: bool) -> None:
    """sacreBLEU takes minutes."""
    rng = random.Random(6)
    reference = [f"w{rng.randrange(vocabulary)}" for _ in range(2000)]
    runs = [reference[start : start + 20] for start in range(0, 2000, 20)]
    rng.shuffle(runs)
    words = [word for run in runs for word in run] if moved else [f"w{rng.randrange(vocabulary)}" for _ in range(2000)]
    count_edits(["a"], ["b"])  # compiles
    start = time.process_time()
    assert 0 < count_edits(words, reference) <= 2000
    assert time.process_time() - start < 10
