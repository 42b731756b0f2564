"""The checkpoint from which a training resumes: it is restored, and damage of any kind is an error."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from features.models.config import CHECKPOINT, ModelConfig
from features.models.settings import Architecture, Training
from features.models.tensor_files import _checksum, write_tensors
from features.models.training.checkpoint import Run, random_state, restore
from features.models.training.checkpoint import save as save_run
from features.models.training.preparation import Task, begin_run, resume_run
from features.models.training.ranks import Ranks
from moses_io.files.errors import InputError

PAIRS = [(["das", "Haus"], ["the", "house"]), (["das"], ["the"])] * 2


def begin(folder: Path, direction: str = "forward") -> Run:
    """Begin a training whose checkpoint contains all optional parts."""
    config = ModelConfig(
        "rnnsearch",
        direction,
        Architecture(embedding_size=2, hidden_size=3, attention_size=2),
        Training(average_checkpoints=2),
    )
    run = begin_run(Task([config], PAIRS, PAIRS, folder, torch.device("cpu")), False)
    run.recent = [[dict(run.learners[0].network.state_dict())]]
    for weight in run.parameters:
        weight.grad = torch.ones_like(weight)
    run.optimizer.step()
    save_run(run, folder / CHECKPOINT, [random_state(run.device)])
    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return begin(tmp_path / "model")


def error_of(run: Run, path: Path) -> str:
    with pytest.raises(InputError, match=CHECKPOINT) as caught:
        restore(run, path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_checkpoint_restores_weights_and_progress(run: Run, tmp_path: Path) -> None:
    before = {name: tensor.clone() for name, tensor in run.learners[0].network.state_dict().items()}
    run.optimizer.step()
    run.progress.epoch, run.recent = 7, []
    restore(run, tmp_path / "model" / CHECKPOINT)
    torch.testing.assert_close(run.learners[0].network.state_dict(), before, rtol=0, atol=0)
    assert (run.progress.epoch, len(run.recent)) == (0, 1)


def test_changed_or_missing_bytes_are_errors(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "model" / CHECKPOINT
    content = path.read_bytes()
    for place in [*range(0, len(content), len(content) // 60), *range(8, 80)]:
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert "damaged" in error_of(run, path)
    for size in range(0, len(content), len(content) // 20):
        path.write_bytes(content[:size])
        assert "damaged" in error_of(run, path)


def test_a_file_that_is_not_a_checkpoint_is_an_error(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "model" / CHECKPOINT
    with safe_open(path, "pt") as stream:
        texts = stream.metadata()
    tensors = load_file(path)
    for other in (
        save(tensors),
        save(tensors, {"run": texts["run"]}),
        save(tensors | {"random": torch.zeros(3)}, texts),
        save({name: tensor for name, tensor in tensors.items() if name != "random"}, texts),
        save(tensors, texts | {"run": "[" * 100_000}),
        (10**15).to_bytes(8, "little") + b"{}",
    ):
        path.write_bytes(other)
        assert "damaged" in error_of(run, path)
    path.unlink()
    path.mkdir()
    assert "a folder, expected a plain file" in error_of(run, path)


PROGRESS = '"progress": {"epoch": 0, "updates": 0,'


@pytest.mark.parametrize(
    ("name", "tensor", "words"),
    [
        ("random", torch.zeros(5), None),
        ("random", torch.zeros(5, dtype=torch.uint8), None),
        ("network.0.decoder.bridge.bias", torch.zeros(2), None),
        ("recent.0.0.source_embedding.weight", torch.zeros(1), None),
        ("optimizer.0.exp_avg", torch.zeros(7), None),
        ("optimizer.0.step", None, None),
        ("optimizer.0.exp_avg", None, None),
        ("optimizer.0.step", torch.zeros(5, 2), None),
        ("optimizer.0.exp_avg", torch.zeros(()), None),
        ("optimizer.0.exp_avg", torch.zeros(5, 2, dtype=torch.int32), None),
        ("optimizer.0.other", torch.zeros(5, 2), None),
        ("optimizer.99.step", torch.zeros(()), None),
        ("network.0.source_embedding.weight", torch.zeros(5, 2, dtype=torch.float64), None),
        ("network.1.source_embedding.weight", torch.zeros(5, 2), None),
        ("recent.0.0.source_embedding.weight", torch.zeros(5, 2, dtype=torch.int32), None),
        ("recent.0.0.source_embedding.weight", None, None),
        ("", None, ('"rows": [[]]', '"rows": [{}]')),
        ("", None, ('"rows": [[]]', '"rows": [[1]]')),
        ("", None, ('"processes": 1', '"processes": "one"')),
        ("", None, ('"recent": 1', '"recent": 1000000000000')),
        ("", None, ('"recent": 1', '"recent": true')),
        ("", None, ('"random": [3', '"random": [4')),
        ("", None, ('"random": [3', '"random": [["a"]')),
        ("", None, ('{"progress"', "[" * 100_000 + '{"progress"')),
        ("", None, ('{"progress"', '[{"progress"')),
        ("", None, ('"models": [', '"modules": [')),
        ("", None, (PROGRESS, '"progress": {"epoch": "1", "updates": 0,')),
        ("", None, (PROGRESS, '"progress": {"epoch": 0, "updates": 0.5,')),
        ("", None, (PROGRESS, '"progress": {"epoch": -1, "updates": 0,')),
        ("", None, (PROGRESS, '"progress": {"other": 1, "epoch": 0, "updates": 0,')),
        ("", None, ('"best": Infinity', '"best": null')),
        ("", None, ('"seconds": 0.0', '"seconds": NaN')),
        ("", None, ('"recent": 1', '"recent": 3')),
        ("", None, ('"recent": 1', '"recent": "1"')),
        ("", None, ('"rows": [[]]', '"rows": []')),
    ],
)
def test_wrong_contents_with_a_valid_checksum_are_errors(
    run: Run, tmp_path: Path, name: str, tensor: torch.Tensor | None, words: tuple[str, str] | None
) -> None:
    """The checksum is correct, but a tensor or value is not."""
    path = tmp_path / "model" / CHECKPOINT
    with safe_open(path, "pt") as stream:
        text = stream.metadata()["run"]
    tensors = load_file(path)
    if words:
        assert words[0] in text
        text = text.replace(*words)
    elif tensor is None:
        del tensors[name]
    else:
        tensors[name] = tensor
    path.write_bytes(save(tensors, {"run": text, "sha256": _checksum(text, tensors)}))
    assert "damaged or edited, `moses-rerank` cannot read it" in error_of(run, path)


def test_missing_weights_after_an_epoch_are_an_error(run: Run, tmp_path: Path) -> None:
    """Otherwise, a training that seems complete could leave a folder without a model."""
    run.progress.epoch = 1
    save_run(run, tmp_path / "model" / CHECKPOINT, [random_state(run.device)])
    task = Task([run.learners[0].config], PAIRS, PAIRS, tmp_path / "model", torch.device("cpu"))
    with pytest.raises(InputError, match=r"model: no model\.safetensors, expected after 1 epoch of training"):
        resume_run(task, tmp_path / "model" / CHECKPOINT)


def test_wrong_word_indices_of_a_lexicon_are_an_error(tmp_path: Path) -> None:
    """The network has a lexicon, whose tables contain word indices."""
    architecture = Architecture(embedding_size=2, hidden_size=3, attention_size=2, lexicon="bias")
    config = ModelConfig("rnnsearch", "forward", architecture, Training())
    run = begin_run(Task([config], PAIRS, PAIRS, tmp_path, torch.device("cpu")), False)
    name, table = next(each for each in run.learners[0].network.state_dict().items() if each[1].dtype == torch.int32)
    table.fill_(1000)
    save_run(run, tmp_path / CHECKPOINT, [random_state(run.device)])
    assert f"tensor '{name}' has a value that is not a word index" in error_of(run, tmp_path / CHECKPOINT)


def test_the_command_reports_a_wrong_checkpoint_in_one_line(
    command: Callable[..., tuple[int, bytes, str]], small: Callable[..., Path]
) -> None:
    folder = small(pairs=30, sentences=5)
    train = ["train", "--preset", "rnnsearch", "--source", folder / "train.de", "--target", folder / "train.en"]
    train += ["--dev-source", folder / "dev.de", "--dev-target", folder / "dev.en", "--output", folder / "model"]
    train += ["--device", "cpu", "--set", "embedding_size=4", "hidden_size=4", "attention_size=4", "epochs=1"]
    assert command(*train)[0] == 0
    path = folder / "model" / CHECKPOINT
    path.write_bytes(
        save({"random": torch.zeros(3)}, {"run": "{}", "sha256": _checksum("{}", {"random": torch.zeros(3)})})
    )
    status, out, err = command(*train, "--resume")
    assert (status, out, "Traceback" in err) == (2, b"", False)
    fault = "damaged or edited, `moses-rerank` cannot read it (no 'models')"
    assert f"training.safetensors: {fault}" in err.splitlines()[-1]


def test_a_checkpoint_of_another_training_is_an_error(run: Run, tmp_path: Path) -> None:
    """The networks of both trainings have the same sizes."""
    folder = tmp_path / "model"
    begin(tmp_path / "other", "backward")
    own = (folder / CHECKPOINT).read_bytes()
    shutil.copy(tmp_path / "other" / CHECKPOINT, folder)
    assert "of another training" in error_of(run, folder / CHECKPOINT)
    (folder / CHECKPOINT).write_bytes(own)
    (folder / "source.vocabulary").write_text("Haus\ndas\n")
    assert "of another training" in error_of(run, folder / CHECKPOINT)


def test_each_process_has_its_own_random_state(
    warned: Callable[[str], AbstractContextManager[None]], run: Run, tmp_path: Path
) -> None:
    """A process restores its stored state. Without one, its state is derived from that of the first process."""
    path = tmp_path / "model" / CHECKPOINT

    def numbers(rank: int, size: int) -> list[float]:
        run.ranks = Ranks(rank=rank, size=size)
        restore(run, path)
        return torch.rand(4).tolist()

    first, second, third = (numbers(rank, 3) for rank in range(3))
    assert first != second != third != first and second == numbers(1, 2)
    run.progress.epoch = 1
    torch.manual_seed(7)
    states = [random_state(run.device)]
    expected = [torch.rand(4).tolist()]
    states.append(random_state(run.device))
    expected.append(torch.rand(4).tolist())
    save_run(run, path, states)
    assert [numbers(rank, 2) for rank in range(2)] == expected
    with warned("this training had 2 processes, now 1"):
        assert numbers(0, 1) == expected[0]


def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", fail)
    with pytest.raises(InputError, match=r"checkpoint: cannot be written \(I/O error: No space left on device"):
        write_tensors(tmp_path / "checkpoint", "", {})
    assert list(tmp_path.iterdir()) == []
