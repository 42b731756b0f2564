import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from features.translation_table import count
from moses_io.alignment import read_alignments, turned
from moses_io.text import read_parallel, tokens


def test_links_are_counted() -> None:
    """das is linked to the twice, to a house once; ein to nothing, and nothing to one a."""
    pairs: list[tuple[Sequence[str], Sequence[str]]] = [
        (["das", "ein"], ["the", "a"]), (["das", "das"], ["the", "house"]),
    ]  # fmt: skip
    links = [frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})]
    assert count(pairs, links, "") == {
        "das": {"the": 2 / 3, "house": 1 / 3},
        "ein": {"": 1.0},
        "": {"a": 1.0},
    }


@pytest.mark.parametrize("name", ["lex.f2e.gz", "lex.e2f.gz"])
def test_the_tables_are_those_of_moses(data: Path, name: str) -> None:
    """To the digits that Moses' `train-model.perl` printed of the same links."""
    folder = data / "multi30k-de-en"
    texts = read_parallel(str(folder / "train.de.gz"), str(folder / "train.en.gz"))
    pairs = [(tokens(source), tokens(target)) for source, target in texts]
    links = read_alignments(str(folder / "train.gdfa.gz"), pairs)
    if name == "lex.e2f.gz":
        pairs, links = [(target, source) for source, target in pairs], [turned(each) for each in links]
    table = count(pairs, links, "NULL")
    found = [f"{word} {condition} {p:.7f}" for condition, row in table.items() for word, p in row.items()]
    assert sorted(found) == sorted(gzip.decompress((folder / name).read_bytes()).decode().split("\n")[:-1])
