"""Neural language models: networks that treat every source sentence as empty."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from features.feature import Resources, Sentence
from features.models.alignment import Aligner
from features.models.cost import TextSize, training_seconds
from features.models.decoding.search import Beam
from features.models.decoding.translator import Replacement, Translator
from features.models.device import find_device
from features.models.folder import Model, load_model
from features.models.scoring.pairs import score_one_by_one
from features.models.scoring.tree import score_tree
from features.models.settings import check_values
from features.models.training import loop
from features.models.training.checkpoint import Run
from features.models.training.request import TrainingFiles, TrainingRequest, train_model
from features.models.vocabulary import BEGIN, END
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles, read_lines, tokens

PRESETS = ("lstm-lm", "transformer-lm")
TINY = {"embedding_size": 16, "hidden_size": 16, "epochs": 2, "feedforward_size": 16, "attention_heads": 2}


def request(preset: str, **settings: object) -> TrainingRequest:
    own = TINY if preset == "transformer-lm" else {name: TINY[name] for name in list(TINY)[:3]}
    return TrainingRequest(preset, settings=own | settings)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> TrainingFiles:
    folder = tmp_path_factory.mktemp("texts")
    for side in ("de", "en"):
        lines = read_lines(str(sample / f"train.{side}"))
        for name, part in (("train", lines[:100]), ("dev", lines[100:120]), ("mono", lines[120:160])):
            (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in part))
    sides = {
        name: ParallelFiles(*(str(folder / f"{name}.{side}") for side in ("de", "en"))) for name in ("train", "dev")
    }
    return TrainingFiles(sides["train"], sides["dev"])


@pytest.fixture(scope="module")
def trained(files: TrainingFiles, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("trained")
    kinds = {preset: request(preset) for preset in PRESETS} | {"subwords": request("lstm-lm", bpe=150)}
    for name, each in kinds.items():
        train_model(each, files, str(folder / name), "cpu")
    return {name: folder / name for name in kinds}


@pytest.fixture(scope="module")
def candidates(sample: Path) -> list[Sentence]:
    """Candidates with common prefixes, including an empty candidate. A language model ignores the sources."""
    texts = [tuple(tokens(line)) for line in read_lines(str(sample / "test.en"))[:6]]
    return [
        Sentence(number, ("ein", "Wort")[: number % 3], (text, text[:-2], (*text[:3], "zorb", *text[4:]), ()))
        for number, text in enumerate(texts)
    ]


def slow_log_prob(model: Model, text: tuple[str, ...]) -> float:
    """Return log p of a text, computed word by word in float64 from the equations of an LSTM."""
    weights = {name: each.double().numpy() for name, each in model.network.state_dict().items()}

    def step(prefix: str, value: np.ndarray, state: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        gates = weights[f"{prefix}.weight_ih_l0"] @ value + weights[f"{prefix}.bias_ih_l0"]
        gates = gates + weights[f"{prefix}.weight_hh_l0"] @ state[0] + weights[f"{prefix}.bias_hh_l0"]
        i, f, g, o = np.split(gates, 4)
        sigmoid = lambda each: 1 / (1 + np.exp(-each))  # noqa: E731
        cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(cell), cell

    state = (np.zeros(16), np.zeros(16))
    for word in (BEGIN, END):
        state = step("encoder.stack", weights["source_embedding.weight"][word], state)
    total, numbers = 0.0, [BEGIN, *model.target.encode(text), END]
    vectors = weights["target_embedding.weight"]
    for before, word in pairwise(numbers):
        state = step("decoder.recurrence.stack", vectors[before], state)
        logits = vectors @ (weights["softmax.projection.weight"] @ state[0]) + weights["softmax.bias"]
        total += logits[word] - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    return float(total)


def test_the_log_probability_equals_the_equations(trained: dict[str, Path], candidates: list[Sentence]) -> None:
    model = load_model(trained["lstm-lm"], find_device("cpu"))
    model.network.double()
    values = score_one_by_one([model], candidates, ["logprob"]).values["logprob"]
    expected = [slow_log_prob(model, text) for each in candidates for text in each.hypotheses]
    np.testing.assert_allclose(values, expected, atol=1e-9)


@pytest.mark.parametrize("kind", [*PRESETS, "subwords"])
def test_shared_prefixes_do_not_change_values(kind: str, trained: dict[str, Path], candidates: list[Sentence]) -> None:
    model = load_model(trained[kind], find_device("cpu"))
    names = ["logprob", "worst3"]
    together, alone = (score([model], candidates, names).values for score in (score_tree, score_one_by_one))
    for name in names:
        np.testing.assert_allclose(together[name], alone[name], atol=1e-4)


@pytest.mark.parametrize("kind", [*PRESETS, "subwords"])
def test_the_source_makes_no_difference(kind: str, trained: dict[str, Path]) -> None:
    model = load_model(trained[kind], find_device("cpu"))
    sentences = [Sentence(number, source, (("a", "man"),)) for number, source in enumerate([(), ("ein",), ("x", "y")])]
    values = score_tree([model], sentences, ["logprob"]).values["logprob"]
    np.testing.assert_allclose(values, values[0], atol=1e-5)


def test_the_source_of_monolingual_text_is_ignored_in_training(
    files: TrainingFiles, trained: dict[str, Path], tmp_path: Path
) -> None:
    empty, mono = tmp_path / "empty", Path(files.corpus.target).with_name("mono.en")
    empty.write_text("\n" * 40)
    for name, source in (("with", mono), ("without", empty)):
        synthetic = ParallelFiles(str(source), str(mono))
        texts = TrainingFiles(files.corpus, files.dev, synthetic)
        train_model(request("lstm-lm"), texts, str(tmp_path / name), "cpu")
    folders = (tmp_path / "with", tmp_path / "without", trained["lstm-lm"])
    one, other, without = (load_model(folder, find_device("cpu")).network.state_dict() for folder in folders)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not torch.equal(one["softmax.bias"], without["softmax.bias"])


def test_an_interrupted_training_continues(
    files: TrainingFiles, trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, calls = loop._finish_epoch, iter(range(1, 99))

    def interrupt_second_epoch(run: Run, measured: dict[str, float]) -> None:
        if next(calls) == 2:
            raise KeyboardInterrupt
        finish(run, measured)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop, "_finish_epoch", interrupt_second_epoch)
        train_model(request("lstm-lm", bpe=150), files, str(tmp_path / "model"), "cpu", resume=True)
    train_model(request("lstm-lm", bpe=150), files, str(tmp_path / "model"), "cpu", resume=True)
    one, other = (load_model(folder, find_device("cpu")) for folder in (tmp_path / "model", trained["subwords"]))
    assert one.digest == other.digest


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lexicon": "bias"}, "a language model has no source for objectives"),
        ({"guided_alignment": 0.5}, "setting 'guided_alignment' needs a decoder with attention to the source"),
    ],
)
@pytest.mark.parametrize("preset", PRESETS)
def test_settings_that_read_the_source_are_errors(preset: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        request(preset, **settings).check("")


def test_attention_values_are_errors() -> None:
    for preset in PRESETS:
        with pytest.raises(InputError, match="a model without attention, which entropy needs"):
            check_values(["entropy"], request(preset).resolve()[0])


@pytest.mark.parametrize("preset", PRESETS)
def test_there_is_no_backward_language_model(preset: str) -> None:
    with pytest.raises(InputError, match="a language model predicts the target language only"):
        TrainingRequest(preset, backward=True).check("")


def test_a_language_model_cannot_translate_or_align(trained: dict[str, Path]) -> None:
    folder = str(trained["transformer-lm"])
    with pytest.raises(InputError, match="transformer-lm: a language model, which does not translate"):
        Translator([folder], Beam(1), Replacement("copy"), Resources("cpu"))
    with pytest.raises(InputError, match="transformer-lm: a model without attention to the source cannot align"):
        Aligner([folder], "cpu")


def test_the_expected_training_time_does_not_depend_on_the_source() -> None:
    dev = (TextSize(10, 100, 50), TextSize(10, 100, 50))
    for preset in PRESETS:
        short, long = (
            training_seconds(TrainingRequest(preset), (TextSize(100, words, 500), TextSize(100, 900, 500)), dev)
            for words in (0, 10_000)
        )
        assert short == long > 0
