"""Language models of KenLM, and headers of ARPA files."""

import bz2
import gzip
import lzma
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from features.arrays import Array
from features.feature import Resources, Sentence
from features.feature_set import FeatureSet
from features.kinds.language_model import check_header
from features.request import FeatureRequest
from moses_io.files.errors import InputError

ARPA = (
    "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-2\t<unk>\n0\t<s>\t-0.5\n-1\t</s>\n-0.5\ta\t-0.25\n\n"
    "\\2-grams:\n-0.1\t<s> a\n-0.2\ta </s>\n\n\\end\\\n"
)


def load(path: str) -> FeatureSet:
    return FeatureSet([FeatureRequest("X", "kenlm", path)], Resources())


def values(path: Path, *texts: tuple[str, ...]) -> Array:
    return load(str(path)).score([Sentence(0, (), texts)]).columns[0].values


def test_kenlm_gives_natural_logarithms_and_counts_unknown_words(tmp_path: Path) -> None:
    arpa = tmp_path / "tiny.arpa"
    arpa.write_text(ARPA)
    found = values(arpa, ("a",), ("b",), (), ("a", "a\u00a0b"))
    log10 = [-0.1 - 0.2, -0.5 - 2 - 1, -0.5 - 1, -0.1 - 0.25 - 2 - 1]
    np.testing.assert_allclose(found[:, 0], np.array(log10) * math.log(10), atol=1e-5)
    assert found[:, 1].tolist() == [0, 1, 0, 1]


def test_a_file_that_is_not_a_language_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no model\n")
    for missing in ("nowhere", "x" * 300):  # no file has a name of more than 255 bytes
        with pytest.raises(InputError, match=f"{missing}: no such language model"):
            load(missing)
    for content, reason in (
        (ARPA.encode().replace(b"\\2-grams", b"\xff\xfe"), "'bytes that are not UTF-8'"),
        (ARPA.encode()[:-60], "'"),
        (b"mmap lm http://kheafield.com/code format version 5\n\0" + bytes(99), '"File looks like it should be loaded'),
    ):
        (tmp_path / "text").write_bytes(content)
        with pytest.raises(InputError, match=f"text: not a language model that KenLM can read: {reason}") as caught:
            load(str(tmp_path / "text"))
        assert len(str(caught.value).replace(str(tmp_path), "")) < 150


COUNT = "expected 'ngram {}=N' with a number of n-grams{}, found '{}'"
HEADERS = [
    (b"no model\n", 1, r"expected \data\, found 'no model'"),
    (b"\n# comment\n\xff\xfe\n", 3, r"expected \data\, found '\udcff\udcfe'"),
    (b"", 1, "the file ends before its n-grams"),
    (b"\\data\\\nngram 1=4\n", 2, "the file ends before its n-grams"),
    (b"\\data\\\nngram 1=-5\nngram 2=2\n\n", 2, COUNT.format(1, ", at least 1", "ngram 1=-5")),
    (b"\\data\\\r\nngram 1=4\r\nngram 2=-2\r\n\r\n", 3, COUNT.format(2, "", "ngram 2=-2")),
    (b"\\data\\\nngram 1=0\nngram 2=2\n\n", 2, COUNT.format(1, ", at least 1", "ngram 1=0")),
    (b"\\data\\\nngram 1=4\nngram 2=x\n\n", 3, COUNT.format(2, "", "ngram 2=x")),
    (b"\\data\\\nngram 1=4\nngram 2=1e9\n\n", 3, COUNT.format(2, "", "ngram 2=1e9")),
    (b"\\data\\\nngram 2=2\nngram 1=4\n\n", 2, COUNT.format(1, ", at least 1", "ngram 2=2")),
    (b"\\data\\\nngram 1=4\nngram 3=2\n\n", 3, COUNT.format(2, "", "ngram 3=2")),
    (b"\\data\\\nngram 1=4\n\\1-grams:\n", 3, COUNT.format(2, "", "\\\\1-grams:")),
    (b"\\data\\\nngram 1=999\nngram 2=2\n\n", 2, "fit into the file, found 999 of order 1 in 30 bytes"),
    (b"\\data\\\nngram 1=2\nngram 2=%d\n\n" % 2**63, 3, f"found {2**63} of order 2 in 46 bytes"),
]


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize(("content", "line", "message"), HEADERS)
def test_wrong_headers_of_arpa_files_are_errors(
    content: bytes, line: int, message: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """The check comes before KenLM, which crashes on negative counts and allocates 10^20 bytes for the last header."""
    path = tmp_path / "lm.arpa"
    path.write_bytes(compress(content))
    with pytest.raises(InputError) as caught:
        load(str(path))
    assert f"{path}:{line}: not a language model that KenLM can read: " in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize(
    "content",
    [
        ARPA,
        ARPA.replace("\n", "\r\n"),
        f"\n# comment\n{ARPA}",
        ARPA.replace("1=4", "  1=    4 "),
        ARPA.replace("2=2\n", "2=2\nngram 3=0\n").replace("\\end", "\\3-grams:\n\n\\end"),
    ],
)
def test_variants_of_the_arpa_format_are_read(content: str, compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "lm.arpa").write_bytes(compress(content.encode()))
    np.testing.assert_allclose(values(tmp_path / "lm.arpa", ("a",))[0], [-0.3 * math.log(10), 0], atol=1e-5)


def test_the_check_of_n_gram_counts_accepts_the_shortest_lines(tmp_path: Path) -> None:
    """The shortest line has four bytes: a one-digit probability, a tab, a character and the line end."""
    words = "".join(f"0\t{letter}\n" for letter in "abcdefghijklmnopqrstuvwxyz" * 40)
    (tmp_path / "lm.arpa").write_text(f"\\data\\\nngram 1={26 * 40}\n\n{words}")
    check_header(str(tmp_path / "lm.arpa"))


def test_a_missing_package_kenlm_is_an_error_of_feature_kenlm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(InputError, match=r"feature 'kenlm' needs the package kenlm, .*pip install kenlm-ex"):
        load("x")
