"""Permission for code in the file of `retune --experiment`."""

from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, bytes, str]]

CODE = """\
[features]
Words = "command:touch ran; awk '{print NF}'"

[tuning]
tuner = "kbmira"
iterations = 1
runs = 1
folds = 0

[report]
ablation = false
"""


def test_retune_runs_code_of_another_folder_only_with_permission(
    command: Command, folder: Path, decoder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    decoder()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "code.toml").write_text(CODE)
    retune = ("retune", "dev.de", "dev.en", "./moses", "moses.ini", "--working-dir", "work", "--nbest", "3")
    files = ("--corpus", "train", "--f", "de", "--e", "en", "--experiment", elsewhere / "code.toml", "--device", "cpu")
    status, _, err = command(*retune, *files)
    assert (status, "runs code in a file that is not" in err, (elsewhere / "ran").exists()) == (2, True, False), err
    status, _, err = command(*retune, *files, "--allow-code")
    assert (status, (elsewhere / "ran").exists()) == (0, True), err
