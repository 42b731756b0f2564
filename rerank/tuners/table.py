"""The tuners that can be named, and how one is run: once, or several times with the average kept."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from features.progress import note
from moses_io.errors import InputError, nearest
from rerank.tuners import expected, kbmira, mert, moses, pro
from rerank.tuners.problem import Problem, Tuned
from rerank.weights import normalized

TUNERS: dict[str, tuple[type[Any], Callable[[Problem, Any], Tuned]]] = {
    "kbmira": (kbmira.KbmiraSettings, kbmira.tune),
    "mert": (mert.MertSettings, mert.tune),
    "pro": (pro.ProSettings, pro.tune),
    "expected": (expected.ExpectedSettings, expected.tune),
}


@dataclass(frozen=True)
class Tuning:
    """How weights are to be tuned.

    Attributes:
        tuner: name of a row of the table.
        metric: see `rerank.metrics.Metric`.
        runs: times that it runs, from one seed after the other; the weights are the average.
        parity: `moses` for the weights of Moses' `kbmira --no-shuffle`, empty for ours.
        settings: those of the tuner.
    """

    tuner: str = "kbmira"
    metric: str = "bleu"
    runs: int = 1
    parity: str = ""
    settings: Any = field(default_factory=kbmira.KbmiraSettings)

    @property
    def signature(self) -> str:
        """What made the weights."""
        parity = f"|parity:{self.parity}" if self.parity else ""
        runs = f"|runs:{self.runs}" if self.runs > 1 else ""
        return f"{self.settings.signature}{runs}{parity}"


def settle(values: dict[str, Any]) -> Tuning:
    """Make a tuning of named values: those of `Tuning`, and those of the settings of its tuner.

    Raises:
        InputError: an unknown name, or a value that makes no sense.
    """
    own = {name: value for name, value in values.items() if name in ("tuner", "metric", "runs", "parity")}
    tuner = own.get("tuner", "kbmira")
    if tuner not in TUNERS:
        raise InputError(f"tuner: unknown tuner {tuner!r}{nearest(str(tuner), list(TUNERS))}")
    kind, _ = TUNERS[tuner]
    known = [each.name for each in dataclasses.fields(kind)]
    for name in values:
        if name not in own and name not in known:
            raise InputError(f"unknown key {name!r}{nearest(name, [*known, 'tuner', 'metric', 'runs', 'parity'])}")
    tuning = Tuning(**own, settings=kind(**{name: value for name, value in values.items() if name not in own}))
    if not isinstance(tuning.runs, int) or tuning.runs < 1:
        raise InputError(f"runs: expected a whole number from 1, found {tuning.runs!r}")
    if tuning.runs > 1 and "seed" not in known:
        raise InputError(f"runs: tuner {tuner!r} has nothing random in it, all runs would be the same")
    if tuning.parity not in ("", "moses"):
        raise InputError(f"parity: expected 'moses', found {tuning.parity!r}")
    if tuning.parity and (tuner, tuning.metric, tuning.runs) != ("kbmira", "bleu", 1):
        raise InputError("parity: Moses is followed by one run of kbmira on BLEU")
    return tuning


def run(problem: Problem, tuning: Tuning) -> Tuned:
    """Tune a problem; weights are divided by the absolute sum of the dense ones.

    Raises:
        InputError: the metric is 0 whatever the weights were.
    """
    dense = problem.candidates.space.dense_size
    tune = moses.tune if tuning.parity else TUNERS[tuning.tuner][1]
    found = []
    for number in range(tuning.runs):
        settings = tuning.settings
        if tuning.runs > 1:
            settings = dataclasses.replace(settings, seed=settings.seed + number)
        found.append(tune(problem, settings))
    if max(tuned.metric for tuned in found) == 0:
        name = "BLEU" if tuning.metric == "bleu" else tuning.metric
        raise InputError(
            f"{name} on the tuning set is 0 whatever the weights; do list and references fit (tokens, case)?"
        )
    if tuning.parity:
        return found[0]
    weights = np.mean([normalized(tuned.weights, dense) for tuned in found], axis=0)
    if tuning.runs > 1:
        metrics = 100 * np.array([tuned.metric for tuned in found])
        note(f"{tuning.runs} runs: {metrics.mean():.2f} on the tuning set, standard deviation {metrics.std():.2f}")
    return Tuned(weights, problem.measure(weights), found[0].start)
