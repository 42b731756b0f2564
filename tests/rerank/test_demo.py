"""`moses-rerank demo`, up to its first training."""

from collections.abc import Callable
from pathlib import Path

Command = Callable[..., tuple[int, bytes, str]]


def test_the_demo_checks_the_sample_but_keeps_files_of_others(command: Command, tmp_path: Path) -> None:
    """An output that is not from an earlier run is an error after all other checks, and before the first training."""
    (tmp_path / "weights.ini").write_text("[weight]\n")
    status, out, err = command("demo", "--output", tmp_path, "--device", "cpu")
    existing = f"{tmp_path}/weights.ini: already exists and is not from an earlier run. Remove or rename it\n"
    assert (status, out, err.endswith(existing)) == (2, b"", True), err
    assert (tmp_path / "weights.ini").read_text() == "[weight]\n"
    assert list((tmp_path / "models").iterdir()) == []


def test_a_file_instead_of_the_demo_folder_is_an_error(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    status, _, err = command("demo", "--output", tmp_path / "file", "--device", "cpu")
    assert (status, err.splitlines()[-1]) == (2, f"moses-rerank demo: {tmp_path}/file/models: Not a directory")
    assert (tmp_path / "file").read_text() == "mine"
