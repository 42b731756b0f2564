import re
from xml.etree import ElementTree

import numpy as np
import pytest

from rerank.confidence.confidence import Fit, Part
from rerank.confidence.fitting import Outcome
from rerank.report.charts.confidence import confidence
from rerank.report.charts.drawing import STYLE

NAN = np.full(4, np.nan)
DEV = Fit(
    0.5, 0.4, quarters=(Part(10, estimated=25.0, reached=50.0), Part(10, estimated=75.0, reached=100.0)), changes=()
)


def outcome(expected: list[float], reached: list[float]) -> Outcome:
    values = np.array(expected)
    return Outcome(values, NAN[: len(values)], values, reached=np.array(reached), gains=np.zeros(len(values)))


def drawn(each: Outcome, metric: str = "BLEU", name: str = "test") -> ElementTree.Element:
    return ElementTree.fromstring(confidence(each, DEV, metric, name))


def dots(root: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    """Places of dots, as scores."""
    (group,) = (each for each in root.iter("g") if each.get("class") == kind)
    places = [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in group]
    return [((across - 48) / 3.2, 100 - (down - 12) / 3.2) for across, down in places]


def test_dots_stand_where_the_axes_say() -> None:
    root = drawn(outcome([10, 20, 30, 90], [0, 100, 50, -40]))
    assert np.array(dots(root, "two dots")) == pytest.approx(
        np.array([(10, 0), (20, 100), (30, 50), (90, 0)]), abs=0.05
    )
    assert np.array(dots(root, "two")) == pytest.approx(np.array([(10, 0), (20, 100), (30, 50), (90, 0)]), abs=0.05)
    assert np.array(dots(root, "one")) == pytest.approx(np.array([(25, 50), (75, 100)]), abs=0.05)
    texts = {text.text: text for text in root.iter("text")}
    across = {int(name): text for name, text in texts.items() if re.fullmatch(r"\d+", name or "")}
    assert list(across) == [0, 20, 40, 60, 80, 100]
    assert {"expected BLEU", "reached BLEU"} < texts.keys()
    assert {"dev, out of fold", "test"} < texts.keys()
    assert "of 4 sentences of test, a small dot each" in "".join(root.itertext())


def test_few_sentences_and_names_that_are_no_xml() -> None:
    root = drawn(outcome([40], [60]), "bleu+chrf:0.7,0.3", "<a & b\x1b>")
    assert dots(root, "two") == dots(root, "two dots") == [pytest.approx((40, 60), abs=0.05)]
    assert root[0][0].text == "bleu+chrf:0.7,0.3 of the sentences of <a & b\\x1b>: expected and reached"


def test_text_has_the_colour_of_the_page() -> None:
    assert "svg { " in STYLE and "fill: currentColor" in STYLE
    assert not re.search(r"#(000|fff)|black|white", STYLE)
