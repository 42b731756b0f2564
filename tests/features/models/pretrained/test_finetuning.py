"""Fine-tuning of pretrained models."""

import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from features.feature import Resources, Sentence
from features.models.pretrained import finetuning
from features.models.pretrained.finetuning import fine_tune
from features.models.pretrained.finetuning_run import Settings, parse_settings
from features.models.pretrained.reader import Pretrained
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles

pytest.importorskip("transformers")

Make = Callable[..., Path]
Write = Callable[[str, "str | bytes"], Path]
Warned = Callable[[str], AbstractContextManager[None]]

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
def test_fine_tuning_improves_the_feature(
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
    assert best == pytest.approx(math.exp(-after / words), rel=1e-3)
    assert sorted(path.name for path in (output / "finetuning").iterdir()) == ["metrics.jsonl", "settings.json"]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("lora", [0, 4])
def test_a_killed_training_continues_to_the_same_files(
    make: Make, texts: ParallelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lora: int
) -> None:
    folder = make("opus")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"dropout": 0.1}))
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
    fine_tune(argument, texts, texts, output, settings, "cpu", resume=True)  # the training has already ended


@pytest.mark.parametrize(
    ("changed", "damaged", "message"),
    [
        ({"epochs": 5}, "", r"settings\.json: of another training. The model, the texts or the settings differ"),
        ({}, "settings.json", r"settings\.json: damaged or edited"),
        ({}, "checkpoint.safetensors", r"checkpoint\.safetensors: damaged"),
    ],
)
def test_another_or_damaged_training_cannot_be_resumed(
    make: Make, texts: ParallelFiles, tmp_path: Path, changed: dict[str, Any], damaged: str, message: str
) -> None:
    folder, output = make("opus"), tmp_path / "tuned"
    tuned(folder, "opus", texts, output)
    if damaged:
        (output / "finetuning" / damaged).write_bytes(b"{}")
    with pytest.raises(InputError, match=message):
        fine_tune(f"{folder}[text=tokens]", texts, texts, output, Settings(**FAST | changed), "cpu", resume=True)


def weights(folder: Path) -> Any:
    return safetensors.torch.load_file(folder / "model.safetensors")


def test_accumulated_batches_are_one_batch(make: Make, texts: ParallelFiles, tmp_path: Path) -> None:
    folder, once = make("opus"), {"epochs": 1, "warmup_updates": 0}
    # All 20 pairs at once, or 4 in each of 5 batches.
    one = tuned(folder, "opus", texts, tmp_path / "one", **once, batch_tokens=60)
    five = tuned(folder, "opus", texts, tmp_path / "five", **once, batch_tokens=12, gradient_accumulation=100)
    # The first step of Adam is about 0.01, the learning rate, in the direction of the gradient. A gradient near 0 may
    # have another sign.
    for name, expected in weights(one).items():
        assert ((weights(five)[name] - expected).abs() > 1e-3).float().mean() < 0.02


def test_label_smoothing_affects_training_but_not_reported_losses(
    make: Make, texts: ParallelFiles, tmp_path: Path
) -> None:
    rows = []
    for smoothing in (0.0, 0.5):
        output = tuned(make("opus"), "opus", texts, tmp_path / f"{smoothing}", label_smoothing=smoothing)
        rows.append([json.loads(line) for line in (output / "finetuning/metrics.jsonl").read_text().splitlines()])
    assert rows[0][-1]["dev_perplexity"] < rows[1][-1]["dev_perplexity"] - 0.1
    assert rows[0][0]["train_loss"] == pytest.approx(rows[1][0]["train_loss"], abs=0.5)


def test_training_stops_when_dev_does_not_improve(
    make: Make, write: Write, texts: ParallelFiles, tmp_path: Path
) -> None:
    dev = ParallelFiles(str(write("dev.de", "die\n")), str(write("dev.en", "die die die\n")))
    settings = Settings(**FAST | {"epochs": 50, "learning_rate": 0.05})
    fine_tune(f"{make('opus')}[text=tokens]", texts, dev, tmp_path / "tuned", settings, "cpu")
    rows = [json.loads(line) for line in (tmp_path / "tuned/finetuning/metrics.jsonl").read_text().splitlines()]
    best = min(rows, key=lambda row: float(row["dev_perplexity"]))
    assert best["epoch"] == len(rows) - 2 < 48 and rows.index(best) == max(
        number for number, row in enumerate(rows) if row["best"]
    )


def test_a_model_that_diverges_is_not_written(
    make: Make, texts: ParallelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last update of an epoch sets a weight to NaN after its loss was computed."""
    real = finetuning._update

    def diverging(run: Any, *arguments: Any) -> float:
        loss = real(run, *arguments)
        with torch.no_grad():
            next(iter(run.weights.values())).fill_(torch.nan)
        return loss

    monkeypatch.setattr(finetuning, "_update", diverging)
    with pytest.raises(InputError, match=r"the loss diverged within .* updates\. Try a smaller learning_rate"):
        tuned(make("opus"), "opus", texts, tmp_path / "tuned", epochs=1, batch_tokens=100, warmup_updates=0)
    assert not (tmp_path / "tuned/model.safetensors").exists()


def test_a_network_that_attends_to_later_tokens_is_an_error(make: Make, texts: ParallelFiles, tmp_path: Path) -> None:
    import transformers

    folder = make("llama")
    config = transformers.RobertaConfig(
        vocab_size=300, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        initializer_range=0.5,
    )  # fmt: skip
    (folder / "config.json").unlink()
    transformers.RobertaForCausalLM(config).save_pretrained(folder)
    with pytest.raises(InputError, match="not a causal language model, as tokens depend on later ones"):
        tuned(folder, "opus", texts, tmp_path / "tuned")


def test_a_language_model_with_a_template(make: Make, write: Write, texts: ParallelFiles, tmp_path: Path) -> None:
    options = f"[text=tokens,template={write('template', '{source} = {candidate}')}]"
    folder = make("llama")
    before = value(folder, options)
    fine_tune(f"{folder}{options}", texts, texts, tmp_path / "tuned", Settings(**FAST), "cpu")
    assert value(tmp_path / "tuned", options) > before + 1


def test_the_tokenizer_and_other_files_are_copied(make: Make, texts: ParallelFiles, tmp_path: Path) -> None:
    folder = make("opus")
    (folder / "README.md").write_text("A card.")
    (folder / "pytorch_model.bin").write_bytes(b"old weights")
    output = tuned(folder, "opus", texts, tmp_path / "tuned", epochs=1)
    written = {"config.json", "generation_config.json", "model.safetensors"}
    omitted = {*written, "pytorch_model.bin"}
    copied = {name: content for name, content in bytes_of(folder).items() if name not in omitted}
    assert copied.keys() >= {"README.md", "source.spm", "target.spm", "tokenizer_config.json", "vocab.json"}
    found = bytes_of(output)
    assert {name: content for name, content in found.items() if name in copied} == copied
    assert found.keys() - {".lock"} == copied.keys() | written


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epoch": "3"}, "unknown setting 'epoch'. Did you mean 'epochs'"),
        ({"epochs": "0"}, "setting 'epochs': expected int >= 1, found '0'"),
        ({"epochs": "x"}, "setting 'epochs': expected int, found 'x'"),
        ({"learning_rate": "nan"}, "setting 'learning_rate': expected float .*, found 'nan'"),
        ({"clip_norm": "inf"}, "setting 'clip_norm': expected float .*, found 'inf'"),
    ],
)
def test_wrong_settings_are_errors(setting: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_settings(setting)


def test_settings_are_converted_to_numbers() -> None:
    assert parse_settings({"epochs": "5", "learning_rate": "1e-4"}) == Settings(epochs=5, learning_rate=1e-4)


def test_a_corpus_without_usable_pairs_is_an_error(make: Make, write: Write, tmp_path: Path) -> None:
    folder = make("opus")
    long = " ".join(["the"] * 100)
    empty = ParallelFiles(str(write("a", f"\n{long}\n")), str(write("b", f"the\n{long}\n")))
    with pytest.raises(InputError, match="a: no sentence pair that can be used for training"):
        fine_tune(f"{folder}[text=tokens]", empty, empty, tmp_path / "tuned", Settings(), "cpu")
    assert not (tmp_path / "tuned").exists()


def test_a_block_of_empty_pairs_is_skipped(
    make: Make, texts: ParallelFiles, write: Write, warned: Warned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finetuning, "BLOCK", 1)
    longer = [
        str(write(f"longer.{side}", Path(path).read_text() + "\n"))
        for side, path in (("de", texts.source), ("en", texts.target))
    ]
    folder = f"{make('nllb')}{NAMES['nllb']}"
    with warned("longer.de: 1 of 21 pairs are empty or too long"):
        fine_tune(
            folder, ParallelFiles(*longer), texts, tmp_path / "tuned", Settings(epochs=1, warmup_updates=0), "cpu"
        )
    assert (tmp_path / "tuned" / "config.json").exists()


def test_the_command_finetune(make: Make, texts: ParallelFiles, tmp_path: Path, command: Callable[..., Any]) -> None:
    folder = make("opus")
    words = ["finetune", f"hf:{folder}[text=tokens]", "--source", texts.source, "--target", texts.target]
    words += ["--dev-source", texts.source, "--dev-target", texts.target, "--output", tmp_path / "tuned"]
    status, _, errors = command(*words, "--set", "epochs=2", "learning_rate=0.01")
    assert status == 0 and "perplexity on dev" in errors
    assert command(*words)[2].count("the folder is not empty") == 1
    assert "of another training" in command(*words, "--resume")[2]
    assert "has already ended" in command(*words, "--set", "epochs=2", "learning_rate=0.01", "--resume")[2]
    words[1] = str(folder)
    assert "expected hf:DIR" in command(*words)[2]


def test_a_warmup_longer_than_the_training_gives_a_warning(
    make: Make, texts: ParallelFiles, tmp_path: Path, warned: Warned
) -> None:
    with warned("warmup_updates=1000, but [0-9]+ updates are planned: the learning rate never reaches its maximum"):
        tuned(make("opus"), "opus", texts, tmp_path / "tuned", epochs=1, warmup_updates=1000)
