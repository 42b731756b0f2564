import json
import math
import random
from pathlib import Path

import pytest
import torch

from features.models.batches import bucketed
from features.models.folder import ModelConfig, load_model
from features.models.scoring import score_pairs
from features.models.settings import Architecture, Training
from features.models.training import perplexity, train
from features.models.vocabulary import SPECIAL, UNKNOWN, Vocabulary, build_vocabulary, load_vocabulary
from moses_io.errors import InputError

CPU = torch.device("cpu")
ARCHITECTURE = Architecture(embedding=12, hidden=16, attention=12)


def words(rng: random.Random) -> list[str]:
    return [rng.choice("abcdef") for _ in range(rng.randint(1, 5))]


def corpus(pairs: int) -> list[tuple[list[str], list[str]]]:
    rng = random.Random(1)
    return [(source, [word.upper() for word in source]) for source in (words(rng) for _ in range(pairs))]


def fit(folder: Path, **settings: float) -> float:
    training = Training(**{"epochs": 6, "rate": 0.02, "batch": 16, "dropout": 0.0} | settings)  # type: ignore[arg-type]
    return train(ModelConfig("rnnsearch", "forward", ARCHITECTURE, training), corpus(400), corpus(40), folder, CPU)


def test_training_learns_and_keeps_the_best_model(tmp_path: Path) -> None:
    best = fit(tmp_path / "model")
    rows = [json.loads(line) for line in (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == list(range(1, len(rows) + 1))
    assert best == min(row["dev_perplexity"] for row in rows) < 2.5 < rows[0]["dev_perplexity"]
    assert {"train_perplexity", "tokens_per_second", "rate", "updates", "seconds", "best"} <= set(rows[0])
    model = load_model(tmp_path / "model", CPU)
    dev = [(model.source.encode(source), model.target.encode(target)) for source, target in corpus(40)]
    assert math.isclose(perplexity(model.network, dev, CPU), best, rel_tol=1e-6)
    pairs = [(tuple(source), tuple(target)) for source, target in corpus(40)]
    total = sum(float(scores.log_probs.sum()) for _, scores in score_pairs(model, pairs))
    assert math.isclose(math.exp(-total / sum(len(target) + 1 for _, target in pairs)), best, rel_tol=1e-5)


def test_the_seed_sets_the_weights(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fit(tmp_path / name, epochs=1, seed=seed, dropout=0.2)
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def test_updates_and_patience_stop_training(tmp_path: Path) -> None:
    fit(tmp_path / "updates", updates=7)
    rows = (tmp_path / "updates" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["updates"] for row in rows] == [7]
    fit(tmp_path / "patience", rate=0.0, patience=2, epochs=9)
    rows = (tmp_path / "patience" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["best"] for row in rows] == [True, False, False]


def test_pairs_that_cannot_be_trained_on(tmp_path: Path) -> None:
    config = ModelConfig("rnnsearch", "forward", ARCHITECTURE, Training(length=2))
    with pytest.raises(InputError, match="no sentence pair to train on"):
        train(config, [([], ["a"]), (["a"] * 3, ["b"])], corpus(2), tmp_path / "model", CPU)
    assert not (tmp_path / "model").exists()


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="the folder is not empty"):
        fit(tmp_path / "model")


def test_a_rate_that_is_too_large(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the loss grew out of all bounds within .* try a smaller rate"):
        fit(tmp_path / "model", rate=1e30)


def test_batches_hold_every_pair_once_and_similar_lengths() -> None:
    pairs = [([1] * (n % 7), [1] * (n % 5)) for n in range(100)]
    batches = bucketed(pairs, 8, random.Random(1))
    assert sorted(number for batch in batches for number in batch) == list(range(100))
    assert max(map(len, batches)) == 8
    assert all(len({len(pairs[number][1]) for number in batch}) <= 2 for batch in batches)
    assert bucketed(pairs, 8, random.Random(1)) == batches != bucketed(pairs, 8, random.Random(2))


def test_vocabulary(tmp_path: Path) -> None:
    vocabulary = build_vocabulary(
        [["b", "a", "b", "<s>", "a\r", "a\r"], ["a", "c", "b\u00a0\udce9", "b\u00a0\udce9", "<s>"]], 2
    )
    assert vocabulary.words == (*SPECIAL, "a", "a\r", "b", "b\u00a0\udce9")
    assert vocabulary.encode(["b", "c", "<s>"]) == [6, UNKNOWN, UNKNOWN]
    vocabulary.save(tmp_path / "vocabulary")
    assert load_vocabulary(tmp_path / "vocabulary").words == vocabulary.words
    Vocabulary(["x", "x"]).save(tmp_path / "twice")
    with pytest.raises(InputError, match="a word stands there twice"):
        load_vocabulary(tmp_path / "twice")
