"""Experiments with pretrained models, as features and as a source of candidates."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from rerank.experiment.file import read_experiment

pytest.importorskip("transformers")

Make = Callable[..., Path]
Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

SENTENCES = 12
GOOD = "the newspaper the newspaper the"
LIST = "".join(
    f"{number} ||| {text} ||| L= {value} ||| {value}\n"
    for number in range(SENTENCES)
    for text, value in ((GOOD, 1 + number % 2), ("newspaper the the newspaper the", 2 - number % 2), ("the", 0.5))
)


@pytest.fixture
def folder(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with lists of two words and an experiment file without pretrained models."""
    for name in ("dev", "test"):
        write(f"{name}.nbest", LIST)
        write(f"{name}.de", "die Zeitung\n" * SENTENCES)
        write(f"{name}.en", f"{GOOD}\n" * SENTENCES)
    write("moses.ini", "[weight]\nL= 1\n")
    files = '{{ source = "{0}.de", reference = "{0}.en", nbest = "{0}.nbest" }}'
    lines = [
        'output = "work"', 'initial_weights = "moses.ini"', 'train = { source = "dev.de", target = "dev.en" }',
        *(f"{name} = {files.format(name)}" for name in ("dev", "test")), "[report]", "ablation = false", "",
    ]  # fmt: skip
    write("e.toml", "\n".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def extend(text: str) -> None:
    path = Path("e.toml")
    path.write_text(path.read_text() + text)


def test_translations_are_merged_with_the_lists(make: Make, command: Command, folder: Path) -> None:
    """The reranker has a copy of the model and adds its translations to new lists."""
    model = make("marian")
    extend('[pretrained]\nOpus = { model = "hf:marian[en,de]", candidates = 3 }\n[features]\nHF = "hf:marian[en,de]"\n')
    status, _, err = command("run", "e.toml")
    assert status == 0, err
    assert (
        f"{model}: translations are tokenized as lower+escaped, which 100% of the lines of {folder / 'dev.en'}" in err
    )
    translated = command("translate", "hf:marian[en,de]", "--source", "test.de", "--like", "dev.en", "--beam", 3)[1]
    assert Path("work/test.translations.Opus").read_bytes() == translated
    manifest = json.loads(Path("work/reranker/reranker.json").read_bytes())
    assert manifest["candidates"] == {"Opus": "3:hf:models/marian[en,de,form=lower+escaped]"}
    model.rename(folder / "moved")
    status, out, err = command("apply", "work/reranker", "test.nbest", "--source", "test.de")
    assert (status, out) == (0, Path("work/test.reranked").read_bytes()), err
    rows = [line.split(" ||| ") for line in command("run", "e.toml")[2].splitlines()]
    assert rows[-1] == [f"moses-rerank run: pretrained.Opus: no folder {str(model)!r}"]


def test_planned_and_pretrained_models_are_combined(make: Make, folder: Path) -> None:
    """The complete experiment file of a plan contains the table, with paths relative to its own folder."""
    from rerank.experiment.plan import with_all_models

    make("marian")
    path = Path("e.toml")
    path.write_text("minutes = 10\n" + path.read_text())
    extend('[pretrained]\nOpus = { model = "hf:marian[en,de]", candidates = 3 }\n')
    experiment = with_all_models(read_experiment("e.toml"))
    assert 'Opus = { model = "hf:../marian[en,de,form=lower+escaped]", candidates = 3 }' in experiment.text
    assert [each.name for each in experiment.candidates][-1] == "Opus"
    assert "Opus" not in [each.name for each in experiment.own_candidates]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("3", "pretrained.Opus: expected a table, found 3"),
        ('{ model = "marian" }', "pretrained.Opus.model: expected a folder as in hf:DIR, found 'marian'"),
        ('{ model = "hf:marian" }', "pretrained.Opus: candidates: expected a whole number from 1 to 10000, found None"),
        ('{ model = "hf:marian", candidates = 1, x = 1 }', "unknown key pretrained.Opus.x. Known: model, candidates"),
        ('{ model = "hf:marian[x=1]", candidates = 1 }', "pretrained.Opus: FOLDER/marian: unknown option 'x'. Known: "),
    ],
)
def test_wrong_entries_are_errors(make: Make, folder: Path, entry: str, message: str) -> None:
    make("marian")
    extend(f"[pretrained]\nOpus = {entry}\n")
    with pytest.raises(InputError) as caught:
        read_experiment("e.toml")
    assert str(caught.value).startswith(f"e.toml: {message.replace('FOLDER', str(folder))}")
