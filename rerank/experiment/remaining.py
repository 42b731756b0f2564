"""How long the rest of a run takes: by what its stages took in an earlier run, and by what has run so far.

`run_stages` (`stages.py`) tells a `Remaining` which stages there are, and when each begins and ends, and puts the
answer into the line of a stage. Bars (`features/progress.py`) ask it while the stage runs, in the process of the stage.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from time import monotonic

TRAIN = "train"
"""Kind of the stages whose time says little of others: together as much as a tuning, and that by its square root.

What makes a training longer is its corpus and its settings, and only the first goes with longer lists.
"""

SHARES = {
    TRAIN: 50.0, "translate": 15.0, "score": 4.0, "tune": 16.0, "estimate": 18.0, "ablate dev": 66.0, "evaluate": 9.0,
    "attend": 3.0,
}  # fmt: skip
"""How long stages take beside each other, by their names or the first words of these: seconds of the sample."""

QUICK = 1.0
"""The same of all other stages, by which none but those of their kind are measured."""

ANY = ""
"""In the place of a kind: of all."""

TRUST = 10.0
"""Seconds of an earlier run that are taken to be as now, whatever was measured."""


@dataclass(frozen=True)
class Expected:
    """What is known of a stage before it begins."""

    name: str
    apart: bool = False  # may run beside others
    earlier: float | None = None  # seconds that it took in an earlier run, with the same settings
    needs: frozenset[str] = frozenset()  # names of the stages that make what it reads
    kept: bool = False  # is up to date unless something that it reads changes

    @property
    def kind(self) -> str:
        """The first word of its name."""
        return _first_word(self.name)

    @property
    def share(self) -> float:
        """How long it takes beside others, as far as its name tells."""
        return SHARES.get(self.name, SHARES.get(self.kind, QUICK))


Timed = tuple[Expected, float]
"""A stage, and the seconds that it took; or the time at which it began."""


@dataclass(frozen=True)
class Remaining:
    """What a run has done, is doing and has still to do.

    Attributes:
        jobs: stages that run at the same time, if they can.
        waiting: what has not begun, in order; of it those are to be done that are not kept, or need what was done.
        running: what is being done, with the time at which it began.
        done: what was done, with its seconds.
    """

    jobs: int = 1
    waiting: tuple[Expected, ...] = ()
    running: tuple[Timed, ...] = ()
    done: tuple[Timed, ...] = ()

    def begun(self, name: str, time: float) -> "Remaining":
        """Return what remains when a stage begins."""
        running = [(stage, time) for stage in self.waiting if stage.name == name]
        return replace(self.without(name), running=(*self.running, *running))

    def ended(self, name: str, time: float) -> "Remaining":
        """Return what remains when a stage ends that had begun."""
        running = tuple(pair for pair in self.running if pair[0].name != name)
        done = [(stage, time - began) for stage, began in self.running if stage.name == name]
        return replace(self, running=running, done=(*self.done, *done))

    def took(self, name: str) -> float:
        """Return the seconds of a stage that was done."""
        return next(seconds for stage, seconds in self.done if stage.name == name)

    def without(self, name: str) -> "Remaining":
        """Return what remains when a stage is up to date."""
        return replace(self, waiting=tuple(stage for stage in self.waiting if stage.name != name))

    def seconds(self, time: float, own: str = "", left: float | None = None) -> float | None:
        """Return how long the rest takes, None where nothing tells.

        A stage takes as long as in an earlier run, times what those that were done now took of their earlier time. A
        new one takes as long as others of its kind do, or its share of what others do (of trainings: see `TRAIN`).
        Stages that can run apart are divided among the jobs, and last as long as the longest of them.

        Args:
            time: now.
            own: name of a stage that is running.
            left: seconds that it has left, if it knows better.
        """
        running = [(stage, time - began) for stage, began in self.running]
        known = {} if left is None else {own: left}
        ground = [*self.done, *((stage, elapsed + known[own]) for stage, elapsed in running if stage.name in known)]
        pace, rates = _pace(ground), self._rates(ground)
        rests: dict[bool, list[float]] = {True: [], False: []}
        for stage, elapsed in [*running, *((stage, 0.0) for stage in self._to_come())]:
            rate = rates.get(stage.kind, rates.get(ANY))
            if stage.name not in known and stage.earlier is None and rate is None:
                return None
            expected = stage.share * (rate or 0.0) if stage.earlier is None else stage.earlier * pace
            rests[stage.apart].append(known.get(stage.name, max(0.0, expected - elapsed)))
        return max(0.0, *rests[True], sum(rests[True]) / self.jobs) + sum(rests[False])

    def beside(self, own: str, bar: str, left: float | None) -> str:
        """Return what a bar with so many seconds left says of the run; one that begins as its stage does fills it."""
        fills = _first_word(own) == _first_word(bar)
        return in_words(self.seconds(monotonic(), own, left if fills else None))

    def _to_come(self) -> list[Expected]:
        due = {stage.name for stage, _ in (*self.done, *self.running)}
        to_come = []
        for stage in self.waiting:
            if not stage.kept or stage.needs & due:
                due.add(stage.name)
                to_come.append(stage)
        return to_come

    def _rates(self, ground: Sequence[Timed]) -> dict[str, float]:
        """Return the seconds a share of each kind whose time is known, and of `ANY` by which others are measured."""
        coming, pace = [*(stage for stage, _ in self.running), *self.waiting], _pace(ground)
        measured = {stage.name for stage, _ in ground}
        earlier = [(stage, stage.earlier * pace) for stage in coming if stage.earlier and stage.name not in measured]
        seconds, shares = defaultdict[str, float](float), defaultdict[str, float](float)
        for stage, time in (*ground, *earlier):
            for kind in (stage.kind, *((ANY,) if stage.share > QUICK and stage.kind != TRAIN else ())):
                seconds[kind] += time
                shares[kind] += stage.share
        if TRAIN in shares:
            seconds[ANY] += SHARES["tune"] * sqrt(seconds[TRAIN] / shares[TRAIN])
            shares[ANY] += SHARES["tune"]
        return {kind: seconds[kind] / shares[kind] for kind in shares}


def _first_word(name: str) -> str:
    return name.partition(" ")[0].rstrip(",")


def _pace(ground: Sequence[Timed]) -> float:
    """Return what stages take, divided by what they took earlier; 1 as long as they are short."""
    again = [(seconds, stage.earlier) for stage, seconds in ground if stage.earlier is not None]
    return (TRUST + sum(now for now, _ in again)) / (TRUST + sum(earlier for _, earlier in again))


def in_words(seconds: float | None) -> str:
    """Return how long the rest takes as the end of a line, rounded; empty where it is not known."""
    if seconds is None:
        return ""
    if seconds < 60:
        return ", under a minute left of the whole"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f", about {minutes} min left of the whole"
    hours, rest = divmod(10 * round(minutes / 10), 60)
    return f", about {hours} h{f' {rest} min' if rest else ''} left of the whole"
