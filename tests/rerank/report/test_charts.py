"""Charts are valid XML, show the given values and escape all text."""

import re
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest

from rerank.confidence.confidence import Fit, Part
from rerank.confidence.fitting import Outcome
from rerank.report import charts
from rerank.report.analysis import Frequency, Gains, Matched, NgramChanges
from rerank.report.breakdown import Bin, Depth
from rerank.report.drawing import Scale
from rerank.tuning.ablation import BASE, Ablation, SetScore
from rerank.tuning.gain import RelativeWeight

BAD = "<a & b\x1b>"
SHOWN = "<a & b\\x1b>"
BOTH = {"moses": 30.5, BAD: 31.25}


def ablation_figure(metric: str = BAD) -> str:
    names = {BASE: 40.0, f"and {BAD}": 41.5, "and Len": 39.0, "all features": 42.0}
    column = {name: SetScore(score, None) for name, score in names.items()}
    return charts.ablation_chart(Ablation("", {"dev": column, BAD: column}), metric)


FIGURES: dict[str, Callable[[], str]] = {
    "lengths": lambda: charts.length_chart([Bin(1, 1, 20, BOTH), Bin(2, 9, 25, BOTH)]),
    "margins": lambda: charts.margin_chart([Bin(0.5, 1, 5, BOTH), Bin(1, 2, 6, BOTH)]),
    "frequency": lambda: charts.frequency_chart([Frequency(0, 0, 3, BOTH), Frequency(1000, None, 9, BOTH)]),
    "ablation": ablation_figure,
    "weights": lambda: charts.weights_chart(
        [RelativeWeight(BAD, 0.75, (0.5, 1.0)), RelativeWeight("LM0", -0.25, (-0.5, 0.0))]
    ),
    "ngrams": lambda: charts.ngrams_chart(NgramChanges(9, (Matched(BAD, 1, 3, 264),), (Matched("x", 2, 1, 7),))),
}
OTHERS: dict[str, Callable[[], str]] = {
    "depth": lambda: charts.depth_chart([Depth(1, 30.0, 30.0, 0.5), Depth(3, 31.0, 40.0, 0.0)], 12, []),
    "deeper": lambda: charts.depth_chart([Depth(1, None, None, 0.5), Depth(3, None, None, 0.0)], 12, [BAD, "x"]),
    "gains": lambda: charts.gains_chart(
        Gains(tuple(range(-100, 100, 10)), (1, *[0] * 18, 4), rose=4, fell=1, stayed=2)
    ),
}


def texts(figure: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(figure).iter("text")]


@pytest.mark.parametrize("name", [*FIGURES, *OTHERS])
def test_figures_have_a_title_and_a_caption(name: str) -> None:
    root = ElementTree.fromstring((FIGURES | OTHERS)[name]())
    svg, caption = root
    assert (root.tag, svg.tag, caption.tag) == ("figure", "svg", "figcaption")
    assert svg[0].tag == "title" and svg[0].text
    assert (svg.get("viewBox") or "").startswith("0 0 400 ")
    heading, sentence = caption[0].text or "", caption[0].tail or ""
    assert heading == f"{svg[0].text}." and sentence.endswith(".")


@pytest.mark.parametrize("name", FIGURES)
def test_text_from_files_is_escaped(name: str) -> None:
    figure = FIGURES[name]()
    assert "<a &" not in figure and "\x1b" not in figure
    assert SHOWN in "".join(ElementTree.fromstring(figure).itertext())


@pytest.mark.parametrize("name", [*FIGURES, *OTHERS])
def test_all_shapes_are_inside_the_picture(name: str) -> None:
    svg = ElementTree.fromstring((FIGURES | OTHERS)[name]())[0]
    height = float((svg.get("viewBox") or "").split()[-1])
    for each in svg.iter():
        for key, most in (("x", 400.0), ("cx", 400.0), ("y", height), ("cy", height)):
            assert 0 <= float(each.get(key, "0")) <= most
        assert float(each.get("x", "0")) + float(each.get("width", "0")) <= 400
        assert float(each.get("y", "0")) + float(each.get("height", "0")) <= height


def test_figures_show_values() -> None:
    assert {"1", "20", "2-9", "25", "moses"} <= set(texts(FIGURES["lengths"]()))
    assert {"lowest", "5", "low", "6"} <= set(texts(FIGURES["margins"]()))
    assert {"0", "3", "1000+", "9"} <= set(texts(FIGURES["frequency"]()))
    assert {"40.00", "41.50", "39.00", "42.00", "dev, cross-validated"} <= set(texts(ablation_figure("BLEU")))
    assert {"+75.0", "-25.0", "LM0"} <= set(texts(FIGURES["weights"]()))
    assert "% of sentences" in texts(OTHERS["deeper"]()) and "BLEU" not in texts(OTHERS["deeper"]())
    assert f"{SHOWN} does not have come after" in "".join(ElementTree.fromstring(OTHERS["deeper"]()).itertext())
    assert "does not have" not in OTHERS["depth"]()
    assert (
        "Of 7 sentences, 4 have a higher sentence BLEU and 1 a lower one. The other 2 are not shown."
        in OTHERS["gains"]()
    )


def test_bars_begin_at_the_baseline() -> None:
    """Bars to the right are better than the baseline, Moses' features. Lengths are proportional to differences."""
    bars = {}
    for bar in ElementTree.fromstring(ablation_figure("BLEU")).iter("rect"):
        if hint := bar.findtext("title"):
            start, width = float(bar.get("x", "")), float(bar.get("width", ""))
            bars[hint.partition(",")[0]] = (start, start + width)
    zero = bars["all features"][0]
    assert bars["and Len"][1] == pytest.approx(zero, abs=0.1) == bars[f"and {SHOWN}"][0]
    assert bars["all features"][1] - zero == pytest.approx(2 * (zero - bars["and Len"][0]), abs=0.2)


def test_examples_are_links() -> None:
    links = ElementTree.fromstring(FIGURES["ngrams"]()).iter("a")
    assert [(each.get("href"), each.findtext("text")) for each in links] == [("#s264", "264"), ("#s7", "7")]


def test_only_the_largest_of_many_rows_are_drawn() -> None:
    relative_weights = [
        RelativeWeight(f"F{number}", value / 100, ()) for number, value in enumerate([5, -40, *[1] * 40, 30])
    ]
    found = [text for text in texts(charts.weights_chart(relative_weights)) if text.startswith("F")]
    assert len(found) == charts.MAX_ROWS and found[:2] == ["F0", "F1"] and found[-1] == "F42"
    column = {name: SetScore(score, None) for name, score in zip([BASE, *"abc"], (1.0, 2, 3, 4), strict=True)}
    column |= {f"and {number}": SetScore(1.0, None) for number in range(40)} | {"all features": SetScore(9.0, None)}
    figure = charts.ablation_chart(Ablation("", {"dev": column}), "BLEU")
    assert {BASE, "a", "b", "c", "all features"} <= set(texts(figure)) and "the 24 of 44 that differ most" in figure


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        ([0, 100], 0, 100, 20), ([31.2, 33.9], 31, 34, 0.5), ([5, 5], 5, 5.2, 0.2), ([-3, 2], -3, 2, 1),
        ([0, 0], 0, 0.2, 0.2), ([82.84, 95.2], 80, 100, 5), ([99.97, 100], 99.8, 100, 0.2),
    ],
)  # fmt: skip
def test_scales_have_round_bounds_around_all_values(values: list[float], low: float, high: float, step: float) -> None:
    scale = Scale(values, 100, 0)
    assert (scale.low, scale.high, scale.step) == pytest.approx((low, high, step))
    assert (scale(scale.low), scale(scale.high)) == (100, 0)
    assert scale.ticks == pytest.approx([low + step * number for number in range(round((high - low) / step) + 1)])


NAN = np.full(4, np.nan)
DEV = Fit(0.5, 0.4, quarters=(Part(10, expected=25.0, actual=50.0), Part(10, expected=75.0, actual=100.0)), changes=())


def outcome(expected: list[float], reached: list[float]) -> Outcome:
    values = np.array(expected)
    return Outcome(values, NAN[: len(values)], values, actual=np.array(reached), gains=np.zeros(len(values)))


def drawn(each: Outcome, metric: str = "BLEU", name: str = "test") -> ElementTree.Element:
    return ElementTree.fromstring(charts.confidence_chart(each, DEV, metric, name))


def dots(root: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    """Return the positions of dots, as scores."""
    (group,) = (each for each in root.iter("g") if each.get("class") == kind)
    positions = [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in group]
    return [((across - 48) / 3.2, 100 - (down - 12) / 3.2) for across, down in positions]


def test_positions_of_dots_agree_with_the_axes() -> None:
    root = drawn(outcome([10, 20, 30, 90], [0, 100, 50, -40]))
    assert np.array(dots(root, "two dots")) == pytest.approx(
        np.array([(10, 0), (20, 100), (30, 50), (90, 0)]), abs=0.05
    )
    assert np.array(dots(root, "two")) == pytest.approx(np.array([(10, 0), (20, 100), (30, 50), (90, 0)]), abs=0.05)
    assert np.array(dots(root, "one")) == pytest.approx(np.array([(25, 50), (75, 100)]), abs=0.05)
    texts = {text.text: text for text in root.iter("text")}
    across = {int(name): text for name, text in texts.items() if re.fullmatch(r"\d+", name or "")}
    assert list(across) == [0, 20, 40, 60, 80, 100]
    assert {"expected BLEU", "actual BLEU"} < texts.keys()
    assert {"dev, cross-validated", "test"} < texts.keys()
    assert "of 4 sentences of test: a small dot for each" in "".join(root.itertext())


def test_few_sentences_and_names_with_special_characters() -> None:
    root = drawn(outcome([40], [60]), "bleu+chrf:0.7,0.3", "<a & b\x1b>")
    assert dots(root, "two") == dots(root, "two dots") == [pytest.approx((40, 60), abs=0.05)]
    assert root[0][0].text == "bleu+chrf:0.7,0.3 of the sentences of <a & b\\x1b>: expected and actual"
