import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from rerank.plots.measurements import (
    Curve,
    plot_curves,
    plot_length,
    plot_sizes,
    plot_weights,
    read_bins,
    read_curves,
    weights_by_feature,
)
from rerank.report.breakdown import Bin

Drawn = Callable[[Path], list[str]]


def epoch(number: int, seconds: float, dev: float, train: float) -> str:
    row = {"epoch": number, "seconds": seconds, "dev_perplexity": dev, "train_perplexity": train, "best": True}
    return json.dumps(row) + "\n"


def make_model(folder: Path, content: str) -> str:
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text(content)
    return str(folder)


def test_read_learning_curves(tmp_path: Path) -> None:
    one = make_model(tmp_path / "one", epoch(1, 30, 8.5, 20) + epoch(2, 90, 4, 5))
    other = make_model(tmp_path / "other", epoch(1, 60, 9, math.inf))
    assert read_curves([one, other]) == [
        Curve("one", epochs=[1, 2], minutes=[0.5, 1.5], dev=[8.5, 4], train=[20, 5]),
        Curve("other", epochs=[1], minutes=[1], dev=[9], train=[math.inf]),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"m: no metrics\.jsonl, expected the folder of a model that was trained"),
        ("", r"m/metrics\.jsonl: no epochs. The training of this model did not complete its first epoch"),
        (epoch(1, 1, 1, 1) + "{\n", r"m/metrics\.jsonl:2:1: not JSON"),
        ('{"epoch": 1}\n', r"m/metrics\.jsonl:1: expected numbers epoch, seconds, .*, found \{'epoch': 1\}"),
        (
            '{"epoch": 1' + 400 * "0" + ', "seconds": 1, "dev_perplexity": 1, "train_perplexity": 1}\n',
            "found {'epoch': 1000",
        ),
        ("[1]\n", r"m/metrics\.jsonl:1: expected numbers .*, found \[1\]"),
        (epoch(1, 1, 1, 1).replace("1.0", '"1"').replace(": 1,", ': "1",'), "expected numbers"),
    ],
)
def test_wrong_metrics_files_are_errors(content: str | None, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir() if content is None else make_model(folder, content)
    with pytest.raises(InputError, match=message):
        read_curves([str(folder)])


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1.1, 1.2, 1.3], ["1.12", "1.20", "1.28"]),
        ([1.5, 2000, math.inf], ["2", "10", "500", "1000"]),
        ([math.inf], []),
    ],
)
def test_learning_curves_have_plain_tick_labels(
    values: list[float], ticks: list[str], tmp_path: Path, drawn: Drawn
) -> None:
    numbers = [float(number) for number in range(len(values))]
    plot_curves(
        [Curve("_a", numbers, numbers, values, values), Curve("b", [1], [1], values[:1], values[:1])],
        str(tmp_path / "c.svg"),
    )
    words = drawn(tmp_path / "c.svg")
    assert {"_a", "b", "dev", "train", "epochs", "minutes", "perplexity", *ticks} <= set(words)
    assert not any("$" in word for word in words)


def test_plot_scores_by_corpus_size(tmp_path: Path, drawn: Callable[[Path], list[str]]) -> None:
    curves = {"rnnsearch": [(500, 20.0, 1.0), (6000, 30.0, 0.5)], "_cohn": [(500, 25.0, 0.0)], "none": []}
    plot_sizes(curves, "BLEU, test", str(tmp_path / "s.svg"), ("Moses", 22.0))
    words = drawn(tmp_path / "s.svg")
    assert {"500", "6,000", "sentence pairs of training", "BLEU, test", "Moses", "rnnsearch", "_cohn", "none"} <= set(
        words
    )


Write = Callable[[str, "str | bytes"], Path]


def test_read_bins_by_sentence_length(write: Write) -> None:
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
def test_files_that_do_not_match_are_errors(write: Write, source: str, system: str, message: str) -> None:
    paths = [str(write(name, text)) for name, text in (("source", source), ("reference", source), ("system", system))]
    with pytest.raises(InputError, match=message):
        read_bins(paths[0], [paths[1]], [paths[2]])


def test_plot_scores_by_sentence_length(tmp_path: Path, drawn: Callable[[Path], list[str]]) -> None:
    bins = [Bin(1, 3, 20, {"_moses": 10.0, "reranked": 30.0}), Bin(4, 4, 31, {"_moses": 20.0, "reranked": 25.0})]
    plot_length(bins, str(tmp_path / "l.svg"))
    words = drawn(tmp_path / "l.svg")
    assert {"_moses", "reranked", "BLEU", "1-3", "20", "4", "31"} <= set(words)


def test_relative_weights_of_several_runs(write: Write) -> None:
    one = write("1", "[weight]\nTM= 2 -4\nLM= 3\nsp_a= 1\n")  # sum of absolute weights: 10
    two = write("2", "[weight]\nNew= 1\nLM= 1\nTM= 1 0\nsp_a= 1\nsp_b= 0\n")  # sum of absolute weights: 4
    by_feature, sparse = weights_by_feature([str(one), str(two)])
    assert sparse == 2
    assert list(by_feature.items()) == [
        ("TM.0", pytest.approx([0.2, 0.25])),
        ("TM.1", pytest.approx([-0.4, 0])),
        ("LM", pytest.approx([0.3, 0.25])),
        ("New", pytest.approx([0.25])),
    ]


def test_zero_and_missing_weights(write: Write) -> None:
    zero = str(write("0", "[weight]\nLM= 0\n"))
    assert weights_by_feature([zero]) == ({"LM": [0.0]}, 0)
    with pytest.raises(InputError, match="named twice"):
        weights_by_feature([zero, zero])
    with pytest.raises(InputError, match="no weights"):
        weights_by_feature([str(write("none", "[weight]\n"))])


@pytest.mark.parametrize(
    ("by_feature", "sparse", "note", "dots"),
    [
        ({"LM": [0.5], "_x": [-0.5]}, 0, "weight", 0),
        (
            {"LM": [0.5, 0.4], "_x": [-0.5]},
            1,
            "weight, mean and spread of 2 runs; 1 sparse feature not shown",
            3,
        ),
    ],
)
def test_plot_weights(
    by_feature: dict[str, list[float]],
    sparse: int,
    note: str,
    dots: int,
    tmp_path: Path,
    drawn: Callable[[Path], list[str]],
) -> None:
    plot_weights(by_feature, sparse, str(tmp_path / "w.svg"))
    assert {"LM", "_x", note} <= set(drawn(tmp_path / "w.svg"))
    assert (tmp_path / "w.svg").read_text().count("fill: #d55e00") == dots


def test_plot_sparse_weights_only(tmp_path: Path, drawn: Callable[[Path], list[str]]) -> None:
    plot_weights({}, 7, str(tmp_path / "w.svg"))
    assert "weight; 7 sparse features not shown" in drawn(tmp_path / "w.svg")
