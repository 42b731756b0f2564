import gzip
import random
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from features.arrays import Array
from features.feature import Sentence
from rerank.lists.verification import Sample

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]


def lengths(*sentences: Sentence) -> Array:
    return np.array([[float(len(hypothesis))] for each in sentences for hypothesis in each.hypotheses])


def test_the_largest_difference_is_found_whatever_the_order() -> None:
    sentences = [Sentence(n, ("x",), tuple(("a",) * k for k in range(n + 1))) for n in range(9)]
    for size in (1, 7, 45, 99):
        sample = Sample(size, random.Random(size))
        for start in range(0, 9, 3):
            values = lengths(*sentences[start : start + 3])
            values[-1] += 0.5 if start == 6 else 0
            sample.add(sentences[start : start + 3], [values])
        count, difference = sample.largest_difference(0, lengths)
        assert count == min(size, 45)
        assert difference == (0.5 if size >= 45 else difference) and difference in (0, 0.5)
    assert Sample(3, random.Random(1)).largest_difference(0, lengths) == (0, 0.0)


def test_every_candidate_is_as_likely(rounds: int = 3000) -> None:
    counts = np.zeros(6)
    for seed in range(rounds):
        sample = Sample(2, random.Random(seed))
        for n in range(6):
            sample.add([Sentence(n, (), (("a",) * n,))], [np.array([[0.0]])])
        for one, _ in sample._kept:
            counts[one.sentence] += 1
    np.testing.assert_allclose(counts / rounds, 1 / 3, atol=0.05)


def test_the_command_tells_the_difference(
    command: Command, sample: Path, models: dict[str, Path], tmp_path: Path
) -> None:
    nbest = tmp_path / "list"
    with gzip.open(sample / "dev.nbest.gz", "rb") as stream:
        nbest.write_bytes(b"".join(islice(stream, 2000)))
    requests = ("--feature", f"A=neural:{models['forward']}", "--feature", "B=length", "--device", "cpu")
    arguments = ("score", nbest, "--source", sample / "dev.de", *requests, "--output", "/dev/null")
    status, _, err = command(*arguments, "--verify", 20)
    lines = {line[0]: line for line in err.splitlines() if "one by one" in line}
    assert status == 0 and set(lines) == {"A"}
    assert "B: not of a model, there is nothing to verify" in err
    assert float(lines["A"].split()[-1]) == pytest.approx(0, abs=1e-4)
    assert lines["A"].startswith("A: 20 candidates")


def test_features_of_the_lines_are_verified_too(command: Command, write: Write, models: dict[str, Path]) -> None:
    nbest = write("list", "".join(f"0 ||| {text} ||| L= 1 ||| 0 ||| 0-0\n" for text in ("a b", "a", "c a")))
    arguments = ("score", nbest, "--source", write("source", "x\n"), "--feature", f"A=links:{models['forward']}")
    status, _, err = command(*arguments, "--verify", 3, "--device", "cpu")
    (line,) = [line for line in err.splitlines() if "one by one" in line]
    assert status == 0 and float(line.split()[-1]) == pytest.approx(0, abs=1e-4)
