"""COMET models in their own Python environment.

The tests create the environment, unless `MOSES_RERANK_COMET_PYTHON` names the Python of an existing one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from features.feature import Resources, Sentence
from features.feature_set import FeatureSet
from features.request import parse_requests
from moses_io.files.errors import InputError

PYTHON = "MOSES_RERANK_COMET_PYTHON"
HERE = Path(__file__).parent
KINDS = ("regression_metric", "referenceless_regression_metric", "unified_metric", "xcomet_metric")
SOURCE = "das Haus ist alt ."
LIST = ["the house is old .", "house is the old .", "the old house , which is old .", "the house is old .", "old"]

Command = Callable[..., tuple[int, bytes, str]]


def installed(folder: Path) -> str:
    """Create an environment with COMET and return its Python. Skip the test if there is no package index.

    The environment uses packages of the current one, such as torch, if COMET does not need another version.
    """
    pinned = (HERE.parents[3] / "constraints.txt").read_text().splitlines()
    (folder / "constraints.txt").write_text("\n".join(line for line in pinned if line.startswith("torch==")))
    subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
    python = folder / "environment/bin/python"
    (packages,) = (folder / "environment/lib").glob("python*/site-packages")
    (packages / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    words = [
        python,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-compile",
        "-c",
        folder / "constraints.txt",
        "unbabel-comet>=2.2.4",
        "setuptools<81",
    ]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        # Messages of pip without a package index. Others, such as a conflict of versions, are failures.
        assert re.search("NewConnectionError|No matching distribution|Could not fetch", result.stderr), result.stderr
        pytest.skip(f"unbabel-comet cannot be installed here: {result.stderr.strip().splitlines()[-1]}")
    return str(python)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder with tiny models, their encoder and the scores of the package."""
    folder = tmp_path_factory.mktemp("comet")
    python = os.environ.get(PYTHON) or installed(folder)
    subprocess.run([python, HERE / "tiny.py", folder / "models"], check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PYTHON, python)
        yield folder / "models"


def values(models: Path, kind: str, *lists: list[str]) -> list[float]:
    request = parse_requests([f"C=comet:{models / kind}[encoder={models / 'encoder'}]"])
    scored = FeatureSet(request, Resources(device="cpu"))
    sentences = [
        Sentence(number, tuple(SOURCE.split()), tuple(tuple(text.split()) for text in each))
        for number, each in enumerate(lists)
    ]
    found: list[float] = scored.score(sentences).columns[0].values[:, 0].tolist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_scores_equal_those_of_the_package(models: Path, kind: str) -> None:
    expected = json.loads((models / "scores.json").read_text())[kind]
    assert len({round(value, 5) for value in expected}) == 4
    others = [["old"], [], LIST, ["", "house"], ["old", "old"]]
    found = values(models, kind, *others)
    assert found[1:6] == pytest.approx(expected, abs=1e-5)
    # A single candidate is its own reference.
    assert [found[0]] * 2 == pytest.approx(found[8:], abs=1e-6)


@pytest.mark.slow
def test_the_candidates_of_a_sentence_are_never_divided(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = json.loads((models / "scores.json").read_text())["regression_metric"]
    monkeypatch.setattr("features.groups.CELLS", 1)
    assert values(models, "regression_metric", LIST) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_the_command_score(models: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "source").write_text(f"{SOURCE}\n{SOURCE}\n")
    lines = [f"{number} ||| {text} ||| LM0= -1 ||| -1\n" for number in range(2) for text in LIST]
    (tmp_path / "nbest").write_text("".join(lines))
    shutil.copytree(models / "unified_metric", tmp_path / "kiwi")
    shutil.copytree(models / "encoder", tmp_path / "kiwi/encoder")
    words = ["score", str(tmp_path / "nbest"), "--source", str(tmp_path / "source")]
    status, output, errors = command(*words, "--feature", f"QE=comet:{tmp_path / 'kiwi'}[de,en]", "--verify", 2)
    expected = json.loads((models / "scores.json").read_text())["unified_metric"]
    found = [float(line.split("QE= ")[1].split()[0]) for line in output.decode().splitlines()]
    assert status == 0, errors
    assert "QE: needs all candidates of a sentence, nothing to verify" in errors
    assert found == pytest.approx(expected * 2, abs=1e-4)


@pytest.mark.slow
def test_a_checkpoint_with_code_is_an_error(models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "unified_metric", tmp_path / "unified_metric")
    shutil.copytree(models / "encoder", tmp_path / "encoder")
    program = "import pathlib, sys, torch; torch.save(pathlib.PurePosixPath('x'), sys.argv[1])"
    path = tmp_path / "unified_metric/checkpoints/model.ckpt"
    subprocess.run([os.environ[PYTHON], "-c", program, path], check=True)
    with pytest.raises(InputError, match=r"feature 'comet:.*: exit status 1 after 0 lines .*could run code"):
        values(tmp_path, "unified_metric", LIST)


@pytest.mark.parametrize(
    ("removed", "python", "options", "message"),
    [
        ("kiwi/hparams.yaml", "python", "", "kiwi: no file hparams.yaml, so not a model of COMET"),
        ("kiwi/checkpoints/model.ckpt", "python", "", "kiwi: no file checkpoints/model.ckpt"),
        ("encoder/config.json", "python", "", "encoder: no file config.json. Expected the folder of the encoder"),
        ("", "", "", f"the variable {PYTHON} is not set"),
        ("", "python", ",form=x", "unknown option 'form'"),
        ("", "python", ",deu,eng", "expected a language of two letters, found 'deu'"),
        ("", "nowhere/python", "", r"feature 'comet:.*/kiwi': cannot be started \(No such file"),
        ("", sys.executable, "", "exit status 1 after 0 lines for 1 candidate"),
    ],
)
def test_missing_files_and_wrong_options_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: str, python: str, options: str, message: str
) -> None:
    for name in ("kiwi/hparams.yaml", "kiwi/checkpoints/model.ckpt", "encoder/config.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    if removed:
        (tmp_path / removed).unlink()
    monkeypatch.setenv(PYTHON, python)
    argument = f"{tmp_path / 'kiwi'}[encoder={tmp_path / 'encoder'}{options}]"
    with pytest.raises(InputError, match=message):
        FeatureSet(parse_requests([f"C=comet:{argument}"]), Resources(device="cpu")).score(
            [Sentence(0, ("a",), (("b",),))]
        )
