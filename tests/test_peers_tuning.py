"""Failures of the tuners and metrics of Moses (`mert/`, commit 34452895f), each with the correct behaviour."""

from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.weights import read_weights

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]
Tune = Callable[..., tuple[int, dict[str, tuple[float, ...]], str]]

TEXTS = ("the old house", "a red house", "the old house is red .")
REFERENCE = "the old house is red .\n" * 4


def nbest(features: Callable[[int], str]) -> str:
    """Return four sentences whose last candidate is the reference."""
    return "".join(f"{n} ||| {TEXTS[k]} ||| {features(k)} ||| 0\n" for n in range(4) for k in range(3))


def dense(index: int) -> str:
    return f"LM0= {(-3, -2, -9)[index]} NMT= {(-9, -8, -1)[index]}"


@pytest.fixture
def tune(command: Command, write: Write) -> Tune:
    def run(
        content: str, initial: str, *more: object, lists: tuple[str, ...] = ()
    ) -> tuple[int, dict[str, tuple[float, ...]], str]:
        paths = [write(f"list{number}", text) for number, text in enumerate((content, *lists))]
        arguments = ("--reference", write("ref", REFERENCE), "--initial-weights", write("initial", initial), *more)
        status, ini, err = command("tune", *paths, *arguments)
        return status, read_weights(str(write("ini", ini))) if status == 0 else {}, err

    return run


@pytest.mark.parametrize("metric", ["ter", "bleu+ter", "chrf", "bleu-shortest", "bleu-average"])
@pytest.mark.parametrize("tuner", ["kbmira", "pro", "mert"])
def test_all_tuners_work_with_all_metrics(tune: Tune, tuner: str, metric: str) -> None:
    """kbmira segfaults on TER and BLEU,TER. pro aborts on all but BLEU. Statistics of CHRF are 0, scores -nan."""
    status, weights, err = tune(nbest(dense), "[weight]\nLM0= 1\n", "--tuner", tuner, "--metric", metric)
    assert status == 0, err
    assert weights["NMT"][0] > 0 and "-> 100.00" in err


def test_labels_from_before_2013_are_tuned(
    tune: Tune,
) -> None:
    """extractor reads `d:` and `lm:` as features with the value 0."""
    old = nbest(lambda index: f"d: 0 -1 lm: {(-3, -2, -9)[index]} tm: {(-9, -8, -1)[index]} 0")
    status, weights, err = tune(old, "[weight-d]\n0.3\n0.1\n[weight-l]\n1\n[weight-t]\n0\n0\n", "--tuner", "kbmira")
    assert status == 0 and "-> 100.00" in err
    assert {name: len(values) for name, values in weights.items()} == {"d": 2, "lm": 1, "tm": 2}


def test_candidates_that_differ_only_in_sparse_features_are_kept(
    tune: Tune,
) -> None:
    """extractor and kbmira drop the later one."""
    content = nbest(lambda index: f"LM0= -1 s_{'right' if index == 2 else 'wrong'}= 1")
    status, weights, err = tune(content, "[weight]\nLM0= 1\n")
    assert status == 0 and "(4 sentences, 12 candidates)" in err and "-> 100.00" in err
    assert weights["s_right"][0] > weights["s_wrong"][0]


def test_sparse_features_survive_pooling(
    tune: Tune,
) -> None:
    """extractor rewrites `s_x=1` of earlier runs as `s_x1`, which makes kbmira fail."""
    first, second = (nbest(lambda index, n=name: f"LM0= -{index} s_{n}= {index}") for name in ("x", "y"))
    second = second.replace("house", "houses")
    status, weights, err = tune(first, "[weight]\nLM0= 1\n", lists=(second,))
    assert status == 0 and "(4 sentences, 24 candidates)" in err
    assert set(weights) == {"LM0", "s_x", "s_y"}


def test_one_seed_gives_the_same_bytes(command: Command, write: Write) -> None:
    """Without -r, mert and kbmira seed from the clock."""
    files = (write("list", nbest(dense)), "--reference", write("ref", REFERENCE))
    initial = write("initial", "[weight]\nLM0= 1\n")
    for tuner in ("kbmira", "mert", "pro", "expected", "mean"):
        found = [command("tune", *files, "--initial-weights", initial, "--tuner", tuner)[1] for _ in range(2)]
        assert found[0] == found[1] and found[0]
