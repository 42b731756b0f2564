"""Features that run code: allowed in the user's own experiment files, and elsewhere only with permission."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from rerank.experiment.file import read_experiment

Write = Callable[[str, "str | bytes"], Path]
Command = Callable[..., tuple[int, bytes, str]]

EXPERIMENT = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
[features]
"""
CODE = {"Shell": "command:touch ran", "Mine": "mine_of_trust:Mine", "Installed": "json:JSONDecoder"}


@pytest.fixture
def file(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Write an experiment file with a line of features into a folder inside the working directory."""
    (tmp_path / "below").mkdir()
    (tmp_path / "other").mkdir()
    write("below/mine_of_trust.py", "open('ran', 'w').close()\nclass Mine:\n    def __call__(self, sentences): ...\n")
    monkeypatch.chdir(tmp_path)
    return lambda line: write("below/e.toml", EXPERIMENT + line)


@pytest.mark.parametrize(("label", "text"), [item for item in CODE.items() if item[0] != "Installed"])
def test_code_in_the_users_own_file_is_allowed(file: Callable[[str], Path], label: str, text: str) -> None:
    path = file(f'{label} = "{text}"\n')
    assert list(read_experiment(str(path)).features) == [label]


@pytest.mark.parametrize(("label", "text"), CODE.items())
@pytest.mark.parametrize("way", ["elsewhere", "link", "owner"])
def test_code_in_a_foreign_file_is_not_loaded(
    command: Command, file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, label: str, text: str, way: str
) -> None:
    path, wanted = file(f'Len = "length"\n{label} = "{text}"\n'), "in a file that is not the user's own"
    if way != "owner":
        monkeypatch.chdir("other")
    if way == "link":
        Path("e.toml").symlink_to(path)
        path = Path("e.toml")
    if way == "owner":
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    status, out, err = command("run", path)
    assert (status, out, err.count("\n")) == (2, b"", 1)
    assert f"{path}: feature '{label}', '{text}', runs code {wanted}" in err
    assert err.endswith("--allow-code permits it\n")
    assert not list(path.resolve().parent.parent.rglob("ran"))
    if label != "Installed":
        assert label in read_experiment(str(path), allow_code=True).features
        assert "train.de: No such file" in command("run", path, "--allow-code")[2]


def test_a_foreign_file_without_code_is_allowed(file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = file('Len = "length"\n')
    monkeypatch.chdir("other")
    assert list(read_experiment(str(path)).features) == ["Len"]


@pytest.mark.parametrize("label", ["A=command:touch ran;", "command:touch ran #", "mine_of_trust:Mine", "A=", ""])
def test_a_label_with_the_syntax_of_a_feature_is_an_error(file: Callable[[str], Path], label: str) -> None:
    with pytest.raises(InputError, match=r"label '.*': expected a letter"):
        read_experiment(str(file(f'"{label}" = "length"\n')), allow_code=True)


def test_a_feature_that_is_not_text_is_an_error(file: Callable[[str], Path]) -> None:
    with pytest.raises(InputError, match=r"e\.toml: features\.A: expected KIND\[:ARG\] as text, found 3"):
        read_experiment(str(file("A = 3\n")))
