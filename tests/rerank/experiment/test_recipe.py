import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from features.feature import Resources
from features.models.config import DEV_FOLDS
from features.models.cost import SUBWORDS
from features.models.settings import Training
from features.models.vocabulary import build_vocabulary
from features.request import parse_requests
from moses_io.files.errors import InputError
from moses_io.files.streams import digest
from moses_io.files.text import ParallelFiles
from rerank.experiment.checks import check_inputs, try_features
from rerank.experiment.corpus import NUM_SUBWORDS, Corpus, Side, inspect_corpus
from rerank.experiment.experiment import Experiment
from rerank.experiment.file import read_experiment, with_recipe
from rerank.experiment.recipe import (
    CANDIDATES,
    EPOCHS,
    FEW_UPDATES,
    LANGUAGE_MODEL,
    LARGE,
    MAX_EPOCHS,
    MAX_FINE_TUNING_EPOCHS,
    MAX_PAIRS,
    MIN_UPDATES,
    MODELS,
    REDUCED_SIZE,
    SCOPES,
    SECOND,
    SHORT_DROPOUT,
    SHORT_EPOCHS,
    SHORTLIST,
    SMALL,
    SMALL_EPOCHS,
    STEP,
    WORDS,
    Recipe,
    Scope,
    find_length_range,
    find_recipe,
    is_small,
)
from rerank.experiment.scoring import scoring_settings
from rerank.experiment.stages import RECORD

Write = Callable[[str, "str | bytes"], Path]

FILES = """\
output = "work/results"
initial_weights = "{sample}/moses.ini"
train = {{ source = "train.de", target = "train.en" }}
dev = {{ source = "{sample}/dev.de", reference = "{sample}/dev.en", nbest = "{sample}/dev.nbest.gz" }}
"""


def parallel(write: Write, name: str, source: str, target: str) -> ParallelFiles:
    return ParallelFiles(source=str(write(f"{name}.de", source)), target=str(write(f"{name}.en", target)))


def test_unknown_words_are_rare_or_missing_in_the_training_corpus(write: Write) -> None:
    train = parallel(write, "train", "a b a\nb\u00a0c a\n", "x y\nx y y z\n")
    dev = parallel(write, "dev", "a b c\na\n", "x\nz\n")
    source, target = (
        Side(words=5, vocabulary=1, characters=4, unknown=0.5),
        Side(words=6, vocabulary=2, characters=3, unknown=0.5),
    )
    assert inspect_corpus(train, dev) == Corpus(pairs=2, dev=2, source=source, target=target)


def test_subwords_are_counted_as_in_training(write: Write) -> None:
    words = [first + second for first in "abcdefghij" for second in "abcdefghij"]
    text = "".join(f"{one} {other}\n" for one in words for other in words[::10])
    corpus = inspect_corpus(parallel(write, "train", text, text), parallel(write, "dev", "xx\n", "xx\n"))
    assert settings_of(corpus)["bpe"] == len(text.splitlines()) // 2
    vocabulary = build_vocabulary(map(str.split, text.splitlines()), Training(bpe=settings_of(corpus)["bpe"]))
    subwords = [len(vocabulary.encode([word])) for word in text.split()]
    assert (
        corpus.source.subwords_per_word
        == corpus.target.subwords_per_word
        == pytest.approx(sum(subwords) / len(subwords))
    )


def test_a_side_without_subwords_has_an_assumed_number(write: Write) -> None:
    """The later training reports the error with the name of the file."""
    corpus = inspect_corpus(parallel(write, "train", "a b\n" * 4, "\n" * 4), parallel(write, "dev", "c\n", "d\n"))
    assert corpus.target.subwords_per_word == SUBWORDS


def test_word_counts_of_the_sample(sample: Path) -> None:
    train, dev = (
        ParallelFiles(source=f"{sample}/{name}.de", target=f"{sample}/{name}.en") for name in ("train", "dev")
    )
    corpus = inspect_corpus(train, dev)
    assert (corpus.pairs, corpus.dev, corpus.source.words, corpus.target.words) == (6000, 400, 62623, 62670)
    assert max(corpus.source.unknown, corpus.target.unknown) < 0.03


def test_unreadable_texts_are_errors(write: Write) -> None:
    dev = parallel(write, "dev", "a\n", "x\n")
    with pytest.raises(InputError, match=r"train\.en has 2 lines, .*train\.de has 1"):
        inspect_corpus(parallel(write, "train", "a\n", "x\nx\n"), dev)
    with pytest.raises(InputError, match="/dev/zero: a pipe or a device, expected a plain file"):
        inspect_corpus(ParallelFiles(source="/dev/zero", target=dev.target), dev)


def corpus(pairs: int, unknown: float = 0.01, characters: int = 60, dev: int = 1_000) -> Corpus:
    side = Side(words=12 * pairs, vocabulary=pairs // 4, characters=characters, unknown=0.01)
    return Corpus(pairs=pairs, dev=dev, source=dataclasses.replace(side, unknown=unknown), target=side)


def recipe_of(made: Corpus, scope: Scope = SCOPES[0]) -> Recipe:
    """Return the recipe of all models of a corpus with the smallest number of epochs."""
    length_range = find_length_range(made)
    return find_recipe(made, dict.fromkeys(MODELS, length_range.minimum * length_range.step), scope)


def settings_of(made: Corpus) -> dict[str, Any]:
    """Return the settings of the left-to-right model."""
    models = recipe_of(made).models
    assert models["right-to-left"] == {**models["left-to-right"], "right_to_left": True}
    return models["left-to-right"]


@pytest.mark.parametrize("pairs", [10, 300, 5_000, 6_000, 10_000, 11_999])
def test_a_small_corpus_has_enough_epochs_for_the_updates(pairs: int) -> None:
    made = corpus(pairs)
    length_range = find_length_range(made)
    assert (
        is_small(made)
        and length_range.maximum * length_range.step >= SMALL_EPOCHS
        and 1 <= length_range.minimum <= length_range.maximum
    )
    assert length_range.maximum * length_range.step * pairs >= MIN_UPDATES * SMALL["batch_size"]
    assert settings_of(made).items() >= SMALL.items()


@pytest.mark.parametrize("pairs", [12_000, 29_000, 60_000, 200_000, 10**7])
def test_a_large_corpus_has_fewer_epochs(pairs: int) -> None:
    made = corpus(pairs)
    length_range, words = find_length_range(made), 13 * pairs
    assert (
        not is_small(made) and MAX_EPOCHS - length_range.step < length_range.maximum * length_range.step <= MAX_EPOCHS
    )
    assert length_range.step * words <= STEP * 1.001 and length_range.step <= 1
    least = min(EPOCHS, WORDS / words)
    assert least - 1e-6 <= length_range.minimum * length_range.step <= least + length_range.step
    assert settings_of(made).items() >= LARGE.items()


def test_a_fraction_of_an_epoch_is_a_number_of_updates() -> None:
    made = corpus(320_000)
    models = find_recipe(made, {"left-to-right": 0.25, "right-to-left": 1.5, "right-to-left-2": 2.0}).models
    assert (models["left-to-right"]["epochs"], models["left-to-right"]["updates"]) == (1, 5_000)
    assert (models["right-to-left"]["epochs"], models["right-to-left"]["updates"]) == (2, 30_000)
    assert models["right-to-left-2"]["epochs"] == 2 and "updates" not in models["right-to-left-2"]


def test_the_shortest_training_decides_whether_trainings_are_short() -> None:
    mixed, long = (
        find_recipe(corpus(30_000), {MODELS[0]: SHORT_EPOCHS, MODELS[1]: SHORT_EPOCHS - less}).models
        for less in (0.5, 0)
    )
    assert all(settings["dropout"] == SHORT_DROPOUT for settings in mixed.values())
    assert not any("dropout" in settings for settings in long.values())


@pytest.mark.parametrize("epochs", [1, 10])
def test_the_pairs_of_the_shortest_training_decide_the_size_of_batches(epochs: int) -> None:
    pairs = MAX_PAIRS // epochs
    few, many = (
        find_recipe(corpus(count), {MODELS[0]: epochs, MODELS[1]: epochs + 1}).models for count in (pairs, pairs + 1)
    )
    assert all(settings.items() >= FEW_UPDATES.items() for settings in few.values())
    assert not any(FEW_UPDATES.keys() & settings.keys() for settings in many.values())


def test_small_networks_have_the_settings_of_few_updates_in_all_lengths() -> None:
    for epochs in (1, 2 * MAX_PAIRS / 30_000):
        settings = find_recipe(corpus(30_000), {MODELS[0]: epochs}, size=REDUCED_SIZE).models[MODELS[0]]
        assert settings.items() >= {**FEW_UPDATES, "hidden_size": REDUCED_SIZE, "embedding_size": 128}.items()


def test_small_corpora_have_networks_of_their_own_size() -> None:
    small = corpus(6_000)
    assert find_recipe(small, {MODELS[0]: 8}, size=512) == find_recipe(small, {MODELS[0]: 8})


def test_the_length_of_a_language_model_does_not_make_trainings_short() -> None:
    """Its settings do not depend on the length of other models either."""
    short, long = (
        find_recipe(corpus(30_000), {MODELS[0]: epochs, LANGUAGE_MODEL: SHORT_EPOCHS - 1}).models
        for epochs in (SHORT_EPOCHS - 1, SHORT_EPOCHS)
    )
    assert short[LANGUAGE_MODEL] == long[LANGUAGE_MODEL]
    assert "dropout" not in long[MODELS[0]]


def test_smaller_scopes_save_time() -> None:
    whole, *_, short = (recipe_of(corpus(29_000, 0.03), scope) for scope in SCOPES)
    assert whole.shortlist == {"features": ["NMTback"], "size": SHORTLIST} and whole.report == {}
    assert short.shortlist["features"] == ["NMTltr", "NMTrtl", "NMTrtl2", "NMTltr2", "NMTback"]
    assert short.tables["report"] == {"ablation": False}
    assert not any("candidates" in settings or "translate_with" in settings for settings in short.models.values())


def test_many_words_or_many_unknown_words_enable_bpe() -> None:
    assert "bpe" not in settings_of(corpus(9_000))
    assert settings_of(corpus(100_000))["bpe"] == settings_of(corpus(9_000, unknown=0.194))["bpe"] == NUM_SUBWORDS
    assert settings_of(corpus(900, unknown=0.194))["bpe"] == 450
    assert settings_of(corpus(9_000, unknown=0.194, characters=3_000))["bpe"] == 6_000
    assert any("19.4 % in the source" in comment for comment in recipe_of(corpus(9_000, unknown=0.194)).comments)


@pytest.mark.parametrize(
    ("pairs", "unknown", "joins"),
    [
        (6_000, 0.004, True),
        (15_000, 0.004, True),
        (29_000, 0.004, True),
        (29_000, 0.044, True),
        (29_000, 0.096, False),
        (10_000, 0.044, False),
        (15_000, 0.044, False),
    ],
)
def test_models_with_enough_data_add_translations_to_the_lists(pairs: int, unknown: float, joins: bool) -> None:
    recipe = recipe_of(corpus(pairs, unknown=unknown))
    assert settings_of(corpus(pairs, unknown=unknown)).get("candidates") == (CANDIDATES if joins else None)
    requests = parse_requests([f"{label}={text}" for label, text in recipe.features.items()])
    values = {request.argument.partition("[")[0]: request.values for request in requests[:-1]}
    assert values.keys() == recipe.models.keys()
    assert values.pop("backward", "[logprob]") == "[logprob]"
    assert set(values.values()) == {f"[logprob,{'added' if joins else 'entropy'}]"}
    assert requests[-1].text == "consensus:chrf"
    assert any("add translations" in comment for comment in recipe.comments) == joins


@pytest.mark.parametrize(
    ("pairs", "unknown", "dev", "epochs"),
    [(5_000, 0.1, 1_000, MAX_FINE_TUNING_EPOCHS), (5_000, 0.1, 3_000, 2), (5_000, 0.1, 20_000, None),
     (5_000, 0.1, 49, None), (5_000, 0.01, 1_000, None), (15_000, 0.1, 1_000, None), (29_000, 0.1, 1_000, None)],
)  # fmt: skip
def test_models_with_little_data_are_fine_tuned_on_dev(
    pairs: int, unknown: float, dev: int, epochs: int | None
) -> None:
    """Fine-tuning takes no longer than the training before. A dev set that is very large or very small is not used."""
    made = corpus(pairs, unknown=unknown, dev=dev)
    longest = find_length_range(made).maximum * find_length_range(made).step
    recipe = find_recipe(made, {"left-to-right": longest, "backward": longest})
    settings = recipe.models["left-to-right"]
    assert recipe.models["backward"].get("fine_tuning_epochs") == epochs
    assert settings.get("fine_tuning_epochs") == epochs and ("fine-tuning on dev" in recipe.comments[-1]) == bool(
        epochs
    )
    if epochs:
        assert epochs * (DEV_FOLDS + 1) * dev <= settings["epochs"] * pairs


@pytest.mark.parametrize(
    ("pairs", "unknown", "joins"),
    [(6_000, 0.04, False), (6_000, 0.01, True), (12_000, 0.04, False), (29_000, 0.04, True), (2_000_000, 0.04, True)],
)
def test_second_models_differ_in_their_preset(pairs: int, unknown: float, joins: bool) -> None:
    """Second models have the corpus, epochs and subwords of the first models, and translate with them."""
    recipe = recipe_of(corpus(pairs, unknown=unknown))
    assert list(recipe.models)[:2] == ["right-to-left-2", "left-to-right-2"]
    for name in ("right-to-left-2", "left-to-right-2"):
        settings, first_model = recipe.models[name], recipe.models[name.removesuffix("-2")]
        first = {key: value for key, value in first_model.items() if key != "candidates"}
        joined = {"translate_with": name.removesuffix("-2")} if joins else {}
        assert settings == first | {"preset": SECOND} | joined


@pytest.mark.parametrize("unknown", [0.04, 0.004])
@pytest.mark.parametrize("pairs", [300, 12_000, 29_000, 2_000_000])
def test_every_recipe_has_a_backward_model(pairs: int, unknown: float) -> None:
    """The backward model has the settings of the left-to-right model, trains last and does not translate."""
    models = recipe_of(corpus(pairs, unknown=unknown)).models
    first_model = {key: value for key, value in models["left-to-right"].items() if key != "candidates"}
    assert models["backward"] == {**first_model, "backward": True}
    assert (list(models)[-1], len(models)) == ("backward", 5)


@pytest.fixture
def folder(tmp_path: Path, sample: Path) -> Path:
    for side in ("de", "en"):
        shutil.copy(sample / f"train.{side}", tmp_path)
    (tmp_path / "e.toml").write_text(FILES.format(sample=sample))
    return tmp_path


def files(experiment: Experiment) -> list[str]:
    return [os.path.realpath(path) for path in experiment.files]


def planned(experiment: Experiment) -> Experiment:
    """Return the experiment with the two first models of the recipe."""
    assert experiment.unplanned is not None
    made = inspect_corpus(experiment.train, experiment.dev.texts)
    return with_recipe(experiment.unplanned, find_recipe(made, dict.fromkeys(MODELS[:2], 1)))


def test_the_complete_experiment_file_is_equivalent(folder: Path) -> None:
    tables = (
        '\n[[test]]\nname = "news"\nsource = "news.de"\nnbest = "news.nbest"\n\n[tuning]\nseed = 7\nfallback = true\n'
        "\n[report]\nablation = false\n"
    )
    (folder / "e.toml").write_text((folder / "e.toml").read_text() + tables)
    experiment = planned(read_experiment(str(folder / "e.toml")))
    assert {part for each in experiment.features.values() for part in each.parts} == set(experiment.models) != set()
    experiment.output.mkdir(parents=True)
    (experiment.output / "experiment.toml").write_text(experiment.text)
    again = read_experiment(f"{experiment.output}/experiment.toml")
    assert files(again) == files(experiment)
    assert (again.models, again.tuning, again.output) == (experiment.models, experiment.tuning, experiment.output)
    assert (again.ablation, again.unplanned, again.text) == (False, None, "")
    assert [(each.label, each.kind, each.argument) for each in again.features.values()] == [
        (each.label, each.kind, each.argument) for each in experiment.features.values()
    ]


def test_user_features_are_added_to_features_of_the_models(folder: Path) -> None:
    text = "minutes = 5\n" + (folder / "e.toml").read_text()
    (folder / "e.toml").write_text(f'{text}\n[features]\nLen = "length"\nConsensus = "consensus:bleu"\n')
    experiment = read_experiment(str(folder / "e.toml"))
    assert experiment.unplanned is not None and experiment.unplanned.minutes == 5
    assert {label: each.text for label, each in planned(experiment).features.items()}.items() >= {
        "Len": "length", "Consensus": "consensus:bleu"
    }.items()  # fmt: skip
    assert {"NMTltr", "NMTrtl"} < planned(experiment).features.keys()


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        (
            'minutes = 5\n[models]\none = { preset = "rnnsearch" }',
            "minutes: cannot be combined with models, which names the models",
        ),
        ('minutes = 5\ntrained_models = "models"', "minutes: cannot be combined with trained_models"),
        ("minutes = 0", "minutes: expected a number above 0 and up to 100,000, found 0"),
        ("minutes = -1.5", "minutes: expected a number above 0 and up to 100,000, found -1.5"),
        ("minutes = nan", "minutes: expected a number above 0 and up to 100,000, found nan"),
        ("minutes = true", "minutes: expected a number above 0 and up to 100,000, found True"),
        ("apply_seconds = 0", "apply_seconds: expected a number above 0 and up to 10,000,000, found 0"),
        ('apply_seconds = 5\n[models]\none = { preset = "rnnsearch" }', "apply_seconds: cannot be combined"),
        ('minutes = "5"', "minutes: expected a number above 0 and up to 100,000, found '5'"),
        ("[report]\nablation = 1", "report.ablation: expected true or false, found 1"),
        ("[report]\nablate = true", "unknown key report.ablate"),
    ],
)
def test_wrong_plan_and_report_keys_are_errors(folder: Path, tables: str, fault: str) -> None:
    (folder / "e.toml").write_text(f"{(folder / 'e.toml').read_text()}\n{tables}\n")
    with pytest.raises(InputError, match=f"e.toml: {fault}"):
        read_experiment(str(folder / "e.toml"))


def test_minutes_of_the_command_override_the_file(folder: Path) -> None:
    path = folder / "e.toml"
    path.write_text(f"minutes = 5\n{path.read_text()}")
    of_command, of_file = (read_experiment(str(path), minutes=minutes).unplanned for minutes in (90, None))
    assert of_command and of_file and (of_command.minutes, of_file.minutes) == (90, 5)


def test_a_limit_for_apply_keeps_the_default_minutes(folder: Path) -> None:
    path = folder / "e.toml"
    path.write_text(f"apply_seconds = 5\n{path.read_text()}")
    unplanned = read_experiment(str(path)).unplanned
    assert unplanned and (unplanned.minutes, unplanned.apply_seconds) == (25, 5)
    assert "apply_seconds" not in unplanned.values


def test_named_models_or_features_disable_the_plan(folder: Path) -> None:
    text = (folder / "e.toml").read_text()
    for tables, models, features in (
        ("[features]", 0, 0),
        ("[models]", 0, 0),
        ('[features]\nLen = "length"', 0, 1),
        ('[models]\none = { preset = "rnnsearch" }', 1, 0),
    ):
        (folder / "e.toml").write_text(f"{text}\n{tables}\n")
        experiment = read_experiment(str(folder / "e.toml"))
        assert (len(experiment.models), len(experiment.features), experiment.unplanned) == (models, features, None)


def test_a_corpus_with_different_numbers_of_lines_is_an_error(folder: Path) -> None:
    (folder / "train.en").write_text("one line\n")
    with pytest.raises(InputError, match=r"train\.en has 1 line, .*train\.de has 6,000"):
        planned(read_experiment(str(folder / "e.toml")))


def test_an_unused_model_is_a_warning(warned: Callable[[str], AbstractContextManager[None]], folder: Path) -> None:
    models = (
        '\n[models]\none = { preset = "rnnsearch" }\ntwo = { preset = "rnnsearch" }\n[features]\nTwo = "neural:two"\n'
    )
    (folder / "e.toml").write_text((folder / "e.toml").read_text() + models)
    with warned("^no feature uses the model 'one'$"):
        check_inputs(read_experiment(str(folder / "e.toml")))


def test_segmentation_marks_in_any_list_are_an_error_before_training(folder: Path, sample: Path) -> None:
    """Only `score` would find them otherwise, after all trainings."""
    lines = "".join(f"{number} ||| the house |0-1| ||| LM0= 1 ||| 1\n" for number in range(400))
    (folder / "list").write_text(lines)
    tables = f'[test]\nsource = "{sample}/dev.de"\nnbest = "list"\n[features]\nLen = "length"\n'
    (folder / "e.toml").write_text((folder / "e.toml").read_text() + tables)
    with pytest.raises(InputError, match=r"list:1: segmentation marks such as"):
        check_inputs(read_experiment(str(folder / "e.toml")))


def test_a_list_without_totals_is_an_error_before_training(folder: Path, sample: Path) -> None:
    (folder / "list").write_text("".join(f"{number} ||| the house ||| LM0= 1\n" for number in range(400)))
    text = (folder / "e.toml").read_text().replace(f"{sample}/dev.nbest.gz", "list")
    for features, is_error in (('Len = "length"', False), ('Like = "consensus:chrf"', True)):
        (folder / "e.toml").write_text(f"{text}\n[features]\n{features}\n")
        experiment = read_experiment(str(folder / "e.toml"))
        if is_error:
            fault = (
                r"list:1: feature 'Like' needs Moses' total: no total in the fourth field\. Remove it from \[features\]"
            )
            with pytest.raises(InputError, match=fault):
                check_inputs(experiment)
        else:
            check_inputs(experiment)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            "0 ||| the ||| LM0= 1 ||| x\n",
            "list:2: feature 'Like' needs Moses' total: no total in the fourth field, found 'x'",
        ),
        ("0 ||| the ||| LM0= x ||| 1\n", "list:2: .*LM0"),
        ("9999 ||| the ||| LM0= 1 ||| 1\n", "list:2: sentence 9999 is beyond the source"),
    ],
)
def test_lists_are_checked_completely_before_training(folder: Path, sample: Path, line: str, fault: str) -> None:
    (folder / "list").write_text(f"0 ||| the house ||| LM0= 1 ||| 1\n{line}")
    text = (folder / "e.toml").read_text().replace(f"{sample}/dev.nbest.gz", "list")
    (folder / "e.toml").write_text(f'{text}\n[features]\nLike = "consensus:chrf"\n')
    with pytest.raises(InputError, match=fault):
        check_inputs(read_experiment(str(folder / "e.toml")))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[tuning]\nfreeze = ["Nope"]', "tuning: the list has no feature 'Nope'"),
        ('[tuning]\nsign = ["Len:+", "Nope:+"]', "tuning: the list has no feature 'Nope'"),
        ('LM = "kenlm:junk"', "junk:1: not a language model that KenLM can read"),
        ('LM = "kenlm:nowhere"', "nowhere: No such file or directory"),
        ('Lex = "lexical:junk"', "junk: expected f2e or e2f in the file name"),
        ('Mine = "command:no-such-program"', "feature 'command:no-such-program'"),
        ('Phrases = "phrases"', "list:1: feature 'phrases'"),
    ],
)
def test_wrong_features_and_weights_are_errors_before_training(
    folder: Path, sample: Path, text: str, fault: str
) -> None:
    (folder / "list").write_text("".join(f"{number} ||| the house ||| LM0= 1 ||| 1\n" for number in range(400)))
    (folder / "junk").write_text("junk\n")
    lists = (folder / "e.toml").read_text().replace(f"{sample}/dev.nbest.gz", "list")
    (folder / "e.toml").write_text(f'{lists}\n[features]\nLen = "length"\n{text}\n')
    experiment = read_experiment(str(folder / "e.toml"), allow_code=True)
    with pytest.raises(InputError, match=fault):
        check_inputs(experiment)
        try_features(experiment, Resources("cpu"))


def test_features_of_an_earlier_run_are_tried_again_only_if_they_have_changed(folder: Path) -> None:
    text = (folder / "e.toml").read_text()

    def read(program: str) -> Experiment:
        (folder / "e.toml").write_text(f'{text}\n[features]\nMine = "command:{program}"\n')
        return read_experiment(str(folder / "e.toml"), allow_code=True)

    resources, experiment = Resources("cpu"), read("no-such-program")
    settings = scoring_settings(experiment.requests("dev"), resources)
    experiment.output.mkdir(parents=True, exist_ok=True)
    inputs = [digest(Path(path)) for path in (experiment.dev.nbest, experiment.dev.source)]
    (experiment.output / RECORD).write_text(json.dumps({"score dev Mine": {"settings": settings, "inputs": inputs}}))
    try_features(experiment, resources)
    with pytest.raises(InputError, match="feature 'command:another-program'"):
        try_features(read("another-program"), resources)


def test_initial_weights_of_another_size_are_errors_before_training(folder: Path, sample: Path) -> None:
    (folder / "list").write_text("".join(f"{number} ||| the house ||| LM0= 1 2 ||| 1\n" for number in range(3)))
    lists = (folder / "e.toml").read_text().replace(f"{sample}/dev.nbest.gz", "list")
    (folder / "e.toml").write_text(f'{lists}\n[features]\nLen = "length"\n')
    with pytest.raises(InputError, match=r"moses\.ini: feature 'LM0' has 2 values in the list and 1 weight"):
        check_inputs(read_experiment(str(folder / "e.toml")))
