import json
import math
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from features.models import vocabulary
from features.models.batches import bucketed
from features.models.config import CHECKPOINT, ModelConfig
from features.models.folder import load_model
from features.models.network.cells import multiplied_in
from features.models.network.model import Objective
from features.models.network.objectives import guided_alignment_loss
from features.models.scoring.pairs import score_pairs
from features.models.settings import Architecture, Training
from features.models.tables import TABLES, find
from features.models.training import encoding, epoch, learner, loop, preparation
from features.models.training.checkpoint import Run
from features.models.training.encoding import encode
from features.models.training.epoch import constant, halving, learning_rate_at, linear
from features.models.training.learner import Learner
from features.models.training.loop import train
from features.models.training.metrics import dev_perplexity
from features.models.training.preparation import Task, begin_run
from features.models.vocabulary import (
    BpeDropout,
)
from features.progress import progress_bar
from moses_io.files.errors import InputError
from moses_io.files.folders import LOCK, locked

CPU = torch.device("cpu")
ARCHITECTURE = Architecture(embedding_size=12, hidden_size=16, attention_size=12)


def words(rng: random.Random) -> list[str]:
    return [rng.choice("abcdef") for _ in range(rng.randint(1, 5))]


def corpus(pairs: int) -> list[tuple[list[str], list[str]]]:
    rng = random.Random(1)
    return [(source, [word.upper() for word in source]) for source in (words(rng) for _ in range(pairs))]


def fit(
    folder: Path, resume: bool = False, tie: bool = False, pairs: int = 400, **settings: Any
) -> list[dict[str, Any]]:
    training = Training(**{"epochs": 6, "learning_rate": 0.02, "batch_size": 16, "dropout": 0.0} | settings)
    config = ModelConfig("rnnsearch", "forward", replace(ARCHITECTURE, tied_softmax=tie), training)
    train(Task([config], corpus(pairs), corpus(40), folder, CPU), resume=resume)
    return metrics(folder)


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_an_initial_model_may_have_additional_objectives(tmp_path: Path) -> None:
    training, pairs = Training(epochs=1, batch_size=16), corpus(40)
    with_fertility = replace(ARCHITECTURE, objectives=("fertility",))
    for name, architecture, start in (("first", with_fertility, None), ("then", ARCHITECTURE, tmp_path / "first")):
        config = ModelConfig("rnnsearch", "forward", architecture, training)
        train(Task([config], pairs, pairs, tmp_path / name, CPU, start=start))
    perplexities = [metrics(tmp_path / name)[0]["dev_perplexity"] for name in ("first", "then")]
    assert perplexities[1] < perplexities[0]


def test_resuming_with_another_initial_model_is_an_error(tmp_path: Path) -> None:
    config = ModelConfig("rnnsearch", "forward", ARCHITECTURE, Training(epochs=1, batch_size=16))
    for name, seed in (("first", 1), ("second", 2)):
        seeded = replace(config, training=replace(config.training, seed=seed))
        train(Task([seeded], corpus(40), corpus(40), tmp_path / name, CPU))
    task = Task([config], corpus(40), corpus(40), tmp_path / "then", CPU, start=tmp_path / "first")
    train(task)
    train(task, resume=True)
    for other in (tmp_path / "second", None):
        with pytest.raises(InputError, match="was trained on other text, or started from another model"):
            train(replace(task, start=other), resume=True)


@pytest.mark.parametrize(("dropout", "settings"), [(0.0, {}), (0.5, {}), (0.5, {"gradient_accumulation": 2})])
def test_the_planned_number_of_updates_is_accurate(tmp_path: Path, dropout: float, settings: dict[str, int]) -> None:
    """BPE dropout gives more subwords per word, so batches of a number of tokens contain fewer pairs."""
    rng = random.Random(1)
    longer = [["".join(rng.choices("abcd", k=6)) for _ in range(4)] for _ in range(200)]
    training = Training(epochs=2, batch_tokens=60, bpe=60, bpe_dropout=dropout, **settings)
    config = ModelConfig("rnnsearch", "forward", ARCHITECTURE, training)
    run = begin(tmp_path / "model", [config], [(words, words) for words in longer])
    with progress_bar("train", None) as bar:
        for _ in range(training.epochs):
            epoch.train_epoch(run, bar)
    assert run.progress.updates == pytest.approx(run.planned, rel=0.03)


def test_only_own_temporary_files_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    others = [folder / ".git" / "config", folder / ".notes", folder / ".git" / ".keep.12345678"]
    left = folder / ".model.safetensors.a1b2c3d4.temporary"
    for path in (*others, left):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    fit(folder, resume=True, epochs=1)
    assert all(path.exists() for path in others) and not left.exists()


def test_training_learns_and_keeps_the_best_model(tmp_path: Path) -> None:
    rows = fit(tmp_path / "model")
    assert [row["epoch"] for row in rows] == list(range(1, len(rows) + 1))
    best = min(row["dev_perplexity"] for row in rows)
    assert best < 2.5 < rows[0]["dev_perplexity"]
    assert {"train_perplexity", "tokens_per_second", "learning_rate", "updates", "seconds", "best"} <= set(rows[0])
    assert math.isclose(perplexity(tmp_path / "model"), best, rel_tol=1e-5)


def perplexity(folder: Path) -> float:
    """Return the perplexity per word on dev, computed from the scores of the saved model."""
    pairs = [(tuple(source), tuple(target)) for source, target in corpus(40)]
    total = sum(float(scores.log_probs.sum()) for _, scores in score_pairs([load_model(folder, CPU)], pairs))
    return math.exp(-total / sum(len(target) + 1 for _, target in pairs))


def test_the_seed_determines_the_weights(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fit(tmp_path / name, epochs=1, seed=seed, dropout=0.2)
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def test_updates_and_patience_stop_training(tmp_path: Path) -> None:
    assert [row["updates"] for row in fit(tmp_path / "updates", updates=7)] == [7]
    rows = fit(tmp_path / "patience", learning_rate=0.0, patience=2, epochs=9)
    assert [row["best"] for row in rows] == [True, False, False]


class Killed(Exception):
    pass


Whole = tuple[Path, dict[str, Any]]


@pytest.fixture(
    scope="module",
    params=[{"optimizer": "adam", "average_checkpoints": 2}, {"optimizer": "sgd", "learning_rate": 0.5}],
    ids=str,
)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Folder and settings of an uninterrupted training."""
    folder, settings = tmp_path_factory.mktemp("whole"), request.param | {"pairs": 100, "dropout": 0.3, "epochs": 3}
    fit(folder, **settings)
    return folder, settings


@pytest.mark.parametrize(
    ("place", "name", "last"),
    [
        (epoch, "bucketed", 1),
        (epoch, "bucketed", 3),
        (loop, "save", 1),
        (loop, "save", 2),
        (loop, "save_weights", 1),
        (loop, "save_weights", 2),
        (loop, "_try_average", 1),
        (preparation, "create_folder", 1),
        (learner.Learner, "add_row", 1),
        (vocabulary.Vocabulary, "save", 2),
    ],
)
def test_a_killed_training_continues_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Whole, place: Any, name: str, last: int
) -> None:
    check_that_it_continues(tmp_path / "killed", whole, monkeypatch, place, name, last)


def test_a_killed_training_of_the_low_resource_recipe_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"tie": True, "word_dropout": 0.2, "warmup_updates": 9, "bpe": 30, "bpe_dropout": 0.3}
    settings |= {"r_drop": 1.0, "average_checkpoints": 2, "epochs": 2, "pairs": 100}
    fit(tmp_path / "whole", **settings)
    check_that_it_continues(tmp_path / "killed", (tmp_path / "whole", settings), monkeypatch, loop, "save", 3)


def check_that_it_continues(
    killed: Path, whole: Whole, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, last: int
) -> None:
    """Interrupt a training at call number `last` of a function, and compare its continuation with `whole`."""
    expected, settings = whole
    function, calls = getattr(place, name), iter(range(1, 99))

    def die(*arguments: Any) -> Any:
        if next(calls) == last:
            raise Killed
        return function(*arguments)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(place, name, die)
        fit(killed, **settings)
    fit(killed, resume=True, **settings)
    assert sorted(path.name for path in killed.iterdir()) == sorted(path.name for path in expected.iterdir())
    for path in ("model.safetensors", "config.json", "source.vocabulary"):
        assert (killed / path).read_bytes() == (expected / path).read_bytes()
    times = {"seconds", "tokens_per_second"}
    assert [{key: row[key] for key in row.keys() - times} for row in metrics(killed)] == [
        {key: row[key] for key in row.keys() - times} for row in metrics(expected)
    ]


@pytest.mark.usefixtures("progress")
def test_messages_report_whether_the_training_has_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit(tmp_path / "model", epochs=1)
    load_model(tmp_path / "model", CPU)
    assert "has not ended" not in capsys.readouterr().err
    fit(tmp_path / "model", resume=True, epochs=1)
    assert "this training has already ended" in capsys.readouterr().err
    (tmp_path / CHECKPOINT).write_bytes(b"")  # of another training, in the folder around this one
    load_model(tmp_path / "model", CPU)
    assert "has not ended" not in capsys.readouterr().err
    (tmp_path / "model" / CHECKPOINT).write_bytes(b"")
    load_model(tmp_path / "model", CPU)
    assert "the training of this model has not ended" in capsys.readouterr().err


def test_resuming_with_other_settings_or_corpus_is_an_error(tmp_path: Path) -> None:
    fit(tmp_path / "model", epochs=1)
    with pytest.raises(InputError, match=r"this model has learning_rate 0\.02, expected 0\.5"):
        fit(tmp_path / "model", resume=True, epochs=1, learning_rate=0.5)
    config = ModelConfig(
        "rnnsearch", "forward", ARCHITECTURE, Training(epochs=1, learning_rate=0.02, batch_size=16, dropout=0.0)
    )
    with pytest.raises(InputError, match="was trained on other text, or started from another model"):
        train(Task([config], corpus(300), corpus(40), tmp_path / "model", CPU), resume=True)
    with pytest.raises(InputError, match="the folder is not empty"):
        fit(tmp_path / "model", epochs=1)
    (tmp_path / "model" / CHECKPOINT).write_bytes(b"x")
    with pytest.raises(InputError, match=r"training\.safetensors: damaged"):
        fit(tmp_path / "model", resume=True, epochs=1)


@pytest.mark.usefixtures("progress")
@pytest.mark.parametrize(
    ("tie", "checkpoints", "settings"),
    [(False, 3, {"pairs": 100, "learning_rate": 0.1}), (True, 2, {})],
)
def test_the_average_of_checkpoints_is_kept_if_it_is_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tie: bool, checkpoints: int, settings: dict[str, Any]
) -> None:
    """The metrics have one more row for it, with the perplexity of the saved weights."""
    rows = fit(tmp_path / "model", tie=tie, average_checkpoints=checkpoints, schedule="constant", epochs=5, **settings)
    assert f"average of the last {checkpoints} checkpoints: dev" in capsys.readouterr().err
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5, 5] and rows[-1]["best"]
    assert rows[-1]["dev_perplexity"] < min(row["dev_perplexity"] for row in rows[:-1])
    assert dev_perplexity(tmp_path / "model") == rows[-1]["dev_perplexity"]
    assert perplexity(tmp_path / "model") == pytest.approx(rows[-1]["dev_perplexity"], rel=1e-5)


@pytest.mark.usefixtures("progress")
def test_an_average_that_is_worse_than_the_best_epoch_is_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After two epochs, the weights still change much, so their average is worse than the weights of the second."""
    rows = fit(tmp_path / "model", average_checkpoints=2, schedule="constant", epochs=2)
    (message,) = [line for line in capsys.readouterr().err.splitlines() if "average of the last 2" in line]
    assert float(message.split(" dev ")[1]) > rows[1]["dev_perplexity"] == dev_perplexity(tmp_path / "model")
    assert len(rows) == 2
    assert perplexity(tmp_path / "model") == pytest.approx(rows[1]["dev_perplexity"], rel=1e-5)


def begin(folder: Path, configs: list[ModelConfig], pairs: list[tuple[list[str], list[str]]]) -> Run:
    return begin_run(Task(configs, pairs, pairs, folder, CPU), False)


def test_accumulated_batches_are_one_large_batch(tmp_path: Path) -> None:
    networks = []
    for batch, accumulate in ((16, 1), (4, 4)):
        settings = Training(dropout=0.0, batch_size=batch, optimizer="sgd")
        config = ModelConfig("rnnsearch", "forward", ARCHITECTURE, settings)
        run = begin(tmp_path / str(batch), [config], corpus(16))
        batches = bucketed(run.corpus[0].lengths, batch)
        assert len(batches) == accumulate
        epoch._update(run, batches, 0.1)
        networks.append(run.learners[0].network)
    for one, other in zip(networks[0].parameters(), networks[1].parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("clip", [1e9, 0.05])
def test_an_update_of_a_joint_model_follows_the_gradient(tmp_path: Path, clip: float) -> None:
    """The loss is -log p(t|s) - log p(s|t) - gamma · trace - fertility, averaged over the sentences of a batch."""
    architecture = Architecture(
        embedding_size=4, hidden_size=5, attention_size=4, attention_terms=("markov",), objectives=("fertility",)
    )
    settings = Training(dropout=0.0, optimizer="sgd", agreement_weight=3.0, clip_norm=clip, init_range=0.3)
    configs = [ModelConfig("x", side, architecture, settings) for side in ("forward", "backward")]
    run = begin(tmp_path / "pair", configs, corpus(6))
    weights = run.parameters
    assert 0.25 < max(float(weight.detach().abs().max()) for weight in weights) <= 0.3
    batch = list(range(6))
    there, back = (one.forward(each, batch, CPU) for one, each in zip(run.learners, run.corpus, strict=True))
    agreement = sum(
        there.rows[j, n, i + 1] * back.rows[i, n, j + 1]
        for n in batch
        for j in range(len(there.rows))
        for i in range(len(back.rows))
    )
    loss = (there.loss + back.loss - 3 * agreement - there.bonus - back.bonus) / 6
    gradients = torch.autograd.grad(loss, weights)
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    assert norm > 0.05
    targets = [w.detach() - 0.1 * min(1, clip / norm) * g for w, g in zip(weights, gradients, strict=True)]
    total, tokens = epoch._update(run, [batch], 0.1)
    assert total == pytest.approx(float(there.loss.detach() + back.loss.detach()))
    assert tokens == sum(map(sum, run.corpus[0].lengths + 1))
    for weight, target in zip(weights, targets, strict=True):
        torch.testing.assert_close(weight.detach(), target)


@pytest.mark.parametrize(
    ("parts", "ahead"),
    [
        ({"decoder": "attend-first"}, 0),
        ({"decoder": "attend-after"}, 1),
        ({"decoder": "attend-after", "granularity": "fine"}, 1),
        ({"decoder": "attend-after", "attention_score": "location"}, 0),
        ({"decoder": "attend-after", "lexicon": "bias"}, 0),
    ],
)
@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_guided_alignment_is_the_cross_entropy_of_attention_and_links(
    tmp_path: Path, parts: dict[str, str], ahead: int, quarters: int
) -> None:
    """The term covers both directions, and its weight falls to 0 over the first half of training.

    The perplexity excludes it.
    """
    pairs = [(["a", "b", "a"], ["A", "B"]), (["b"], ["B", "A"])]
    links = [frozenset({(0, 1), (2, 1), (1, 0)}), frozenset({(0, 1)})]
    architecture = replace(Architecture(embedding_size=4, hidden_size=5, attention_size=4), **parts)  # type: ignore[arg-type]
    settings = Training(
        dropout=0.0,
        optimizer="sgd",
        agreement_weight=0.0,
        clip_norm=1e9,
        init_range=0.3,
        guided_alignment=3.0,
        min_frequency=1,
    )
    configs = [ModelConfig("x", side, architecture, settings) for side in ("forward", "backward")]
    run = begin_run(Task(configs, pairs, pairs, tmp_path / "pair", CPU, links), False)
    there, back = (one.forward(each, [1, 0], CPU) for one, each in zip(run.learners, run.corpus, strict=True))
    # for each link: target index, batch index, source index, weight
    forward = [(1, 0, 0, 1.0), (0, 1, 1, 1.0), (1, 1, 0, 0.5), (1, 1, 2, 0.5)]
    backward = [(0, 0, 1, 1.0), (0, 1, 1, 1.0), (1, 1, 0, 1.0), (2, 1, 1, 1.0)]
    entropy = -sum(share * there.rows[j + ahead, n, i + 1].log() for j, n, i, share in forward)
    entropy = entropy - sum(share * back.rows[j + ahead, n, i + 1].log() for j, n, i, share in backward)
    loss = (there.loss + back.loss + 3 * max(0, 1 - quarters / 2) * entropy) / 2
    gradients = torch.autograd.grad(loss, run.parameters)
    targets = [weight.detach() - 0.1 * gradient for weight, gradient in zip(run.parameters, gradients, strict=True)]
    run.planned, run.progress.updates = 4, quarters
    total, _ = epoch._update(run, [[1, 0]], 0.1)
    assert total == pytest.approx(float(there.plain + back.plain))
    for weight, target in zip(run.parameters, targets, strict=True):
        torch.testing.assert_close(weight.detach(), target)


def test_guided_alignment_outside_the_attention_window_is_bounded() -> None:
    rows = torch.tensor([[[0.0, 1.0]]], requires_grad=True)
    value = guided_alignment_loss(rows, torch.tensor([[0], [0], [0]]), torch.ones(1))
    value.backward()
    assert float(value.detach()) == pytest.approx(-math.log(1e-6)) and rows.grad is not None and rows.grad.sum() == 0


def test_training_perplexity_excludes_label_smoothing_and_r_drop(tmp_path: Path) -> None:
    others: list[dict[str, float]] = [{}, {"label_smoothing": 0.5}, {"r_drop": 3.0}]
    rows = [fit(tmp_path / str(n), epochs=1, updates=1, **each) for n, each in enumerate(others)]
    assert rows[0][0]["train_perplexity"] == rows[1][0]["train_perplexity"]
    assert rows[2][0]["train_perplexity"] == pytest.approx(rows[0][0]["train_perplexity"], rel=1e-6)


def test_learning_rate_factors_of_each_schedule() -> None:
    settings = Training(decay_start=5, decay_interval=2)
    assert [linear(settings, 1, progress) for progress in (0.0, 0.5, 1.0)] == pytest.approx([1, 0.55, 0.1])
    assert [halving(settings, epoch, 0.5) for epoch in range(4, 10)] == [1, 1, 0.5, 0.5, 0.25, 0.25]
    assert constant(settings, 9, 0.9) == 1


@pytest.mark.parametrize("schedule", TABLES["schedule"])
def test_the_learning_rate_rises_linearly_in_the_warmup(schedule: str) -> None:
    settings = Training(learning_rate=0.5, schedule=schedule, warmup_updates=4, decay_start=1)
    for number in (1, 2):
        plain = [learning_rate_at(replace(settings, warmup_updates=0), number, updates, 10) for updates in range(10)]
        assert plain == [0.5 * find("schedule", schedule)(settings, number, updates / 10) for updates in range(10)]
        shares = [0.25, 0.5, 0.75, *[1] * 7]
        found = [learning_rate_at(settings, number, updates, 10) for updates in range(10)]
        assert found == pytest.approx([share * rate for share, rate in zip(shares, plain, strict=True)])


def test_training_uses_the_warmup(tmp_path: Path) -> None:
    rows = fit(tmp_path / "model", learning_rate=0.02, schedule="constant", warmup_updates=50, epochs=2)
    assert [row["learning_rate"] for row in rows] == pytest.approx([0.02 * row["updates"] / 50 for row in rows])


def test_batches_by_tokens() -> None:
    lengths = np.array([(n % 7, n % 5) for n in range(100)] + [(1, 40)])
    batches = bucketed(lengths, 1, 12, random.Random(1))
    assert sorted(number for batch in batches for number in batch) == list(range(101))
    sizes = [len(batch) * max(lengths[number, 1] + 1 for number in batch) for batch in batches]
    assert sorted(sizes)[-2:] == [12, 41]


def test_batches_for_evaluation_are_bounded_by_attention_size() -> None:
    lengths = np.array([(length, length) for length in (3, 200, 200, 4, 200, 1000)] + [(1000, 0)])
    assert bucketed(lengths, 4, cells=2 * 202 * 201) == [[6], [0, 3], [1, 2], [4], [5]]


def test_a_corpus_without_usable_pairs_is_an_error(tmp_path: Path) -> None:
    config = ModelConfig("rnnsearch", "forward", ARCHITECTURE, Training(max_length=2))
    with pytest.raises(InputError, match="no sentence pair to train on"):
        train(Task([config], [([], ["a"]), (["a"] * 3, ["b"])], corpus(2), tmp_path / "model", CPU))
    assert not (tmp_path / "model").exists()


def test_an_output_folder_with_other_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="the folder is not empty"):
        fit(tmp_path / "model")


@pytest.mark.parametrize("place", ["", "forward"])
def test_a_locked_folder_is_an_error(tmp_path: Path, place: str) -> None:
    """Tested for the folder of a joint model and for the folder of one direction."""
    configs = [ModelConfig("x", side, ARCHITECTURE, Training(epochs=1)) for side in ("forward", "backward")]
    task = Task(configs, corpus(4), corpus(4), tmp_path / "pair", CPU)
    (tmp_path / "pair" / place).mkdir(parents=True)
    with (
        locked(tmp_path / "pair" / place),
        pytest.raises(InputError, match=f"{place or 'pair'}: another process uses this folder"),
    ):
        train(task)
    train(task)
    parts = {"config.json", "metrics.jsonl", "model.safetensors", "source.vocabulary", "target.vocabulary"}
    found = {str(path.relative_to(tmp_path / "pair")) for path in (tmp_path / "pair").rglob("*") if path.is_file()}
    assert found == {f"{side}/{part}" for side in ("forward", "backward") for part in parts}


def test_a_stale_lock_file_does_not_block_training(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / LOCK).touch()
    fit(tmp_path / "model", epochs=1, updates=1)
    assert not (tmp_path / "model" / LOCK).exists()


def test_a_network_larger_than_the_memory_is_an_error(tmp_path: Path) -> None:
    """The error is raised before a file is written."""
    large = Architecture(attention_score="location", hidden_size=60000, max_positions=2**31 - 1)
    with pytest.raises(InputError, match=r"out of memory: .* GB. Lower hidden_size, embedding_size"):
        train(Task([ModelConfig("x", "forward", large, Training())], corpus(4), corpus(4), tmp_path / "model", CPU))
    assert not (tmp_path / "model").exists()


def test_a_failed_allocation_is_reported_as_out_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "train_epoch", lambda *_: torch.empty(2**60))
    with pytest.raises(InputError, match=r"out of memory. Lower batch_size, batch_tokens, max_length, hidden_size"):
        fit(tmp_path / "model", epochs=1)
    monkeypatch.setattr(loop, "train_epoch", lambda *_: torch.empty(2) @ torch.empty(3))
    with pytest.raises(RuntimeError, match="size"):
        fit(tmp_path / "other", epochs=1)


def test_a_too_large_learning_rate_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the loss diverged within .* Try a smaller learning_rate"):
        fit(tmp_path / "model", learning_rate=1e30)


def test_batches_contain_every_pair_once_with_similar_lengths() -> None:
    lengths = np.array([(n % 7, n % 5) for n in range(100)])
    batches = bucketed(lengths, 8, rng=random.Random(1))
    assert sorted(number for batch in batches for number in batch) == list(range(100))
    assert max(map(len, batches)) == 8
    assert all(len({lengths[number, 1] for number in batch}) <= 2 for batch in batches)
    assert bucketed(lengths, 8, rng=random.Random(1)) == batches != bucketed(lengths, 8, rng=random.Random(2))


WORDS = ["low", "lower", "lowest", "new", "newer", "newest"]


def test_encoding_in_blocks_gives_the_same_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = ModelConfig("x", "forward", ARCHITECTURE, Training(bpe=40), right_to_left=True)
    pairs = [(WORDS[: n % 4], WORDS[n % 5 :]) for n in range(9)]
    learners = begin(tmp_path / "model", [config], [(WORDS, WORDS)] * 9).learners
    monkeypatch.setattr(encoding, "BLOCK", 2)
    (corpus,) = encode(pairs, learners)
    assert list(corpus.source) == [learners[0].source.encode(left) for left, _ in pairs]
    assert list(corpus.target) == [learners[0].target.encode(right)[::-1] for _, right in pairs]
    assert corpus.target_lengths.tolist() == [len(right) + 1 for _, right in pairs]


def test_both_directions_use_the_same_segmentation(tmp_path: Path) -> None:
    settings = Training(bpe=40, bpe_dropout=0.5)
    configs = [ModelConfig("x", side, ARCHITECTURE, settings) for side in ("forward", "backward")]
    run = begin(tmp_path / "pair", configs, [(WORDS, WORDS[::-1])] * 9)
    there, back = encode(run.pairs, run.learners, dropout=BpeDropout(0.5, random.Random(1)))
    assert (list(there.source), list(there.target)) == (list(back.target), list(back.source))
    assert len(set(there.source.lengths)) > 1


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("capabilities", [{"avx512_bf16": True}, {"avx512_bf16": False, "avx2": True}, {}])
def test_bfloat16_is_used_if_the_processor_supports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, bool]
) -> None:
    """oneDNN is off, because it has no bfloat16 LSTM for processors without this support."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    forward, precisions = Learner.forward, set()

    def watched(learner: Learner, *arguments: Any) -> Objective:
        weight = learner.network.softmax.weight
        hook = learner.network.encoder.register_forward_hook(lambda *_: precisions.add(multiplied_in(weight)))
        outcome = forward(learner, *arguments)
        hook.remove()
        return outcome

    monkeypatch.setattr(Learner, "forward", watched)
    with torch.backends.mkldnn.flags(enabled=False):
        rows = [fit(tmp_path / str(low), epochs=2, bfloat16=low)[-1] for low in (False, True)]
    faster = capabilities.get("avx512_bf16", False)
    assert precisions == ({torch.float32, torch.bfloat16} if faster else {torch.float32})
    assert (rows[0]["dev_perplexity"] == rows[1]["dev_perplexity"]) is not faster
    assert rows[0]["dev_perplexity"] == pytest.approx(rows[1]["dev_perplexity"], rel=0.02)


def test_a_warmup_longer_than_the_training_gives_a_warning(
    warned: Callable[[str], AbstractContextManager[None]], tmp_path: Path
) -> None:
    with warned("warmup_updates=51, but 50 updates are planned: the learning rate never reaches its maximum"):
        fit(tmp_path, epochs=2, warmup_updates=51)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("parts", [{}, {"decoder": "attend-between", "decoder_layers": 2}], ids=["first", "between"])
def test_training_on_a_gpu(tmp_path: Path, bfloat16: bool, parts: dict[str, Any]) -> None:
    settings = Training(epochs=6, learning_rate=0.02, bfloat16=bfloat16)
    config = ModelConfig("rnnsearch", "forward", replace(ARCHITECTURE, **parts), settings)
    train(Task([config], corpus(400), corpus(40), tmp_path / "model", torch.device("cuda")))
    assert min(row["dev_perplexity"] for row in metrics(tmp_path / "model")) < 4
