"""Choice of the shortlist size, on lists with a known rank of the best candidate."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moses_io.filters import Filters
from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.metrics.metric import BLEU_SIZE, Metric
from rerank.tuners.problem import Problem
from rerank.tuning.shortlist import SIZES, ShortlistChoice, choose_shortlist, read_choice, shortened, write_choice
from rerank.tuning.tuning_set import Lists

Write = Callable[[str, "str | bytes"], Path]

SENTENCES, CANDIDATES = 40, 40
REFERENCE = "the {} man reads a long letter to his friend"


def choose(write: Write, good: int, sizes: tuple[int, ...], sentences: int = SENTENCES) -> ShortlistChoice:
    """Choose a size for lists whose candidate at index `good` is the reference, which only `Late` detects."""
    whole, scored = [], []
    for sentence in range(sentences):
        for index in range(CANDIDATES):
            text = REFERENCE.format(sentence) if index == good else f"the man {index} reads a letter to his friend"
            line = f"{sentence} ||| {text} ||| First= {-index}"
            whole.append(f"{line} ||| {-index}\n")
            scored.append(f"{line} Late= {int(index == good)} ||| {-index}\n")
    references = "".join(f"{REFERENCE.format(sentence)}\n" for sentence in range(sentences))
    paths = [write("references", references)]
    weights = (str(write("initial", "First= 1\n")), str(write("tuned", "First= 1\n")))
    lists = [
        Lists([str(write(name, "".join(lines)))], [str(path) for path in paths], Filters(""))
        for name, lines in (("whole", whole), ("scored", scored))
    ]
    return choose_shortlist(lists[0], lists[1], weights, ("Late",), sizes, "bleu", 4)


def test_the_shortlist_includes_the_best_candidates(write: Write) -> None:
    choice = choose(write, 14, SIZES)
    assert choice.settings.size == 20
    scores = dict(choice.compared)
    assert scores[10] < 60 and scores[20] == scores[30] == scores[50] == 100


def test_the_smallest_of_equally_good_sizes_is_chosen(write: Write) -> None:
    assert choose(write, 3, SIZES).settings.size == 10


def test_a_given_size_is_used_and_its_loss_is_measured(write: Write) -> None:
    choice = choose(write, 14, (5,))
    assert (choice.settings.size, choice.compared) == (5, ())
    assert choice.oracle < choice.oracle_of_all == 100


@pytest.mark.parametrize("sentences", [1, 3])
def test_a_dev_set_with_fewer_sentences_than_folds(write: Write, sentences: int) -> None:
    assert choose(write, 3, SIZES, sentences).settings.size == 10


def test_a_written_choice_is_read_back(write: Write, tmp_path: Path) -> None:
    choice = choose(write, 3, SIZES)
    write_choice(str(tmp_path / "choice"), choice)
    assert read_choice(str(tmp_path / "choice")) == choice


def test_ties_are_kept_in_list_order() -> None:
    dense = np.array([[1.0], [2.0], [1.0], [2.0], [0.0]])
    nothing = Sparse(np.zeros(6, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    candidates = Candidates(FeatureSpace((("F", 1),)), np.array([0, 7]), np.array([0, 4, 5]), dense, nothing)
    statistics = np.arange(5.0)[:, None] * np.ones(BLEU_SIZE)
    problem = Problem(candidates, statistics, Metric("bleu").formula, np.zeros(1))
    shorter = shortened(problem, {"F": (1.0,)}, 3)
    assert shorter.statistics[:, 0].tolist() == [0, 1, 3, 4]
    assert shorter.candidates.offsets.tolist() == [0, 3, 4]
