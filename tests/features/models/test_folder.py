import json
import math
import os
import shutil
import subprocess
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save

from features.models import folder as folder_module
from features.models.batches import pad
from features.models.config import read_config
from features.models.device import check_process, find_device
from features.models.folder import load_model, save_weights
from features.models.network.model import EncoderDecoder
from features.models.scoring.pairs import score_pairs
from features.models.settings import RENAMED, Architecture
from moses_io.files.errors import InputError

CPU = torch.device("cpu")
EXPECTED = Path(__file__).parents[2] / "expected" / "models"
PARTS = ["config.json", "model.safetensors", "source.vocabulary", "target.vocabulary"]


@pytest.fixture
def folder(models: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(models["forward"], tmp_path / "model"))


def test_a_model_is_a_folder_without_pickles(folder: Path) -> None:
    names = {"config.json", "metrics.jsonl", "model.safetensors", "source.vocabulary", "target.vocabulary"}
    assert {path.name for path in folder.iterdir()} == names
    assert json.loads((folder / "config.json").read_text())["format"] == 3
    assert load_model(folder, CPU).signature.startswith("preset:cohn-align|direction:forward|sha256:")


@pytest.fixture
def current_format(tmp_path: Path) -> Path:
    """A copy of a small trained model, with its config converted to the current format."""
    folder = Path(shutil.copytree(EXPECTED / "forward", tmp_path / "current_format"))
    (folder / "config.json").write_text(json.dumps(asdict(read_config(folder)), indent=2))
    return folder


def changed(folder: Path, part: str = "", **values: Any) -> None:
    """Change values of a config or of one of its sections."""
    config = json.loads((folder / "config.json").read_text())
    (config[part] if part else config).update(values)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_missing_folder_is_an_error() -> None:
    with pytest.raises(InputError, match=r"nowhere: not a model folder, it has no config\.json"):
        load_model(Path("nowhere"), CPU)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "format None, this version reads formats 2 and 3"),
        ("{", "json:1: not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": ' + "9" * 5000 + "}", "a number of too many digits"),
        ('{"format": 3}', "'preset': found '', expected a name"),
        ('{"format": 3, "preset": "x"}', "'direction': found '', expected forward or backward"),
        (
            '{"format": 3, "preset": "x", "direction": "forward"}',
            "'architecture': found None, expected an object of settings",
        ),
    ],
)
def test_an_invalid_config_is_an_error(current_format: Path, content: str, message: str) -> None:
    (current_format / "config.json").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        load_model(current_format, CPU)
    assert "\n" not in str(caught.value)


# near Python's recursion limit of 1,000, where parsing or a later check fails
@pytest.mark.parametrize("depth", range(700, 1000, 20))
def test_deeply_nested_json_is_an_error(current_format: Path, depth: int) -> None:
    config = (current_format / "config.json").read_text()
    (current_format / "config.json").write_text(
        config.replace('"hidden_size": 12', f'"hidden_size": {"[" * depth}{"]" * depth}')
    )
    with pytest.raises(InputError, match=r"config\.json: "):
        load_model(current_format, CPU)


@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("", {"format": 1}, "format 1, this version reads formats 2 and 3"),
        ("", {"format": 4}, "format 4, this version reads formats 2 and 3"),
        ("", {"colour": 2}, "unknown key 'colour'"),
        ("", {"preset": "a\nb"}, "'preset': found 'a.nb', expected a name"),
        ("", {"direction": "sideways"}, "'direction': found 'sideways', expected forward or backward"),
        ("", {"direction": ["forward"]}, "'direction': found"),
        ("", {"right_to_left": "no"}, "'right_to_left': found 'no', expected true or false"),
        ("", {"partner": "/etc"}, "'partner': found '/etc', expected"),
        ("", {"corpus": 3}, "'corpus': found 3, expected 12 hexadecimal digits"),
        ("", {"architecture": 3}, "'architecture': found 3, expected an object of settings"),
        ("", {"training": {"rat": 1}}, "unknown setting 'rat'"),
        ("architecture", {"hidden_size": "x"}, "setting 'hidden_size': expected a whole number"),
        ("architecture", {"hidden_size": "12"}, "setting 'hidden_size': found '12', expected 12"),
        ("architecture", {"hidden_size": True}, "setting 'hidden_size': expected a whole number"),
        ("architecture", {"decoder_layers": 2**31 - 1}, "setting 'decoder_layers': 2147483647 is out of range"),
        ("architecture", {"reverse_source": 0}, "setting 'reverse_source': unknown value '0'"),
        ("architecture", {"reverse_source": "false"}, "setting 'reverse_source': found 'false', expected False"),
        (
            "architecture",
            {"attention_terms": "position,markov"},
            "setting 'attention_terms': found 'position,markov', expected",
        ),
        ("architecture", {"objectives": 5}, "setting 'objectives': unknown value '5'"),
        ("architecture", {"batch_size": 3}, "setting 'batch_size' is in the wrong section"),
        ("training", {"seed": -1}, "setting 'seed': -1 is out of range"),
        ("training", {"learning_rate": float("nan")}, "setting 'learning_rate': expected a number, found nan"),
        ("training", {"bpe": 100}, "source.bpe: No such file"),
    ],
)
def test_invalid_values_of_a_config_are_errors(
    current_format: Path, part: str, values: dict[str, Any], message: str
) -> None:
    changed(current_format, part, **values)
    with pytest.raises(InputError, match=message) as caught:
        load_model(current_format, CPU)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"\n", b"\r\n", r"source\.vocabulary:1: found '.*\\r', expected one word and LF"),
        (b"\n", b"\n\n", r"source\.vocabulary:2: found '', expected one word"),
        (b"\n", b" x\n", r"source\.vocabulary:1: found '.* x', expected one word"),
        (b".\n", b"<s>\n", r"source\.vocabulary:[0-9]+: found '<s>', expected one word"),
        (b".\n", b"die\n", r"source\.vocabulary:[0-9]+: 'die': the word occurs twice"),
        (
            b".\n",
            b".\nzorb\n",
            r"model\.safetensors: damaged, or of another model \(tensor 'source_embedding\.weight' is",
        ),
    ],
)
def test_an_altered_vocabulary_is_an_error(current_format: Path, old: bytes, new: bytes, message: str) -> None:
    path = current_format / "source.vocabulary"
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(InputError, match=message):
        load_model(current_format, CPU)


def test_a_truncated_vocabulary_is_an_error(current_format: Path) -> None:
    path = current_format / "target.vocabulary"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="cut off, expected a word and a line end"):
        load_model(current_format, CPU)


def test_subwords_in_the_folder_of_a_word_model_are_an_error(current_format: Path) -> None:
    (current_format / "target.bpe").write_bytes(b"")
    with pytest.raises(InputError, match=r"target\.bpe: the model uses whole words"):
        load_model(current_format, CPU)


@pytest.mark.parametrize("name", PARTS)
def test_a_folder_pipe_or_dangling_link_instead_of_a_file_is_an_error(current_format: Path, name: str) -> None:
    path = current_format / name
    path.unlink()
    for make, message in ((path.mkdir, "a folder"), (partial(os.mkfifo, path), "a pipe or a device")):
        make()
        with pytest.raises(InputError, match=rf"{name}: {message}"):
            load_model(current_format, CPU)
        path.rmdir() if path.is_dir() else path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(InputError, match=f"{name}: No such file"):
        load_model(current_format, CPU)


def test_the_digest_covers_all_files(current_format: Path) -> None:
    """The digest equals the output of two `sha256sum` commands. Another order of words gives another digest."""
    found = [load_model(current_format, CPU).digest]
    for script in ("sed -i 's/: 80/: 81/' config.json", "sed -i '1h;1d;2G' target.vocabulary"):
        printed = subprocess.check_output(f"sha256sum {' '.join(PARTS)} | sha256sum", shell=True, cwd=current_format)
        assert found[-1] == printed[:12].decode()
        subprocess.run(script, shell=True, cwd=current_format, check=True)
        found.append(load_model(current_format, CPU).digest)
    assert len(set(found)) == 3


def test_a_model_of_version_0_1_0_gives_the_same_scores() -> None:
    """The model was trained by version 0.1.0 on these pairs. Its metrics contain the perplexity on them."""
    folder = Path(__file__).parent / "format2"
    model = load_model(folder, CPU)
    pairs = [((first, "Haus"), (second, "house")) for first, second in (("das", "the"), ("ein", "a"))] * 2
    total = sum(float(scores.log_probs.sum()) for _, scores in score_pairs([model], pairs))
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert math.exp(-total / 12) == pytest.approx(min(row["dev_perplexity"] for row in rows), rel=1e-5)


def test_settings_of_a_folder_of_format_2_are_converted(current_format: Path) -> None:
    config = json.loads((EXPECTED / "forward" / "config.json").read_text())
    config["architecture"] |= {"wiring": "none", "terms": [], "objectives": []}
    (current_format / "config.json").write_text(json.dumps(config))
    architecture = read_config(current_format).architecture
    assert (config["format"], architecture.decoder, architecture.hidden_size) == (2, "no-attention", 12)


def test_every_old_name_in_a_folder_of_format_2_is_read(current_format: Path) -> None:
    expected = read_config(current_format)
    old = {new: name for name, new in RENAMED.items()}
    config = asdict(expected) | {"format": 2}
    for part in ("architecture", "training"):
        config[part] = {old.get(name, name): value for name, value in config[part].items()}
    (current_format / "config.json").write_text(json.dumps(config))
    assert config["architecture"].keys() | config["training"].keys() >= RENAMED.keys()
    assert read_config(current_format) == expected


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_old_names_in_a_folder_of_format_3_are_errors(current_format: Path, old: str, new: str) -> None:
    config = json.loads((current_format / "config.json").read_text())
    part = "architecture" if new in config["architecture"] else "training"
    changed(current_format, part, **{old: config[part][new]})
    with pytest.raises(InputError, match=rf"unknown setting '{old}'. It is now '{new}'\)$"):
        read_config(current_format)


def test_missing_settings_of_an_old_folder_have_their_former_values() -> None:
    """The values are those that the model was trained with, independent of the current presets."""
    architecture = load_model(Path(__file__).parent / "format2", CPU).config.architecture
    assert (architecture.initial_state, architecture.softmax_bias, architecture.fertility_size) == ("zero", True, 0)


def test_fertility_size_of_an_old_folder_is_the_attention_size() -> None:
    config = read_config(EXPECTED / "forward")
    assert (
        config.architecture.attention_size,
        config.architecture.hidden_size,
        config.architecture.fertility_size,
    ) == (10, 12, 10)


@pytest.mark.parametrize("bias", [False, True])
def test_the_softmax_bias_of_an_old_folder_is_its_setting_bias(folder: Path, bias: bool) -> None:
    config = json.loads((folder / "config.json").read_text())
    del config["architecture"]["softmax_bias"]
    config["architecture"]["bias"] = bias
    (folder / "config.json").write_text(json.dumps(config))
    assert read_config(folder).architecture.softmax_bias == bias


def test_missing_weights_are_an_error(current_format: Path) -> None:
    (current_format / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"no model\.safetensors. The training of this model did not finish"):
        load_model(current_format, CPU)


def other_weights(path: Path) -> dict[str, bytes]:
    """Return wrong contents of the file, keyed by a pattern of the expected error message."""
    content, tensors = path.read_bytes(), load_file(path)
    name = "softmax.bias"
    return {
        "": content[: len(content) // 2],
        "SafetensorError|header|Header": (10**15).to_bytes(8, "little") + content[8:],
        "header|Header": b"",
        "nested|recursion|header": (100_000).to_bytes(8, "little") + b"[" * 100_000,
        "tensor 'decoder": (EXPECTED / "backward" / path.name).read_bytes(),
        f"no tensor '{name}'": save({key: value for key, value in tensors.items() if key != name}),
        "unknown tensor 'x.*n'": save(tensors | {"x\n": tensors[name].clone()}),
        r"is F16 ": save(tensors | {name: tensors[name].half()}),
    }


def test_damaged_weights_or_weights_of_another_model_are_errors(current_format: Path) -> None:
    weights = current_format / "model.safetensors"
    for reason, content in other_weights(weights).items():
        weights.write_bytes(content)
        with pytest.raises(InputError, match=rf"safetensors: damaged, or of another model \(.*({reason})") as caught:
            load_model(current_format, CPU)
        assert "\n" not in str(caught.value)


def test_sizes_are_compared_with_the_weights_before_memory_is_allocated(
    current_format: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = []

    def make(*arguments: Any) -> EncoderDecoder:
        network = EncoderDecoder(*arguments)
        devices.append(network.softmax.weight.device.type)
        return network

    monkeypatch.setattr(folder_module, "EncoderDecoder", make)
    changed(current_format, "architecture", hidden_size=3000, max_positions=2**31 - 1, term_radius=2**31 - 1)
    with pytest.raises(InputError, match=r"tensor 'decoder\..*6000"):
        load_model(current_format, CPU)
    assert devices == ["meta"]


@pytest.mark.parametrize("architecture", ["tied"], indirect=True)
def test_tied_weights_are_saved_once(network: EncoderDecoder, architecture: Architecture, tmp_path: Path) -> None:
    assert network.softmax.weight is network.target_embedding.weight
    save_weights(tmp_path, network.float())
    assert "softmax.weight" not in load_file(tmp_path / "model.safetensors")
    again = folder_module.load_network(tmp_path / "model.safetensors", architecture, 10, 11).eval()
    assert again.softmax.weight is again.target_embedding.weight
    source, target = pad([[4, 5], [6]], CPU), pad([[4], [5, 6, 7]], CPU)
    found, wanted = (each.score(each.encode(source), target).log_probs for each in (again, network))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_weights_replaced_during_loading_are_loaded_again(
    current_format: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, load = current_format / "model.safetensors", folder_module.load_network
    better = save({name: tensor * 2 for name, tensor in load_file(path).items()})

    def replace(*arguments: Any) -> EncoderDecoder:
        network = load(*arguments)
        if path.read_bytes() != better:
            path.with_name("new").write_bytes(better)
            path.with_name("new").rename(path)
        return network

    monkeypatch.setattr(folder_module, "load_network", replace)
    model = load_model(current_format, CPU)
    monkeypatch.undo()
    again = load_model(current_format, CPU)
    assert model.digest == again.digest
    torch.testing.assert_close(model.network.state_dict(), again.network.state_dict(), rtol=0, atol=0)


def test_scores_do_not_depend_on_the_order_or_on_batches(models: dict[str, Path]) -> None:
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
    monkeypatch.setattr("features.models.scoring.pairs.BATCH", 8)
    parts = [numbers for numbers, _ in score_pairs([model], pairs)]
    assert [len(part) for part in parts] == [8, 8, 4]
    assert sorted(number for part in parts for number in part) == list(range(20))


def test_a_gpu_model_in_a_forked_process_is_an_error() -> None:
    check_process(torch.device("cuda"), os.getpid())
    check_process(CPU, os.getppid())
    with pytest.raises(InputError, match=r"cannot be used in a forked process. Use the start method 'spawn'"):
        check_process(torch.device("cuda"), os.getppid())


def test_a_missing_gpu_is_an_error() -> None:
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
