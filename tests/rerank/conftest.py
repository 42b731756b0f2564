import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from moses_io.filters import Filters
from rerank.confidence.fitting import fit_confidence
from rerank.metrics.metric import Metric
from rerank.tuning.tune import FoldSettings, make_tuning, tune
from rerank.tuning.tuning_set import Lists

SENTENCES, CANDIDATES = 80, 5


class Fitted(NamedTuple):
    """A scored list, its references, initial and tuned weights, and the confidence estimator fitted on it."""

    nbest: Path
    reference: Path
    weights: Path
    confidence: Path

    def values(self) -> Any:
        return json.loads(self.confidence.read_text())


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """About half of the words are wrong. `Known` correlates with the BLEU score times length, `Noise` is random."""
    folder, rng = tmp_path_factory.mktemp("confidence"), np.random.default_rng(1)
    lines, references, metric = [], [], Metric("bleu")
    for sentence in range(SENTENCES):
        words = [f"w{number}" for number in rng.integers(10, 40, rng.integers(5, 12))]
        references.append(" ".join(words))
        count, skill = metric.counter([references[-1]]), rng.random()
        for rank in range(CANDIDATES):
            text = " ".join(word if rng.random() < skill else "bad" for word in words)
            score = float(metric.formula.smoothed(np.array([count(text)]))[0])
            features = (
                f"Known= {(score + rng.normal(0, 0.2)) * len(words):.6f} Noise= {rng.normal():.6f} {rng.normal():.6f}"
            )
            lines.append(f"{sentence} ||| {text} ||| {features} ||| {-rank}\n")
    paths = [folder / name for name in ("list", "reference", "weights.ini", "confidence.json")]
    paths[0].write_text("".join(lines))
    paths[1].write_text("\n".join(references) + "\n")
    initial = folder / "initial.ini"
    initial.write_text("Noise= 0.1 0.1\n")
    lists = Lists([str(paths[0])], [str(paths[1])], Filters(""))
    tuning = make_tuning({"tuner": "expected"})
    tune(lists, str(initial), tuning, str(paths[2]), FoldSettings())
    fit_confidence(lists, str(initial), str(paths[2]), tuning, "bleu", 4, str(paths[3]))
    return Fitted(*paths)


@pytest.fixture
def altered(fitted: Fitted, tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Write the confidence file with some values replaced."""

    def write(changes: dict[str, Any]) -> Path:
        (tmp_path / "altered.json").write_text(json.dumps(fitted.values() | changes))
        return tmp_path / "altered.json"

    return write
