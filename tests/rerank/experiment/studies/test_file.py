from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from rerank.experiment.studies.file import read_study


def test_read_a_study_file(study: Path) -> None:
    read = read_study(str(study))
    assert (read.sizes, read.pairs, read.seeds) == ((60, 120), 120, (1, 2))
    assert {name: list(features) for name, features in read.systems.items()} == {
        "both": ["NMT", "Len"],
        "alone": ["NMT"],
    }
    assert list(read.texts) == ["dev", "test"]


def test_the_default_is_one_replicate_with_all_features(study: Path) -> None:
    text = study.read_text()
    before, after = text.index("[study]"), text.index("[models]")
    study.write_text(f"{text[:before]}[study]\n{text[after:]}")
    read = read_study(str(study))
    assert (read.sizes, read.seeds, list(read.systems)) == ((120,), (1,), ["all"])
    assert list(read.systems["all"]) == ["NMT", "Len"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[study]\nsizes", "[studies]\nsizes", "unknown key studies. Did you mean 'study'"),
        ('sizes = [60, "all"]', "sizes = 60", 'study.sizes: expected a list of numbers of pairs, or "all", found 60'),
        ('"all"', "0", 'study.sizes: expected whole numbers from 1, or "all", found 0'),
        ('"all"', "true", "study.sizes: expected whole numbers from 1"),
        ('"all"', "121", r"study.sizes: 121 pairs, but \S+train.de has 120"),
        ('"all"', "60", "study.sizes: 60 pairs twice"),
        ("seeds = 2", "seeds = 0", "study.seeds: expected a number of seeds, or a list of seeds, from 1 to 1000"),
        ("seeds = 2", "seeds = [3, 3]", r"study.seeds: expected seeds that differ, found \[3, 3\]"),
        ("seeds = 2", "seed = 2", "unknown key study.seed. Did you mean 'seeds'"),
        ('alone = ["NMT"]', 'alone = ["NTM"]', "study.systems.alone: no feature 'NTM'. Did you mean 'NMT'"),
        ('alone = ["NMT"]', 'alone = "NMT"', "study.systems.alone: expected a list of labels"),
        ("alone =", "moses =", "study.systems.moses: no system can have this name"),
        ("alone =", "cache =", "study.systems.cache: no system can have this name"),
        ("alone =", '"../x" =', "study.systems: expected names of letters"),
        ("output =", 'trained_models = "x"\noutput =', "trained_models: a study trains its own models"),
    ],
)
def test_wrong_values_are_errors(study: Path, old: str, new: str, message: str) -> None:
    text = study.read_text()
    assert old in text
    study.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=f"^{study}: {message}"):
        read_study(str(study))


def test_a_file_without_the_study_table_is_an_error(study: Path) -> None:
    study.write_text(study.read_text().replace("[study.systems]", "[tuning]").partition("[study]")[0])
    with pytest.raises(InputError, match=r"expected a table \[study\], with sizes and seeds"):
        read_study(str(study))


def test_code_of_another_folder_needs_permission(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study.parent)
    study.write_text(study.read_text().replace('"length:train.de,train.en"', '"command:cat"'))
    assert "Len" in read_study("study.toml").systems["both"]
    (study.parent / "elsewhere").mkdir()
    monkeypatch.chdir(study.parent / "elsewhere")
    with pytest.raises(InputError, match=r"feature 'Len', 'command:cat', runs code .* --allow-code permits it"):
        read_study("../study.toml")
    assert "Len" in read_study("../study.toml", allow_code=True).systems["both"]


def test_a_study_of_models_needs_no_lists(study: Path) -> None:
    study.write_text(
        'output = "work"\ntrain = { source = "train.de", target = "train.en" }\n'
        'dev = { source = "dev.de", reference = "dev.en" }\n[study]\n'
        '[models]\nm = { preset = "rnnsearch" }\n'
    )
    read = read_study(str(study))
    assert (read.systems, list(read.texts)) == ({}, ["dev"])
    study.write_text(study.read_text() + '[study.systems]\nx = ["y"]\n')
    with pytest.raises(InputError, match=r"study.systems: expected \[features\]"):
        read_study(str(study))
