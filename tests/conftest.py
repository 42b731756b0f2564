import gzip
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby, islice
from pathlib import Path

import pytest
from hypothesis import settings

from features.progress import log, progress_shown
from rerank.cli import main
from rerank.sample import FOLDER

# Set before torch is imported: if other processes run, threads that spin while waiting take ten times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
settings.register_profile("compiling", deadline=None)
settings.load_profile("compiling")  # the first call of a tuner includes its compilation


@pytest.fixture(scope="session")
def sample() -> Path:
    return FOLDER


@pytest.fixture(scope="session")
def data() -> Path:
    folder = os.environ.get("MOSES_RERANK_DATA")
    if not folder:
        pytest.skip("MOSES_RERANK_DATA does not name the folder of larger data")
    return Path(folder)


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., tuple[int, bytes, str]]:
    """Return a function that runs `moses-rerank` in this process and returns exit status, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, bytes, str]:
        status = main([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return status, out, err.decode(errors="surrogateescape")

    return run


@pytest.fixture(scope="session")
def executed() -> Callable[[str], list[str]]:
    """Return a function that returns the executed stages of `run` or `study`, from its messages."""

    def stages_of(err: str) -> list[str]:
        stages = re.findall(r"^\[\d+/\d+\] (.*?)(?: \(about [^)]*\))?(?:, [^,]* left in total)?$", err, re.MULTILINE)
        return [stage for stage in stages if not stage.endswith(": up to date")]

    return stages_of


@pytest.fixture
def progress() -> Iterator[None]:
    """Show progress, like the commands."""
    with progress_shown():
        yield


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[str], AbstractContextManager[None]]:
    """Return a context manager that checks that exactly one warning, matching a pattern, is logged."""

    @contextmanager
    def check(match: str) -> Iterator[None]:
        yield
        (warning,) = _warnings(caplog)
        assert re.search(match, warning)
        caplog.clear()

    return check


@pytest.fixture(autouse=True)
def no_other_warnings(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    # With the fixture progress, warnings are printed lines, which the tests check.
    assert "progress" in request.fixturenames or _warnings(caplog) == []


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    records = [record for record in caplog.get_records("call") if record.name == log.name]
    return [record.getMessage() for record in records if record.levelno == logging.WARNING]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Return a function that writes a file of this test and returns its path."""

    def make(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Return a function that waits until a condition holds, for at most a minute."""

    def wait(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    return wait


@pytest.fixture
def is_running() -> Callable[[str], bool]:
    """Return a function that returns whether a process exists and is not a zombie."""

    def check(pid: str) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    return check


@pytest.fixture
def small(tmp_path: Path, sample: Path) -> Callable[..., Path]:
    """Return a function that writes the first pairs and lists of the sample (`train.de`, `dev.nbest` …)."""

    def make(pairs: int = 300, sentences: int = 40, candidates: int = 20) -> Path:
        for name, count in {"train": pairs, "dev": sentences, "test": sentences}.items():
            for side in ("de", "en"):
                lines = (sample / f"{name}.{side}").read_bytes().split(b"\n")[:count]
                (tmp_path / f"{name}.{side}").write_bytes(b"\n".join(lines) + b"\n")
        for name in ("dev", "test"):
            with gzip.open(sample / f"{name}.nbest.gz") as stream:
                lists = islice(groupby(stream, lambda line: line.split(b" ", 1)[0]), sentences)
                lines = [line for _, nbest in lists for line in islice(nbest, candidates)]
            (tmp_path / f"{name}.nbest").write_bytes(b"".join(lines))
        shutil.copy(sample / "moses.ini", tmp_path)
        return tmp_path

    return make


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> dict[str, Path]:
    """A barely trained forward model and a barely trained backward model."""
    from features.models.training.request import TrainingFiles, TrainingRequest, train_model
    from moses_io.files.text import ParallelFiles

    folder = tmp_path_factory.mktemp("models")
    for side in ("de", "en"):
        lines = (sample / f"train.{side}").read_text(encoding="utf-8").split("\n")
        (folder / f"train.{side}").write_text("\n".join(lines[:300]) + "\n", encoding="utf-8")
    settings = {"embedding_size": 16, "hidden_size": 16, "attention_size": 16, "epochs": 3, "learning_rate": 0.01}
    corpus = ParallelFiles(source=str(folder / "train.de"), target=str(folder / "train.en"))
    dev = ParallelFiles(source=str(sample / "dev.de"), target=str(sample / "dev.en"))
    files = TrainingFiles(corpus=corpus, dev=dev)
    train_model(TrainingRequest("cohn-align", settings=settings), files, str(folder / "forward"), "cpu")
    train_model(TrainingRequest("rnnsearch", backward=True, settings=settings), files, str(folder / "backward"), "cpu")
    return {"forward": folder / "forward", "backward": folder / "backward"}


@pytest.fixture(scope="session")
def pointed(tmp_path_factory: pytest.TempPathFactory, models: dict[str, Path]) -> dict[str, Path]:
    """Copies of `models` with sharper attention, which excludes `<s>` and `</s>`."""
    import torch

    from features.models.folder import load_model, save_weights

    folder = tmp_path_factory.mktemp("pointed")
    for name, path in models.items():
        shutil.copytree(path, folder / name)
        config = (path / "config.json").read_text()
        (folder / name / "config.json").write_text(config.replace('"attend_bos_eos": true', '"attend_bos_eos": false'))
        network = load_model(path, torch.device("cpu")).network
        with torch.no_grad():
            network.get_parameter("decoder.attention.score.out.weight").mul_(10)
        save_weights(folder / name, network)
    return {name: folder / name for name in models}
