import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from features.progress import progress_shown
from rerank.cli import main
from rerank.sample import FOLDER

# Before torch comes in: threads that spin while they wait take ten times as long where other processes run, too.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
settings.register_profile("compiling", deadline=None)
settings.load_profile("compiling")  # the first call of a tuner compiles it


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
    """Run `moses-rerank` in this process; return its exit status, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, bytes, str]:
        status = main([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return status, out, err.decode(errors="surrogateescape")

    return run


@pytest.fixture
def progress() -> Iterator[None]:
    """Show progress, as commands do."""
    with progress_shown():
        yield


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file of this test and return its path."""

    def make(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> dict[str, Path]:
    """A forward and a backward model that learnt a little."""
    from features.models.training.request import ParallelFiles, TrainingFiles, TrainingRequest, train_model

    folder = tmp_path_factory.mktemp("models")
    for side in ("de", "en"):
        lines = (sample / f"train.{side}").read_text(encoding="utf-8").split("\n")
        (folder / f"train.{side}").write_text("\n".join(lines[:300]) + "\n", encoding="utf-8")
    settings = {"embedding": 16, "hidden": 16, "attention": 16, "epochs": 3, "rate": 0.01}
    corpus = ParallelFiles(source=str(folder / "train.de"), target=str(folder / "train.en"))
    dev = ParallelFiles(source=str(sample / "dev.de"), target=str(sample / "dev.en"))
    files = TrainingFiles(corpus=corpus, dev=dev)
    train_model(TrainingRequest("cohn-align", settings=settings), files, str(folder / "forward"), "cpu")
    train_model(TrainingRequest("rnnsearch", backward=True, settings=settings), files, str(folder / "backward"), "cpu")
    return {"forward": folder / "forward", "backward": folder / "backward"}
