import pytest

from rerank.experiment.remaining import TRUST, Expected, Remaining, in_words

TRAIN, OTHER, LATER = (Expected(f"train {name}", apart=True) for name in ("one", "two", "three"))
TUNE, REPORT, JOIN = Expected("tune"), Expected("evaluate"), Expected("join dev", apart=True)


def earlier(stage: Expected, seconds: float, *needs: str, kept: bool = False) -> Expected:
    return Expected(stage.name, stage.apart, seconds, frozenset(needs), kept)


def test_a_first_run_knows_nothing_until_something_was_measured() -> None:
    """A training of 300 s, six times that of the sample: others take 2.4 times as long, then three times."""
    tune, report = 16 * 6**0.5, 9 * 6**0.5
    remaining = Remaining(waiting=(JOIN, TRAIN, OTHER, TUNE, REPORT))
    assert remaining.seconds(0) is None
    remaining = remaining.begun("join dev", 0).ended("join dev", 9)
    assert remaining.seconds(9) is None
    remaining = remaining.begun("train one", 10)
    assert remaining.seconds(70) is None
    assert remaining.seconds(70, "train one", 240) == pytest.approx(240 + 300 + tune + report)
    remaining = remaining.ended("train one", 310)
    assert remaining.took("train one") == 300
    assert remaining.seconds(310) == pytest.approx(300 + tune + report)
    remaining = remaining.begun("train two", 310)
    assert remaining.seconds(400) == pytest.approx(210 + tune + report)
    assert remaining.seconds(700) == pytest.approx(0 + tune + report)
    remaining = remaining.ended("train two", 910).begun("tune", 910)
    assert remaining.seconds(910) == pytest.approx(48 + 27)
    assert remaining.ended("tune", 926).seconds(926) == pytest.approx(9 * (48 + 16) / 32)


def test_a_second_run_goes_by_the_first_one() -> None:
    """And by how fast it is beside it, of which the first seconds tell little."""
    stages = (earlier(TRAIN, 100), earlier(TUNE, 50), earlier(REPORT, 30))
    remaining = Remaining(waiting=stages)
    assert remaining.seconds(0) == 180
    remaining = remaining.begun("train one", 0)
    assert remaining.seconds(40) == 140
    pace = (TRUST + 50) / (TRUST + 100)
    assert remaining.seconds(40, "train one", 10) == pytest.approx(10 + 80 * pace)
    remaining = remaining.ended("train one", 50)
    assert remaining.seconds(50) == pytest.approx(80 * pace)
    assert remaining.without("tune").seconds(50) == pytest.approx(30 * pace)


def test_what_is_new_in_a_second_run_takes_its_share() -> None:
    remaining = Remaining(waiting=(TRAIN, earlier(TUNE, 40)))
    assert remaining.seconds(0) == 125 + 40


def test_stages_of_named_test_sets_take_the_share_of_their_kind() -> None:
    remaining = Remaining(waiting=(Expected("evaluate, news"), Expected("evaluate, talks"), earlier(TUNE, 16)))
    assert remaining.seconds(0) == 9 + 9 + 16


def test_only_what_changed_is_to_be_done() -> None:
    """What is as it was counts once something that it needs is done anew."""
    stages = (
        earlier(TRAIN, 100, kept=True), earlier(OTHER, 200, kept=True), earlier(TUNE, 10, "train one", kept=True),
        earlier(REPORT, 1, "tune", kept=True),
    )  # fmt: skip
    remaining = Remaining(waiting=stages)
    assert remaining.seconds(0) == 0
    assert remaining.begun("train one", 0).seconds(0) == 111
    assert remaining.without("train one").begun("train two", 0).seconds(0) == 200
    changed = Remaining(waiting=(*stages[:2], TUNE, stages[3]))
    assert changed.seconds(0) == pytest.approx(16 * (16 * 3**0.5 + 1) / 25 + 1)


def test_jobs_share_the_work() -> None:
    stages = tuple(earlier(stage, seconds) for stage, seconds in ((TRAIN, 100), (OTHER, 60), (LATER, 80), (TUNE, 5)))
    assert Remaining(2, stages).seconds(0) == 120 + 5
    assert Remaining(4, stages).seconds(0) == 100 + 5
    remaining = Remaining(2, stages).begun("train one", 0).begun("train two", 10)
    assert remaining.seconds(20) == (80 + 50 + 80) / 2 + 5


def test_a_bar_speaks_for_its_stage_if_it_fills_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rerank.experiment.remaining.monotonic", lambda: 60.0)
    remaining = Remaining(waiting=(earlier(TRAIN, 600), earlier(TUNE, 300))).begun("train one", 0)
    assert remaining.beside("train one", "IBM model 1", 1) == ", about 14 min left of the whole"
    assert remaining.beside("train one", "train one", 540) == ", about 14 min left of the whole"
    assert remaining.beside("train one", "train one", 0) == ", under a minute left of the whole"
    assert Remaining(waiting=(TRAIN,)).begun("train one", 0).beside("train one", "IBM model 1", 3) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "under a minute"), (59.9, "under a minute"), (60, "about 1 min"), (239, "about 4 min"),
        (3570, "about 1 h"), (7800, "about 2 h 10 min"), (100_000, "about 27 h 50 min"),
    ],
)  # fmt: skip
def test_rounded(seconds: float, words: str) -> None:
    assert in_words(seconds) == f", {words} left of the whole"
    assert in_words(None) == ""
