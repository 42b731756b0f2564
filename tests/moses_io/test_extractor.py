from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.extractor import read_blocks, write_block
from moses_io.files.errors import InputError
from moses_io.files.streams import open_output

Write = Callable[[str, "str | bytes"], Path]
FEATURES = (
    "FEATURES_TXT_BEGIN_0 0 2 4 Dist0_0 LM0_0 TM0_0 TM0_1 \n"
    "0 -3.5 -1 -2 sp_x=1 \n"
    "-1 -3.25 -1 -2.5 sp_x=2 sp_y=a=-0.5 \n"
    "FEATURES_TXT_END_0\n"
    "FEATURES_TXT_BEGIN_0 7 1 4 Dist0_0 LM0_0 TM0_0 TM0_1 \n"
    "0 0 0 1e-05 \n"
    "FEATURES_TXT_END_0\n"
)


def test_features_of_the_extractor(write: Write) -> None:
    first, second = read_blocks(str(write("f", FEATURES)), "FEATURES")
    assert (first.sentence, second.sentence) == (0, 7)
    assert first.names == ("Dist0_0", "LM0_0", "TM0_0", "TM0_1")
    assert first.rows == ((0, -3.5, -1, -2), (-1, -3.25, -1, -2.5))
    assert first.sparse == ({"sp_x": 1.0}, {"sp_x": 2.0, "sp_y=a": -0.5})
    assert second.rows == ((0, 0, 0, 1e-05),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("FEATURES_TXT_BEGIN_0 0", "FEATURES_BIN_BEGIN_0 0", r"f:1: expected 'FEATURES_TXT.*\. Run .* without -b$"),
        ("FEATURES_TXT_BEGIN_0 0", "x 0", "f:1: expected 'FEATURES_TXT_BEGIN_0 ID CANDIDATES VALUES …'$"),
        ("-3.5 ", "", "f:2: expected 4 dense values, found 3"),
        ("TM0_0 TM0_1 \n0 ", "TM0_0 \n0 ", "f:1: expected 4 names, found 3"),
        ("-3.5", "x", "f:2: expected a number, found 'x'"),
        ("BEGIN_0 0 2", "BEGIN_0 0 3", "f:1: expected 3 candidates and FEATURES_TXT_END_0"),
        ("sp_y=a=", "sp_x=", "f:3: feature 'sp_x' occurs twice"),
        ("sp_x=1", "=1", "f:2: expected a feature name before '='"),
        ("BEGIN_0 0 2", "BEGIN_0 0 1", "f:1: expected 1 candidate and FEATURES_TXT_END_0"),
        ("0 0 0 1e-05 \nFEATURES_TXT_END_0\n", "", "f:5: expected 1 candidate and FEATURES_TXT_END_0"),
        ("BEGIN_0 0 2", "BEGIN_0 0 ²", "f:1: expected 'FEATURES_TXT_BEGIN_0"),
        ("BEGIN_0 0 2", f"BEGIN_0 0 {'9' * 5000}", "f:1: expected 'FEATURES_TXT_BEGIN_0"),
        ("BEGIN_0 0 2", "BEGIN_0 0 0", "f:1: expected 'FEATURES_TXT_BEGIN_0"),
    ],
)
def test_faulty_files_are_errors(write: Write, old: str, new: str, message: str) -> None:
    path = write("f", FEATURES.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        list(read_blocks(str(path), "FEATURES"))


def test_blocks_are_written_back_unchanged(write: Write, tmp_path: Path) -> None:
    with open_output(str(tmp_path / "again")) as stream:
        for block in read_blocks(str(write("f", FEATURES)), "FEATURES"):
            write_block(stream, "FEATURES", block)
    assert (tmp_path / "again").read_text() == FEATURES
