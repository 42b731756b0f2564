from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.errors import InputError
from rerank.plots.weights import Spread, plot_weights, read_spreads

Write = Callable[[str, "str | bytes"], Path]


def test_means_and_deviations_by_hand(write: Write) -> None:
    one = write("1", "[weight]\nTM= 2 -4\nLM= 3\nsp_a= 1\n")  # 10 in all
    two = write("2", "[weight]\nNew= 1\nLM= 1\nTM= 1 0\nsp_a= 1\nsp_b= 0\n")  # 4 in all
    spreads, sparse = read_spreads([str(one), str(two)])
    assert sparse == 2
    assert spreads == [
        Spread("TM.0", pytest.approx([0.2, 0.25])),
        Spread("TM.1", pytest.approx([-0.4, 0])),
        Spread("LM", pytest.approx([0.3, 0.25])),
        Spread("New", pytest.approx([0.25])),
    ]
    assert spreads[1].mean == pytest.approx(-0.2)
    assert spreads[1].deviation == pytest.approx(0.08**0.5)
    assert spreads[3].deviation is None


def test_weights_of_nothing(write: Write) -> None:
    zero = str(write("0", "[weight]\nLM= 0\n"))
    assert read_spreads([zero]) == ([Spread("LM", [0.0])], 0)
    with pytest.raises(InputError, match="named twice"):
        read_spreads([zero, zero])
    with pytest.raises(InputError, match="no weights"):
        read_spreads([str(write("none", "[weight]\n"))])


@pytest.mark.parametrize(
    ("spreads", "sparse", "note", "dots"),
    [
        ([Spread("LM", [0.5]), Spread("_x", [-0.5])], 0, "weight", 0),
        (
            [Spread("LM", [0.5, 0.4]), Spread("_x", [-0.5])],
            1,
            "weight, mean and spread of 2 runs; 1 sparse feature not shown",
            3,
        ),
    ],
)
def test_weights_are_drawn(
    spreads: list[Spread], sparse: int, note: str, dots: int, tmp_path: Path, drawn: Callable[[Path], list[str]]
) -> None:
    plot_weights(spreads, sparse, str(tmp_path / "w.svg"))
    assert {"LM", "_x", note} <= set(drawn(tmp_path / "w.svg"))
    assert (tmp_path / "w.svg").read_text().count("fill: #d55e00") == dots


def test_sparse_weights_alone(tmp_path: Path, drawn: Callable[[Path], list[str]]) -> None:
    plot_weights([], 7, str(tmp_path / "w.svg"))
    assert "weight; 7 sparse features not shown" in drawn(tmp_path / "w.svg")
