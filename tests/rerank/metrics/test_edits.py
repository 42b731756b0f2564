"""Edits of TER against sacreBLEU's own count of them."""

import random
import time

import pytest
from sacrebleu.metrics.lib_ter import translation_edit_rate
from sacrebleu.metrics.ter import TER

from rerank.metrics.edits import MOST_SHIFTS, FastTER, count_edits


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
        place = rng.randint(0, len(moved))
        moved[place : place + rng.randint(0, 1)] = [rng.choice(vocabulary)] * rng.randint(0, 1)
    return moved


def pairs(seed: int, count: int, shortest: int, longest: int) -> list[tuple[list[str], list[str]]]:
    """Make translations and references, of which two in three are shifts of each other."""
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


def test_short_sentences() -> None:
    assert_as_sacrebleu(pairs(1, 900, 0, 12))


def test_sentences_with_shifts() -> None:
    assert_as_sacrebleu(pairs(2, 100, 12, 40))


@pytest.mark.slow
def test_long_sentences_with_shifts() -> None:
    assert_as_sacrebleu(pairs(3, 80, 20, 60) + pairs(4, 1, 100, 150))


def test_the_limit_of_shifts_that_are_checked() -> None:
    """Of two words there are so many equal runs that sacreBLEU stops looking, and leaves out the shift found last."""
    rng = random.Random(5)
    words, reference = (rng.choices("ab", k=60) for _ in range(2))
    assert sum(a == b for a in words for b in reference) > MOST_SHIFTS
    assert_as_sacrebleu([(words, reference)])


@pytest.mark.parametrize("longer", [0, 1, 49, 50, 51, 99, 100, 101, 260])
@pytest.mark.parametrize("shorter", [1, 2, 3, 5])
def test_sentences_of_very_different_lengths(longer: int, shorter: int) -> None:
    """The beam is wider where the lengths differ 50 times."""
    rng = random.Random(longer)
    long, short = rng.choices("abc", k=longer), rng.choices("abc", k=shorter)
    assert_as_sacrebleu([(long, short), (short, long)])


def test_by_hand() -> None:
    """`d e` moves before `a`: one shift; then `x` stands for `c`."""
    assert count_edits(list("abxde"), list("deabc")) == 2


def test_scores_and_signature_are_those_of_sacrebleu() -> None:
    texts = ["The cat sat on the mat .", "b c a", ""]
    references = [["the Cat on the mat sat .", "a b c", "x"], ["a cat", None, ""]]
    fast, slow = FastTER(), TER()
    ours, theirs = (scorer.corpus_score(texts, references) for scorer in (fast, slow))
    assert (ours.score, ours.num_edits, ours.ref_length) == (theirs.score, theirs.num_edits, theirs.ref_length)
    assert str(fast.get_signature()) == str(slow.get_signature())


@pytest.mark.parametrize("vocabulary", [5, 1000])
@pytest.mark.parametrize("moved", [False, True])
def test_2000_words_take_seconds(vocabulary: int, moved: bool) -> None:
    """sacreBLEU's own count takes minutes."""
    rng = random.Random(6)
    reference = [f"w{rng.randrange(vocabulary)}" for _ in range(2000)]
    runs = [reference[start : start + 20] for start in range(0, 2000, 20)]
    rng.shuffle(runs)
    words = [word for run in runs for word in run] if moved else [f"w{rng.randrange(vocabulary)}" for _ in range(2000)]
    count_edits(["a"], ["b"])  # compiles
    start = time.process_time()
    assert 0 < count_edits(words, reference) <= 2000
    assert time.process_time() - start < 10
