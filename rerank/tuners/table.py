"""Table of tuners by name, and runs of a tuner from several seeds, whose weights are averaged."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from threadpoolctl import threadpool_limits

from moses_io.files.errors import InputError
from rerank.tuners import expected, kbmira, mean, mert, moses, pro
from rerank.tuners.problem import Problem, ScaledProblem, Tuned


@dataclass(frozen=True)
class TunerKind:
    """A row of the table of tuners.

    Attributes:
        settings: class of its settings.
        tune: the tuner.
        runs: default number of runs that are averaged.
        random: whether runs differ by the `seed` of the settings.
    """

    settings: type[Any]
    tune: Callable[[Problem, Any], Tuned]
    runs: int
    random: bool = True


AUTO = "auto"
"""Name of the tuner that uses the mean of three tuners or, if one is significantly better, an alternative."""

TUNERS = {
    "kbmira": TunerKind(kbmira.KbmiraSettings, kbmira.tune, runs=5),
    "mert": TunerKind(mert.MertSettings, mert.tune, runs=20),
    "pro": TunerKind(pro.ProSettings, pro.tune, runs=5),
    "expected": TunerKind(expected.ExpectedSettings, expected.tune, runs=1, random=False),
    "mean": TunerKind(mean.MeanSettings, mean.tune, runs=1),
    AUTO: TunerKind(mean.AutoSettings, mean.tune, runs=1),
}


RENAMED = {"step": "C", "least": "min_difference", "kept": "max_pairs", "steps": "max_iterations"}
"""Former settings with their present names, for messages."""


@dataclass(frozen=True)
class Tuning:
    """Settings of a tuning.

    Attributes:
        tuner: name of the tuner.
        metric: name of a metric, or a weighted sum as in `rerank.metrics.metric.Metric`.
        runs: number of runs of a tuner that uses random numbers, with consecutive seeds. Their weights are averaged.
        parity: `moses` to reproduce Moses' `kbmira --no-shuffle`, empty by default.
        sign: `NAME:+` for weights that must not be negative, `NAME:-` for weights that must not be positive.
        freeze: names of features that keep their initial weights.
        settings: settings of the tuner.
    """

    tuner: str
    metric: str
    runs: int
    parity: str
    sign: tuple[str, ...]
    freeze: tuple[str, ...]
    settings: Any

    @property
    def once(self) -> "Tuning":
        """A copy with a single run, for repeated tuning as in an ablation.

        For `auto` it is the tuner `mean` with at most the default number of climbs.
        """
        if self.tuner != AUTO:
            return replace(self, runs=1)
        climbs = min(self.settings.climbs, mean.MeanSettings.climbs)
        return replace(self, tuner=mean.MEAN, settings=mean.MeanSettings(climbs=climbs, seed=self.settings.seed))

    @property
    def signature(self) -> str:
        """Tuner and settings, as written above the weights."""
        parts = [self.settings.signature]
        parts += [f"sign:{','.join(self.sign)}"] if self.sign else []
        parts += [f"freeze:{','.join(self.freeze)}"] if self.freeze else []
        parts += [f"runs:{self.runs}"] if self.runs > 1 and TUNERS[self.tuner].random else []
        parts += [f"parity:{self.parity}"] if self.parity else []
        return "|".join(parts)


def run(problem: Problem, tuning: Tuning) -> Tuned:
    """Tune a problem.

    The weights are divided by the sum of the absolute dense weights, except with parity or if a frozen weight is not 0.

    Raises:
        InputError: parity is requested and a feature that is not constant is frozen, or a tuner cannot learn from the
            candidates.
    """
    lower, upper = (bound[: problem.candidates.space.dense_size] for bound in problem.bounds())  # (dense,) each
    if tuning.parity and ((lower == upper) & (problem.spread() > 0)).any():
        raise InputError("parity: Moses' kbmira tunes all features. The list has one that is frozen, such as Rest")
    with threadpool_limits(1, "blas"):  # the products are small: with several threads most time would be waiting
        return moses.tune(problem, tuning.settings) if tuning.parity else _mean(problem, tuning)


def _mean(problem: Problem, tuning: Tuning) -> Tuned:
    """Tune the scaled problem from each seed and average the weights."""
    scaled, kind, first = ScaledProblem(problem), TUNERS[tuning.tuner], tuning.settings
    settings = [first]
    if kind.random:
        settings = [replace(first, seed=first.seed + number) for number in range(tuning.runs)]
    with warnings.catch_warnings(), ThreadPoolExecutor(mean.THREADS) as pool:
        warnings.filterwarnings("ignore", "lbfgs failed to converge")  # from pro: the metric is reported anyway
        runs = list(pool.map(lambda each: kind.tune(scaled.problem, each), settings if scaled.tunable else []))
    weights = scaled.mean([tuned.weights for tuned in runs] or [scaled.problem.initial])
    return Tuned(weights, problem.measure(weights), runs=tuple(tuned.metric for tuned in runs))
