"""`--tuner auto`: the mean of three tuners, unless something else is surely better where nothing was tuned.

What is highest on folds is so by chance as much as by merit; where it is chosen for that alone, it is worth less
elsewhere than the mean over which it was chosen (`docs/tuning.md`). So another way takes the place of the mean only
where its lead is surely none of chance. With the weights that tuning started from it is the other way round: they are
kept wherever what was tuned is not better, so that tuning does not lose.

What is told of the choice is measured on nested folds: of each fold what is chosen by a way which was itself chosen,
and tuned, without it.
"""

from dataclasses import dataclass

import numpy as np

from features.arrays import Array
from rerank.metrics.significance import p_value
from rerank.tuners.mean import MEAN
from rerank.tuning.tuning_set import TuningSet
from rerank.tuning.ways import HELD, START, Tunings, Unseen, Way

SURE = 0.1
"""Largest p of a lead over the mean that is believed."""
BELIEVED = 0.5
"""Largest p of a lead over the start weights that is believed."""


@dataclass(frozen=True)
class Tried:
    """What a way reaches where it was not tuned, 0 … 1, and the p of its difference to the mean."""

    way: Way
    score: float
    p: float


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes:
        way: how to tune.
        weights: (size,) tuned in that way on the whole list.
        tried: the ways, what reaches most first.
        nested: (n, formula.size) statistics of what is chosen for each sentence by a way chosen and tuned without it.
        old: the same by the mean without the new features; None without any.
    """

    way: Way
    weights: Array
    tried: tuple[Tried, ...]
    nested: Array
    old: Array | None


def choose(tunings: Tunings, other: TuningSet | None) -> Choice:
    """Choose how to tune, on folds of the list that is tuned on, or on another one."""
    unseen, new = Unseen(tunings, other), tuple(tunings.columns)
    numbers = range(len(unseen.parts))
    way, tried = _choose(tunings, unseen, None)
    ways = [_choose(tunings, unseen, number)[0] for number in numbers]
    nested = [unseen.fold(own, number) for own, number in zip(ways, numbers, strict=True)]
    old = [unseen.fold(Way(MEAN, new), number) for number in numbers] if new else None
    return Choice(
        way=way,
        weights=tunings.weights(way),
        tried=tuple(sorted(tried, key=lambda each: -each.score)),
        nested=_in_order(unseen, nested),
        old=_in_order(unseen, old) if old else None,
    )


def _choose(tunings: Tunings, unseen: Unseen, aside: int | None) -> tuple[Way, list[Tried]]:
    """Choose without knowing the fold aside."""
    score = tunings.problem.formula.score
    ways = [Way(MEAN), Way(START), *_others(tunings, unseen, aside)]
    chosen = [unseen.rest(way, aside) for way in ways]  # each (m, formula.size)
    scores = [float(score(each.sum(axis=0))) for each in chosen]  # each ()
    leads = [p_value(score, each, chosen[0]) for each in chosen]
    surely = [place for place in range(2, len(ways)) if scores[place] > scores[0] and leads[place] < SURE]
    best = max(surely, key=lambda place: scores[place], default=0)
    if scores[best] <= scores[1] or p_value(score, chosen[best], chosen[1]) >= BELIEVED:
        best = 1
    return ways[best], [Tried(*each) for each in zip(ways, scores, leads, strict=True)]


def _others(tunings: Tunings, unseen: Unseen, aside: int | None) -> list[Way]:
    """Return what may be better than the mean: one tuner, more ridge, no new features, none that seem to harm.

    A feature seems to harm where more is reached with its weight set to 0, the others as they are.
    """
    new = tuple(tunings.columns)

    def reached(way: Way) -> float:
        return float(tunings.problem.formula.score(unseen.rest(way, aside).sum(axis=0)))  # ()

    mean = reached(Way(MEAN))
    ways = [Way(name) for name in (*tunings.names, *HELD) if name != MEAN]
    harmful = tuple(label for label in new if reached(Way(MEAN, (label,), anew=False)) > mean)
    return [*ways, *(Way(MEAN, dropped) for dropped in dict.fromkeys([new, harmful]) if dropped)]


def _in_order(unseen: Unseen, folds: list[Array]) -> Array:
    """(n, formula.size) the statistics of all folds, in the order of sentences."""
    return np.concatenate(folds)[np.argsort(np.concatenate(unseen.parts))]  # (n, formula.size)
