"""The tuners that can be named, and how one is run: from several seeds, with the average kept."""

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
    """A tuner: the class of its settings, what it does, how many runs are averaged by default, whether runs differ.

    Those of a random one do, by the `seed` of the settings.
    """

    settings: type[Any]
    tune: Callable[[Problem, Any], Tuned]
    runs: int
    random: bool = True


AUTO = "auto"
"""The mean of three tuners, where nothing else is chosen in its place."""

TUNERS = {
    "kbmira": TunerKind(kbmira.KbmiraSettings, kbmira.tune, runs=5),
    "mert": TunerKind(mert.MertSettings, mert.tune, runs=20),
    "pro": TunerKind(pro.ProSettings, pro.tune, runs=5),
    "expected": TunerKind(expected.ExpectedSettings, expected.tune, runs=1, random=False),
    "mean": TunerKind(mean.MeanSettings, mean.tune, runs=1),
    AUTO: TunerKind(mean.AutoSettings, mean.tune, runs=1),
}


@dataclass(frozen=True)
class Tuning:
    """How weights are to be tuned.

    Attributes:
        tuner: name of a row of the table.
        metric: see `rerank.metrics.metric.Metric`.
        runs: times that a tuner with something random in it runs, from one seed after the other; the average is kept.
        parity: `moses` for the weights of Moses' `kbmira --no-shuffle`, empty for ours.
        sign: `NAME:+` or `NAME:-`, for weights that must not be below or above 0.
        freeze: names of features that keep their start weights.
        settings: those of the tuner.
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
        """The same in one run, for what is tuned many times; the mean, with no more climbs than usual, for `auto`."""
        if self.tuner != AUTO:
            return replace(self, runs=1)
        climbs = min(self.settings.climbs, mean.MeanSettings.climbs)
        return replace(self, tuner=mean.MEAN, settings=mean.MeanSettings(climbs=climbs, seed=self.settings.seed))

    @property
    def signature(self) -> str:
        """What made the weights."""
        parts = [self.settings.signature]
        parts += [f"sign:{','.join(self.sign)}"] if self.sign else []
        parts += [f"freeze:{','.join(self.freeze)}"] if self.freeze else []
        parts += [f"runs:{self.runs}"] if self.runs > 1 and TUNERS[self.tuner].random else []
        parts += [f"parity:{self.parity}"] if self.parity else []
        return "|".join(parts)


def run(problem: Problem, tuning: Tuning) -> Tuned:
    """Tune a problem; weights are divided by the absolute sum of the dense ones, unless some are frozen.

    Raises:
        InputError: parity where a weight is frozen, or candidates that a tuner learns nothing from.
    """
    lower, upper = (bound[: problem.candidates.space.dense_size] for bound in problem.bounds())  # (dense,) each
    if tuning.parity and ((lower == upper) & (problem.spread() > 0)).any():
        raise InputError("parity: Moses' kbmira tunes all features; the list has one that is frozen, such as Rest")
    with threadpool_limits(1, "blas"):  # for products of half a millisecond its threads wait for each other
        return moses.tune(problem, tuning.settings) if tuning.parity else _mean(problem, tuning)


def _mean(problem: Problem, tuning: Tuning) -> Tuned:
    """Tune from each seed and average."""
    scaled, kind, first = ScaledProblem(problem), TUNERS[tuning.tuner], tuning.settings
    settings = [first]
    if kind.random:
        settings = [replace(first, seed=first.seed + number) for number in range(tuning.runs)]
    with warnings.catch_warnings(), ThreadPoolExecutor(mean.THREADS) as pool:
        warnings.filterwarnings("ignore", "lbfgs failed to converge")  # of pro; the metric tells how far it came
        runs = list(pool.map(lambda each: kind.tune(scaled.problem, each), settings if scaled.tunable else []))
    weights = scaled.mean([tuned.weights for tuned in runs] or [scaled.problem.start])
    return Tuned(weights, problem.measure(weights), runs=tuple(tuned.metric for tuned in runs))
