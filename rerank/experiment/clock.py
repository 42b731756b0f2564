"""The remaining time of a run, from the expected work of its stages and the time that they have taken so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Generic, Protocol, TypeVar

from features.progress import Done, Watcher, show_time_left

REPORT_INTERVAL = 30.0
"""Seconds between two reports of the remaining time."""

TRUST = 0.02
"""Fraction of the work of a run after which the time taken counts as much as the expected time."""

OWN_SPEED = 0.05
"""Fraction of a stage after which its own speed counts as much as the expected speed."""


@dataclass(frozen=True)
class Work:
    """Expected work of a stage.

    Attributes:
        kind: the time of a stage first corrects the expected time of other stages of this kind.
        seconds: expected seconds on the machine of the run.
        done: fraction that an earlier run has already done.
    """

    kind: str
    seconds: float
    done: float = 0.0


class Timed(Protocol):
    """A stage with its expected work, which is None if nothing is known about it."""

    @property
    def name(self) -> str:
        """Unique name."""

    @property
    def work(self) -> Work | None:
        """Expected work."""


Step = TypeVar("Step", bound=Timed)
"""The type of the stages of a run."""


@dataclass
class _Timing(Generic[Step]):
    """Time of a stage that is running or has ended.

    Attributes:
        stage: the stage.
        work: its expected work.
        began: time at the start.
        start: time of the first report of the stage.
        last: time of the last report with a new fraction.
        done: progress at that time, or None before the first report.
        ended: time at the end, or None.
    """

    stage: Step
    work: Work
    began: float
    start: float = 0.0
    last: float = 0.0
    done: Done | None = None
    ended: float | None = None

    def update(self, done: Done, now: float) -> None:
        """Record the progress of the stage."""
        if self.done is None:
            self.start = now
        if done != self.done:
            self.last, self.done = now, done

    def evidence(self) -> tuple[float, float]:
        """Return the expected and the actual seconds of the work done so far."""
        before = self.done.before if self.done else self.work.done
        if self.ended is not None:
            return self.work.seconds * (1 - before), self.ended - self.began
        if self.done is None:
            return 0.0, 0.0
        return self.work.seconds * (self.done.fraction - before), self.last - self.start

    def left(self, ratio: float, now: float) -> float:
        """Return the remaining seconds of a running stage. `ratio` corrects its expected seconds."""
        if self.done is None:
            return max(0.0, self.work.seconds * ratio * (1 - self.work.done) - (now - self.began))
        rest, part = 1 - self.done.fraction, self.done.fraction - self.done.before
        left = self.work.seconds * ratio * rest
        if part > 0:
            by_speed, trust = rest * (self.last - self.start) / part, part / (part + OWN_SPEED)
            left = trust * by_speed + (1 - trust) * left
        return max(0.0, left - (now - self.last))


class Clock(Generic[Step]):
    """Estimate of the remaining time of a run.

    The expected seconds of a stage are multiplied by the ratio of seconds taken to seconds expected, over stages of the
    same kind and, while these have done little, over all stages. The part of a running stage that is done counts as
    well. Stages that can run side by side do so in the estimate.

    Attributes:
        waiting: stages that still have to run, without those that are up to date.

    Args:
        jobs: maximum number of stages at a time.
        choose: function that returns the next stage to run, or None, given the waiting and the running stages.
        watcher: called with the progress of the run, at most every `REPORT_INTERVAL` seconds. None: the remaining time
            is shown.
        now: function that returns the time in seconds.
    """

    def __init__(
        self,
        jobs: int,
        choose: Callable[[Sequence[Step], Sequence[Step]], Step | None],
        watcher: Watcher | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.waiting: Sequence[Step] = ()
        self._jobs, self._choose, self._watcher, self._now = jobs, choose, watcher, now
        self._timings: dict[str, _Timing[Step]] = {}  # of all stages that have begun and have expected work
        self._unknown: set[str] = set()  # running stages without expected work
        self._began = self._reported = now()

    def begin(self, stage: Step) -> str:
        """Start the time of a stage that is not waiting any more, and return the text to show after its name.

        It has the expected time of the stage, if that is a minute or more, and the remaining time of the run. It is
        empty if nothing is known, or if there is a watcher.
        """
        self._reported = self._now()
        if stage.work:
            self._timings[stage.name] = _Timing(stage, stage.work, self._reported)
        else:
            self._unknown.add(stage.name)
        left = self.left()
        if left is None or stage.work is None or self._watcher:
            return ""
        stage_seconds = _expected(stage, self._ratios())
        return f"{f' ({_rounded(stage_seconds)})' if stage_seconds >= 60 else ''}, {time_left(left)}"

    def end(self, name: str) -> None:
        """End the time of a stage."""
        self._unknown.discard(name)
        if name in self._timings:
            self._timings[name].ended = self._now()

    def update(self, name: str, done: Done | None) -> None:
        """Record the progress of a running stage, if it is known, and show the remaining time now and then."""
        now = self._now()
        if done is not None and name in self._timings:
            self._timings[name].update(done, now)
        if now - self._reported < REPORT_INTERVAL:
            return
        self._reported, left = now, self.left()
        if left is not None and self._watcher:
            self._watcher(Done((now - self._began) / (now - self._began + left)))
        elif left is not None:
            show_time_left(time_left(left))

    def left(self) -> float | None:
        """Return the estimated remaining seconds, or None if nothing is known about a stage."""
        if self._unknown or any(stage.work is None for stage in self.waiting):
            return None
        now, waiting, ratios, total = self._now(), list(self.waiting), self._ratios(), 0.0
        active = [timing for timing in self._timings.values() if timing.ended is None]
        running = {each.stage.name: (each.left(ratios[each.work.kind], now), each.stage) for each in active}
        while True:
            while len(running) < self._jobs:
                stage = self._choose(waiting, [other for _, other in running.values()])
                if stage is None:
                    break
                waiting.remove(stage)
                running[stage.name] = total + _expected(stage, ratios), stage
            if not running:
                return total
            first = min(running, key=lambda name: running[name][0])
            total, _ = running.pop(first)

    def _ratios(self) -> dict[str, float]:
        """Return the factors that correct the expected seconds of stages, by kind.

        A factor is a weighted geometric mean: the ratio of all stages is drawn towards 1, and that of a kind towards
        the ratio of all stages, as long as they are based on little work.
        """
        timings = list(self._timings.values())
        works = [*(stage.work for stage in self.waiting if stage.work), *(each.work for each in timings)]
        little = TRUST * sum(work.seconds for work in works)
        expected, taken = _evidence(timings)
        ratio = (taken / expected) ** (expected / (expected + little)) if expected and taken else 1.0
        ratios = {work.kind: ratio for work in works}
        for kind in ratios:
            expected, taken = _evidence([each for each in timings if each.work.kind == kind])
            if expected and taken:
                trust = taken / (taken + little * ratio)
                ratios[kind] = (taken / expected) ** trust * ratio ** (1 - trust)
        return ratios


def _expected(stage: Timed, ratios: Mapping[str, float]) -> float:
    """Return the expected seconds of a stage from its start, corrected by the ratio of its kind."""
    return stage.work.seconds * (1 - stage.work.done) * ratios[stage.work.kind] if stage.work else 0.0


def _evidence(timings: "Sequence[_Timing[Step]]") -> tuple[float, float]:
    """Return the expected and the actual seconds of all work done so far."""
    parts = [timing.evidence() for timing in timings]
    return sum((part for part, _ in parts), 0.0), sum((seconds for _, seconds in parts), 0.0)


def time_left(seconds: float) -> str:
    """Return the text for a remaining time."""
    return f"{_rounded(seconds)} left in total"


def _rounded(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    if minutes < 60:
        return f"about {minutes} min"
    hours, rest = divmod(10 * round(minutes / 10), 60)
    return f"about {hours} h{f' {rest} min' if rest else ''}"
