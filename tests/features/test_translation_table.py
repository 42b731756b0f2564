import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from features.links import encoded_links
from features.models.training.request import read_corpus
from features.ragged import Ragged
from features.sentences import TokenPairs
from features.translation_table import count, read_table, relative
from moses_io.alignment import Alignment
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles


def counted(pairs: TokenPairs, links: Sequence[Alignment] | Ragged, null: str) -> list[tuple[str, str, float]]:
    """Return the entries (condition, word, probability) of `count`."""
    source, target = [*pairs.source.words, null], [*pairs.target.words, null]
    nulls = (len(source) - 1, len(target) - 1)
    found = relative(count(pairs.source.numbers, pairs.target.numbers, encoded_links(links), nulls))
    return [(source[one], target[other], p) for one, other, p in zip(*(each.tolist() for each in found), strict=True)]


def test_links_are_counted() -> None:
    """`das` is linked twice to `the` and once to `house`. `ein` and `a` have no links."""
    pairs = TokenPairs.of([(["das", "ein"], ["the", "a"]), (["das", "das"], ["the", "house"])])
    links = [frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})]
    assert set(counted(pairs, links, "")) == {
        ("das", "the", 2 / 3), ("das", "house", 1 / 3), ("ein", "", 1.0), ("", "a", 1.0),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["lex.f2e.gz", "lex.e2f.gz"])
def test_tables_equal_those_of_moses(data: Path, name: str) -> None:
    """The expected tables were printed by Moses' `train-model.perl` for the same links. All digits are equal."""
    folder = data / "multi30k-de-en"
    corpus = ParallelFiles(*(str(folder / f"train.{side}.gz") for side in ("de", "en", "gdfa")))
    pairs, links = read_corpus(corpus, backward=name == "lex.e2f.gz")
    found = [f"{word} {condition} {p:.7f}" for condition, word, p in counted(pairs, links, "NULL")]
    assert sorted(found) == sorted(gzip.decompress((folder / name).read_bytes()).decode().split("\n")[:-1])


def test_probabilities_may_slightly_exceed_1_by_rounding(tmp_path: Path) -> None:
    (tmp_path / "lex").write_text("a x 0.0000000\nb x 1.001\n")
    assert read_table(str(tmp_path / "lex")) == {"x": {"a": 0.0, "b": 1.001}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a x 1\na y -0.5\n", ":2: expected a probability from 0 to 1, found -0.5. Is this a table of log-prob"),
        ("a x 1\na y 1.002\n", ":2: expected a probability from 0 to 1, found 1.002"),
        ("a x 17\n", ":1: expected a probability from 0 to 1, found 17"),
        ("", ": the table is empty, expected lines 'word word probability'"),
    ],
)
def test_an_empty_table_or_wrong_probabilities_are_errors(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "lex"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_table(str(path))
    assert str(caught.value).startswith(f"{path}{message}")


def test_an_empty_compressed_table_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lex.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(InputError, match=r"lex\.gz: the table is empty"):
        read_table(str(tmp_path / "lex.gz"))


def test_real_tables_are_read(data: Path) -> None:
    """The number of entries equals the number of lines."""
    paths = sorted(data.glob("**/lex.*.gz"))
    assert len(paths) >= 2
    for path in paths:
        lines = gzip.decompress(path.read_bytes()).count(b"\n")
        assert sum(len(row) for row in read_table(str(path)).values()) == lines, path
