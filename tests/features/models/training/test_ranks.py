"""Training with torchrun: two processes train the same model as one process."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from features.models.config import CHECKPOINT, FOLD_WEIGHTS, METRICS, RECORD, WEIGHTS
from features.models.training.ranks import Ranks, join_processes
from features.models.training.request import TrainingFiles, TrainingRequest, train_model
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles
from rerank.cli import main

SMALL = {
    "embedding_size": 8,
    "hidden_size": 8,
    "attention_size": 8,
    "min_frequency": 1,
    "dropout": 0.0,
    "epochs": 3,
    "learning_rate": 0.01,
}
LINKS = "links"
SAME: dict[str, tuple[str, dict[str, Any], str]] = {
    "rnnsearch": (
        "rnnsearch",
        SMALL | {"batch_size": 12, "gradient_accumulation": 2, "average_checkpoints": 2, "objectives": ["fertility"]},
        "",
    ),
    "cohn-align": (
        "cohn-align",
        SMALL | {"optimizer": "sgd", "learning_rate": 0.2, "guided_alignment": 1.0, "patience": 1},
        LINKS,
    ),
    "pair": ("cohn-align-sym", SMALL | {"batch_size": 15, "init_range": 0.3}, ""),
    "transformer": (
        "transformer",
        SMALL
        | {
            "batch_tokens": 60,
            "attention_heads": 2,
            "bpe": 30,
            "bpe_dropout": 0.3,
            "optimizer": "sgd",
            "learning_rate": 0.2,
        },
        "",
    ),
}
"""Trainings without dropout. Their only random numbers are those of BPE dropout, which are equal in all processes.

The last batches have fewer pairs than there are processes.

The transformer does not use Adam. The gradients of the bias of keys are 0 except for rounding errors, and Adam would
scale them to full steps.
"""
RECIPE = SMALL | {
    "tied_softmax": True,
    "dropout": 0.2,
    "word_dropout": 0.1,
    "r_drop": 1.0,
    "warmup_updates": 9,
    "average_checkpoints": 2,
    "epochs": 9,
    "fine_tuning_epochs": 1,
}
"""Settings with dropout, for which each process has its own random state."""
TIMES = {"seconds", "tokens_per_second"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts and the models that two processes trained on them."""
    folder, rng = tmp_path_factory.mktemp("two"), random.Random(1)
    for name, pairs in (("", 61), ("dev.", 90)):
        sources = [[rng.choice("abcdef") for _ in range(rng.randint(1, 5))] for _ in range(pairs)]
        (folder / f"{name}source").write_text("".join(" ".join(words) + "\n" for words in sources))
        (folder / f"{name}target").write_text("".join(" ".join(words).upper() + "\n" for words in sources))
        links = (" ".join(f"{place}-{place}" for place in range(len(words))) for words in sources)
        (folder / f"{name}links").write_text("".join(f"{line}\n" for line in links))
    trainings = {name: (*rest, links and str(folder / links)) for name, (*rest, links) in SAME.items()}
    (folder / "trainings.json").write_text(json.dumps(trainings | {"recipe": ("rnnsearch", RECIPE, "")}))
    ended = launch(str(Path(__file__).with_name("one_of_two.py")), "trainings", str(folder))
    assert ended.returncode == 0, ended.stderr
    return folder


def torchrun(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments]


def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(torchrun(*arguments), env=one_thread, capture_output=True, text=True, timeout=300)


def train_arguments(folder: Path, output: str, settings: dict[str, Any]) -> list[str]:
    texts = [("source", "source"), ("target", "target"), ("dev-source", "dev.source"), ("dev-target", "dev.target")]
    files = [word for option, name in texts for word in (f"--{option}", str(folder / name))]
    values = [f"{name}={value}" for name, value in settings.items()]
    return ["train", "--preset", "rnnsearch", *files, "--device", "cpu", "--output", output, "--set", *values]


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]


def faults(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("moses-rerank")]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAME)
def test_two_processes_train_the_same_model_as_one(folder: Path, tmp_path: Path, name: str) -> None:
    preset, settings, links = SAME[name]
    request = TrainingRequest(preset, settings=settings)
    files = TrainingFiles(
        corpus=ParallelFiles(
            str(folder / "source"), str(folder / "target"), alignment=str(folder / links) if links else ""
        ),
        dev=ParallelFiles(str(folder / "dev.source"), str(folder / "dev.target")),
    )
    train_model(request, files, str(tmp_path), "cpu")
    for model in request.folders:
        alone, together = tmp_path / model, folder / name / model
        assert sorted(path.name for path in together.iterdir()) == sorted(path.name for path in alone.iterdir())
        assert (together / "config.json").read_bytes() == (alone / "config.json").read_bytes()
        for one, two in zip(rows(alone), rows(together), strict=True):
            assert {key: two[key] for key in two.keys() - TIMES} == pytest.approx(
                {key: one[key] for key in one.keys() - TIMES}, rel=1e-5
            )
        torch.testing.assert_close(load_file(together / WEIGHTS), load_file(alone / WEIGHTS), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_killed_training_continues_to_the_same_weights(folder: Path, tmp_path: Path) -> None:
    """Each process is killed once. torchrun restarts both after the first time and ends after the second time."""
    killed = tmp_path / "killed"
    arguments = [*train_arguments(folder, str(killed), RECIPE), "--resume"]
    script = str(Path(__file__).with_name("one_of_two.py"))
    ended = launch("--max-restarts=1", script, "killed", str(killed), *arguments)
    assert ended.returncode != 0 and (killed / CHECKPOINT).exists(), ended.stderr
    message = "moses-rerank train: another of the 2 processes has ended. Continue with --resume"
    assert set(faults(ended.stderr)) <= {message}
    ended = launch("-m", "rerank.cli", *arguments)
    assert ended.returncode == 0, ended.stderr
    assert sorted(path.name for path in killed.iterdir()) == sorted(path.name for path in (folder / "recipe").iterdir())
    for name in (WEIGHTS, RECORD, *FOLD_WEIGHTS, "config.json"):
        assert (killed / name).read_bytes() == (folder / "recipe" / name).read_bytes()


@pytest.mark.slow
def test_an_error_in_one_process_ends_all_with_one_message(folder: Path, tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("one_of_two.py"))
    arguments = train_arguments(folder, str(tmp_path / "large"), SMALL | {"hidden_size": 1500})
    ended = launch(script, "200", *arguments)
    assert ended.returncode != 0 and "Traceback" not in ended.stderr.split("torch/distributed")[0]
    assert faults(ended.stderr) == [
        "moses-rerank train: out of memory. Lower batch_size, batch_tokens, max_length, hidden_size, "
        "embedding_size, attention_size, decoder_layers or vocabulary_size"
    ]


TEXTS = ["--source", "de", "--target", "en", "--dev-source", "dev.de", "--dev-target", "dev.en"]
TRAIN = ["train", "--preset", "rnnsearch", *TEXTS, "--device", "cpu", "--output", "model"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["train", "--preset", "rnnsearch"], "the following arguments are required"),
        (["validate", "list"], "torchrun would run the command in every process. Only train supports it"),
        ([*TRAIN, "--jobs", "2"], "with torchrun all processes train one model. Omit --jobs, --ray, --seeds"),
        ([*TRAIN, "--set", "x=1"], "unknown setting 'x'"),
    ],
)
def test_only_one_process_reports_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], fault: str
) -> None:
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    started = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(store.port), "WORLD_SIZE": "2"}
    for name, value in (started | {"TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_RESTART_COUNT": "0"}).items():
        monkeypatch.setenv(name, value)
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        try:
            status: object = main(arguments)
        except SystemExit as end:
            status = end.code
        assert status == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert fault in line


def test_shares_contain_every_row_once() -> None:
    for size, lengths in ((1, [3]), (2, [2, 1]), (3, [1, 1, 1]), (5, [1, 1, 1, 0, 0])):
        shares = [Ranks(rank=rank, size=size).shard(range(3)) for rank in range(size)]
        assert sorted(row for share in shares for row in share) == [0, 1, 2]
        assert [len(share) for share in shares] == lengths


def test_each_process_needs_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "99")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "100")
    with (
        pytest.raises(InputError, match="torchrun started 100 processes here, torch sees"),
        join_processes(torch.device("cuda")),
    ):
        pass
