import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from moses_io.errors import InputError
from rerank.experiment.corpus import Corpus, Side
from rerank.experiment.file import Experiment, read_experiment
from rerank.experiment.recipe import FEWEST_EPOCHS, MOST_EPOCHS, find_recipe

FILES = """\
output = "work/results"
start = "{sample}/moses.ini"
train = {{ source = "train.de", target = "train.en" }}
dev = {{ source = "{sample}/dev.de", reference = "{sample}/dev.en", nbest = "{sample}/dev.nbest.gz" }}
"""


def corpus(pairs: int, unknown: float = 0.01) -> Corpus:
    side = Side(words=12 * pairs, vocabulary=pairs // 4, unknown=0.01)
    return Corpus(pairs=pairs, source=dataclasses.replace(side, unknown=unknown), target=side)


def epochs_of(pairs: int) -> int:
    (epochs,) = {model["epochs"] for model in find_recipe(corpus(pairs)).models.values()}
    return int(epochs)


def test_the_smaller_the_corpus_the_more_often_it_is_read() -> None:
    epochs = [epochs_of(pairs) for pairs in (10, 5_000, 10_000, 20_000, 30_000, 10**7)]
    assert epochs == sorted(epochs, reverse=True)
    assert (epochs[0], epochs[-1]) == (MOST_EPOCHS, FEWEST_EPOCHS)


def test_many_words_or_many_unknown_ones_make_pieces() -> None:
    assert all("bpe" not in model for model in find_recipe(corpus(9_000)).models.values())
    rich = find_recipe(corpus(9_000, unknown=0.194))
    for recipe in (rich, find_recipe(corpus(100_000))):
        assert all(model["bpe"] > 0 for model in recipe.models.values())
    assert any("19.4 % in the source" in remark for remark in rich.remarks)


@pytest.fixture
def folder(tmp_path: Path, sample: Path) -> Path:
    for side in ("de", "en"):
        shutil.copy(sample / f"train.{side}", tmp_path)
    (tmp_path / "e.toml").write_text(FILES.format(sample=sample))
    return tmp_path


def files(experiment: Experiment) -> list[str]:
    return [os.path.realpath(path) for path in experiment.files]


def test_what_is_written_in_full_is_the_same_experiment(folder: Path) -> None:
    tables = '\n[[test]]\nname = "news"\nsource = "news.de"\nnbest = "news.nbest"\n\n[tuning]\nseed = 7\n'
    (folder / "e.toml").write_text((folder / "e.toml").read_text() + tables)
    experiment = read_experiment(str(folder / "e.toml"))
    assert {each.parts[0] for each in experiment.features.values()} == set(experiment.models) != set()
    experiment.output.mkdir(parents=True)
    (experiment.output / "experiment.toml").write_text(experiment.text)
    again = read_experiment(f"{experiment.output}/experiment.toml")
    assert files(again) == files(experiment)
    assert (again.models, again.tuning, again.output) == (experiment.models, experiment.tuning, experiment.output)
    assert [(each.label, each.kind, each.argument) for each in again.features.values()] == [
        (each.label, each.kind, each.argument) for each in experiment.features.values()
    ]
    assert again.text == ""


def test_whoever_names_a_model_or_a_feature_gets_no_others(folder: Path) -> None:
    text = (folder / "e.toml").read_text()
    for tables, models, features in (
        ("[features]", 0, 0),
        ("[models]", 0, 0),
        ('[features]\nLen = "length"', 0, 1),
        ('[models]\none = { preset = "rnnsearch" }', 1, 0),
    ):
        (folder / "e.toml").write_text(f"{text}\n{tables}\n")
        experiment = read_experiment(str(folder / "e.toml"))
        assert (len(experiment.models), len(experiment.features), experiment.text) == (models, features, "")


def test_a_corpus_that_cannot_be_looked_at(folder: Path) -> None:
    (folder / "train.en").write_text("one line\n")
    with pytest.raises(InputError, match=r"e\.toml: .*train\.en has 1 lines, .*train\.de has 6000"):
        read_experiment(str(folder / "e.toml"))
