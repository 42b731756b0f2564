"""The command `init` and the experiment file that it writes."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rerank.experiment.checks import check_inputs
from rerank.experiment.entries import NbestFiles
from rerank.experiment.experiment import Experiment
from rerank.experiment.file import read_experiment

Command = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> Path:
    """Working directory, with all input files in the folder `data`."""
    (tmp_path / "data").mkdir()
    for name, content in files.items():
        (tmp_path / "data" / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sets(folder: Path) -> dict[str, NbestFiles]:
    return {
        name: NbestFiles(
            source=f"{folder}/{name}.de", reference=(f"{folder}/{name}.en",), nbest=f"{folder}/{name}.nbest"
        )
        for name in ("dev", "test")
    }


def files_of(experiment: Experiment) -> list[str]:
    """Return all normalized paths that the experiment names."""
    return [os.path.normpath(path) for path in (*experiment.files, *experiment.features["LM"].parts)]


def test_init_writes_an_experiment_file_with_all_inputs(folder: Path, command: Command) -> None:
    status, out, err = command("init", "data")
    assert (status, out) == (0, b"")
    messages = err.splitlines()
    assert "data/dev.nbest: list of dev (n-best list, 120 sentences)" in messages
    assert messages[-1] == "experiment.toml is written. Check it, then run: moses-rerank run experiment.toml"
    experiment = read_experiment("experiment.toml")
    check_inputs(experiment)
    assert experiment.sets == sets(folder / "data")
    assert experiment.output == folder / "work"
    assert experiment.features["LM"].parts == [str(folder / "data/lm.arpa")]
    assert "data/" in Path("experiment.toml").read_text() and str(folder) not in Path("experiment.toml").read_text()


@pytest.mark.parametrize("output", ["inner/e.toml", "data/e.toml", "link/e.toml", "-"])
def test_paths_are_relative_to_the_experiment_file(folder: Path, command: Command, output: str) -> None:
    """This holds also if the folder is a symbolic link. On stdout, paths are relative to the working directory."""
    (folder / "inner" / "most").mkdir(parents=True)
    (folder / "link").symlink_to(folder / "inner" / "most")
    command("init", folder / "data", "--output", "absolute.toml")
    status, out, _ = command("init", "data", "--output", output)
    assert status == 0
    path = Path("stdout.toml" if output == "-" else output)
    if output == "-":
        path.write_bytes(out)
    assert str(folder) not in path.read_text()
    assert files_of(read_experiment(str(path))) == files_of(read_experiment("absolute.toml"))


def test_commented_features_and_test_set_can_be_uncommented(folder: Path, command: Command) -> None:
    """The file stays valid when `#` is removed from the lines of features and of the test set."""
    files = [path for path in (folder / "data").iterdir() if "test" not in path.name]
    assert command("init", *files)[0] == 0
    text = Path("experiment.toml").read_text()
    assert "# Test set, reranked" not in text
    before_test, after_test = text.split("\n\n# No test set was found")
    assert before_test.splitlines()[-1].startswith("dev = ") and "\n\n# Features in addition" in after_test
    commented = [line for line in text.splitlines() if line.startswith("# ") and " = " in line]
    assert len(commented) == 4
    for line in commented:
        text = text.replace(line, line.removeprefix("# "))
    Path("more.toml").write_text(text)
    before, after = read_experiment("experiment.toml"), read_experiment("more.toml")
    assert after.features.keys() - before.features.keys() == {"Posteriors", "Length", "COMET"}
    assert (before.tests, list(after.tests)) == ({}, ["test"])


def test_the_file_has_a_time_budget_and_the_planned_models_as_comments(folder: Path, command: Command) -> None:
    """The file sets `minutes`, and `run` chooses the models."""
    assert command("init", "data")[0] == 0
    text = Path("experiment.toml").read_text()
    assert "\nminutes = 25\n" in text and "[models]" not in text
    assert "\n# planned for 25 min: 5 models, about " in text and "\n# left-to-right: attend-after, " in text
    experiment = read_experiment("experiment.toml")
    assert experiment.unplanned and experiment.unplanned.minutes == 25


def test_several_models_and_test_sets(folder: Path, command: Command) -> None:
    """Omit labels that occur in the dev list, and language models of the source language."""
    (folder / "data" / "lm2.arpa").write_bytes(Path("data/lm.arpa").read_bytes() + b"\n")
    (folder / "data" / "lm3").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
    (folder / "data" / "news.nbest").write_bytes(Path("data/test.nbest").read_bytes())
    for path in ("data/dev.nbest", "data/moses.ini"):
        Path(path).write_bytes(Path(path).read_bytes().replace(b"LM0=", b"LM2="))
    assert command("init", "data")[0] == 0
    experiment = read_experiment("experiment.toml")
    models = {label: each.argument for label, each in experiment.features.items() if each.kind == "kenlm"}
    assert models == {
        "LM1": str(folder / "data/lm.arpa"), "LM3": str(folder / "data/lm2.arpa"), "LM4": str(folder / "data/lm3")
    }  # fmt: skip
    assert list(experiment.tests) == ["news", "test"]
    assert Path("experiment.toml").read_text().count("# Test set, reranked") == 1


def test_without_kenlm_its_feature_is_a_comment(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    assert command("init", "data")[0] == 0
    experiment = read_experiment("experiment.toml")
    check_inputs(experiment)
    assert not [each for each in experiment.features.values() if each.kind == "kenlm"]
    assert "# Omitted: kenlm:data/lm.arpa (feature 'kenlm' needs" in Path("experiment.toml").read_text()


def test_pretrained_models_are_comments(folder: Path, command: Command) -> None:
    """Their time is not in the plan. Models trained by moses-rerank have another kind of configuration."""
    configs = {
        "opus": '{"model_type": "marian"}',
        "own": '{"preset": "rnnsearch"}',
        "x": "no JSON",
        "deep": "[" * 10**5,
    }
    for name, config in configs.items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(config)
    status, _, err = command("init", "data", ".", "opus")
    assert status == 0, err
    assert "opus: pretrained model, in a comment of [features]" in err.splitlines()
    comments = [line for line in Path("experiment.toml").read_text().splitlines() if "hf:" in line]
    assert [line.partition("     #")[0] for line in comments] == ['# HF0 = "hf:opus"']
    assert "opus/config.json" not in err


def test_an_existing_file_is_not_overwritten(folder: Path, command: Command) -> None:
    (folder / "nowhere.toml").symlink_to("nowhere")
    (folder / "old.toml").write_text("old")
    for name in ("nowhere.toml", "old.toml"):
        message = f"moses-rerank init: {name}: already exists. Name another --output\n"
        assert command("init", "data", "--output", name) == (2, b"", message)
    assert (folder / "old.toml").read_text() == "old" and not (folder / "nowhere").exists()


def test_a_missing_output_folder_is_reported_before_inputs_are_read(folder: Path, command: Command) -> None:
    Path("data/dev.nbest").write_bytes(b"0 ||| fault\n")
    assert command("init", "data", "--output", "d2/x/experiment.toml") == (
        2, b"", "moses-rerank init: d2/x: no such folder\n"
    )  # fmt: skip
    assert not (folder / "d2").exists()


@pytest.mark.parametrize(
    ("path", "content", "fault"),
    [
        ("data/moses.ini", b"[weight]\nother= 1\n", "data/moses.ini: no feature of the list has a weight here"),
        ("data/moses.ini", b"[weight]\nLM0= 1 2\n", "data/moses.ini: feature 'LM0' has 1 value in the list and 2"),
        ("data/moses.ini", b"[weight]\nLM0= x\n", "no weights that Moses decoded with (moses.ini)"),
        ("data/dev.nbest", b"0 ||| a ||| L= 1 ||| 0\n0 ||| a |||\n", "data/dev.nbest:2: feature 'L' is missing"),
        ("data/test.nbest", b"0 ||| a |0-0| ||| L= 1 ||| 0\n", "data/test.nbest:1: segmentation marks such as |0-1|"),
        ("data/dev.nbest", b"0 ||| a ||| NMT= 1 ||| 0\n", "data/dev.nbest: expected its source and a reference"),
        ("nowhere/x", None, "nowhere/x: No such file or directory"),
    ],
)
def test_faulty_inputs_are_errors(folder: Path, command: Command, path: str, content: bytes | None, fault: str) -> None:
    if content is not None:
        Path(path).write_bytes(content)
    status, out, err = command("init", "data", path)
    assert (status, out) == (2, b"")
    assert err.splitlines()[-1].startswith(f"moses-rerank init: {fault}")
    assert err.count("moses-rerank init") == 1
    assert sorted(each.name for each in folder.iterdir()) == ["data"]


def test_a_list_that_is_already_scored_is_an_error(folder: Path, command: Command) -> None:
    """`run` cannot add features whose labels exist in the list."""
    Path("data/dev.nbest").write_bytes(Path("data/dev.nbest").read_bytes().replace(b"LM0=", b"NMTltr= 1 LM0="))
    status, _, err = command("init", "data")
    assert status == 2
    assert err.splitlines()[-1].endswith("or choose another label for a new feature")
    assert not Path("experiment.toml").exists()


def test_pipes_and_devices_are_not_used(folder: Path, command: Command) -> None:
    os.mkfifo(folder / "data" / "pipe")
    assert command("init", "data", "/dev/zero")[0] == 0
    (folder / "experiment.toml").unlink()
    messages = command("init", "data/pipe", "data")[2].splitlines()
    assert "data/pipe: not used (a pipe or a device, expected a plain file)" in messages


def test_a_path_that_is_not_utf8_is_an_error(folder: Path, command: Command) -> None:
    os.rename("data/dev.de", b"data/dev\xff.de")
    status, _, err = command("init", "data")
    assert status == 2
    fault = 'experiment.toml: a path that is not UTF-8, as TOML requires: \'dev = { source = "data/dev\\udcff.de"'
    assert err.splitlines()[-1].startswith(f"moses-rerank init: {fault}")
    assert not (folder / "experiment.toml").exists()


def test_special_characters_in_file_names(folder: Path, command: Command) -> None:
    """Cover characters that TOML must escape, and characters with a meaning in feature arguments."""
    names = {"dev.de": 'a "b"\\\n.de', "lm.arpa": "lm [x],y=z: #.arpa", "train.en": "é\x7f\u2028.en"}
    for old, new in names.items():
        os.rename(f"data/{old}", f"data/{new}")
    assert command("init", "data")[0] == 0
    experiment = read_experiment("experiment.toml")
    check_inputs(experiment)
    assert experiment.features["LM"].parts == [f"{folder}/data/{names['lm.arpa']}"]
    assert experiment.dev.source == f"{folder}/data/{names['dev.de']}"


def test_the_word_alignment_of_the_training_corpus_is_found(
    folder: Path, command: Command, files: dict[str, bytes]
) -> None:
    pairs = files["train.en"].count(b"\n")
    for name, lines in (("train.gdfa", [b"0-0"] * pairs), ("also", [b"0-0"] * pairs), ("beyond", [b"0-99"] * pairs)):
        (folder / "data" / name).write_bytes(b"\n".join(lines) + b"\n")
    (folder / "data" / "shorter").write_bytes(b"0-0\n")
    status, _, err = command("init", "data")
    assert status == 0
    assert read_experiment("experiment.toml").train.alignment == str(folder / "data" / "also")
    messages = err.splitlines()
    assert "data/also: word alignment of the training corpus (word alignment)" in messages
    assert any(
        "data/train.gdfa: not used (word alignment; data/also is already the word alignment" in line
        for line in messages
    )
    assert sum("does not fit the training corpus" in line for line in messages) == 2
