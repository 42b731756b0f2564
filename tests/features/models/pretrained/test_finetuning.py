"""Fine-tuning of pretrained models."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from features.feature import Resources, Sentence
from features.models.pretrained import finetuning
from features.models.pretrained.finetuning import Settings, fine_tune, parse_settings
from features.models.pretrained.reader import Pretrained
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles

pytest.importorskip("transformers")

Make = Callable[..., Path]
Write = Callable[[str, "str | bytes"], Path]

SOURCES = ["die Zeitung", "die die", "Zeitung", "Zeitung die"]
TARGETS = ["the newspaper", "the the", "newspaper", "newspaper the"]
FAST = {"epochs": 4, "learning_rate": 0.01, "batch_tokens": 20, "warmup_updates": 2, "label_smoothing": 0.0}
NAMES = {"nllb": "[de,en,text=tokens]", "opus": "[text=tokens]", "llama": "[text=tokens]", "t5": "[de,en,text=tokens]"}


@pytest.fixture
def texts(write: Write) -> ParallelFiles:
    sides = {"de": SOURCES * 5, "en": TARGETS * 5}
    paths = {side: str(write(f"corpus.{side}", "\n".join(lines) + "\n")) for side, lines in sides.items()}
    return ParallelFiles(paths["de"], paths["en"])


def value(folder: Path, options: str) -> float:
    """Return the log-probability of the corpus by feature `hf`."""
    sentences = [
        Sentence(number, tuple(source.split()), (tuple(target.split()),))
        for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True))
    ]
    model = Pretrained((f"{folder}{options}",), Resources("cpu"))
    return float(model.read(sentences, ["logprob"]).values["logprob"].sum())


def tuned(folder: Path, style: str, texts: ParallelFiles, output: Path, **settings: Any) -> Path:
    fine_tune(f"{folder}{NAMES[style]}", texts, texts, output, Settings(**FAST | settings), "cpu")
    return output


@pytest.mark.parametrize("lora", [0, 4])
@pytest.mark.parametrize("style", NAMES)
def test_the_new_folder_is_a_better_feature(
    make: Make, texts: ParallelFiles, tmp_path: Path, style: str, lora: int
) -> None:
    folder = make(style)
    before = value(folder, NAMES[style])
    output = tuned(folder, style, texts, tmp_path / "tuned", lora_rank=lora)
    rows = [json.loads(line) for line in (output / "finetuning/metrics.jsonl").read_text().splitlines()]
    after = value(output, NAMES[style])
    assert after > before + 1
    best = min(row["dev_perplexity"] for row in rows)
    words = sum(len(text.split()) + 1 for text in TARGETS)
    assert best == pytest.approx(2.718281828 ** (-after / words), rel=1e-3)
    assert sorted(path.name for path in (output / "finetuning").iterdir()) == ["metrics.jsonl"]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("lora", [0, 4])
def test_a_killed_training_continues_with_the_same_bytes(
    make: Make, texts: ParallelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lora: int
) -> None:
    folder = make("opus")
    whole = bytes_of(tuned(folder, "opus", texts, tmp_path / "whole", lora_rank=lora))
    argument, settings, output = f"{folder}{NAMES['opus']}", Settings(**FAST, lora_rank=lora), tmp_path / "killed"
    real = {name: getattr(finetuning, name) for name in ("_finish_epoch", "_write_folder")}
    calls = {"_finish_epoch": 0, "_write_folder": 0}

    def killed(name: str, after: int) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            calls[name] += 1
            if calls[name] == after:
                raise KeyboardInterrupt
            real[name](*arguments)

        return call

    for name, after in (("_finish_epoch", 1), ("_finish_epoch", 3), ("_write_folder", 1)):
        calls[name] = 0
        monkeypatch.setattr(finetuning, name, killed(name, after))
        with pytest.raises(KeyboardInterrupt):
            fine_tune(argument, texts, texts, output, settings, "cpu", resume=True)
        monkeypatch.setattr(finetuning, name, real[name])
    fine_tune(argument, texts, texts, output, settings, "cpu", resume=True)
    assert bytes_of(output) == whole
    fine_tune(argument, texts, texts, output, settings, "cpu", resume=True)  # it has ended


def test_a_checkpoint_of_another_training(make: Make, texts: ParallelFiles, tmp_path: Path) -> None:
    folder, output = make("opus"), tmp_path / "tuned"
    tuned(folder, "opus", texts, output)
    (output / "finetuning/checkpoint.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"checkpoint\.safetensors: damaged"):
        fine_tune(f"{folder}[text=tokens]", texts, texts, output, Settings(), "cpu", resume=True)


def test_the_tokenizer_and_other_files_are_copied(make: Make, texts: ParallelFiles, tmp_path: Path) -> None:
    folder = make("opus")
    (folder / "README.md").write_text("A card.")
    (folder / "pytorch_model.bin").write_bytes(b"old weights")
    output = tuned(folder, "opus", texts, tmp_path / "tuned", epochs=1)
    assert {path.name for path in output.iterdir() if path.is_file()} - {".lock"} >= {"README.md", "config.json"}
    assert not (output / "pytorch_model.bin").exists()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epoch": "3"}, "unknown setting 'epoch'. Did you mean 'epochs'"),
        ({"epochs": "0"}, "--set: .*>= 1.* `\\$.epochs`"),
        ({"epochs": "x"}, "--set: .*epochs"),
        ({"learning_rate": "nan"}, "--set: .*learning_rate"),
    ],
)
def test_wrong_settings(setting: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_settings(setting)


def test_settings_are_numbers() -> None:
    assert parse_settings({"epochs": "5", "learning_rate": "1e-4"}) == Settings(epochs=5, learning_rate=1e-4)


def test_pairs_that_cannot_be_used(make: Make, write: Write, tmp_path: Path) -> None:
    folder = make("opus")
    long = " ".join(["the"] * 100)
    empty = ParallelFiles(str(write("a", f"\n{long}\n")), str(write("b", f"the\n{long}\n")))
    with pytest.raises(InputError, match="a: no sentence pair that can be used for training"):
        fine_tune(f"{folder}[text=tokens]", empty, empty, tmp_path / "tuned", Settings(), "cpu")
    assert not (tmp_path / "tuned").exists()
    shutil.rmtree(folder)


def test_the_command(make: Make, texts: ParallelFiles, tmp_path: Path, command: Callable[..., Any]) -> None:
    folder = make("opus")
    words = ["finetune", f"hf:{folder}[text=tokens]", "--source", texts.source, "--target", texts.target]
    words += ["--dev-source", texts.source, "--dev-target", texts.target, "--output", tmp_path / "tuned"]
    status, _, errors = command(*words, "--set", "epochs=2", "learning_rate=0.01")
    assert status == 0 and "perplexity on dev" in errors
    assert command(*words)[2].count("the folder is not empty") == 1
    assert "has already ended" in command(*words, "--resume")[2]
    words[1] = str(folder)
    assert "expected hf:DIR" in command(*words)[2]
