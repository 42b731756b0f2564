from collections.abc import Callable
from pathlib import Path

from rerank.plots.curves import Level, SizeCurve, plot_sizes


def test_curves_over_sizes_are_drawn(tmp_path: Path, drawn: Callable[[Path], list[str]]) -> None:
    curves = [SizeCurve("rnnsearch", [500, 6000], [20.0, 30.0], [1.0, 0.5]), SizeCurve("_cohn", [500], [25.0], [0.0])]
    plot_sizes(curves, "BLEU, test", str(tmp_path / "s.svg"), Level("Moses", 22.0))
    words = drawn(tmp_path / "s.svg")
    assert {"500", "6,000", "sentence pairs of training", "BLEU, test", "Moses", "rnnsearch", "_cohn"} <= set(words)
