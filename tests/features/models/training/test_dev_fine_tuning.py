"""Fine-tuning on dev at the end of training: cross-validated weights, and when fine-tuning is discarded."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from features.feature import Resources, Sentence
from features.models.config import BASE, DEV_FOLDS, FOLD_WEIGHTS, RECORD, WEIGHTS, DevFolds, ModelConfig, weights_file
from features.models.decoding.search import Beam
from features.models.decoding.translator import Replacement, Translator
from features.models.folder import load_model
from features.models.scoring.members import Members, perplexity_of
from features.models.scoring.pairs import score_one_by_one
from features.models.settings import Architecture, Training
from features.models.training import dev_fine_tuning, loop
from features.models.training.loop import train
from features.models.training.preparation import Task
from features.models.training.request import TrainingRequest
from features.reader import Reader
from moses_io.files.errors import InputError

CPU = torch.device("cpu")
LOWER, UPPER = "abcdef", "ABCDEF"
TRAINING = Training(epochs=1, learning_rate=0.02, batch_size=16, dropout=0.1, fine_tuning_epochs=2)
ARCHITECTURE = Architecture(embedding_size=8, hidden_size=12, attention_size=8)
TokenPair = tuple[list[str], list[str]]


def pairs(count: int, shift: int = 0) -> list[TokenPair]:
    """Return pairs of letters and their capitals. With a shift, the capitals are those of later letters."""
    rng = random.Random(1)
    numbers = [[rng.randrange(6) for _ in range(rng.randint(1, 5))] for _ in range(count)]
    return [([LOWER[each] for each in text], [UPPER[(each + shift) % 6] for each in text]) for text in numbers]


def fit(folder: Path, dev: list[TokenPair], direction: str = "forward", **settings: Any) -> Path:
    names, training = ("forward", "backward") if direction == "both" else (direction,), replace(TRAINING, **settings)
    models = [ModelConfig("rnnsearch", name, ARCHITECTURE, training) for name in names]
    turn = -1 if direction == "backward" else 1
    corpus, dev = ([pair[::turn] for pair in each] for each in (pairs(160), dev))  # type: ignore[misc]
    train(Task(models, corpus, dev, folder, CPU))
    return folder


def sources(dev: list[TokenPair]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(source) for source, _ in dev))


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_weights_of_a_fold_do_not_depend_on_it(tmp_path: Path, direction: str) -> None:
    """If the translations of the first fold change, only the weights without this fold remain the same."""
    dev = pairs(40)
    folds = DevFolds.divide(source for source, _ in dev)
    changed = [(source, [*target[::-1], "A"] if folds.fold_of(source) == 1 else target) for source, target in dev]
    one, other = fit(tmp_path / "one", dev, direction), fit(tmp_path / "other", changed, direction)
    names = (WEIGHTS, *FOLD_WEIGHTS)
    same = {name: (one / name).read_bytes() == (other / name).read_bytes() for name in names}
    assert same == {name: name == weights_file(1) for name in same}


def test_fine_tuning_learns_from_dev_and_is_cross_validated(tmp_path: Path) -> None:
    """Dev is translated differently from the corpus, and fine-tuning learns this from the other folds.

    The reported perplexity is cross-validated.
    """
    dev = pairs(60, shift=2)
    folder = fit(tmp_path / "model", dev, epochs=3, fine_tuning_epochs=30, learning_rate=0.05)
    assert not (folder / BASE).exists()
    folds, losses, words = DevFolds.read(folder), 0.0, 0
    for source, target in dev:
        model = load_model(folder, CPU, weights_file(folds.fold_of(source)))
        sentence = Sentence(0, tuple(source), (tuple(target),))
        losses -= float(score_one_by_one([model], [sentence], ["logprob"]).values["logprob"][0])
        words += len(target) + 1
    *before, last = rows(folder)
    assert np.exp(losses / words) == pytest.approx(last["dev_perplexity"], rel=1e-4)
    read = perplexity_of(Members([str(folder)], CPU, ""), [(tuple(source), tuple(target)) for source, target in dev])
    assert read == pytest.approx(last["dev_perplexity"], rel=1e-4)
    assert last["epoch"] == 33 and last["dev_perplexity"] < 0.7 * min(row["dev_perplexity"] for row in before)


@pytest.mark.usefixtures("progress")
def test_fine_tuning_without_improvement_is_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_fine_tuning, "LEARNING_RATE_FACTOR", 1000.0)
    plain, folder = fit(tmp_path / "plain", pairs(40), fine_tuning_epochs=0), fit(tmp_path / "model", pairs(40))
    assert "fine-tuned on dev, cross-validated: perplexity" in capsys.readouterr().err
    check_that_fine_tuning_is_discarded(folder, plain)


@pytest.mark.usefixtures("progress")
def test_diverged_fine_tuning_is_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_fine_tuning, "LEARNING_RATE_FACTOR", float("inf"))
    plain, folder = fit(tmp_path / "plain", pairs(40), fine_tuning_epochs=0), fit(tmp_path / "model", pairs(40))
    assert "fine-tuning on dev: the loss diverged" in capsys.readouterr().err
    check_that_fine_tuning_is_discarded(folder, plain)


def test_resumed_fine_tuning_without_improvement_is_discarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This can happen on another processor, which rounds differently."""
    plain, folder = fit(tmp_path / "plain", pairs(40), fine_tuning_epochs=0), tmp_path / "killed"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop, "remove_leftovers", interrupt)
        fit(folder, pairs(40))
    assert (folder / RECORD).exists() and len(rows(folder)) == 2
    monkeypatch.setattr(dev_fine_tuning, "LEARNING_RATE_FACTOR", 1000.0)
    continue_training(folder)
    check_that_fine_tuning_is_discarded(folder, plain)


def test_damaged_weights_before_fine_tuning_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted fine-tuning stores the weights before it. Here they belong to another network."""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop, "remove_leftovers", interrupt)
        fit(tmp_path, pairs(40))
    (tmp_path / BASE).write_bytes(save({"other": torch.zeros(2)}))
    with pytest.raises(InputError, match=rf"{BASE}: damaged, or of another model \("):
        continue_training(tmp_path)


def check_that_fine_tuning_is_discarded(folder: Path, plain: Path) -> None:
    assert (folder / WEIGHTS).read_bytes() == (plain / WEIGHTS).read_bytes()
    assert not any((folder / name).exists() for name in (BASE, RECORD, *FOLD_WEIGHTS))
    assert [row["epoch"] for row in rows(folder)] == [1]


def interrupt(*arguments: Any) -> None:
    raise KeyboardInterrupt


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def continue_training(folder: Path) -> None:
    config = ModelConfig("rnnsearch", "forward", ARCHITECTURE, TRAINING)
    train(Task([config], pairs(160), pairs(40), folder, CPU), resume=True)


@pytest.mark.parametrize(
    ("place", "name", "call"),
    [
        (dev_fine_tuning, "save_weights", 1),
        (dev_fine_tuning, "save_weights", 4),
        (dev_fine_tuning, "save_weights", DEV_FOLDS + 1),
        (dev_fine_tuning, "train_epoch", 3),
        (loop, "remove_leftovers", 1),
    ],
)
def test_killed_fine_tuning_continues_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, call: int
) -> None:
    whole, killed = fit(tmp_path / "whole", pairs(40)), tmp_path / "killed"
    function, calls = getattr(place, name), iter(range(1, 99))

    def die(*arguments: Any) -> Any:
        if next(calls) == call:
            raise KeyboardInterrupt
        return function(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(place, name, die)
        fit(killed, pairs(40))
    continue_training(killed)
    assert sorted(path.name for path in killed.iterdir()) == sorted(path.name for path in whole.iterdir())
    for each in (WEIGHTS, RECORD, *FOLD_WEIGHTS):
        assert (killed / each).read_bytes() == (whole / each).read_bytes()


def test_both_directions_are_fine_tuned_together(tmp_path: Path) -> None:
    folder = fit(tmp_path / "pair", pairs(40), "both")
    for name in (WEIGHTS, RECORD, *FOLD_WEIGHTS):
        assert (folder / "forward" / name).exists() and (folder / "backward" / name).exists()
    assert (folder / "forward" / RECORD).read_bytes() == (folder / "backward" / RECORD).read_bytes()


def test_sentences_of_dev_use_weights_that_exclude_their_fold(tmp_path: Path) -> None:
    """Tested for scoring and translation with one model, and with an ensemble of which one is not fine-tuned."""
    dev = pairs(40)
    fine_tuned, other = fit(tmp_path / "fine_tuned", dev), fit(tmp_path / "other", dev, fine_tuning_epochs=0, seed=2)
    folds = DevFolds.read(fine_tuned)
    texts = [*sources(dev), ("g", "g", "g", "g", "g")]
    assert {folds.fold_of(text) for text in texts} == set(range(DEV_FOLDS + 1))
    lists = [Sentence(number, text, (("A", "B"), ("C",), text)) for number, text in enumerate(texts)]
    for folders in ([fine_tuned], [fine_tuned, other]):
        names = [str(folder) for folder in folders]
        reader, wanted = Reader(names, Resources("cpu")), []
        translator = Translator(names, Beam(3, 2), Replacement("copy"), Resources("cpu"))
        for each, translations in zip(lists, translator.translate(texts), strict=True):
            models = [load_model(fine_tuned, CPU, weights_file(folds.fold_of(each.source)))]
            models += [load_model(other, CPU)] if len(folders) > 1 else []
            wanted.append(score_one_by_one(models, [each], ["logprob"]).values["logprob"])
            with_outputs = replace(each, hypotheses=tuple(one.tokens for one in translations))
            log_probs = score_one_by_one(models, [with_outputs], ["logprob"]).values["logprob"]
            np.testing.assert_allclose([one.log_prob for one in translations], log_probs, atol=1e-5)
            np.testing.assert_allclose(
                reader.score_separately(each, ["logprob"]).values["logprob"], wanted[-1], atol=1e-6
            )
        read = reader.read(lists, ["logprob"], attention=True)
        np.testing.assert_allclose(read.values["logprob"], np.concatenate(wanted), atol=1e-5)
        shapes = [rows.shape[0] for rows in read.attention]
        assert shapes == [
            rows.shape[0] for each in lists for rows in reader.score_separately(each, [], attention=True).attention
        ]


@pytest.mark.usefixtures("progress")
def test_missing_weights_of_folds_give_a_warning_only_for_dev(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fit(tmp_path / "model", pairs(40))
    for name in FOLD_WEIGHTS:
        (folder / name).unlink()
    reader, dev = Reader([str(folder)], Resources("cpu")), [Sentence(0, text, (("A",),)) for text in sources(pairs(40))]
    capsys.readouterr()
    reader.read([Sentence(0, ("f",) * 9, (("A",),))], ["logprob"])
    assert capsys.readouterr().err == ""
    values = reader.read(dev, ["logprob"]).values["logprob"]
    assert capsys.readouterr().err.count("was fine-tuned on some of these sentences") == 1
    wanted = score_one_by_one([load_model(folder, CPU)], dev, ["logprob"]).values["logprob"]
    np.testing.assert_allclose(values, wanted, atol=1e-5)
    other = shutil.copytree(folder, tmp_path / "other")
    Reader([str(folder), str(other)], Resources("cpu")).read(dev, ["logprob"])
    printed = capsys.readouterr().err
    assert [printed.count(f"{path}: was fine-tuned on some") for path in (folder, other)] == [1, 1]


def test_unusable_pairs_of_dev_do_not_change_the_weights(tmp_path: Path) -> None:
    dev = pairs(40)
    longer = [*dev, (dev[0][0], ["A"] * 81), (dev[1][0], [])]
    one, other = fit(tmp_path / "one", dev), fit(tmp_path / "other", longer)
    for name in (RECORD, WEIGHTS, *FOLD_WEIGHTS):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_a_model_fine_tuned_on_dev_cannot_be_an_initial_model(tmp_path: Path) -> None:
    folder = fit(tmp_path / "model", pairs(40))
    config = ModelConfig("rnnsearch", "forward", ARCHITECTURE, replace(TRAINING, fine_tuning_epochs=0))
    with pytest.raises(
        InputError, match=r"model: this model was fine-tuned on dev \(fine_tuning_epochs\). Start from one that was"
    ):
        train(Task([config], pairs(160), pairs(40), tmp_path / "next", CPU, start=folder))
    request = TrainingRequest("rnnsearch")
    with pytest.raises(InputError, match=r"that model is fine-tuned on dev \(fine_tuning_epochs\), on which this one"):
        request.check_start(TrainingRequest("rnnsearch", settings={"fine_tuning_epochs": 1}))


def test_the_cache_distinguishes_weights_of_folds(tmp_path: Path) -> None:
    folder, cache = fit(tmp_path / "model", pairs(40)), str(tmp_path / "cache")
    lists = [Sentence(0, tuple(pairs(1)[0][0]), (("A", "B"),))]
    unseen = Reader([str(folder)], Resources("cpu", cache=cache)).read(lists, ["logprob"]).values["logprob"]
    for name in (RECORD, *FOLD_WEIGHTS):
        (folder / name).unlink()
    seen = Reader([str(folder)], Resources("cpu", cache=cache)).read(lists, ["logprob"]).values["logprob"]
    assert seen != unseen


def test_fine_tuning_needs_two_usable_sentences_of_dev(tmp_path: Path) -> None:
    one = pairs(1)
    with pytest.raises(InputError, match="two different sentences of dev for fine-tuning, found 1 sentence of 1 to 80"):
        fit(tmp_path / "model", [*one, *one, (["a"] * 81, ["A"]), ([], [])])
    assert not (tmp_path / "model").exists()


def test_folds_have_equal_sizes_and_are_read_back(tmp_path: Path) -> None:
    dev = sources(pairs(60))
    folds = DevFolds.divide(dev * 2)
    folds.write(tmp_path)
    sizes = np.bincount([folds.fold_of(source) for source in dev])[1:]
    assert len(sizes) == DEV_FOLDS and np.ptp(sizes) <= 1
    assert DevFolds.read(tmp_path) == folds and folds.fold_of(("unseen",)) == 0
    assert DevFolds.divide(dev[:3]).numbers == [1, 2, 3]
    for line, fault in (
        ("6 0123456789abcdef", "expected a fold and 16 hex"),
        ("2 0123456789abcdef", "occurs twice"),
    ):
        (tmp_path / RECORD).write_text(f"1 0123456789abcdef\n{line}\n")
        with pytest.raises(InputError, match=rf"{RECORD}:2: .*{fault}"):
            DevFolds.read(tmp_path)
