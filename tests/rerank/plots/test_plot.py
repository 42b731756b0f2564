"""The command `plot`."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]


@pytest.fixture
def arguments(write: Write, fine: Path, models: dict[str, Path]) -> dict[str, tuple[object, ...]]:
    """Arguments of each picture, without the output."""
    source, target = write("source", "die Zeitung .\n"), write("target", "the newspaper .\n")
    pair = ("--source", source, "--target", target, "--sentence", 0, "--device", "cpu")
    return {
        "attention": (*models.values(), *pair, "--alignment", write("links", "0-0\n")),
        "dimensions": (fine, *pair, "--word", 1),
        "curves": tuple(models.values()),
        "length": (target, "--source", source, "--reference", target, "--reference", source),
        "weights": (write("a.ini", "LM= 1\n"), write("b.ini", "LM= 1\nsp_a 2\n")),
    }


@pytest.mark.parametrize("picture", ["attention", "dimensions", "curves", "length", "weights"])
def test_plot_writes_each_picture(
    picture: str, arguments: dict[str, tuple[object, ...]], command: Command, tmp_path: Path,
    drawn: Callable[[Path], list[str]],
) -> None:  # fmt: skip
    name = "attention" if picture == "dimensions" else picture
    assert command("plot", name, *arguments[picture], "--output", tmp_path / "x.svg") == (0, b"", "")
    text = {"attention": "backward", "dimensions": "fine: the", "curves": "minutes", "length": "BLEU", "weights": "LM"}
    assert text[picture] in drawn(tmp_path / "x.svg")


def test_wrong_arguments_and_missing_matplotlib_are_errors(
    arguments: dict[str, tuple[object, ...]], command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "moses-rerank plot: --output x.jpg: expected a name in .png, .svg or .pdf\n"
    assert command("plot", "curves", "nowhere", "--output", "x.jpg") == (2, b"", message)
    message = "moses-rerank plot: --alignment marks links between words, which --word does not show\n"
    assert command("plot", "attention", *arguments["attention"], "--word", 1, "--output", "x.png")[2] == message
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    output = tmp_path / "x.png"
    message = "moses-rerank plot: plots need matplotlib: pip install 'moses-rerank[plot]'\n"
    assert command("plot", "weights", *arguments["weights"], "--output", output) == (2, b"", message)
    assert not output.exists()
