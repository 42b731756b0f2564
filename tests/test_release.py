"""`scripts/release` on a small repository: its errors, and that a failure does not change files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("packaging")

ROOT = Path(__file__).parent.parent
FILES = {
    "pyproject.toml": '[project]\nname = "x"\nversion = "0.2.0.dev0"\n',
    "CITATION.cff": "title: x\nversion: 0.1.0\nlicense: MIT\n",
    "CHANGELOG.md": "# Changelog\n\n## 0.2.0 (unreleased)\n\n* New.\n\n## 0.1.0 (2025-01-01)\n\n* First.\n",
    "build.py": "raise SystemExit('no build')\n",
}


def git(folder: Path, *words: str) -> str:
    identity = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(
        ["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "release", tmp_path / "scripts")
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "x")
    return tmp_path


def release(folder: Path, version: str) -> tuple[int, str]:
    words = [sys.executable, "scripts/release", version, "--without-ci"]
    outcome = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    return outcome.returncode, outcome.stderr


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("new", "'new' is not a version according to PEP 440"),
        ("0.2.0.0rc", "write the version as 0.2.0.0rc0"),
        ("0.2.0.dev1", "0.2.0.dev1 is a development or local version"),
        ("0.1.9", "0.1.9 is not higher than 0.2.0.dev0, the version in pyproject.toml"),
        ("0.3.0", "CHANGELOG.md: no section '## 0.3.0 (unreleased)', or an empty one"),
    ],
)
def test_wrong_versions_are_errors(checkout: Path, version: str, message: str) -> None:
    assert release(checkout, version) == (1, f"release: {message}\n")


def test_unclean_trees_other_branches_and_existing_tags_are_errors(checkout: Path) -> None:
    (checkout / "new").touch()
    assert release(checkout, "0.2.0") == (1, "release: the tree is not clean; commit first\n")
    (checkout / "new").unlink()
    git(checkout, "switch", "--quiet", "--create", "other")
    assert release(checkout, "0.2.0") == (1, "release: on the branch other; releases are made on main\n")
    git(checkout, "switch", "--quiet", "main")
    git(checkout, "tag", "v0.2.0")
    assert release(checkout, "0.2.0") == (1, "release: the tag v0.2.0 already exists\n")


def test_files_of_an_earlier_build_are_an_error_and_are_not_removed(checkout: Path) -> None:
    (checkout / ".gitignore").write_text("dist/\n")
    git(checkout, "add", ".gitignore")
    git(checkout, "commit", "--quiet", "--message", "x")
    (checkout / "dist").mkdir()
    development, built = checkout / "dist" / "x-0.2.0.dev0-py3-none-any.whl", checkout / "dist" / "x-0.2.0.tar.gz"
    development.touch()
    assert "dist/ already has files" not in release(checkout, "0.2.0")[1]
    built.touch()
    assert release(checkout, "0.2.0") == (1, "release: dist/ already has files of 0.2.0; remove them\n")
    assert built.exists() and development.exists()


def test_a_failed_build_does_not_change_files(checkout: Path) -> None:
    """`build.py` of the checkout simulates a failing build."""
    assert release(checkout, "0.2.0")[0] == 1
    assert {name: (checkout / name).read_text() for name in FILES} == FILES
    assert (git(checkout, "status", "--porcelain"), git(checkout, "tag", "--list")) == ("", "")
