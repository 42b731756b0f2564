import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from features.models.device import find_device
from features.models.folder import load_model, read_config
from features.models.scoring.alone import score_pairs
from moses_io.errors import InputError

CPU = torch.device("cpu")


@pytest.fixture
def folder(models: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(models["forward"], tmp_path / "model"))


def test_a_model_is_one_folder_without_pickles(folder: Path) -> None:
    names = {"config.json", "metrics.jsonl", "model.safetensors", "source.vocabulary", "target.vocabulary"}
    assert {path.name for path in folder.iterdir()} == names
    assert json.loads((folder / "config.json").read_text())["format"] == 2
    assert load_model(folder, CPU).signature.startswith("preset:cohn-align|direction:forward|sha256:")


def test_folders_that_are_no_model(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: not a model folder, it has no config\.json"):
        load_model(Path("nowhere"), CPU)
    config = json.loads((folder / "config.json").read_text())
    for change, message in (
        ("[]", "format None, this version reads format 2"),
        ("{", "cannot be read"),
        (json.dumps(config | {"format": 1}), "format 1, this version reads format 2"),
        (json.dumps(config | {"colour": 2}), "not the settings of a model"),
        (json.dumps(config | {"training": {"rat": 1}}), "unknown setting 'rat'; did you mean 'rate'?"),
        (json.dumps(config | {"architecture": {"hidden": "x"}}), "setting 'hidden': expected a whole number"),
        (json.dumps(config | {"architecture": 3}), "not the settings of a model"),
    ):
        (folder / "config.json").write_text(change)
        with pytest.raises(InputError, match=message):
            load_model(folder, CPU)


def test_a_folder_of_the_first_day_loads_and_scores_as_then() -> None:
    """Trained by version 0.1.0 on these pairs; its own metrics say what it gave on them."""
    folder = Path(__file__).parent / "format2"
    model = load_model(folder, CPU)
    pairs = [((first, "Haus"), (second, "house")) for first, second in (("das", "the"), ("ein", "a"))] * 2
    total = sum(float(scores.log_probs.sum()) for _, scores in score_pairs([model], pairs))
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert math.exp(-total / 12) == pytest.approx(min(row["dev_perplexity"] for row in rows), rel=1e-5)


def test_settings_that_a_folder_of_the_first_day_lacks() -> None:
    """They are what its model was made with, whatever presets have today."""
    architecture = load_model(Path(__file__).parent / "format2", CPU).config.architecture
    assert (architecture.initial, architecture.softmax_bias, architecture.fertility) == ("zero", True, 0)


def test_global_fertility_of_an_older_folder_has_the_size_of_attention() -> None:
    config = read_config(Path(__file__).parents[2] / "expected" / "models" / "forward")
    assert (config.architecture.attention, config.architecture.hidden, config.architecture.fertility) == (10, 12, 10)


@pytest.mark.parametrize("bias", [False, True])
def test_a_folder_with_one_switch_for_both_biases(folder: Path, bias: bool) -> None:
    config = json.loads((folder / "config.json").read_text())
    del config["architecture"]["softmax_bias"]
    config["architecture"]["bias"] = bias
    (folder / "config.json").write_text(json.dumps(config))
    assert read_config(folder).architecture.softmax_bias == bias


def test_weights_that_are_damaged_missing_or_of_another_model(folder: Path, models: dict[str, Path]) -> None:
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    for damaged in (content[: len(content) // 2], b"", (models["backward"] / weights.name).read_bytes()):
        weights.write_bytes(damaged)
        with pytest.raises(InputError, match=r"model\.safetensors: damaged, or of another model"):
            load_model(folder, CPU)
    weights.unlink()
    with pytest.raises(InputError, match=r"no model\.safetensors"):
        load_model(folder, CPU)


def test_scores_do_not_depend_on_order_or_company(models: dict[str, Path]) -> None:
    model = load_model(models["backward"], CPU)
    pairs = [
        (("das", "Haus", "."), ("the", "house", ".")),
        (("das", "Haus", "."), ("the", "zorb")),
        (("ein", "sehr", "langer", "Satz", "über", "nichts", "."), ("a", ".")),
        (("das",), ()),
    ]

    def sums(chosen: list[int]) -> list[float]:
        values = np.zeros(len(chosen))
        for numbers, scores in score_pairs([model], [pairs[n] for n in chosen]):
            values[numbers] = scores.log_probs.sum(dim=1)
        return [float(value) for value in values]

    together = sums([0, 1, 2, 3])
    np.testing.assert_allclose(sums([3, 1, 0, 2]), [together[n] for n in (3, 1, 0, 2)], atol=1e-4)
    for number, value in enumerate(together):
        np.testing.assert_allclose(sums([number]), [value], atol=1e-4)


def test_batches_are_bounded(models: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(models["forward"], CPU)
    pairs = [(("das", "Haus"), ("the",) * (n % 4)) for n in range(20)]
    monkeypatch.setattr("features.models.scoring.alone.BATCH", 8)
    parts = [numbers for numbers, _ in score_pairs([model], pairs)]
    assert [len(part) for part in parts] == [8, 8, 4]
    assert sorted(number for part in parts for number in part) == list(range(20))


def test_devices() -> None:
    assert find_device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="torch sees no GPU here"):
            find_device("cuda")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_gives_the_same_scores(models: dict[str, Path]) -> None:
    pairs = [(("das", "Haus"), ("the", "house")), (("das",), ("the", "old", "house"))]
    (here,), (there,) = (
        [scores.log_probs.cpu() for _, scores in score_pairs([load_model(models["forward"], find_device(name))], pairs)]
        for name in ("cpu", "cuda")
    )
    np.testing.assert_allclose(there, here, atol=1e-4)
