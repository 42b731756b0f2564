"""Remaining time of a run, tested with a simulated clock and stages that are faster or slower than expected."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from features.progress import Done
from rerank.experiment.clock import REPORT_INTERVAL, Clock, Work, time_left

FACTORS = (0.1, 0.5, 1.0, 2.0, 10.0)


@dataclass(frozen=True)
class Step:
    name: str
    work: Work | None
    needs: frozenset[str] = frozenset()


def steps(**kinds: Sequence[float]) -> list[Step]:
    """Return stages of several kinds, each with its expected seconds."""
    return [
        Step(f"{kind} {number}", Work(kind, seconds))
        for kind, all_seconds in kinds.items()
        for number, seconds in enumerate(all_seconds)
    ]


LONG = {"train": (900, 700, 800), "score": (100, 200, 100), "tune": (60,), "ablate": (500,)}


def choose(waiting: Sequence[Step], running: Sequence[Step]) -> Step | None:
    """Return the first stage whose dependencies have finished."""
    undone = {step.name for step in running}
    for step in waiting:
        if step.needs.isdisjoint(undone):
            return step
        undone.add(step.name)
    return None


@dataclass
class Simulated:
    """A run in which a stage takes `factors[kind]` times the expected seconds, or `factor`.

    Running stages report their progress at each of about 200 moments, except if they are `silent`.
    """

    waiting: list[Step]
    factor: float = 1.0
    factors: dict[str, float] = field(default_factory=dict)
    jobs: int = 1
    silent: bool = False
    time: float = 0.0

    def lefts(self) -> Iterator[tuple[float, float]]:
        """Yield the time and the estimated remaining time at each moment."""
        moment = sum(map(self.seconds, self.waiting)) / 200
        clock = Clock(self.jobs, choose, lambda _: None, lambda: self.time)
        running: dict[str, tuple[Step, float]] = {}  # by name: the stage and its true remaining seconds
        while self.waiting or running:
            while len(running) < self.jobs and (step := choose(self.waiting, [step for step, _ in running.values()])):
                self.waiting.remove(step)
                clock.waiting = list(self.waiting)
                clock.begin(step)
                running[step.name] = step, self.seconds(step)
                if step.work and not self.silent:
                    clock.update(step.name, Done(step.work.done, step.work.done))
            left = clock.left()
            assert left is not None
            yield self.time, left
            passed = min(moment, *(rest for _, rest in running.values()), moment)
            self.time += passed
            for name, (step, rest) in list(running.items()):
                running[name] = step, rest - passed
                if rest - passed < 1e-6:
                    clock.end(name)
                    del running[name]
                elif not self.silent and step.work:
                    before = step.work.done
                    clock.update(name, Done(1 - (1 - before) * (rest - passed) / self.seconds(step), before))

    def seconds(self, step: Step) -> float:
        """Return the true seconds of a stage."""
        assert step.work
        return step.work.seconds * (1 - step.work.done) * self.factors.get(step.work.kind, self.factor)

    def errors(self, first: float = 1 / 3, last: float = 0.9) -> list[float]:
        """Return the relative errors of all estimates between two fractions of the true time."""
        lefts = list(self.lefts())
        return [
            abs(left - (self.time - time)) / (self.time - time)
            for time, left in lefts
            if first * self.time <= time <= last * self.time
        ]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_after_a_third_of_the_run_the_estimate_is_accurate(factor: float, jobs: int) -> None:
    assert max(Simulated(steps(**LONG), factor, jobs=jobs).errors()) < 0.25


def test_at_the_expected_speed_the_estimate_is_always_accurate() -> None:
    assert max(Simulated(steps(**LONG)).errors(first=0.0)) < 0.01


@pytest.mark.parametrize("factor", FACTORS)
def test_finished_stages_correct_the_estimate_without_progress_reports(factor: float) -> None:
    equal = {"train": [100.0] * 20, "score": [50.0] * 20}
    assert max(Simulated(steps(**equal), factor, silent=True).errors()) < 0.25


def test_speed_is_corrected_per_kind_of_stage() -> None:
    """Training takes a tenth of the expected time, as with a fast GPU. Other stages take the expected time."""
    alternating = steps(train=[1000.0] * 5, tune=[100.0] * 5)
    alternating.sort(key=lambda step: step.name[-1])
    assert max(Simulated(alternating, factors={"train": 0.1}).errors()) < 0.25


def test_progress_of_a_running_stage_corrects_its_estimate() -> None:
    assert max(Simulated([Step("train", Work("train", 100))], factor=7.0).errors(first=0.1)) < 0.25


@pytest.mark.parametrize("factor", FACTORS)
def test_a_resumed_training_excludes_work_done_before(factor: float) -> None:
    resumed = [Step("train 0", Work("train", 900, done=0.8)), *steps(train=(), score=(200, 200), tune=(300,))]
    assert max(Simulated(resumed, factor).errors()) < 0.25


@pytest.mark.parametrize("factor", FACTORS)
def test_stored_scores_do_not_change_the_estimated_speed(factor: float) -> None:
    """Half of the first scoring is read from its journal in no time. The other half has the true speed."""
    time = 0.0
    clock = Clock[Step](1, choose, now=lambda: time)
    clock.waiting = steps(score=(200, 200, 200))[1:]
    clock.begin(steps(score=(200,))[0])
    clock.update("score 0", Done(0.0))
    clock.update("score 0", Done(0.5, before=0.5))
    time = 50 * factor
    clock.update("score 0", Done(0.75, before=0.5))
    assert clock.left() == pytest.approx(factor * (50 + 200 + 200), rel=0.25)


def test_a_report_without_progress_does_not_slow_the_estimate() -> None:
    time = 0.0
    clock = Clock[Step](1, choose, now=lambda: time)
    clock.begin(steps(score=(200,))[0])
    for second, fraction in ((0, 0.0), (50, 0.25), (90, 0.25)):
        time = float(second)
        clock.update("score 0", Done(fraction))
    assert clock.left() == pytest.approx(110)


def test_parallel_stages_take_the_time_of_the_longest() -> None:
    clock = Clock[Step](2, choose, now=lambda: 0.0)
    clock.waiting = steps(train=(100, 60, 60, 10))
    assert clock.left() == 120
    first, second = steps(train=(100, 60))
    clock.waiting = [first, Step(second.name, second.work, needs=frozenset([first.name]))]
    assert clock.left() == 160


def test_no_estimate_while_the_work_of_a_stage_is_unknown() -> None:
    clock = Clock[Step](1, choose, now=lambda: 0.0)
    unknown = Step("decode", None)
    clock.waiting = [unknown]
    assert clock.begin(steps(train=(100,))[0]) == ""
    clock.end("train 0")
    clock.waiting = steps(tune=(100,))
    assert clock.begin(unknown) == ""
    clock.end("decode")
    assert clock.left() == 100


def test_a_long_stage_shows_its_time_and_the_total() -> None:
    clock = Clock[Step](1, choose, now=lambda: 0.0)
    clock.waiting = steps(score=(120,))
    assert clock.begin(Step("ablate", Work("ablate", 360))) == " (about 6 min), about 8 min left in total"
    clock.end("ablate")
    assert clock.begin(Step("join", Work("join", 5))) == ", about 2 min left in total"


def test_a_long_stage_reports_the_remaining_time_periodically(
    capfd: pytest.CaptureFixture[str], progress: None
) -> None:
    time = 0.0
    clock = Clock[Step](1, choose, now=lambda: time)
    clock.begin(Step("train", Work("train", 620)))
    for second in range(1, 301):
        time = float(second)
        clock.update("train", Done(second / 620))
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 300 // REPORT_INTERVAL
    assert (lines[0], lines[-1]) == ("about 10 min left in total", "about 5 min left in total")


def test_a_nested_run_reports_progress_to_the_outer_run() -> None:
    time, reports = 0.0, list[Done | None]()
    clock = Clock[Step](1, choose, reports.append, now=lambda: time)
    assert clock.begin(Step("train", Work("train", 200))) == ""
    for second in range(200):
        time = float(second)
        clock.update("train", Done(second / 200))
    assert [done and round(done.fraction, 6) for done in reports] == [second / 200 for second in range(30, 200, 30)]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"), (59, "about 1 min"), (239, "about 4 min"),
        (3570, "about 1 h"), (7800, "about 2 h 10 min"), (100_000, "about 27 h 50 min"),
    ],
)  # fmt: skip
def test_remaining_times_are_rounded(seconds: float, words: str) -> None:
    assert time_left(seconds) == f"{words} left in total"
