"""Models of an earlier run in a new run, as `docs/reference/compatibility.md` describes."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rerank.experiment.corpus import inspect_corpus
from rerank.experiment.file import read_experiment, with_recipe
from rerank.experiment.recipe import MODELS, find_recipe

Command = Callable[..., tuple[int, bytes, str]]

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "compatibility.md"
EXPERIMENT = """\
output = "work"
minutes = 5
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
test = { source = "test.de", nbest = "test.nbest" }

[tuning]
tuner = "kbmira"
iterations = 1
runs = 1
folds = 0

[report]
ablation = false
"""


def test_the_documented_commands_keep_trained_models(
    command: Command, small: Callable[..., Path], models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the earlier run are its experiment file and its model."""
    folder = small(sentences=6, candidates=4)
    monkeypatch.chdir(folder)
    (folder / "experiment.toml").write_text(EXPERIMENT)
    experiment = read_experiment("experiment.toml")
    assert experiment.unplanned is not None
    recipe = find_recipe(inspect_corpus(experiment.train, experiment.dev.texts), {MODELS[0]: 1})
    (folder / "work" / "models").mkdir(parents=True)
    (folder / "work" / "experiment.toml").write_text(with_recipe(experiment.unplanned, recipe).text)
    shutil.copytree(models["forward"], folder / "work" / "models" / MODELS[0])

    block = DOCS.read_text(encoding="utf-8").partition("### Keep trained models")[2].split("```")[1]
    copying, run = block.strip().split("\n")
    subprocess.run(["bash", "-c", copying], check=True)
    status, _, err = command(*run.removeprefix("moses-rerank ").split(" "), "--device", "cpu")
    assert status == 0, err
    stages = json.loads((folder / "work-new" / "stages.json").read_text())
    assert not [name for name in stages if name.startswith("train")] and "score test" in " ".join(stages)
    assert (folder / "work-new" / "test.reranked").read_text(encoding="utf-8").count("\n") == 6
    names = sorted(path.name for path in (folder / "work").iterdir())
    assert names == ["experiment.toml", "kept.toml", "models"]
