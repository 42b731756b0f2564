"""The plan of a run: models, epochs and scope for the minutes of a run, and its file."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from features.feature import Resources
from features.models.cost import Speed, Speeds
from moses_io.files.errors import InputError
from rerank.experiment.file import Experiment, read_experiment
from rerank.experiment.plan import PLAN, Epochs, find_plan, make_plan, plan_lines, search, write_plan
from rerank.experiment.recipe import MODELS, MOST, SCOPES, SMALL_MODELS, Corpus, Scope, Side, find_depth

SIDE = Side(words=360_000, vocabulary=9_000, letters=60, unknown=0.03)
CORPUS = Corpus(pairs=30_000, dev=1_000, source=SIDE, target=SIDE)
LEAST = find_depth(CORPUS).least


def epochs_within(total: float) -> Callable[[Epochs, Scope], bool]:
    """Return a function for which a run takes one unit of time for each epoch of a model, and four without savings."""
    return lambda epochs, scope: sum(epochs.values()) + 3 - SCOPES.index(scope) <= total


def test_more_time_gives_more_models_and_then_more_epochs() -> None:
    for count in range(2, len(MODELS) + 1):
        epochs, scope = search(CORPUS, epochs_within(count * LEAST + 3))
        assert (list(epochs), scope) == (list(MODELS[:count]), SCOPES[0])
    epochs, _ = search(CORPUS, epochs_within(5 * LEAST + 3 + 7))
    assert epochs == dict(zip(MODELS, [LEAST + 2, LEAST + 2, LEAST + 1, LEAST + 1, LEAST + 1], strict=True))
    epochs, _ = search(CORPUS, epochs_within(1_000))
    assert epochs == dict.fromkeys(MODELS, MOST)


def test_short_runs_save_before_they_train_one_model_alone() -> None:
    assert search(CORPUS, epochs_within(2 * LEAST + 2))[1] == SCOPES[1]
    epochs, scope = search(CORPUS, epochs_within(2 * LEAST))
    assert (epochs, scope) == (dict.fromkeys(MODELS[:2], LEAST), SCOPES[3])
    epochs, scope = search(CORPUS, epochs_within(2 * LEAST - 1))
    assert (epochs, scope) == ({MODELS[0]: 2 * LEAST - 1}, SCOPES[3])


def test_very_short_runs_train_one_model_for_less_time_or_none() -> None:
    assert search(CORPUS, epochs_within(LEAST - 1))[0] == {MODELS[0]: LEAST - 1}
    assert search(CORPUS, epochs_within(0))[0] == {}


def test_a_small_corpus_has_two_models() -> None:
    small = replace(CORPUS, pairs=6_000)
    assert search(small, epochs_within(1_000))[0] == dict.fromkeys(SMALL_MODELS, find_depth(small).most)


@pytest.fixture
def experiment(small: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """An experiment of ten sentences without models, on a machine of known speed."""
    folder = small(pairs=40, sentences=10, candidates=6)
    monkeypatch.setattr("rerank.experiment.plan.measure_speeds", lambda *_: Speeds(Speed(0.5, 0.5), Speed(2, 2)))
    (folder / "e.toml").write_text(
        'minutes = 10\noutput = "work"\ninitial_weights = "moses.ini"\n'
        'train = { source = "train.de", target = "train.en" }\n'
        'dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }\n'
    )
    (folder / "work").mkdir()
    return read_experiment(str(folder / "e.toml"))


def test_a_plan_fits_into_its_minutes(experiment: Experiment) -> None:
    assert experiment.unplanned
    plans = []
    for minutes in (2, 10, 25, 60, 300):
        unplanned = replace(experiment.unplanned, minutes=minutes)
        plans.append(make_plan(unplanned, CORPUS, Resources("cpu"), 2, Speeds()))
        assert plans[-1].seconds <= 60 * minutes or not plans[-1].epochs
    assert len({len(plan.epochs) for plan in plans}) > 2
    assert plans[-1].use > plans[-2].use * 0.9 > 0


def test_a_slower_machine_does_less(experiment: Experiment) -> None:
    assert experiment.unplanned
    fast, slow = (
        make_plan(experiment.unplanned, CORPUS, Resources("cpu"), 2, Speeds(Speed(speed, speed), Speed(speed, speed)))
        for speed in (0.1, 1.0)
    )
    assert sum(fast.epochs.values()) > 2 * sum(slow.epochs.values()) > 0


def test_a_short_run_needs_no_measurement(experiment: Experiment) -> None:
    assert experiment.unplanned
    plan = find_plan(experiment, experiment.unplanned, Resources("cpu"), 2)
    assert plan.is_full and plan.speeds == Speeds()


def test_a_plan_is_used_again(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    assert experiment.unplanned
    monkeypatch.setattr("rerank.experiment.plan.SLOW", Speeds(Speed(1e9), Speed(1e9)))
    plan = find_plan(experiment, experiment.unplanned, Resources("cpu"), 2)
    assert plan.speeds.transformer == Speed(2, 2)
    write_plan(replace(plan, epochs={"left-to-right": 7.0}), experiment.output)
    again = find_plan(experiment, experiment.unplanned, Resources("cpu"), 1)
    assert again == replace(plan, epochs={"left-to-right": 7.0})
    other = replace(experiment.unplanned, minutes=11)
    assert find_plan(experiment, other, Resources("cpu"), 2).epochs == plan.epochs


def test_another_corpus_has_another_plan(experiment: Experiment) -> None:
    assert experiment.unplanned
    plan = find_plan(experiment, experiment.unplanned, Resources("cpu"), 2)
    write_plan(replace(plan, epochs={"left-to-right": 7.0}), experiment.output)
    for path in (experiment.train.source, experiment.train.target):
        Path(path).write_bytes(Path(path).read_bytes() * 2)
    assert find_plan(experiment, experiment.unplanned, Resources("cpu"), 2).epochs != {"left-to-right": 7.0}


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"minutes": 10}'])
def test_a_damaged_plan_is_named(experiment: Experiment, content: str) -> None:
    assert experiment.unplanned
    (experiment.output / PLAN).write_text(content)
    with pytest.raises(InputError, match=r"plan\.json.*\. Remove it for a new plan$"):
        find_plan(experiment, experiment.unplanned, Resources("cpu"), 2)


def test_the_file_of_a_plan_is_json(experiment: Experiment) -> None:
    assert experiment.unplanned
    plan = find_plan(experiment, experiment.unplanned, Resources("cpu"), 2)
    write_plan(plan, experiment.output)
    record = json.loads((experiment.output / PLAN).read_text())
    assert (record["minutes"], record["epochs"]) == (10, plan.epochs)


def test_the_lines_of_a_plan(experiment: Experiment) -> None:
    assert experiment.unplanned
    plan = make_plan(experiment.unplanned, CORPUS, Resources("cpu"), 2, Speeds())
    first, *models = plan_lines(replace(plan, epochs={"left-to-right": 2.5, "right-to-left-2": 2}))
    assert first.startswith("planned for 10 minutes: 2 models, about ")
    assert models == ["right-to-left-2: transformer, 4 epochs", "left-to-right: rnnsearch, 2.5 epochs"]
    assert plan_lines(replace(plan, epochs={})) == ["10 minutes are too short to train a model on this corpus"]
