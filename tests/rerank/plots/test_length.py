from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.errors import InputError
from rerank.analysis.lengths import Bin
from rerank.plots.length import plot_length, read_bins

Write = Callable[[str, "str | bytes"], Path]


def test_bins_of_files(write: Write) -> None:
    source, reference = write("s", "a\n" * 20 + "a b\n" * 10 + "a\tb\n" * 10), write("r", "x y z w v\n" * 40)
    good, half = write("good", "x y z w v\n" * 40), write("half", "x y z w v\n" * 20 + "q\n" * 20)
    bins = read_bins(str(source), [str(reference)], [str(good), str(half)])
    assert bins == [
        Bin(1, 1, 20, {"good": pytest.approx(100), "half": pytest.approx(100)}),
        Bin(2, 2, 20, {"good": pytest.approx(100), "half": 0}),
    ]


@pytest.mark.parametrize(
    ("source", "system", "message"),
    [
        ("a\n", "x\ny\n", "system has 2 lines, .*source has 1"),
        ("", "", "source: the file is empty"),
        ("a\n<wall/> b\n", "x\ny\n", "source:2: '<wall/>' is markup for Moses' -xml-input"),
        ("a\nb\n", "x\nx |0-1| y\n", r"system:2: segmentation marks such as \|0-1\|"),
    ],
)
def test_files_that_do_not_fit(write: Write, source: str, system: str, message: str) -> None:
    paths = [str(write(name, text)) for name, text in (("source", source), ("reference", source), ("system", system))]
    with pytest.raises(InputError, match=message):
        read_bins(paths[0], [paths[1]], [paths[2]])


def test_lengths_are_drawn(tmp_path: Path, drawn: Callable[[Path], list[str]]) -> None:
    bins = [Bin(1, 3, 20, {"_moses": 10.0, "reranked": 30.0}), Bin(4, 4, 31, {"_moses": 20.0, "reranked": 25.0})]
    plot_length(bins, str(tmp_path / "l.svg"))
    words = drawn(tmp_path / "l.svg")
    assert {"_moses", "reranked", "BLEU", "1-3", "20", "4", "31"} <= set(words)
