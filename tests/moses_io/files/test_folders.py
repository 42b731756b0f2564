import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from moses_io.files.folders import LOCK, InUse, locked, remove


def test_a_locked_folder_cannot_be_locked_again(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(InputError, match="another process uses this folder"), locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()


def test_the_lock_of_a_dead_process_is_released(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom moses_io.files.folders import locked\n"
        f"with locked(Path({str(tmp_path)!r})):\n    os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_removed_before_locking_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The previous owner removes the file after this process has opened it and before it is locked."""
    flock, calls = fcntl.flock, iter(range(9))

    def remove_first(descriptor: int, operation: int) -> None:
        if next(calls) == 0:
            (tmp_path / LOCK).unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with locked(tmp_path), pytest.raises(InputError, match="another process uses this folder"), locked(tmp_path):
        pass


def test_a_file_that_is_not_a_lock_is_an_error_and_kept(tmp_path: Path) -> None:
    folder, other = tmp_path / "folder", tmp_path / "thesis.tex"
    folder.mkdir()
    other.write_text("words")
    (folder / LOCK).symlink_to(other)
    with pytest.raises(InputError, match=r"\.lock: a symbolic link, expected an empty file"), locked(folder):
        pass
    assert other.read_text() == "words"
    (folder / LOCK).unlink()
    (folder / LOCK).write_text("words")
    with pytest.raises(InputError, match=r"\.lock: not a lock file"), locked(folder):
        pass
    assert (folder / LOCK).read_text() == "words"
    (folder / LOCK).unlink()
    os.mkfifo(folder / LOCK)
    with pytest.raises(InputError, match=r"\.lock: "), locked(folder):
        pass
    with pytest.raises(InputError, match="No such file"), locked(tmp_path / "nowhere"):
        pass


def test_a_folder_is_removed_unless_a_process_uses_a_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_text("words")
    with locked(folder / "inner"), pytest.raises(InUse, match=r"inner: another process uses this folder"):
        remove(folder)
    assert (folder / "inner" / "file").read_text() == "words" and not (folder / LOCK).exists()
    remove(folder)
    assert not folder.exists()


def test_a_link_is_removed_but_not_its_target(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    remove(tmp_path / "link")
    remove(tmp_path / "nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
