"""Values of the features `neural` and `ensemble`, against direct computations with the networks."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from features.arrays import Array
from features.feature import Need, Resources, Sentence
from features.feature_set import FeatureSet
from features.kinds.neural import Neural
from features.models.batches import pad
from features.models.config import ModelConfig
from features.models.folder import Model, load_model
from features.models.presets import find_preset
from features.models.scoring.pairs import score_pairs
from features.models.settings import Architecture, Training
from features.models.training.loop import train
from features.models.training.preparation import Task
from features.request import parse_requests
from moses_io.files.errors import InputError
from moses_io.hypothesis import parse_line

CPU = torch.device("cpu")
SOURCE = ("das", "neue", "Haus")
SENTENCE = Sentence(0, SOURCE, (("the", "new", "house"), ("the", "newest", "house", "house"), ()))
TEXT = [
    (["das", "neue", "Haus"], ["the", "new", "house"]),
    (["die", "neueren", "Häuser"], ["the", "newer", "houses"]),
] * 8


def make(folder: Path, direction: str = "forward", right_to_left: bool = False, **settings: int) -> Path:
    architecture = Architecture(embedding_size=6, hidden_size=8, attention_size=6)
    training = Training(**{"epochs": 1, "learning_rate": 0.01, "batch_size": 4} | settings)  # type: ignore[arg-type]
    pairs = TEXT if direction == "forward" else [pair[::-1] for pair in TEXT]
    config = ModelConfig("rnnsearch", direction, architecture, training, right_to_left)
    train(Task([config], pairs, pairs, folder, CPU))
    return folder


def load(text: str, precision: str = "fp32") -> FeatureSet:
    return FeatureSet(parse_requests([f"X={text}"]), Resources("cpu", precision))


def values_of(text: str, sentences: Sequence[Sentence] = (SENTENCE,)) -> Array:
    return load(text).score(sentences).columns[0].values


def log_probs(folder: Path, target: list[int]) -> torch.Tensor:
    """Return the log-probabilities (J,) of a target, given as word ids in the order of the model."""
    model = load_model(folder, CPU)
    encoded = model.network.encode(pad([model.source.encode(SOURCE)], CPU))
    return model.network.score(encoded, pad([target], CPU)).log_probs[0]


def test_an_ensemble_averages_the_distributions_of_each_word(tmp_path: Path) -> None:
    folders = [make(tmp_path / f"{seed}", seed=seed, epochs=seed) for seed in (1, 2, 3)]
    values = values_of(f"ensemble:{','.join(map(str, folders))}")
    for row, hypothesis in enumerate(SENTENCE.hypotheses):
        target = load_model(folders[0], CPU).target.encode(hypothesis)
        probabilities = [log_probs(folder, target).exp() for folder in folders]
        wanted = sum(math.log(float(sum(at)) / 3) for at in zip(*probabilities, strict=True))
        assert values[row, 0] == pytest.approx(wanted, abs=1e-5)
    twice = values_of(f"ensemble:{folders[0]},{folders[0]}")
    np.testing.assert_allclose(twice, values_of(f"neural:{folders[0]}"), atol=1e-5)


@pytest.mark.parametrize(("direction", "lengths"), [("forward", [4, 5, 1]), ("backward", [4, 4, 4])])
def test_per_word_divides_the_log_probability_by_the_length(direction: str, lengths: list[int], tmp_path: Path) -> None:
    folder = make(tmp_path / "model", direction)
    values = values_of(f"neural:{folder}[logprob,per_word]")
    np.testing.assert_allclose(values[:, 1], values[:, 0] / lengths)


def test_added_is_the_log_probability_of_candidates_not_in_the_first_list(tmp_path: Path) -> None:
    """The first indicator feature of a line decides, whatever its name after `From` is."""
    rows = (b"L= 1 FromA= 1 FromB= 1", b"L= 1 FromA= 0 FromB= 1", b"L= 1 FromA= 1 FromB= 0")
    texts = zip(SENTENCE.hypotheses, rows, strict=True)
    lines = [b"0 ||| %s ||| %s ||| 0\n" % (" ".join(words).encode(), row) for words, row in texts]
    folder, parsed = make(tmp_path / "model"), tuple(map(parse_line, lines, (1, 2, 3)))
    values = values_of(f"neural:{folder}[added,logprob]", [replace(SENTENCE, lines=parsed)])
    assert (values[:, 0] == values[:, 1] * [0, 1, 0]).all() and values[1, 0] < 0
    assert (values[:, 1:] == values_of(f"neural:{folder}")).all()
    ensemble = values_of(f"ensemble:{folder},{folder}[added]", [replace(SENTENCE, lines=parsed)])
    np.testing.assert_allclose(ensemble, values[:, :1], atol=1e-5)
    again = tuple(parse_line(b"0 ||| x ||| FromA= 1 FromMoses= %d ||| 0\n" % moses, 1) for moses in (1, 0, 0))
    joined_twice = values_of(f"neural:{folder}[added]", [replace(SENTENCE, lines=again)])
    assert (joined_twice[:, 0] == values[:, 1] * [0, 1, 1]).all()
    unmarked = parse_line(b"0 ||| x ||| Fromage= 0.5 ||| 0\n", 7)
    with pytest.raises(InputError, match=r"^list:7: value 'added' of a model: no feature From… of 0 or 1 here. It is"):
        values_of(f"neural:{folder}[added]", [replace(SENTENCE, lines=(unmarked,) * 3, path="list")])


@pytest.mark.usefixtures("progress")
def test_incompatible_models_in_an_ensemble_are_errors(tmp_path: Path) -> None:
    first = make(tmp_path / "first")
    for other, reason in (
        (make(tmp_path / "back", "backward"), "another direction"),
        (make(tmp_path / "right", right_to_left=True), "another order of words"),
        (make(tmp_path / "words", min_frequency=9), "another target vocabulary"),
    ):
        with pytest.raises(
            InputError, match=f"{other.name}: {reason} than .*first. Use one feature 'neural' per model"
        ):
            load(f"ensemble:{first},{other}")
    with pytest.raises(InputError, match="expected several models, separated by commas"):
        load(f"ensemble:{first}")


@pytest.mark.parametrize("right_to_left", [False, True])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_value_is_the_score_of_the_network(tmp_path: Path, direction: str, right_to_left: bool) -> None:
    """A backward model predicts the source from the candidate, a right-to-left model begins with the last word."""
    folder = make(tmp_path / "model", direction, right_to_left=right_to_left)
    model = load_model(folder, CPU)
    assert ("|order:right-to-left|" in model.signature) == right_to_left
    sides = (SOURCE, SENTENCE.hypotheses[0])
    source, target = sides if direction == "forward" else sides[::-1]
    encoded = model.network.encode(pad([model.source.encode(source)], CPU))
    words = model.target.encode(target)[:: -1 if right_to_left else 1]
    scores = model.network.score(encoded, pad([words], CPU))
    assert scores.log_probs.shape == (1, len(target) + 1)
    assert values_of(f"neural:{folder}")[0, 0] == pytest.approx(float(scores.log_probs.sum()), abs=1e-5)


@pytest.mark.parametrize("right_to_left", [False, True])
def test_the_log_probability_is_the_sum_over_all_subwords(tmp_path: Path, right_to_left: bool) -> None:
    folder = make(tmp_path / "model", bpe=30, right_to_left=right_to_left)
    numbers = load_model(folder, CPU).target.encode(SENTENCE.hypotheses[1])
    assert len(numbers) > len(SENTENCE.hypotheses[1])
    total = log_probs(folder, numbers[::-1] if right_to_left else numbers).sum()
    assert values_of(f"neural:{folder}")[1, 0] == pytest.approx(float(total), abs=1e-5)


def test_perplexity_is_per_word_not_per_subword(tmp_path: Path) -> None:
    import json

    folder = make(tmp_path / "model", bpe=30)
    (row,) = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    pairs = [(tuple(source), tuple(target)) for source, target in TEXT]
    total = sum(float(scores.log_probs.sum()) for _, scores in score_pairs([load_model(folder, CPU)], pairs))
    words = sum(len(target) + 1 for _, target in pairs)
    assert row["dev_perplexity"] == pytest.approx(math.exp(-total / words), rel=1e-5)


def test_values_are_selected_by_names_in_brackets(tmp_path: Path) -> None:
    folder = make(tmp_path / "model")
    values = values_of(f"neural:{folder}[unknown,logprob,known]")
    assert values.shape == (3, 3)
    assert values[:, 0].tolist() == [0, 1, 0]
    np.testing.assert_allclose(values[:, 1:2], values_of(f"neural:{folder}"), atol=1e-6)
    assert values[1, 2] > values[1, 1] and values[0, 2] == values[0, 1]
    for wrong in ("logprobs", "logprob,", ""):
        with pytest.raises(InputError, match=r"unknown value .*Did you mean|unknown value ''"):
            load(f"neural:{folder}[{wrong}]")


def test_a_class_can_extend_a_feature() -> None:
    class Extended(Neural):
        """A subclass that is not in the table of features."""

    assert Extended.needs("a,b[worst]") == [Need(("a,b",), ("worst",))]


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_lower_precision_gives_close_values_and_is_in_the_signature(tmp_path: Path, direction: str) -> None:
    folder = str(make(tmp_path / "model", direction))
    exact, lowered = load(f"neural:{folder}"), load(f"neural:{folder}", "bf16")
    assert lowered.signatures["X"] == exact.signatures["X"] + "|precision:bf16"
    exact_values, lowered_values = (each.score([SENTENCE]).columns[0].values for each in (exact, lowered))
    assert 0 < np.abs(exact_values - lowered_values).max() < 0.1
    np.testing.assert_allclose(lowered.score_separately("X", SENTENCE), exact_values, atol=1e-5)


@pytest.mark.usefixtures("progress")
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA"), RuntimeError("you can't allocate memory: 9 bytes")])
def test_out_of_memory_halves_the_batch(
    tmp_path: Path,
    direction: str,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import features.reader

    feature = load(f"neural:{make(tmp_path / 'model', direction)}")
    sentences = [SENTENCE, replace(SENTENCE, source=("die",)), SENTENCE]
    whole, limit = feature.score(sentences).columns[0].values, [4]
    name = "score_tree" if direction == "forward" else "score_one_by_one"
    score = getattr(features.reader, name)

    def scarce(models: list[Model], held: Sequence[Sentence], *needs: Any, **options: Any) -> Any:
        if sum(len(each.hypotheses) for each in held) > limit[0]:
            raise error
        return score(models, held, *needs, **options)

    monkeypatch.setattr(features.reader, name, scarce)
    for limit[0] in (4, 1):
        np.testing.assert_allclose(feature.score(sentences).columns[0].values, whole, atol=1e-5)
        assert "warning: out of memory, 9 candidates are scored in two parts" in capsys.readouterr().err
    limit[0] = 0
    with pytest.raises(InputError, match="out of memory for a single candidate of 3 words"):
        feature.score([replace(SENTENCE, hypotheses=SENTENCE.hypotheses[:1])])


def test_attention_values_of_a_model_without_attention_are_errors(tmp_path: Path) -> None:
    architecture = replace(find_preset("encdec").architecture, embedding_size=6, hidden_size=8)
    config = ModelConfig("encdec", "forward", architecture, Training(epochs=1))
    train(Task([config], TEXT, TEXT, tmp_path / "model", CPU))
    with pytest.raises(InputError, match="model: a model without attention, which entropy, coverage needs"):
        load(f"neural:{tmp_path / 'model'}[logprob,entropy,coverage]")


def test_other_errors_are_not_treated_as_out_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import features.reader

    def broken(*_: object) -> None:
        raise RuntimeError("shapes do not fit")

    feature = load(f"neural:{make(tmp_path / 'model')}")
    monkeypatch.setattr(features.reader, "score_tree", broken)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        feature.score([SENTENCE])
