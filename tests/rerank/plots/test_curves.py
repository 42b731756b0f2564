import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.errors import InputError
from rerank.plots.curves import Curve, plot_curves, read_curves

Drawn = Callable[[Path], list[str]]


def epoch(number: int, seconds: float, dev: float, train: float) -> str:
    row = {"epoch": number, "seconds": seconds, "dev_perplexity": dev, "train_perplexity": train, "best": True}
    return json.dumps(row) + "\n"


def make_model(folder: Path, content: str) -> str:
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text(content)
    return str(folder)


def test_numbers_of_curves(tmp_path: Path) -> None:
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
        ("", r"m/metrics\.jsonl: no epochs; the training of this model did not get to the end of its first one"),
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
def test_what_is_no_curve(content: str | None, message: str, tmp_path: Path) -> None:
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
def test_curves_are_drawn_with_plain_numbers(
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
