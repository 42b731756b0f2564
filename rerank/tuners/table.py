"""The tuners that can be named, and how one is run: from several seeds, with the average kept."""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from features.progress import note
from moses_io.errors import InputError, nearest
from rerank.candidates import Array
from rerank.metrics.metric import Metric
from rerank.tuners import expected, kbmira, mert, moses, pro
from rerank.tuners.problem import Problem, Tuned
from rerank.tuners.scaled import Inside


@dataclass(frozen=True)
class Row:
    """A tuner: the class of its settings, what it does, and how many runs are averaged if nothing is said."""

    settings: type[Any]
    tune: Callable[[Problem, Any], Tuned]
    runs: int = 1


TUNERS = {
    "kbmira": Row(kbmira.KbmiraSettings, kbmira.tune, 5),
    "mert": Row(mert.MertSettings, mert.tune, 20),
    "pro": Row(pro.ProSettings, pro.tune, 5),
    "expected": Row(expected.ExpectedSettings, expected.tune),
}

THREADS = 2


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
    def signature(self) -> str:
        """What made the weights."""
        told = [f"sign:{','.join(self.sign)}"] if self.sign else []
        told += [f"freeze:{','.join(self.freeze)}"] if self.freeze else []
        told += [f"runs:{self.runs}"] if self.runs > 1 and hasattr(self.settings, "seed") else []
        told += [f"parity:{self.parity}"] if self.parity else []
        return "|".join([self.settings.signature, *told])


def settle(values: dict[str, Any]) -> Tuning:
    """Make a tuning of named values: those of `Tuning`, and those of the settings of its tuner.

    Raises:
        InputError: an unknown name, or a value that makes no sense.
    """
    shared = [each.name for each in dataclasses.fields(Tuning) if each.name != "settings"]
    own = {name: value for name, value in values.items() if name in shared}
    others = {name: value for name, value in values.items() if name not in shared}
    tuner, parity = own.get("tuner", "kbmira"), own.get("parity", "")
    for name in ("sign", "freeze"):
        found = own.get(name, ())
        if not (isinstance(found, (list, tuple)) and all(isinstance(each, str) for each in found)):
            raise InputError(f"{name}: expected a list of names, found {found!r}")
    if not isinstance(tuner, str) or tuner not in TUNERS:
        raise InputError(f"tuner: unknown tuner {tuner!r}{nearest(str(tuner), list(TUNERS))}")
    row = TUNERS[tuner]
    if parity and tuner == "kbmira":
        others = {"step": moses.STEP} | others
    known = [each.name for each in dataclasses.fields(row.settings)]
    for name in others:
        if name not in known:
            raise InputError(f"unknown key {name!r}{nearest(name, [*known, *shared])}")
    defaults: dict[str, Any] = {"tuner": tuner, "runs": 1 if parity else row.runs, "metric": "bleu", "parity": ""}
    lists = {name: tuple(own.get(name, ())) for name in ("sign", "freeze")}
    tuning = Tuning(**(defaults | own | lists), settings=row.settings(**others))
    _check(tuning)
    return tuning


def _check(tuning: Tuning) -> None:
    Metric(tuning.metric)
    if not isinstance(tuning.runs, int) or tuning.runs < 1:
        raise InputError(f"runs: expected a whole number from 1, found {tuning.runs!r}")
    if tuning.parity not in ("", "moses"):
        raise InputError(f"parity: expected 'moses', found {tuning.parity!r}")
    plain = (tuning.tuner, tuning.metric, tuning.runs) == ("kbmira", "bleu", 1) and not tuning.sign + tuning.freeze
    if tuning.parity and not plain:
        raise InputError("parity: Moses is followed by one run of kbmira on BLEU, with no sign and nothing frozen")


def run(problem: Problem, tuning: Tuning, fold: bool = False) -> Tuned:
    """Tune a problem; weights are divided by the absolute sum of the dense ones, unless some are frozen.

    On a `fold` nothing is told on stderr, and nothing refused.

    Raises:
        InputError: the metric is 0 whatever the weights were.
    """
    if tuning.parity:
        if (problem.lower == problem.upper).any():
            raise InputError("parity: Moses' kbmira tunes all features; the list has one that is frozen, such as Rest")
        tuned = moses.tune(problem, tuning.settings)
    else:
        inside = Inside(problem)
        weights = _mean(inside, tuning, fold) if inside.tunable else inside.mean([inside.problem.start])
        tuned = Tuned(weights, problem.measure(weights), problem.measure(problem.start))
    if max(tuned.metric, tuned.start) == 0 and not fold:
        hint = "do list and references fit (tokens, case)?"
        raise InputError(f"{problem.metric.name} on the tuning set is 0 whatever the weights; {hint}")
    return tuned


def _mean(inside: Inside, tuning: Tuning, quiet: bool) -> Array:
    """(size,) mean of what the tuner finds from each seed."""
    seeds = range(tuning.settings.seed, tuning.settings.seed + tuning.runs) if hasattr(tuning.settings, "seed") else ()
    each = [dataclasses.replace(tuning.settings, seed=seed) for seed in seeds] or [tuning.settings]
    tune = TUNERS[tuning.tuner].tune
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda settings: tune(inside.problem, settings), each))
    if len(found) > 1 and not quiet:
        metrics = 100 * np.array([tuned.metric for tuned in found])
        note(f"{len(found)} runs of {tuning.tuner}: {metrics.mean():.2f} on the tuning set, ± {metrics.std():.2f}")
    return inside.mean([tuned.weights for tuned in found])
