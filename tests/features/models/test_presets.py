"""Every preset is trained on 200 pairs and scores 20 candidates."""

import json
import math
from pathlib import Path

import pytest
import torch

from features.models.folder import load_model
from features.models.presets import PRESETS
from features.models.scoring.pairs import score_pairs
from features.models.training.request import TrainingFiles, TrainingRequest, train_model
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles, read_lines, tokens
from moses_io.nbest import read_nbest

CPU = torch.device("cpu")
SMALL = {
    "embedding_size": 12,
    "hidden_size": 16,
    "attention_size": 12,
    "memory_size": 4,
    "updates": 4,
    "batch_size": 16,
}
SQUARE = {"embedding_size": 16, "feedforward_size": 12, "batch_tokens": 200}
"""Settings of transformers, whose embedding and hidden sizes are equal."""
STARTS = {"cohn-align-glofer-pre": "cohn-align", "cohn-align-sym-glofer-pre": "cohn-align-sym"}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> TrainingFiles:
    folder = tmp_path_factory.mktemp("texts")
    for name, count in (("train", 200), ("dev", 20)):
        for side in ("de", "en"):
            lines = read_lines(str(sample / f"{name}.{side}"))[:count]
            (folder / f"{name}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    train, dev = (
        ParallelFiles(source=str(folder / f"{name}.de"), target=str(folder / f"{name}.en")) for name in ("train", "dev")
    )
    return TrainingFiles(corpus=train, dev=dev)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, texts: TrainingFiles) -> dict[str, Path]:
    """Models of all presets, by the name of the preset."""
    folder = tmp_path_factory.mktemp("presets")
    for name in sorted(PRESETS, key=lambda name: name in STARTS):
        values = SMALL | ({"bpe": 120} if PRESETS[name].training.bpe else {})
        values |= SQUARE if PRESETS[name].architecture.decoder == "transformer" else {}
        start = str(folder / STARTS[name]) if name in STARTS else ""
        train_model(TrainingRequest(name, settings=values), texts, str(folder / name), "cpu", start)
    return {name: folder / name for name in PRESETS}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_trains_and_scores(name: str, trained: dict[str, Path], sample: Path) -> None:
    folders = [trained[name]]
    if PRESETS[name].symmetric:
        folders = [trained[name] / "forward", trained[name] / "backward"]
    first = next(read_nbest(str(sample / "test.nbest.gz")))
    source = tuple(tokens(read_lines(str(sample / "test.de"))[first.sentence]))
    pairs = [(source, tuple(tokens(hypothesis.text))) for hypothesis in first.hypotheses[:20]]
    for folder in folders:
        (row,) = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert row["updates"] == 4 and 1 < row["dev_perplexity"] < 1e6
        scored = [numbers for numbers, scores in score_pairs([load_model(folder, CPU)], pairs) if _whole(scores)]
        assert sorted(number for numbers in scored for number in numbers) == list(range(20))


def _whole(scores: object) -> bool:
    log_probs = scores.log_probs  # type: ignore[attr-defined]
    return bool(log_probs.isfinite().all() and (log_probs.sum(dim=1) < 0).all())


def test_jointly_trained_models_share_vocabularies_and_name_each_other(trained: dict[str, Path]) -> None:
    folder = trained["cohn-align-sym"]
    forward, backward = (load_model(folder / side, CPU) for side in ("forward", "backward"))
    assert (forward.source, forward.target) == (backward.target, backward.source)
    for model, partner in ((forward, "backward"), (backward, "forward")):
        assert load_model(folder / partner / model.config.partner, CPU).config.direction == partner
    weights = [dict(model.network.named_parameters())["softmax.weight"] for model in (forward, backward)]
    assert weights[0].shape != weights[1].shape


def test_training_starts_from_the_weights_of_another_model(trained: dict[str, Path]) -> None:
    before, after, scratch = (
        load_model(trained[name], CPU) for name in ("cohn-align", "cohn-align-glofer-pre", "cohn-align-glofer")
    )

    def distance(model: object) -> float:
        there = dict(model.network.named_parameters())  # type: ignore[attr-defined]
        return math.sqrt(
            sum(float((there[name] - w).square().sum().detach()) for name, w in before.network.named_parameters())
        )

    assert 0 < distance(after) < distance(scratch)


def test_incompatible_initial_models_are_errors(trained: dict[str, Path], texts: TrainingFiles, tmp_path: Path) -> None:
    output = str(tmp_path / "model")
    for request, start, message in (
        (TrainingRequest("cohn-align-glofer-pre"), "", "starts from a trained model"),
        (TrainingRequest("cohn-align-glofer-pre"), "nowhere", "nowhere: not a model folder"),
        (
            TrainingRequest("cohn-align", settings=SMALL),
            str(trained["rnnsearch"]),
            "this model has initial_state 'zero'",
        ),
        (
            TrainingRequest("rnnsearch", settings=SMALL | {"hidden_size": 8}),
            str(trained["rnnsearch"]),
            "has hidden_size 16",
        ),
        (TrainingRequest("rnnsearch", True, settings=SMALL), str(trained["rnnsearch"]), "has direction 'forward'"),
        (TrainingRequest("rnnsearch", False, True, settings=SMALL), str(trained["rnnsearch"]), "has right_to_left"),
        (TrainingRequest("cohn-align-sym", True), "", "trains both directions"),
    ):
        with pytest.raises(InputError, match=message):
            train_model(request, texts, output, "cpu", start)
        assert not Path(output).exists()
