"""The tuners that can be named, and how they are run: several, from several seeds, with the average kept."""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from features.progress import note
from moses_io.errors import InputError, nearest
from rerank.candidates import Array
from rerank.tuners import expected, kbmira, mert, moses, pro
from rerank.tuners.inside import Inside
from rerank.tuners.problem import Problem, Tuned

TUNERS: dict[str, tuple[type[Any], Callable[[Problem, Any], Tuned]]] = {
    "kbmira": (kbmira.KbmiraSettings, kbmira.tune),
    "mert": (mert.MertSettings, mert.tune),
    "pro": (pro.ProSettings, pro.tune),
    "expected": (expected.ExpectedSettings, expected.tune),
}

DEFAULT = "kbmira+expected"
RUNS = 5
THREADS = 2


@dataclass(frozen=True)
class Tuning:
    """How weights are to be tuned.

    Attributes:
        tuner: name of a row of the table, or of several, joined by `+`, whose average is kept.
        metric: see `rerank.metrics.Metric`.
        runs: times that a tuner with something random in it runs, from one seed after the other; the average is kept.
        parity: `moses` for the weights of Moses' `kbmira --no-shuffle`, empty for ours.
        sign: `NAME:+` or `NAME:-`, for weights that must not be below or above 0.
        freeze: names of features that keep their start weights.
        settings: those of each tuner.
    """

    tuner: str
    metric: str
    runs: int
    parity: str
    sign: tuple[str, ...]
    freeze: tuple[str, ...]
    settings: tuple[Any, ...]

    @property
    def signature(self) -> str:
        """What made the weights."""
        told = [f"sign:{','.join(self.sign)}"] if self.sign else []
        told += [f"freeze:{','.join(self.freeze)}"] if self.freeze else []
        told += [f"runs:{self.runs}"] if self.runs > 1 else []
        told += [f"parity:{self.parity}"] if self.parity else []
        return "|".join([" + ".join(settings.signature for settings in self.settings), *told])


def settle(values: dict[str, Any]) -> Tuning:
    """Make a tuning of named values: those of `Tuning`, and those of the settings of its tuners.

    Raises:
        InputError: an unknown name, or a value that makes no sense.
    """
    shared = [each.name for each in dataclasses.fields(Tuning) if each.name != "settings"]
    own = {name: value for name, value in values.items() if name in shared}
    parity = own.get("parity", "")
    defaults = {"tuner": "kbmira", "runs": 1} if parity else {"tuner": DEFAULT, "runs": RUNS}
    own = {"metric": "bleu", "parity": "", "sign": (), "freeze": (), **defaults, **own}
    kinds = _kinds(str(own["tuner"]))
    others = {name: value for name, value in values.items() if name not in shared}
    others |= {"step": moses.STEP} if parity and "step" not in others else {}
    known = {each.name for kind in kinds for each in dataclasses.fields(kind)}
    for name in others:
        if name not in known:
            raise InputError(f"unknown key {name!r}{nearest(name, [*known, *shared])}")
    for name in ("sign", "freeze"):
        own[name] = tuple(own[name])
    if not isinstance(own["runs"], int) or own["runs"] < 1:
        raise InputError(f"runs: expected a whole number from 1, found {own['runs']!r}")
    if parity not in ("", "moses"):
        raise InputError(f"parity: expected 'moses', found {parity!r}")
    if parity and (own["tuner"], own["metric"], own["runs"], own["sign"], own["freeze"]) != (
        "kbmira",
        "bleu",
        1,
        (),
        (),
    ):
        raise InputError("parity: Moses is followed by one run of kbmira on BLEU, with no sign and nothing frozen")
    return Tuning(**own, settings=tuple(_settings(kind, others) for kind in kinds))


def _kinds(tuner: str) -> list[type[Any]]:
    names = tuner.split("+")
    for name in names:
        if name not in TUNERS:
            raise InputError(f"tuner: unknown tuner {name!r}{nearest(name, list(TUNERS))}")
    return [TUNERS[name][0] for name in names]


def _settings(kind: type[Any], values: dict[str, Any]) -> Any:
    own = [each.name for each in dataclasses.fields(kind)]
    return kind(**{name: value for name, value in values.items() if name in own})


def run(problem: Problem, tuning: Tuning, fold: bool = False) -> Tuned:
    """Tune a problem; weights are divided by the absolute sum of the dense ones, unless some are frozen.

    On a `fold` nothing is told on stderr, and nothing refused.

    Raises:
        InputError: the metric is 0 whatever the weights were.
    """
    if tuning.parity:
        tuned = moses.tune(problem, tuning.settings[0])
    else:
        inside = Inside(problem)
        weights = _mean(inside, tuning, fold) if inside.tunable else inside.weights(inside.problem.start)
        tuned = Tuned(weights, problem.measure(weights), problem.measure(problem.start))
    if max(tuned.metric, tuned.start) == 0 and not fold:
        hint = "do list and references fit (tokens, case)?"
        raise InputError(f"{problem.metric.name} on the tuning set is 0 whatever the weights; {hint}")
    return tuned


def _mean(inside: Inside, tuning: Tuning, quiet: bool) -> Array:
    """(size,) mean of what the tuners find, and of each what it finds from all seeds."""
    averages = []
    with ThreadPoolExecutor(THREADS) as pool:
        for name, settings in zip(tuning.tuner.split("+"), tuning.settings, strict=True):
            seeds = range(settings.seed, settings.seed + tuning.runs) if hasattr(settings, "seed") else [None]
            each = [settings if seed is None else dataclasses.replace(settings, seed=seed) for seed in seeds]
            found = list(pool.map(lambda one, tune=TUNERS[name][1]: tune(inside.problem, one), each))
            averages.append(np.mean([inside.weights(tuned.weights) for tuned in found], axis=0))
            if len(found) > 1 and not quiet:
                metrics = 100 * np.array([tuned.metric for tuned in found])
                note(f"{name}, {len(found)} runs: {metrics.mean():.2f} on the tuning set, ± {metrics.std():.2f}")
    mean: Array = np.mean(averages, axis=0)
    return mean
