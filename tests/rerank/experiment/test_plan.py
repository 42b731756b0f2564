"""Planning of a run (models, epochs and scope for the given minutes) and the file of the plan."""

import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from features.models.config import ModelConfig
from features.models.cost import TimeFactors
from moses_io.files.errors import InputError
from moses_io.files.json_files import write_json
from rerank.experiment.checks import check_inputs
from rerank.experiment.corpus import Corpus, Monolingual, Side
from rerank.experiment.experiment import Experiment
from rerank.experiment.file import read_experiment, with_recipe
from rerank.experiment.machine import Machine, measure_factors
from rerank.experiment.plan import (
    PLAN,
    Plan,
    Steps,
    apply_plan,
    assumed_plan,
    find_plan,
    make_plan,
    plan_lines,
    search,
    usable_plan,
    with_all_models,
    write_plan,
)
from rerank.experiment.recipe import (
    MODELS,
    REDUCED_SIZE,
    SCOPES,
    SHORTLIST,
    SIZES,
    SMALL_STEPS,
    USUAL_SIZE,
    Scope,
    find_length_range,
    find_recipe,
)
from rerank.systems.comparison import Comparison

SIDE = Side(words=200_000, vocabulary=9_000, characters=60, unknown=0.03)
CORPUS = Corpus(pairs=30_000, dev=1_000, source=SIDE, target=SIDE)
LENGTHS = find_length_range(CORPUS)
MINIMUM = LENGTHS.minimum


def steps_within(total: float) -> Callable[[Steps, Scope], bool]:
    """Return a function that limits the cost: one unit for each model step, and up to three for the full scope."""

    def fits(steps: Steps, scope: Scope) -> bool:
        return sum(steps.values()) + scope.ablation + scope.translations + scope.whole_lists <= total

    return fits


def test_more_time_gives_more_models_and_then_longer_training() -> None:
    for count in range(2, len(MODELS) + 1):
        steps, scope = search(CORPUS, steps_within(count * MINIMUM + 3))
        assert (list(steps), scope.ablation) == (list(MODELS[:count]), count == len(MODELS))
    steps, _ = search(CORPUS, steps_within(5 * MINIMUM + 3 + 7))
    assert steps == dict(zip(MODELS, [MINIMUM + 2, MINIMUM + 2, MINIMUM + 1, MINIMUM + 1, MINIMUM + 1], strict=True))
    steps, _ = search(CORPUS, steps_within(1_000))
    assert steps == dict.fromkeys(MODELS, LENGTHS.maximum)


def test_a_model_that_takes_too_long_is_omitted() -> None:
    """In this test, a second model takes longer than the backward model."""

    def fits(steps: Steps, scope: Scope) -> bool:
        return sum(steps.values()) + MINIMUM * sum(name.endswith("-2") for name in steps) <= 3 * MINIMUM

    steps, _ = search(CORPUS, fits)
    assert list(steps) == ["left-to-right", "right-to-left", "backward"]


def test_short_runs_halve_the_training_before_they_reduce_the_scope() -> None:
    half = (MINIMUM + 1) // 2
    assert search(CORPUS, steps_within(2 * MINIMUM + 2)) == (dict.fromkeys(MODELS[:2], MINIMUM), SCOPES[1])
    assert search(CORPUS, steps_within(2 * half + 2)) == (dict.fromkeys(MODELS[:2], half), SCOPES[1])
    assert search(CORPUS, steps_within(2 * half + 1)) == (dict.fromkeys(MODELS[:2], half), SCOPES[2])
    assert search(CORPUS, steps_within(2 * half)) == (dict.fromkeys(MODELS[:2], half), SCOPES[3])


def test_very_short_runs_train_one_model_or_none() -> None:
    assert search(CORPUS, steps_within(MINIMUM - 1))[0] == {MODELS[0]: MINIMUM - 1}
    assert search(CORPUS, steps_within(1))[0] == {MODELS[0]: 1}
    assert search(CORPUS, steps_within(0.9))[0] == {}


def test_very_short_runs_train_two_models_in_parallel() -> None:
    """One model is preferred if it can then train much longer."""

    def within(total: float, for_two: float) -> Callable[[Steps, Scope], bool]:
        return lambda steps, scope: len(steps) <= 2 and max(steps.values()) * (1, for_two)[len(steps) - 1] <= total

    assert search(CORPUS, within(3, 1.5))[0] == dict.fromkeys(MODELS[:2], 2)
    assert search(CORPUS, within(3, 2))[0] == {MODELS[0]: 3}


def test_models_of_a_small_corpus_have_few_steps() -> None:
    small = replace(CORPUS, pairs=6_000)
    assert search(small, steps_within(1_000))[0] == dict.fromkeys(MODELS, SMALL_STEPS)
    assert search(small, steps_within(SMALL_STEPS + 2))[0] == dict.fromkeys(MODELS[:2], SMALL_STEPS // 2)


TEXT = Monolingual(150_000, 1_000_000, perplexity=40, corpus_perplexity=50)
WITH_TEXT = replace(CORPUS, monolingual=TEXT)


def test_the_language_model_is_planned_after_all_other_models() -> None:
    language_model = find_length_range(WITH_TEXT.with_monolingual).minimum
    steps, _ = search(WITH_TEXT, steps_within(5 * MINIMUM + language_model + 2))
    assert steps == dict.fromkeys(MODELS, MINIMUM) | {"language-model": language_model}
    steps, _ = search(WITH_TEXT, steps_within(5 * MINIMUM + language_model + 1))
    assert list(steps) == list(MODELS)


@pytest.mark.parametrize("text", [replace(TEXT, sentences=CORPUS.pairs // 6), replace(TEXT, perplexity=50)])
def test_an_unsuitable_text_gives_no_language_model(text: Monolingual) -> None:
    """The text is too short or from another domain."""
    steps, _ = search(replace(CORPUS, monolingual=text), steps_within(1_000))
    assert list(steps) == list(MODELS)


def test_a_language_model_does_not_replace_a_translation_model() -> None:
    """This holds even if the language model takes less time."""

    def fits(steps: Steps, scope: Scope) -> bool:
        return sum(count for name, count in steps.items() if name != "language-model") <= 4 * MINIMUM

    steps, _ = search(WITH_TEXT, fits)
    assert list(steps) == list(MODELS[:4])


def test_all_models_get_the_same_number_of_steps_up_to_their_maximum() -> None:
    """An epoch of the language model has more words and therefore more steps."""
    text = find_length_range(WITH_TEXT.with_monolingual)
    steps, _ = search(WITH_TEXT, steps_within(5 * MINIMUM + text.minimum + 3 + 6 * 2))
    assert steps.pop("language-model") == text.minimum + 2
    assert list(steps.values()) == [MINIMUM + 2] * 5
    steps, _ = search(WITH_TEXT, steps_within(5_000))
    assert steps.pop("language-model") == text.maximum > LENGTHS.maximum
    assert list(steps.values()) == [LENGTHS.maximum] * 5


@pytest.mark.parametrize("words", [1_058_489, 360_000, 10**8])
def test_the_search_needs_few_trials(words: int) -> None:
    side, trials = replace(SIDE, words=words), 0

    def fits(steps: Steps, scope: Scope) -> bool:
        nonlocal trials
        trials += 1
        assert all(0 < count <= find_length_range(corpus).maximum for count in steps.values())
        return sum(steps.values()) < 1.3 * 5 * find_length_range(corpus).minimum

    corpus = replace(CORPUS, source=side, target=side)
    steps, _ = search(corpus, fits)
    assert len(steps) == 5 and trials < 40


@pytest.fixture
def experiment(small: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """An experiment of ten sentences without models, on a machine with known speed."""
    folder = small(pairs=40, sentences=10, candidates=6)
    monkeypatch.setattr("rerank.experiment.plan.measure_factors", lambda *_, **__: TimeFactors(0.5, 0.5, 2))
    (folder / "e.toml").write_text(
        'minutes = 10\noutput = "work"\ninitial_weights = "moses.ini"\n'
        'train = { source = "train.de", target = "train.en" }\n'
        'dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }\n'
    )
    (folder / "work").mkdir()
    return read_experiment(str(folder / "e.toml"))


def limited(experiment: Experiment, **limits: float) -> Experiment:
    """Return the experiment with other values of `minutes` or `apply_seconds`."""
    assert experiment.unplanned
    return replace(experiment, unplanned=replace(experiment.unplanned, **limits))


def plan_of(experiment: Experiment, minutes: float, factor: float = 1.0) -> Plan:
    factors = TimeFactors(factor, factor, factor)
    return make_plan(limited(experiment, minutes=minutes), CORPUS, Machine("cpu", 2), factors)


def found(experiment: Experiment) -> Plan:
    return find_plan(experiment, Machine("cpu", 2))


def test_a_plan_fits_into_its_minutes(experiment: Experiment) -> None:
    plans = [plan_of(experiment, minutes) for minutes in (0.1, 2, 5, 7, 10, 25, 60, 300)]
    assert all(plan.seconds <= 60 * plan.minutes or not plan.steps for plan in plans)
    counts = [len(plan.steps) for plan in plans]
    assert counts == sorted(counts) and len(set(counts)) > 2
    assert plans[-1].apply_seconds > 0


def test_a_slower_machine_does_less(experiment: Experiment) -> None:
    fast, slow = (sum(plan_of(experiment, 10, factor).steps.values()) for factor in (0.1, 1.0))
    assert fast > 2 * slow > 0


@pytest.mark.parametrize(
    ("pairs", "words", "sizes"),
    [
        (30_000, SIZES[512] // 5, {10**6: 256}),
        (6_000, SIZES[1_024], {10**6: 256}),
        (30_000, SIZES[512], {600: 256, 1_000: 512}),
        (30_000, SIZES[1_024], {10**6: 1_024}),
    ],
)
def test_networks_grow_if_there_is_time_left(
    experiment: Experiment, pairs: int, words: int, sizes: dict[float, int]
) -> None:
    """Only networks of large corpora grow."""
    corpus = replace(CORPUS, pairs=pairs, target=replace(SIDE, words=words))
    for minutes, size in sizes.items():
        plan = make_plan(limited(experiment, minutes=minutes), corpus, Machine("cpu", 2))
        assert plan.size == size and plan.has_most_steps
        assert plan.is_full == (minutes == max(sizes))
    if plan.size > USUAL_SIZE:
        assert {settings["hidden_size"] for settings in plan.recipe.models.values()} == {plan.size}


def test_networks_are_small_if_trainings_are_short(experiment: Experiment) -> None:
    short, long = (plan_of(experiment, minutes) for minutes in (10, 60))
    assert {settings["hidden_size"] for settings in short.recipe.models.values()} == {short.size} == {REDUCED_SIZE}
    assert long.size == USUAL_SIZE and not any("hidden_size" in settings for settings in long.recipe.models.values())


def test_networks_of_short_sentences_have_the_usual_size_if_there_is_time(experiment: Experiment) -> None:
    """The most epochs of such a corpus have few words."""
    corpus = replace(CORPUS, pairs=13_000, target=replace(SIDE, words=50_000))
    sizes = [make_plan(limited(experiment, minutes=minutes), corpus, Machine("cpu", 2)).size for minutes in (6, 10**6)]
    assert sizes == [REDUCED_SIZE, USUAL_SIZE]


def test_small_corpora_have_their_own_size(experiment: Experiment) -> None:
    plan = make_plan(limited(experiment, minutes=10), replace(CORPUS, pairs=6_000), Machine("cpu", 2))
    assert plan.steps and plan.size == USUAL_SIZE


def test_a_limit_for_apply_omits_models_and_translations(experiment: Experiment) -> None:
    plan = plan_of(experiment, 300)
    for part, translations in ((0.7, True), (0.1, False)):
        limit = part * plan.apply_seconds
        cheaper = plan_of(limited(experiment, apply_seconds=limit), 300)
        assert 0 < cheaper.apply_seconds <= limit and cheaper.scope.translations == translations
        assert 0 < len(cheaper.steps) < len(plan.steps)


def test_a_limit_for_apply_does_not_exclude_an_ablation(experiment: Experiment) -> None:
    plan = plan_of(limited(experiment, apply_seconds=10), 1_000)
    assert plan.steps and len(plan.steps) < 5 and plan.scope.ablation


def test_models_of_an_earlier_run_do_not_change_the_plan(experiment: Experiment) -> None:
    before = plan_of(experiment, 10)
    interrupted = experiment.output / "models" / ".left-to-right.training-0123456789ab" / "left-to-right"
    interrupted.mkdir(parents=True)
    assert experiment.unplanned
    request = apply_plan(experiment.unplanned, before).models["left-to-right"].request
    write_json(str(interrupted / "config.json"), asdict(ModelConfig(request.preset, "forward", *request.resolve())))
    (interrupted / "metrics.jsonl").write_text('{"epoch": 3, "updates": 15}\n')
    assert plan_of(experiment, 10) == before


def test_the_machine_is_not_measured_if_everything_fits_at_the_lowest_speed(experiment: Experiment) -> None:
    plan = found(limited(experiment, minutes=60))
    assert plan.is_full and plan.factors is None


@pytest.fixture
def slow(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The experiment with an assumed speed so low that the machine is measured."""
    monkeypatch.setattr("rerank.experiment.plan.SLOW", TimeFactors(1e9, 1e9, 1e9))
    return experiment


def test_small_networks_are_measured_too(slow: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan has the factors of the networks that it trains."""
    factors = {USUAL_SIZE: TimeFactors(1.0), REDUCED_SIZE: TimeFactors(0.9)}

    def measure(*_: object, size: int = USUAL_SIZE) -> TimeFactors:
        return factors[size]

    monkeypatch.setattr("rerank.experiment.plan.measure_factors", measure)
    monkeypatch.setattr("rerank.experiment.plan.inspect_corpus", lambda *_: CORPUS)
    for minutes, size in ((10, REDUCED_SIZE), (60, USUAL_SIZE)):
        plan = found(limited(slow, minutes=minutes))
        assert (plan.size, plan.factors) == (size, factors[size])


def test_a_stored_plan_is_reused(slow: Experiment) -> None:
    plan = found(slow)
    assert plan.factors and plan.factors.lists == 2
    other = replace(plan, steps={"left-to-right": 3})
    write_plan(other, slow.output)
    assert found(slow) == other
    for changed in ({"minutes": 11.0}, {"apply_seconds": 1e6}):
        assert found(limited(slow, **changed)).steps == plan.steps


def test_a_changed_corpus_gets_a_new_plan(slow: Experiment) -> None:
    other = replace(found(slow), steps={"left-to-right": 3})
    write_plan(other, slow.output)
    for path in (slow.train.source, slow.train.target):
        Path(path).write_bytes(Path(path).read_bytes() * 2)
    assert found(slow).steps != other.steps


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"minutes": 10}', "other model", "no step", "other size"])
def test_a_damaged_plan_file_is_an_error(experiment: Experiment, content: str) -> None:
    write_plan(replace(found(experiment), steps={"left-to-right": 3}), experiment.output)
    text = (experiment.output / PLAN).read_text()
    wrong = {
        "other model": text.replace('"left-to-right"', '"other"'),
        "no step": text.replace(": 3\n", ": 0\n"),
        "other size": re.sub(r'"size": \d+', '"size": 1', text),
    }
    assert text not in wrong.values()
    (experiment.output / PLAN).write_text(wrong.get(content, content))
    with pytest.raises(InputError, match=r"plan\.json.*\. Remove it for a new plan$"):
        found(experiment)


def test_report_lines_of_a_plan(experiment: Experiment) -> None:
    plan = replace(plan_of(experiment, 10), size=USUAL_SIZE)
    first, *models = plan_lines(replace(plan, steps={"left-to-right": 3, "right-to-left-2": 2}))
    assert first.startswith("planned for 10 min: 2 models, about ")
    assert models == ["right-to-left-2: gnmt, 0.87 epochs", "left-to-right: attend-after, 1.3 epochs"]
    assert plan_lines(replace(plan, size=REDUCED_SIZE, steps={"left-to-right": 3}))[1].endswith(
        "1.3 epochs, hidden_size 160"
    )
    none = replace(plan, steps={})
    assert plan_lines(none) == ["no model for this corpus fits into 10 min, so none is trained"]
    assert plan_lines(replace(none, max_apply_seconds=5)) == [
        "no model for this corpus fits into 10 min with apply_seconds = 5, so none is trained"
    ]


@pytest.mark.slow
def test_measured_factors_are_plausible_and_leave_no_files(experiment: Experiment) -> None:
    corpus = replace(CORPUS, pairs=40)
    (experiment.output / ".speed-of-a-killed-run").mkdir()
    factors = measure_factors(experiment, corpus, Machine("cpu", 2))
    assert factors
    assert all(0.01 < factor < 100 for factor in (factors.training, factors.forward, factors.lists))
    assert not list(experiment.output.iterdir())


def read_again(experiment: Experiment, tables: str) -> Experiment:
    path = experiment.output.parent / "e.toml"
    path.write_text(f"{path.read_text()}\n{tables}\n")
    return read_experiment(str(path), allow_code=True)


def test_features_with_scores_of_the_decoder_exclude_translations(experiment: Experiment) -> None:
    (experiment.output.parent / "scores.dev").write_text("1\n" * 60)
    again = read_again(experiment, '[features]\nMine = "scores:scores.{set}"')
    plan = assumed_plan(again)
    assert again.unplanned and plan.steps and not plan.scope.translations
    assert "candidates" not in with_recipe(again.unplanned, plan.recipe).text


def test_a_stored_plan_is_reused_without_translations(slow: Experiment) -> None:
    """A feature of the decoder's own candidates was added after the first run."""
    plan = replace(found(slow), scope=Scope())
    write_plan(plan, slow.output)
    again = read_again(slow, '[features]\nPhrases = "phrases"')
    assert found(again) == plan
    assert usable_plan(again, plan) == replace(plan, scope=replace(plan.scope, translations=False))
    assert usable_plan(slow, plan) == plan


def test_comments_mention_a_comparison_only_if_translations_were_planned(experiment: Experiment) -> None:
    assert experiment.unplanned
    comparison, plan = Comparison(20, 30.0, {"ltr": 20.0}), plan_of(experiment, 25)
    for translations in (True, False):
        scope = replace(plan.scope, translations=translations)
        text = apply_plan(experiment.unplanned, replace(plan, scope=scope), comparison).text
        assert ("translations of models are not added" in text) == translations


def test_a_planned_shortlist_has_a_default_size(experiment: Experiment) -> None:
    large = find_recipe(CORPUS, {"left-to-right": 1.0, "backward": 1.0})
    for tables, size in (("", SHORTLIST), ('[shortlist]\nsize = 20\nfeatures = ["NMTback"]', 20)):
        again = read_again(experiment, tables)
        assert again.unplanned
        planned = with_recipe(again.unplanned, large)
        assert planned.shortlist and planned.shortlist.size == size


def with_one_model(experiment: Experiment) -> Experiment:
    """Return the experiment with one left-to-right model."""
    assert experiment.unplanned
    return with_recipe(experiment.unplanned, find_recipe(CORPUS, {"left-to-right": 1.0}))


def test_a_shortlist_may_name_planned_features(experiment: Experiment) -> None:
    """Labels of models that are not planned are omitted."""
    tables = '[shortlist]\nfeatures = ["NMTltr", "NMTback", "Len", "Consensus"]\nsize = 20\n[features]\nLen = "length"'
    planned = with_one_model(read_again(experiment, tables))
    assert planned.shortlist and (planned.shortlist.features, planned.shortlist.size) == (
        ("NMTltr", "Len", "Consensus"),
        20,
    )


def test_a_shortlist_of_models_that_are_not_planned_is_omitted(experiment: Experiment) -> None:
    planned = with_one_model(read_again(experiment, '[shortlist]\nfeatures = ["NMTback"]'))
    assert planned.shortlist is None and "[shortlist]" not in planned.text


def test_a_wrong_label_of_a_shortlist_is_an_error_before_the_plan(experiment: Experiment) -> None:
    with pytest.raises(InputError, match=r"e\.toml: shortlist\.features: no feature 'Nope'\. Features: NMTltr"):
        read_again(experiment, '[shortlist]\nfeatures = ["Nope"]')


def test_a_value_that_needs_optional_translations_is_an_error(experiment: Experiment, models: dict[str, Path]) -> None:
    with_added = read_again(experiment, f'[features]\nOwn = "neural:{models["forward"]}[logprob,added]"')
    with pytest.raises(InputError, match=r"feature 'Own': the value 'added' is for merged lists"):
        check_inputs(with_all_models(with_added))


def test_a_model_of_the_plan_does_not_replace_a_folder_of_its_name(
    experiment: Experiment, models: dict[str, Path]
) -> None:
    folder = experiment.output.parent / "left-to-right"
    shutil.copytree(models["forward"], folder)
    planned = with_one_model(read_again(experiment, '[features]\nOld = "neural:left-to-right"'))
    assert list(planned.features["NMTltr"].parts) == ["left-to-right"]
    assert Path(planned.features["Old"].parts[0]).resolve() == folder.resolve()


def test_the_complete_file_has_the_paths_of_user_features(experiment: Experiment) -> None:
    """The complete file is in another folder, so paths change."""
    (experiment.output.parent / "scores.dev").write_text("1\n" * 60)
    planned = with_all_models(
        read_again(experiment, '[features]\nMine = "scores:scores.{set}"\nOwn = "command:./own --flag"\nLen = "length"')
    )
    assert planned.unplanned is None and planned.text
    (planned.output / "experiment.toml").write_text(planned.text)
    again = read_experiment(str(planned.output / "experiment.toml"), allow_code=True)
    for label, request in planned.features.items():
        found_again = again.features[label]
        assert (found_again.kind, [Path(part).resolve() for part in found_again.parts]) == (
            request.kind,
            [Path(part).resolve() for part in request.parts],
        )
        assert Path(found_again.folder or ".").resolve() == Path(request.folder or ".").resolve()
