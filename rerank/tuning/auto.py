"""`--tuner auto`: the mean of three tuners, unless something else is surely better where nothing was tuned.

What is highest on folds is so by chance as much as by merit: where a tuner is chosen for that alone, it is worth less
elsewhere than the mean over which it was chosen (`docs/lab/tuning-figures.md`). So a lead over the mean must be sure.
That of the weights that tuning starts from must be likely at least; to keep them for less loses more elsewhere than it
saves. Where no feature is new they were tuned for the very same features, on the very sentences of all folds, and their
lead there says nothing; the mean is drawn to them.

What is told of the choice is measured on nested folds: of each fold what is chosen by a way which was itself chosen,
and tuned, without it.
"""

from dataclasses import dataclass

from features.arrays import Array
from rerank.linear.weights import START
from rerank.tuners.mean import MEAN
from rerank.tuning.tuning_set import TuningSet
from rerank.tuning.ways import HELD, Tunings, Unseen, Way

SURE, LIKELY = 0.05, 0.3
"""Largest p, in either direction, of a lead over the mean that is believed; that of the start weights.

There are several other ways: each is believed below its share of `SURE` (Bonferroni).
"""


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
        old: the same by the start weights or, if it is better, by the mean without the new features.
        folds: (size,) weights tuned in that way without each fold of the list; none where another one was chosen on.
    """

    way: Way
    weights: Array
    tried: tuple[Tried, ...]
    nested: Array
    old: Array
    folds: tuple[Array, ...]


def choose(tunings: Tunings, other: TuningSet | None) -> Choice:
    """Choose how to tune, on folds of the list that is tuned on, or on another one."""
    unseen = Unseen(tunings, other)
    ways = _ways(tunings, unseen, None)
    way = _best(unseen, ways, None)
    return Choice(
        way=way,
        weights=tunings.weights(way),
        tried=_tried(unseen, [*ways, *([Way(START)] if unseen.fair_to_start else [])]),
        nested=unseen.nested(lambda aside: _best(unseen, _ways(tunings, unseen, aside), aside)),
        old=_old(tunings, unseen),
        folds=() if other else tuple(tunings.weights(way, frozenset([fold])) for fold in range(tunings.folds)),
    )


def _old(tunings: Tunings, unseen: Unseen) -> Array:
    """(n, formula.size) statistics of what is chosen without the new features.

    It is the better of two, so that no gain of the start weights over what is tuned anew is taken for one of features.
    """
    ways = [Way(START), *([Way(MEAN, tuple(tunings.columns))] if tunings.columns else [])]
    return unseen.nested(lambda _: max(ways, key=lambda way: unseen.reached(way, None)))


def _ways(tunings: Tunings, unseen: Unseen, aside: int | None) -> list[Way]:
    """Return the mean, and what may be better: one tuner, more ridge, no new features, none that seem to harm.

    A feature seems to harm where more is reached with its weight set to 0, the others as they are.
    """
    new, mean = tuple(tunings.columns), unseen.reached(Way(MEAN), aside)
    harmful = tuple(label for label in new if unseen.reached(Way(MEAN, (label,), anew=False), aside) > mean)
    fewer = [Way(MEAN, new, called="the new features")] if new else []
    fewer += [Way(MEAN, harmful)] if harmful not in ((), new) else []
    return [Way(MEAN), *(Way(name) for name in (*tunings.names, *HELD) if name != MEAN), *fewer]


def _best(unseen: Unseen, ways: list[Way], aside: int | None) -> Way:
    """Return the first of the ways unless another is surely, or the start likely, better; the fold aside is unknown."""
    usual, start = ways[0], Way(START)
    leaders = sorted(ways[1:], key=lambda way: -unseen.reached(way, aside))
    best = next((way for way in leaders if unseen.better(way, usual, aside, SURE / len(leaders))), usual)
    return start if unseen.fair_to_start and unseen.better(start, best, aside, LIKELY) else best


def _tried(unseen: Unseen, ways: list[Way]) -> tuple[Tried, ...]:
    tried = [Tried(way, unseen.reached(way, None), unseen.p(way, ways[0], None)) for way in ways]
    return tuple(sorted(tried, key=lambda each: -each.score))
