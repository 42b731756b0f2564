"""The main workflow on the sample, as a user runs it."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from features.kinds.external import FORMATS
from features.models.cost import TimeFactors
from features.models.tables import ADDED, PER_WORD, VALUES
from moses_io.nbest import read_nbest
from rerank import __version__
from rerank.sample import sample_experiment
from rerank.systems.attention import read_attention
from rerank.systems.translations import MIN_LENGTH

Command = Callable[..., tuple[int, bytes, str]]
Executed = Callable[[str], list[str]]

EXPERIMENT = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
test = { source = "test.de", reference = "test.en", nbest = "test.nbest" }

[models]
forward = { preset = "cohn-align", embedding_size = 24, hidden_size = 32, epochs = 2, learning_rate = 0.01 }

[features]
NMT = "neural:forward"
Len = "length"

[tuning]
tuner = "kbmira"
iterations = 10
runs = 2
"""


MINE = """\
import numpy as np


class Mine:
    def __init__(self, argument, resources):
        self.signature = "mine"

    def __call__(self, sentences):
        return np.array([[float(len(words) % 3)] for each in sentences for words in each.hypotheses])
"""


@pytest.fixture
def experiment(small: Callable[..., Path]) -> Path:
    """An experiment file with a small part of the sample."""
    path = small() / "experiment.toml"
    path.write_text(EXPERIMENT)
    return path


def test_run_executes_all_stages_and_later_only_changed_ones(
    command: Command, executed: Executed, experiment: Path
) -> None:
    status, out, err = command("run", experiment, "--device", "cpu")
    assert status == 0
    scoring = [
        stage for name in ("dev", "test") for stage in (f"score {name} NMT", f"score {name} Len", f"join {name}")
    ]
    last_stages = ["ablate dev", "ablate test", "ablate", "attend test", "evaluate", "save the reranker"]
    ending = ["tune", "estimate confidence", "rerank test", *last_stages]
    assert executed(err) == [
        "train forward",
        *scoring,
        *ending[:2],
        "select Moses' choices",
        "rerank test",
        *last_stages,
    ]
    work = experiment.parent / "work"
    assert out.decode() == (work / "report.txt").read_text()
    report = json.loads((work / "report.json").read_text())
    moses, reranked = report["systems"]
    assert (moses["system"], reranked["system"]) == ("moses", "reranked")
    assert "p_value" in reranked["BLEU"]
    assert report["oracle"]["BLEU"]["score"] > moses["BLEU"]["score"]
    assert len((work / "test.reranked").read_text().split("\n")) == 41
    attentions = read_attention(str(work / "test.attention.npz"))
    assert list(attentions) == [(number, system) for number in range(40) for system in ("moses", "reranked")]
    assert {model for every in attentions.values() for model in every} == {"forward"}

    status, again, err = command("run", experiment)
    assert (status, again, executed(err)) == (0, out, [])

    experiment.write_text(EXPERIMENT.replace("iterations = 10", "iterations = 11"))
    assert executed(command("run", experiment)[2])[0] == "tune"
    experiment.write_text(EXPERIMENT.replace('Len = "length"', 'Words = "length"'))
    renamed = ["score dev Words", "join dev", "score test Words", "join test", "tune"]
    assert executed(command("run", experiment)[2])[:5] == renamed
    experiment.write_text(EXPERIMENT.replace("epochs = 2", "epochs = 1"))
    assert executed(command("run", experiment)[2]) == [
        "train forward",
        *(stage for stage in scoring if not stage.endswith("Len")),
        *ending,
    ]


def test_features_of_the_same_model_are_one_stage(command: Command, executed: Executed, experiment: Path) -> None:
    """The scored list equals the output of `score`."""
    text = EXPERIMENT.replace('Len = "length"', 'Len = "length"\nLinked = "links:forward"')
    experiment.write_text(text)
    stages = executed(command("run", experiment, "--device", "cpu")[2])
    assert stages[1:4] == ["score dev NMT", "score dev Len", "join dev"]
    folder, work = experiment.parent, experiment.parent / "work"
    model = work / "models" / "forward"
    requests = [f"NMT=neural:{model}", f"Linked=links:{model}", "Len=length"]
    features = [argument for each in requests for argument in ("--feature", each)]
    status, scored, _ = command("score", folder / "dev.nbest", "--source", folder / "dev.de", *features)
    assert (status, gzip.decompress((work / "dev.nbest.gz").read_bytes())) == (0, scored)
    experiment.write_text(text.replace("[features]", '[features]\nCopied = "copied"'))
    assert executed(command("run", experiment, "--device", "cpu")[2])[:2] == ["score dev Copied", "join dev"]


@pytest.mark.slow
def test_models_add_candidates_in_run_and_apply(command: Command, executed: Executed, experiment: Path) -> None:
    """The models of one entry translate together."""
    text = EXPERIMENT.replace("epochs = 2", "candidates = 3, seeds = 2, epochs = 1")
    experiment.write_text(text.replace("neural:forward", "neural:forward[logprob,added]"))
    status, out, err = command("run", experiment, "--device", "cpu", "--jobs", 1)
    assert status == 0 and {"translate dev", "translate test"} <= set(executed(err))
    work = experiment.parent / "work"
    assert re.search(
        rb"\nlists of the reranked translations: \d+ only in Moses, \d+ only in forward, \d+ in both\n", out
    )
    lists = list(read_nbest(str(work / "test.nbest.gz")))
    own = list(read_nbest(str(experiment.parent / "test.nbest")))
    for merged, before in zip(lists, own, strict=True):
        count = len(before.hypotheses)
        assert [each.text for each in merged.hypotheses[:count]] == [each.text for each in before.hypotheses]
        values = [dict(each.dense) for each in merged.hypotheses]
        assert [each["FromMoses"] for each in values] == [(float(n < count),) for n in range(len(values))]
        assert all(each["NMT1"] == (each["NMT1"][0], each["NMT1"][0] * (n >= count)) for n, each in enumerate(values))
        assert sum(each["Fromforward"] == (1.0,) for each in values) <= 3
        assert merged.highest_total == before.highest_total
    alone = (work / "test.translations.forward").read_text().splitlines()
    for translation, merged in zip(alone, lists, strict=True):
        added = [each.text for each in merged.hypotheses if dict(each.dense)["Fromforward"] == (1.0,)]
        lengths = [len(each.text.split()) for each in merged.hypotheses if dict(each.dense)["FromMoses"] == (1.0,)]
        assert (translation in added) == (len(translation.split()) >= MIN_LENGTH * min(lengths))
    systems = json.loads((work / "report.json").read_text())["systems"]
    assert [each["system"] for each in systems] == ["moses", "reranked", "translations of forward"]
    assert b"translations of forward" in out and all(each["BLEU"]["score"] >= 0 for each in systems)
    applied = ("apply", work / "reranker", experiment.parent / "test.nbest", "--source", experiment.parent / "test.de")
    for batch in ((), ("--batch-size", "1")):
        status, out, err = command(*applied, *batch, "--device", "cpu")
        assert status == 0 and out == (work / "test.reranked").read_bytes()
    (signature,) = re.findall("candidates of forward = (.*)", err)
    assert signature.count("preset:cohn-align|") == 2


@pytest.fixture
def unplanned(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment without models and test sets. `run` plans two tiny models that may add translations."""
    monkeypatch.setattr("rerank.experiment.recipe.MIN_UPDATES", 10)
    monkeypatch.setattr("rerank.experiment.recipe.MODELS", ("left-to-right", "right-to-left"))
    monkeypatch.setattr("rerank.experiment.plan.measure_factors", lambda *_, **__: TimeFactors())
    monkeypatch.setattr("rerank.experiment.recipe._adds_translations", lambda _: True)
    monkeypatch.setattr(
        "rerank.experiment.recipe.SMALL",
        {"batch_size": 16, "embedding_size": 16, "hidden_size": 16, "attention_size": 16},
    )
    files, _, tuning = EXPERIMENT.partition("[tuning]")
    experiment.write_text(f"{files.partition('test =')[0]}\n[tuning]{tuning}")
    for side in ("de", "en"):
        train = experiment.parent / f"train.{side}"
        train.write_bytes(b"".join(train.read_bytes().splitlines(keepends=True)[:40]))
    return experiment


def test_a_run_with_planned_models(command: Command, executed: Executed, unplanned: Path) -> None:
    """The complete file is the same experiment. Translations of these models are too bad to be added."""
    status, out, err = command("run", unplanned, "--device", "cpu", "--jobs", 1)
    assert status == 0, err
    assert executed(err)[0] == "choose models and features"
    assert "translations of models are not added to the lists" in err
    written = unplanned.parent / "work" / "experiment.toml"
    assert not re.search("candidates =|fine_tuning", written.read_text())
    status, again, err = command("run", written)
    assert (status, again, executed(err)) == (0, out, [])
    assert executed(command("run", unplanned)[2]) == []


@pytest.mark.slow
def test_translations_of_good_models_are_added(
    command: Command, executed: Executed, unplanned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rerank.systems.comparison.Comparison.added", True)
    status, _, err = command("run", unplanned, "--device", "cpu", "--jobs", 1)
    assert status == 0, err
    assert {"compare translations", "translate dev"} <= set(executed(err))
    assert "candidates = 10" in (unplanned.parent / "work" / "experiment.toml").read_text()
    assert executed(command("run", unplanned)[2]) == []


@pytest.mark.slow
def test_a_changed_comparison_does_not_repeat_the_training(
    command: Command, executed: Executed, unplanned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("run", unplanned, "--device", "cpu", "--jobs", 1)[0] == 0
    monkeypatch.setattr("rerank.systems.comparison.Comparison.added", True)
    monkeypatch.setattr("rerank.experiment.chain.MIN_RATIO", 0.0)
    status, _, err = command("run", unplanned, "--device", "cpu", "--jobs", 1)
    assert status == 0, err
    assert "translate dev" in executed(err) and not any(name.startswith("train ") for name in executed(err))


@pytest.mark.slow
def test_two_jobs_give_the_results_of_one(
    command: Command, executed: Executed, experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
    small = "embedding_size = 8, hidden_size = 8, attention_size = 8, updates = 5"
    other = f'other = {{ preset = "rnnsearch", {small} }}\n\n[features]'
    text = re.sub("test = .*", "", EXPERIMENT).replace(
        "[features]", f'{other}\nOther = "neural:other"\nMine = "mine:Mine"'
    )
    experiment.write_text(text)
    (experiment.parent / "mine.py").write_text(MINE)
    work, results = experiment.parent / "work", []
    for jobs in (1, 2):
        status, out, err = command("run", experiment, "--device", "cpu", "--jobs", jobs, "--allow-code")
        assert (status, len(executed(err))) == (0, 12), err
        results.append((out, gzip.decompress((work / "dev.nbest.gz").read_bytes())))
        shutil.rmtree(work)
    assert results[0] == results[1]


def test_an_error_in_a_process_is_reported_with_its_stage(command: Command, experiment: Path) -> None:
    other = 'other = { preset = "rnnsearch", updates = 5 }\n\n[features]\nOther = "neural:other"'
    experiment.write_text(EXPERIMENT.replace("[features]", other))
    (experiment.parent / "train.en").write_text("one line\n")
    status, _, err = command("run", experiment, "--jobs", 2)
    assert status == 2
    assert re.fullmatch("moses-rerank run: train (forward|other): .*train.en has 1 line, .*", err.splitlines()[-1])


def test_model_pairs_ensembles_and_pretrained_models(command: Command, executed: Executed, experiment: Path) -> None:
    models = """
pair = { preset = "cohn-align-sym", SMALL }
fertile = { preset = "cohn-align-sym-glofer-pre", pretrained_model = "pair", SMALL }
""".replace("SMALL", "embedding_size = 12, hidden_size = 16, attention_size = 12, updates = 5")
    features = 'Both = "ensemble:pair/forward,fertile/forward"\nBack = "neural:fertile/backward"'
    text = EXPERIMENT.replace('[features]\nNMT = "neural:forward"', f"{models}\n[features]\n{features}")
    experiment.write_text("\n".join(line for line in text.split("\n") if not line.startswith("forward")))
    status, _, err = command("run", experiment, "--device", "cpu", "--jobs", 1)
    assert status == 0, err
    assert executed(err)[:3] == ["train pair", "train fertile", "score dev Both"]
    work = experiment.parent / "work"
    assert {path.name for path in (work / "models" / "pair").iterdir()} == {"forward", "backward"}
    card = (work / "reranker" / "README.md").read_text()
    assert re.search(r"^\| signature \| reranker\\\|sha256:[0-9a-f]{12} \|$", card, re.MULTILINE)
    rows = re.findall(r"^\| (model .*), perplexity .*$", card, re.MULTILINE)
    assert rows == [
        "model pair-forward | cohn-align-sym, forward",
        "model fertile-forward | cohn-align-sym-glofer-pre, forward",
        "model fertile-backward | cohn-align-sym-glofer-pre, backward",
    ]
    assert executed(command("run", experiment)[2]) == []


def test_the_sparse_weight_file_of_the_initial_weights_is_an_input(
    command: Command, executed: Executed, experiment: Path
) -> None:
    without_models = EXPERIMENT.replace('NMT = "neural:forward"\n', "")
    experiment.write_text(
        without_models[: without_models.index("[models]")] + without_models[without_models.index("[features]") :]
    )
    initial, sparse = experiment.parent / "moses.ini", experiment.parent / "sparse"
    initial.write_text(initial.read_text() + "\n[weight-file]\nsparse\n")
    sparse.write_text("T_a 0.5\n")
    assert command("run", experiment)[0] == 0
    assert executed(command("run", experiment)[2]) == []
    sparse.write_text("T_a 0.25\n")
    assert executed(command("run", experiment)[2])[0] == "tune"


def test_a_killed_training_is_resumed_unless_its_settings_change(
    command: Command, experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from features.models.training import epoch

    begin, epochs = epoch.bucketed, iter(range(1, 9))

    def die(*arguments: Any) -> Any:
        if next(epochs) == 2:
            raise KeyboardInterrupt
        return begin(*arguments)

    monkeypatch.setattr(epoch, "bucketed", die)
    assert command("run", experiment)[0] == 130
    models = experiment.parent / "work" / "models"
    assert [path.name[:18] for path in models.iterdir()] == [".forward.training-"]
    assert "continuing after epoch 1" in command("run", experiment)[2]
    assert [path.name for path in models.iterdir()] == ["forward"]
    killed = next(iter(models.iterdir())).with_name(".forward.training-x")
    killed.mkdir()
    experiment.write_text(EXPERIMENT.replace("epochs = 2", "epochs = 1"))
    assert "continuing after" not in command("run", experiment)[2]
    assert [path.name for path in models.iterdir()] == ["forward"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('Len = "length"', 'LM0 = "length"', "dev.nbest:1: the list already has a feature 'LM0'"),
        ('nbest = "test.nbest"', 'nbest = "nowhere"', "nowhere: No such file or directory"),
        ('reference = "dev.en"', 'reference = "train.en"', "train.en has 300 lines"),
        ('initial_weights = "moses.ini"', 'initial_weights = "dev.en"', "expected 'Name= value …'"),
        (
            'initial_weights = "moses.ini"',
            'initial_weights = "work/weights.ini"',
            "the experiment reads this file and would write over it",
        ),
        (
            "epochs = 2",
            "candidates = 0",
            "models.forward: candidates: expected a whole number from 1 to 10000, found 0",
        ),
        (
            "epochs = 2",
            "candidates = 2, backward = true",
            "models.forward: candidates: a backward model predicts the source",
        ),
        (
            "forward = {",
            "1-st = { candidates = 2,",
            "models.1-st: candidates: expected a name that begins with a letter",
        ),
        (
            'preset = "cohn-align",',
            'candidates = 2, preset = ["cohn-align", "choi-baseline"],',
            "models.forward: candidates: forward-cohn-align-1 and forward-choi-baseline-1 have different target",
        ),
        (
            "epochs = 2",
            'translate_with = "forward"',
            "models.forward.translate_with: expected the name of a model with candidates, found 'forward'",
        ),
        ('"neural:forward"', '"neural:forwards"', "features.NMT: no model and no folder 'forwards'. Models: forward"),
        ('"neural:forward"', '"neural:forward[added]"', "feature 'NMT': the value 'added' is for merged lists"),
    ],
)
def test_wrong_experiments_are_reported_before_training(
    command: Command, experiment: Path, before: str, after: str, message: str
) -> None:
    (experiment.parent / "work").mkdir()
    shutil.copy(experiment.parent / "moses.ini", experiment.parent / "work" / "weights.ini")
    experiment.write_text(EXPERIMENT.replace(before, after))
    status, _, err = command("run", experiment)
    assert status == 2
    assert message in err
    assert "perplexity" not in err


def test_pipes_and_links_in_an_experiment_are_errors(command: Command, experiment: Path) -> None:
    work = experiment.parent / "work"
    work.mkdir()
    (work / "models").symlink_to(experiment.parent)
    status, _, err = command("run", experiment)
    assert (status, f"{work}/models: a symbolic link, expected a folder. Remove it" in err) == (2, True)
    for name in ("moses.ini", "test.nbest", "dev.en", "train.de"):
        (experiment.parent / name).unlink()
        os.mkfifo(experiment.parent / name)
        status, _, err = command("run", experiment)
        assert (status, f"{name}: a pipe or a device, expected a plain file" in err) == (2, True)


def test_an_experiment_does_not_depend_on_the_working_directory(
    command: Command, executed: Executed, experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment.write_text(EXPERIMENT.replace('NMT = "neural:forward"\n', "").replace("forward = ", "# "))
    assert executed(command("run", experiment)[2])[0] == "score dev Len"
    monkeypatch.chdir(experiment.parent)
    assert executed(command("run", experiment.name)[2]) == []
    (experiment.parent / "work" / "report.html").unlink()
    assert executed(command("run", experiment.name)[2]) == ["evaluate"]


def test_score_tune_rerank_and_evaluate(
    command: Command, experiment: Path, tmp_path: Path, models: dict[str, Path]
) -> None:
    scored, weights, out = tmp_path / "scored.gz", tmp_path / "weights.ini", tmp_path / "out"
    for name in ("dev", "test"):
        arguments = ["--source", tmp_path / f"{name}.de", "--feature", f"NMT=neural:{models['forward']}"]
        assert command("score", tmp_path / f"{name}.nbest", *arguments, "--output", f"{scored}.{name}.gz")[0] == 0
    tune = ["tune", f"{scored}.dev.gz", "--reference", tmp_path / "dev.en", "--initial-weights", tmp_path / "moses.ini"]
    status, _, err = command(*tune, "--tuner", "kbmira", "--seed", 2, "--output", weights)
    assert status == 0
    assert "features without a weight in" in err and "start at 0: NMT" in err
    signature = next(line for line in err.split("\n") if line.startswith("signature: "))
    assert weights.read_text().startswith(f"# {signature.removeprefix('signature: ')}\n")
    assert (
        f"seed:2|runs:5|metric:BLEU|tok:space|smooth:none|reflen:closest|references:1|version:{__version__}"
        in signature
    )
    rerank = ["rerank", f"{scored}.test.gz", "--weights", weights, "--source", tmp_path / "test.de", "--output", out]
    assert command(*rerank)[0] == 0
    status, table, _ = command("evaluate", "--reference", tmp_path / "test.en", out, "--nbest", tmp_path / "test.nbest")
    assert status == 0
    assert table.decode().startswith("system")
    status, printed, _ = command("evaluate", "--reference", tmp_path / "test.en", out, tmp_path / "test.en", "--json")
    systems = json.loads(printed)["systems"]
    assert systems[1]["BLEU"]["score"] == pytest.approx(100)
    assert 0 < systems[1]["BLEU"]["p_value"] < 0.05


@pytest.fixture
def train(small: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command that trains on files of the working directory."""
    monkeypatch.chdir(small())
    files = ["--source", "train.de", "--target", "train.en", "--dev-source", "dev.de", "--dev-target", "dev.en"]
    return ["train", *files, "--output", "model"]


def test_train_on_files(command: Command, train: list[str]) -> None:
    sizes = ["--set", "embedding_size=8", "hidden_size=8", "attention_size=8", "updates=3"]
    assert command(*train, "--preset", "rnnsearch", "--backward", *sizes)[0] == 0
    assert json.loads(Path("model/config.json").read_text())["direction"] == "backward"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--preset", "rnnsearch", "--alignment", "gdfa"], "gdfa: a word alignment is for the settings"),
        (
            ["--preset", "rnnsearch", "--alignment", "gdfa", "--set", "lexicon=bias"],
            "gdfa:2: expected links such as '0-0 1-2'",
        ),
        (
            ["--preset", "rnnsearch", "--set", "guided_alignment=1"],
            "setting 'guided_alignment' needs the word alignment of the corpus",
        ),
        (
            ["--preset", "encdec", "--set", "guided_alignment=1"],
            "setting 'guided_alignment' needs a decoder with attention to the source",
        ),
        (["--preset", "rnnserch"], "unknown preset 'rnnserch'. Did you mean 'rnnsearch'?"),
        (["--preset", "rnnsearch", "--set", "hiden=3"], "unknown setting 'hiden'. Did you mean 'hidden_size'?"),
        (["--preset", "rnnsearch", "--set", "hidden"], "--set hidden: expected KEY=VALUE"),
        (["--preset", "rnnsearch", "--output", "."], "the folder is not empty"),
    ],
)
def test_wrong_arguments_of_train_are_errors(
    command: Command, train: list[str], wrong: list[str], message: str
) -> None:
    Path("gdfa").write_text("0-0\n0-x\n")
    status, _, err = command(*train, *wrong)
    assert (status, message in err) == (2, True)
    assert not Path("model").exists()


def test_settings_of_a_tuner_must_be_numbers(command: Command) -> None:
    for item in ("restarts", "restarts=", "restarts=many", "restarts=1_0"):
        status, _, err = command("tune", "list", "--reference", "text", "--initial-weights", "moses.ini", "--set", item)
        assert (status, err) == (2, f"moses-rerank tune: --set {item}: expected KEY=NUMBER\n")


def test_the_sample_has_all_files_of_the_demo(tmp_path: Path) -> None:
    experiment = sample_experiment(str(tmp_path))
    paths = [experiment.initial_weights, experiment.train.source, experiment.train.target]
    paths += [path for part in experiment.sets.values() for path in part.files]
    assert all(Path(path).is_file() for path in paths)
    assert experiment.output == tmp_path


def test_the_demo_trains_the_same_models_on_all_machines(tmp_path: Path) -> None:
    experiment = sample_experiment(str(tmp_path))
    assert experiment.unplanned is None
    assert list(experiment.models) == ["left-to-right", "right-to-left"]
    assert list(experiment.features) == ["NMTltr", "NMTrtl", "Consensus"]


def test_the_generator_writes_the_sample(tmp_path: Path, sample: Path) -> None:
    script = Path(__file__).parent.parent / "scripts" / "make_corpus.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, stdout=subprocess.DEVNULL)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (sample / path.name).read_bytes()
    assert len(list(tmp_path.iterdir())) == 6


def test_version_is_printed(command: Command, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(SystemExit) as caught:
        command("--version")
    assert caught.value.code == 0
    assert capfdbinary.readouterr().out.decode() == f"moses-rerank {__version__}\n"


def test_presets_lists_presets_and_settings(command: Command) -> None:
    presets = command("presets")[1].decode()
    names = [line.split(" ")[0] for line in presets.partition("\n\n")[0].splitlines()]
    assert len(names) == 30 and {"rnnsearch", "cohn-align-sym-glofer-pre", "yang-window11"} < set(names)
    for setting in ("hidden_size=256\n", "cell=lstm  ", "| gru | rnn\n", "attend_bos_eos=true\n", "schedule=linear "):
        assert f" {setting}" in presets


def test_features_lists_kinds_values_and_formats(command: Command) -> None:
    features = command("features")[1].decode()
    kinds, values, forms = ([line.split(" ")[0] for line in part.splitlines()] for part in features.split("\n\n"))
    assert kinds[:2] == ["neural:DIR", "ensemble:DIR,DIR,…"] and "length[:SOURCE,TARGET]" in kinds
    assert values[1:] == [*VALUES, PER_WORD, ADDED]
    assert forms[1:] == sorted([*FORMATS, "fairseq"])


def test_a_closed_pipe_causes_no_traceback(sample: Path) -> None:
    code = "import sys; from rerank.cli import main; sys.exit(main(sys.argv[1:]))"
    score = f"{sys.executable} -c '{code}' score {sample}/dev.nbest.gz --source {sample}/dev.de --feature length"
    script = f"{score} | head -n 1; exit ${{PIPESTATUS[0]}}"
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.count("\n")) == (141, 1)
    assert "Traceback" not in run.stderr


def test_an_occupied_folder_is_an_error_before_any_training(command: Command, train: list[str]) -> None:
    """Several models: the last folder is occupied, and the first model is not trained."""
    Path("many/encdec-1").mkdir(parents=True)
    Path("many/encdec-1/weights").touch()
    status, _, err = command(*train, "--preset", "rnnsearch,encdec", "--output", "many")
    assert (status, "many/encdec-1: the folder is not empty" in err) == (2, True)
    assert not Path("many/rnnsearch-1").exists()
