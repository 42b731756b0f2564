"""Monolingual text in an experiment: it is back-translated once, and forward models train on the synthetic pairs."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

from features.feature import Resources
from features.models.config import WEIGHTS
from features.models.cost import TimeFactors
from features.models.training.request import TrainingFiles, TrainingRequest, train_model
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles, read_lines
from rerank.experiment.chain import stages_of
from rerank.experiment.corpus import MAX_MONOLINGUAL
from rerank.experiment.experiment import Experiment
from rerank.experiment.file import parse_experiment, read_experiment
from rerank.experiment.machine import Machine
from rerank.experiment.plan import apply_plan, find_plan, plan_lines

Command = Callable[..., tuple[int, bytes, str]]

EXPERIMENT = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en", monolingual = "mono.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }

[models]
forward = { preset = "rnnsearch", hidden_size = 8, embedding_size = 8, attention_size = 8, epochs = 1, upsample = 2 }
backward = { preset = "rnnsearch", backward = true, hidden_size = 8, embedding_size = 8, epochs = 1 }

[features]
NMT = "neural:forward"
Back = "neural:backward"

[tuning]
tuner = "kbmira"
iterations = 3
runs = 1
folds = 0
"""


@pytest.fixture
def folder(small: Callable[..., Path], sample: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with an experiment of ten sentences and a monolingual text."""
    folder = small(pairs=30, sentences=10, candidates=6)
    lines = (sample / "train.en").read_text(encoding="utf-8").splitlines(keepends=True)
    references = (folder / "dev.en").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "mono.en").write_text("".join([*lines[100:140], references[3]]), encoding="utf-8")
    (folder / "e.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("jobs", [1, 2])
def test_forward_models_train_on_the_translated_text(jobs: int, command: Command, folder: Path, tmp_path: Path) -> None:
    status, _, err = command("run", "e.toml", "--jobs", jobs)
    assert status == 0
    assert "mono.en: 1 sentence also among the references, left out" in err
    order = re.findall(r"^\[\d+/\d+\] (train \w+|select monolingual text|back-translate)", err, re.MULTILINE)
    assert order == ["select monolingual text", "train backward", "back-translate", "train forward"]
    synthetic = ParallelFiles(*(f"work/monolingual.{name}gz" for name in ("translations.", "")))
    assert read_lines(synthetic.target) == read_lines("mono.en")[:40]
    if jobs == 1:  # otherwise a model trains on fewer threads
        files = TrainingFiles(ParallelFiles("train.de", "train.en"), ParallelFiles("dev.de", "dev.en"), synthetic)
        settings = {"hidden_size": 8, "embedding_size": 8, "attention_size": 8, "epochs": 1, "upsample": 2}
        train_model(TrainingRequest("rnnsearch", settings=settings), files, str(tmp_path / "alone"), "cpu")
        trained, alone = (load_file(path / WEIGHTS) for path in (folder / "work/models/forward", tmp_path / "alone"))
        assert all(bool((trained[name] == alone[name]).all()) for name in alone)
    status, _, err = command("run", "e.toml", "--jobs", jobs)
    assert status == 0 and len(re.findall(r"^\[", err, re.MULTILINE)) == err.count(": up to date") > 5


def test_another_text_is_translated_again(command: Command, folder: Path) -> None:
    command("run", "e.toml", "--jobs", 1)
    (folder / "mono.en").write_text("a man .\n")
    status, _, err = command("run", "e.toml", "--jobs", 1)
    assert status == 0 and re.search(r"train backward: up to date", err)
    assert read_lines("work/monolingual.gz") == ["a man ."]
    assert re.search(r"^\[3/\d+\] back-translate(?!: up)", err, re.MULTILINE)
    assert re.search(r"^\[4/\d+\] train forward(?!: up)", err, re.MULTILINE)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("backward = true, ", "", r"train.monolingual: expected a backward model in \[models\], which translates this"),
        (', monolingual = "mono.en"', "", r"models.forward: setting 'upsample' is for training on synthetic pairs"),
        (
            "backward = true",
            "backward = true, upsample = 3",
            r"models.backward: setting 'upsample' is for forward m",
        ),
        ("mono.en", "none.en", r"none.en: No such file or directory"),
        ("mono.en", "empty.en", r"empty.en: no sentence of 1 to 80 words"),
        ("mono.en", "train.de", r"train.de: expected text of the target language, but 100 % of its words occur in "),
        (
            "hidden_size = 8, embedding_size = 8, attention_size = 8, epochs = 1, upsample = 2",
            "backward = true",
            r"train.monolingual: no forward model or language model in",
        ),
    ],
)
def test_incompatible_settings_are_errors_in_one_line(
    before: str, after: str, message: str, command: Command, folder: Path
) -> None:
    (folder / "empty.en").write_text("\n\n")
    (folder / "e.toml").write_text(EXPERIMENT.replace(before, after, 1))
    status, _, err = command("run", "e.toml")
    assert status == 2 and re.search(message, err.splitlines()[-1])
    assert not (folder / "work" / "models").exists()


@pytest.fixture
def unplanned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment without models, on a machine with known speed."""
    monkeypatch.setattr("rerank.experiment.plan.measure_factors", lambda *_, **__: TimeFactors())
    tables = EXPERIMENT.partition("[models]")
    (folder / "e.toml").write_text(f"{tables[0]}[tuning]{tables[2].partition('[tuning]')[2]}")
    return folder / "e.toml"


def planned(path: Path, minutes: float) -> tuple[list[str], Experiment]:
    """Return the report lines of a plan and the planned experiment."""
    experiment = read_experiment(str(path), minutes=minutes)
    assert experiment.unplanned
    plan = find_plan(experiment, Machine("cpu", 2))
    return plan_lines(plan), apply_plan(experiment.unplanned, plan)


def test_plans_train_a_language_model_on_the_text(unplanned: Path) -> None:
    lines, experiment = planned(unplanned, 600)
    assert any(line.startswith("language-model: lstm-lm, ") for line in lines)
    stages = [stage.name for stage in stages_of(experiment, Resources("cpu"))]
    assert "select monolingual text" in stages and "back-translate" not in stages
    assert (
        experiment.models["language-model"].request.resolve()[1].bpe
        == experiment.models["backward"].request.resolve()[1].bpe
    )
    assert 'monolingual = "../mono.en", back_translation = false }' in experiment.text
    assert experiment.features["NLM"].text == "neural:language-model[logprob]"


def test_plans_of_short_runs_omit_the_text(unplanned: Path) -> None:
    lines, experiment = planned(unplanned, 2)
    assert lines[-1] == "the monolingual text is not used: the run has too little time"
    assert not experiment.monolingual and "mono.en" not in experiment.text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a man .\n", r"it has fewer than 0\.2 sentences for each pair of the corpus"),
        ("a man .\n" * 5, r"it has fewer than 0\.2 sentences for each pair of the corpus"),
        (
            "the q w .\n" * 150,
            r"it is from another domain: its first sentences raise the perplexity of dev by bigrams from \d+ to \d+",
        ),
    ],
)
def test_a_text_that_would_not_help_is_not_used(content: str, reason: str, unplanned: Path) -> None:
    (unplanned.parent / "mono.en").write_text(content)
    lines, experiment = planned(unplanned, 600)
    assert re.fullmatch(f"the monolingual text is not used: {reason}", lines[-1])
    assert not experiment.monolingual


def test_a_corpus_without_usable_sentences_is_an_error(unplanned: Path) -> None:
    (unplanned.parent / "train.en").write_text("a " * 81 + "\n" + "\n" * 29)
    with pytest.raises(InputError, match=r"train\.en: no sentence of 1 to 80 words"):
        planned(unplanned, 600)


def test_back_translation_is_an_error_in_a_planned_run(command: Command, unplanned: Path) -> None:
    unplanned.write_text(unplanned.read_text().replace('"mono.en"', '"mono.en", back_translation = true'))
    status, _, err = command("run", "e.toml")
    assert status == 2 and "train.back_translation: is for experiments that name their models. Remove it" in err


@pytest.mark.parametrize("content", ["\n\n", "der die das\n"])
def test_an_unused_text_is_checked(content: str, command: Command, unplanned: Path) -> None:
    (unplanned.parent / "mono.en").write_text(content)
    status, _, err = command("run", "e.toml", "--minutes", 1)
    assert status == 2 and re.search(r"mono\.en: (no sentence of 1 to|expected text of the target)", err)


@pytest.mark.slow
def test_a_planned_run_with_monolingual_text(
    command: Command, unplanned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"batch_size": 16, "embedding_size": 8, "hidden_size": 8, "attention_size": 8}
    monkeypatch.setattr("rerank.experiment.recipe.SMALL", small)
    monkeypatch.setattr("rerank.experiment.recipe.MIN_UPDATES", 10)
    monkeypatch.setattr("rerank.experiment.recipe.MODELS", ("left-to-right", "right-to-left"))
    status, _, err = command("run", "e.toml", "--minutes", 60, "--device", "cpu")
    assert status == 0, err
    assert re.search(r"^\[\d+/\d+\] train language-model", err, re.MULTILINE)
    status, _, err = command("run", "work/experiment.toml", "--device", "cpu")
    assert status == 0 and len(re.findall(r"^\[", err, re.MULTILINE)) == err.count(": up to date") > 10


def test_without_back_translation_only_language_models_train_on_the_text(folder: Path) -> None:
    text = EXPERIMENT.replace('"mono.en"', '"mono.en", back_translation = false').replace(", upsample = 2", "")
    with pytest.raises(InputError, match=r"train\.monolingual: no language model \(back_translation = false\) in "):
        parse_experiment(text.encode(), "e.toml")
    experiment = parse_experiment(
        text.replace("[features]", 'lm = { preset = "lstm-lm" }\n\n[features]').encode(), "e.toml"
    )
    stages = [stage.name for stage in stages_of(experiment, Resources("cpu"))]
    assert "select monolingual text" in stages and "back-translate" not in stages
    assert (experiment.synthetic("forward"), experiment.synthetic("lm") is None) == (None, False)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('monolingual = "mono.en", back_translation = 1', r"train\.back_translation: expected true or false, found 1"),
        ("back_translation = true", r"train\.back_translation: there is no train\.monolingual\. Remove it"),
    ],
)
def test_wrong_back_translation_keys_are_errors(table: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_experiment(EXPERIMENT.replace('monolingual = "mono.en"', table).encode(), "e.toml")


def test_expected_times_of_a_long_text_are_capped(folder: Path) -> None:
    """Text beyond `MAX_MONOLINGUAL` times the corpus does not increase the expected time of a stage."""
    seconds: dict[int, dict[str, float]] = {}
    for times in (1, MAX_MONOLINGUAL, 2 * MAX_MONOLINGUAL):
        (folder / "mono.en").write_text("a man sits there .\n" * 30 * times)
        stages = stages_of(read_experiment("e.toml"), Resources("cpu"))
        seconds[times] = {stage.name: stage.work.seconds for stage in stages if stage.work}
    for name in ("back-translate", "train forward"):
        short, long, longer = (each[name] for each in seconds.values())
        assert short < long == pytest.approx(longer)
    assert len({each["train backward"] for each in seconds.values()}) == 1


def test_language_models_need_no_back_translation(folder: Path) -> None:
    """A backward model is not needed either."""
    models = (
        '[models]\nlm = { preset = "lstm-lm" }\nsym = { preset = "cohn-align-sym" }\n\n[features]\nLM = "neural:lm"\n\n'
    )
    tables = EXPERIMENT.partition("[models]")[0] + models + "[tuning]" + EXPERIMENT.partition("[tuning]")[2]
    (folder / "e.toml").write_text(tables)
    read = {stage.name: stage.inputs for stage in stages_of(read_experiment("e.toml"), Resources("cpu"))}
    assert list(read)[:3] == ["select monolingual text", "train lm", "train sym"]
    selected = str(folder / "work" / "monolingual.gz")
    assert selected in read["train lm"] and selected not in read["train sym"]
    assert "back-translate" not in read


def test_candidates_of_a_language_model_are_an_error() -> None:
    for key in ("candidates = 20", 'translate_with = "forward"'):
        entry = f'lm = {{ preset = "lstm-lm", {key} }}\n[features]'
        with pytest.raises(InputError, match=r"models\.lm: candidates: a language model does not translate"):
            parse_experiment(EXPERIMENT.replace("[features]", entry).encode(), "e.toml")
